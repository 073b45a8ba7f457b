"""Write arrays in NumPy's format, so that a full disk is always noticed."""

from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt


def write_array(file: IO[bytes], array: npt.NDArray[Any]) -> None:
    """Write an array at the current position of a file, like ``numpy.lib.format.write_array``.

    That function ignores errors when its last few kB are written, and then leaves a truncated array on a full disk.
    """
    array = np.ascontiguousarray(array)
    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
    file.write(array.data)


def save_array(path: Path, array: npt.NDArray[Any]) -> None:
    """Write an array to a ``.npy`` file, like ``numpy.save``."""
    with path.open("wb") as file:
        write_array(file, array)
