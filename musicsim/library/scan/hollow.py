"""Detection of unfinished downloads and copies, before they are read as a whole."""

import os
from pathlib import Path

from musicsim.addresses import is_address
from musicsim.errors import AudioDecodeError

_HEAD = 16 << 20  # bytes; all audio formats have a header
_CHUNK = 1 << 16
_MIN_HOLLOW = 1 << 30  # bytes; smaller files are read quickly, and may be silence on a compressed disk
_MAX_SHARE = 1 / 16  # of data in a hollow file


def check_not_hollow(path: Path, size: int) -> None:
    """Raise AudioDecodeError if a file of `size` bytes begins with 16 MB of zeros, or is large and nearly all holes."""
    if size >= _HEAD and _begins_with_zeros(path):
        raise AudioDecodeError(f"{path} begins with 16 MB of zeros, so its copy is incomplete: copy it again.")
    if size >= _MIN_HOLLOW and not is_address(path) and _has_little_data(path, size):
        raise AudioDecodeError(
            f"{path} is {size / 1e9:.1f} GB long, but hardly any of it is on the disk, so its copy is incomplete: "
            "copy it again."
        )


def _begins_with_zeros(path: Path) -> bool:
    with path.open("rb") as file:
        return all(file.read(_CHUNK) == bytes(_CHUNK) for _ in range(_HEAD // _CHUNK))


def _has_little_data(path: Path, size: int) -> bool:
    """Return whether nearly all of a file is holes, which read as zeros; False if unknown."""
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
