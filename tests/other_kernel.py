"""Print an OpenBLAS kernel that this machine can run and would not choose, or nothing where numpy has no OpenBLAS.

Matrix products round differently from kernel to kernel, so that a test that is green with one may be red with another.
"""

import platform
import sys

import numpy as np
from threadpoolctl import threadpool_info

_OTHERS = {"SkylakeX": "Haswell", "Cooperlake": "Haswell", "Sapphirerapids": "Haswell"}
_OLDEST = {"x86_64": "Prescott", "AMD64": "Prescott", "aarch64": "ARMV8", "arm64": "ARMV8"}


def other_kernel() -> str:
    """Name for OPENBLAS_CORETYPE: Haswell's on processors with AVX-512, else the oldest of the architecture."""
    np.eye(2) @ np.eye(2)
    own = [pool["architecture"] for pool in threadpool_info() if pool["internal_api"] == "openblas"]
    return _OTHERS.get(own[0], _OLDEST.get(platform.machine(), "")) if own else ""


if __name__ == "__main__":
    sys.stdout.write(other_kernel())
