"""Atomic writes, and arrays on disk that are read as memory maps."""

import mmap
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from weakref import WeakSet

import filelock
import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float32Array
from musicsim.storage import writing_to

_mapped: WeakSet[mmap.mmap] = WeakSet()


@contextmanager
def atomic_path(target: Path, mode: int = 0o666) -> Iterator[Path]:
    """Yield a temporary path next to `target`, which atomically replaces `target` if the block succeeds."""
    with writing_to(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = _temporary(target)
        temporary.touch(mode, exist_ok=False)  # applies the umask, unlike tempfile
        try:
            yield temporary
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)


def write_private(target: Path, text: str) -> None:
    """Atomically replace a file that only its owner may read."""
    with atomic_path(target, mode=0o600) as temporary:
        temporary.write_text(text, encoding="utf-8")


def update_private(target: Path, change: Callable[[bytes | None], str]) -> str:
    """Replace a file that only its owner may read by `change` of its content, and return the new text.

    No change by others is lost. `change` gets None if there is no file.
    """
    with writing_to(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(target.with_suffix(".lock")):
            text = change(target.read_bytes() if target.exists() else None)
            write_private(target, text)
    return text


@contextmanager
def atomic_folder(target: Path) -> Iterator[Path]:
    """Yield a temporary folder that is renamed to `target`, which must not exist, if the block succeeds."""
    with writing_to(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = _temporary(target)
        temporary.mkdir()
        try:
            yield temporary
            temporary.replace(target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def _temporary(target: Path) -> Path:
    return target.with_name(f".{target.stem[:40]}-{secrets.token_hex(6)}{target.suffix}")


class RowFile:
    """A float32 matrix with `width` columns in a file, read as a memory map."""

    def __init__(self, path: Path, width: int) -> None:
        self.path, self.width = path, width

    def append(self, rows: npt.ArrayLike, at: int) -> None:
        """Cut the file after `at` rows, append `rows`, and flush them to disk."""
        block = np.ascontiguousarray(rows, dtype=np.float32)
        if block.ndim != 2 or block.shape[1] != self.width:
            raise ValueError(f"rows has shape {block.shape}; it must have {self.width} columns.")
        with writing_to(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("r+b" if self.path.exists() else "w+b") as stream:
                stream.truncate(at * self.width * 4)
                stream.seek(0, os.SEEK_END)
                stream.write(block.tobytes())
                stream.flush()
                os.fsync(stream.fileno())

    def holds(self, n_rows: int) -> bool:
        try:
            return n_rows == 0 or self.path.stat().st_size >= n_rows * self.width * 4
        except OSError:
            return False

    def read(self, n_rows: int) -> Float32Array:
        """Map the first `n_rows` rows, read-only."""
        if n_rows == 0:
            return np.empty((0, self.width), dtype=np.float32)
        rows = np.memmap(self.path, dtype=np.float32, mode="r", shape=(n_rows, self.width))
        if isinstance(rows.base, mmap.mmap):  # always true; numpy's stubs call it an array
            _mapped.add(rows.base)
        return rows


def release_pages() -> None:
    """Release the memory of all mapped files; otherwise, a few thousand random reads load almost a whole file."""
    for mapped in list(_mapped):
        with suppress(AttributeError, ValueError, OSError):  # not supported by this system, or the file is closed
            mapped.madvise(mmap.MADV_DONTNEED)
