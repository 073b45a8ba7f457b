"""Arrays on disk: written whole or not at all, read through the page cache.

A :class:`RowFile` is a matrix that only grows at its end. How many of its rows count is known to the
caller (the database); bytes after them are the remains of a write that was cut off and are written over.
"""

import mmap
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float32Array
from musicsim.storage import writing_to

_mapped: WeakSet[mmap.mmap] = WeakSet()


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """Give a temporary path beside `target` that takes its place when the block ends well.

    A kill at any moment leaves the old file or the new one, never a part.

    Raises StorageError if there is no room, or no right to write; also where the block is what finds out.
    """
    with writing_to(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = _beside(target)
        temporary.touch(exist_ok=False)  # by the umask: what tempfile makes nobody else could read
        try:
            yield temporary
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def private_path(target: Path) -> Iterator[Path]:
    """Do as :func:`atomic_path` for what only its owner may read."""
    with atomic_path(target) as temporary:
        temporary.chmod(0o600)  # before it holds anything
        yield temporary


@contextmanager
def atomic_folder(target: Path) -> Iterator[Path]:
    """Give a temporary folder beside `target`, which is not there yet, that becomes it when the block ends well.

    Raises StorageError as :func:`atomic_path`.
    """
    with writing_to(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = _beside(target)
        temporary.mkdir()
        try:
            yield temporary
            temporary.replace(target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def _beside(target: Path) -> Path:
    return target.with_name(f".{target.stem[:40]}-{secrets.token_hex(6)}{target.suffix}")


class RowFile:
    """A float32 matrix of so many columns in a file, read as a memory map."""

    def __init__(self, path: Path, width: int) -> None:
        self.path, self.width = path, width

    def append(self, rows: npt.ArrayLike, at: int) -> None:
        """Write rows from row number `at` on and push them to the disk; what stood there is gone."""
        block = np.ascontiguousarray(rows, dtype=np.float32)
        if block.ndim != 2 or block.shape[1] != self.width:
            raise ValueError(f"rows of shape {block.shape} do not fit a file {self.width} columns wide.")
        with writing_to(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("r+b" if self.path.exists() else "w+b") as stream:
                stream.truncate(at * self.width * 4)
                stream.seek(0, os.SEEK_END)
                stream.write(block.tobytes())
                stream.flush()
                os.fsync(stream.fileno())

    def holds(self, n_rows: int) -> bool:
        """Whether so many rows can be read."""
        try:
            return n_rows == 0 or self.path.stat().st_size >= n_rows * self.width * 4
        except OSError:
            return False

    def read(self, n_rows: int) -> Float32Array:
        """The first `n_rows` rows, read-only; pages come from the disk when they are touched."""
        if n_rows == 0:
            return np.empty((0, self.width), dtype=np.float32)
        rows = np.memmap(self.path, dtype=np.float32, mode="r", shape=(n_rows, self.width))
        if isinstance(rows.base, mmap.mmap):  # numpy's own types call it an array
            _mapped.add(rows.base)
        return rows


def release_pages() -> None:
    """Let go of the pages of all files that have been read; they come again, from the system's cache, when touched.

    A few thousand random rows of a file map nearly all of it, and stay in the memory of the process.
    """
    for mapped in list(_mapped):
        with suppress(AttributeError, ValueError, OSError):  # another system, or closed by now
            mapped.madvise(mmap.MADV_DONTNEED)
