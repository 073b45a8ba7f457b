"""Temporary files of a process; those of killed processes are removed when the next process starts."""

import secrets
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import filelock

from musicsim.public import working_folder
from musicsim.storage import writing_to


class Scratch:
    """A folder of this process in a shared folder on the library's disk; folders of ended processes are removed.

    Because process ids are reused, a lock shows that the process is running. Raises StorageError if it cannot be
    written.
    """

    def __init__(self, folder: Path) -> None:
        self._own = folder / secrets.token_hex(6)
        self._lock = filelock.FileLock(self._own.with_suffix(".lock"), timeout=0)
        with writing_to(folder):
            folder.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
            self._own.mkdir()
        self._remove = weakref.finalize(self, _remove, self._lock)
        remove_left(folder)

    def close(self) -> None:
        self._remove()

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """Yield an empty folder, which is removed after the block."""
        self._own.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._own, ignore_cleanup_errors=True) as folder:
            yield Path(folder)


def remove_left(folder: Path) -> None:
    """Remove the folders of ended processes from a shared folder."""
    for lock in _acquire_left(folder):
        _remove(lock)


def find_left(folder: Path) -> list[Path]:
    """Return the folders of ended processes."""
    folders = []
    for lock in _acquire_left(folder):
        folders.append(Path(lock.lock_file).with_suffix(""))
        lock.release()
    return folders


def _acquire_left(folder: Path) -> Iterator[filelock.BaseFileLock]:
    """Acquire and yield the locks of ended processes."""
    for path in folder.glob("*.lock"):
        lock = filelock.FileLock(path, timeout=0)
        with suppress(filelock.Timeout, OSError):  # its process is running, or we do not have permission to remove it
            lock.acquire()
            yield lock


def _remove(lock: filelock.BaseFileLock) -> None:
    path = Path(lock.lock_file)
    shutil.rmtree(path.with_suffix(""), ignore_errors=True)
    with suppress(OSError):
        path.unlink(missing_ok=True)
    lock.release()


_lock = threading.Lock()
_scratch = cache(Scratch)


def scratch_folder(library_folder: Path) -> Path:
    """Return the shared folder of the scratch folders of a library."""
    return working_folder(library_folder) / "scratch"


def scratch_of(library_folder: Path) -> Scratch:
    """Return the scratch folder of this process for a library; raises like :class:`Scratch`."""
    with _lock:
        return _scratch(scratch_folder(library_folder))
