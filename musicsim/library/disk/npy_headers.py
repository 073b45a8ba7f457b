"""What a stored array says of itself, read and checked before memory is taken for the array."""

import zipfile
import zlib
from dataclasses import dataclass
from math import prod
from typing import IO, Any

import numpy as np

_READERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


@dataclass(frozen=True, slots=True)
class Header:
    """Shape and type of an array in an ``.npy`` file."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """Values in all."""
        return prod(self.shape)  # of Python's numbers: it does not overflow


def read_header(stream: IO[bytes], n_bytes: int) -> Header:
    """Read the header of an ``.npy`` file of so many bytes in all, at whose start the stream is.

    Raises ValueError if there is no header, it is of objects, or of more values than the file can hold.
    """
    try:
        version = np.lib.format.read_magic(stream)
        reader = _READERS.get(version)
        shape, _, dtype = reader(stream) if reader else ((), False, np.dtype(np.uint8))
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error):  # of the archive around it
        raise
    except Exception as error:  # numpy evaluates the header as Python, and its message may quote it
        raise ValueError("it is not a NumPy array, or its header is damaged") from error
    if reader is None:
        raise ValueError(f"arrays of format {version} are not read: save it with names of plain letters")
    if not all(type(length) is int and length >= 0 for length in shape):  # True counts as an integer to numpy
        raise ValueError("its header says a shape that no array has")
    if dtype.hasobject:
        raise ValueError("it holds Python objects instead of numbers or text")
    header = Header(shape, dtype)
    if header.size * max(dtype.itemsize, 1) > n_bytes:  # texts of no letters would take memory all the same
        raise ValueError(f"it says that it holds {header.size:,} values, which its {n_bytes:,} bytes cannot")
    return header
