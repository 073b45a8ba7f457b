"""Detection of unfinished downloads and copies, before they are read whole."""

import os
from pathlib import Path

from musicsim.addresses import is_address
from musicsim.errors import AudioDecodeError

_HEAD = 16 << 20  # bytes; every format of music has a header
_CHUNK = 1 << 16
_MIN_HOLLOW = 1 << 30  # bytes; a smaller file takes little time, and may be silence on a disk that compresses
_MAX_SHARE = 1 / 16  # of a hollow file is data


def check_not_hollow(path: Path, size: int) -> None:
    """Raise AudioDecodeError if a file of `size` bytes begins with 16 MB of zeros, or is large and nearly all holes.

    Raises OSError if it cannot be read.
    """
    if size >= _HEAD and _begins_with_zeros(path):
        raise AudioDecodeError(f"{path} begins with 16 MB of zeros, so it was not copied whole: copy it again.")
    if size >= _MIN_HOLLOW and not is_address(path) and _has_little_data(path, size):
        raise AudioDecodeError(
            f"{path} is {size / 1e9:.1f} GB long, but the disk holds hardly any of it, so it was not copied whole: "
            "copy it again."
        )


def _begins_with_zeros(path: Path) -> bool:
    with path.open("rb") as file:
        return all(file.read(_CHUNK) == bytes(_CHUNK) for _ in range(_HEAD // _CHUNK))


def _has_little_data(path: Path, size: int) -> bool:
    """Tell if nearly all of a file is holes, which read as zeros; False if the system cannot tell."""
    if not hasattr(os, "SEEK_DATA"):
        return False
    with path.open("rb") as file:
        at, n_data = 0, 0
        while at < size:
            try:
                start = os.lseek(file.fileno(), at, os.SEEK_DATA)
                at = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            except OSError:  # a hole up to the end, or a file system without holes
                break
            n_data += at - start
            if n_data > _MAX_SHARE * size:
                return False
    return n_data <= _MAX_SHARE * size and n_data > 0
