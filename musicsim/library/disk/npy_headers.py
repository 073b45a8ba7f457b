"""Headers of stored arrays, checked before memory is allocated for the arrays."""

import zipfile
import zlib
from dataclasses import dataclass
from math import prod
from typing import IO, Any

import numpy as np

_READERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


@dataclass(frozen=True, slots=True)
class Header:
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """Number of values; a Python integer, which does not overflow."""
        return prod(self.shape)


def read_header(stream: IO[bytes], n_bytes: int) -> Header:
    """Read the header at the start of an ``.npy`` file of `n_bytes` bytes. Raises ValueError if it is invalid."""
    try:
        version = np.lib.format.read_magic(stream)
        reader = _READERS.get(version)
        shape, _, dtype = reader(stream) if reader else ((), False, np.dtype(np.uint8))
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error):  # errors of the enclosing archive
        raise
    except Exception as error:  # numpy evaluates the header as Python, and its message may quote it
        raise ValueError("it is not a NumPy array, or its header is damaged") from error
    if reader is None:
        raise ValueError(f"arrays in format {version} are not supported: save the array with ASCII field names")
    if not all(type(length) is int and length >= 0 for length in shape):  # numpy accepts True as an integer
        raise ValueError("its header has an invalid shape")
    if dtype.hasobject:
        raise ValueError("it contains Python objects instead of numbers or text")
    header = Header(shape, dtype)
    if header.size * max(dtype.itemsize, 1) > n_bytes:  # arrays of empty strings also use memory
        raise ValueError(f"its header declares {header.size:,} values, which do not fit into {n_bytes:,} bytes")
    return header
