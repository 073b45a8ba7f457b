"""Parameter checks; each raises a ValueError that names the parameter, its value and the allowed values."""

from collections.abc import Collection
from numbers import Integral, Real
from typing import Any

import numpy as np


def check_choice(name: str, value: Any, choices: Collection[Any]) -> None:
    """Check that a value is one of the choices."""
    if value not in choices:
        raise ValueError(f"{name}={value!r} should be one of {', '.join(map(str, choices))}.")


def check_whole(name: str, value: Any, least: int, most: int | None = None) -> None:
    """Check that a value is an integer from `least` to `most`."""
    if not isinstance(value, Integral) or int(value) < least or (most is not None and int(value) > most):
        limits = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name}={value!r} should be an integer {limits}.")


def check_number(name: str, value: Any, least: float, most: float = np.inf) -> None:
    """Check that a value is a finite number from `least` to `most`."""
    if not (isinstance(value, Real) and least <= float(value) <= most and float(value) < np.inf):
        limits = f"of at least {least:g}" if most == np.inf else f"from {least:g} to {most:g}"
        raise ValueError(f"{name}={value!r} should be a number {limits}.")


def check_positive(name: str, value: Any, most: float = np.inf) -> None:
    """Check that a value is a finite number greater than 0 and at most `most`."""
    if not (isinstance(value, Real) and 0 < float(value) <= most and float(value) < np.inf):
        limits = "greater than 0" if most == np.inf else f"greater than 0 and at most {most:g}"
        raise ValueError(f"{name}={value!r} should be a number {limits}.")


def check_dense(name: str, value: Any) -> None:
    """Raise TypeError for a sparse matrix, and ValueError for complex numbers, whose imaginary part would be lost."""
    if hasattr(value, "toarray"):
        raise TypeError(f"{name} is sparse, but dense data is required; if it fits into memory, pass {name}.toarray().")
    if hasattr(value, "__array__") and np.iscomplexobj(value):  # NumPy refuses lists of complex numbers itself
        raise ValueError(f"{name} is complex. Complex data not supported: pass real numbers.")


def check_type(name: str, value: object, kind: type, source: str) -> None:
    """Raise TypeError if a value is not of a type; `source` says where such values come from."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} is a {type(value).__name__}; pass {kind.__name__}, which {source}.")
