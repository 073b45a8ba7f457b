from . import _kernels as _kernels

__all__ = ["_kernels"]
