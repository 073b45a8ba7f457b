"""Files that are needed while something is worked on; what a killed process has left goes when the next one starts."""

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
    """A folder of this process among those of others; folders whose process has ended are removed.

    The folder of all is on the disk that has room for what is worked on. A lock says that the process lives: numbers
    of processes come again. Raises StorageError if it cannot be written to.
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
        """Remove it now."""
        self._remove()

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """An empty folder, removed with all that is in it behind the block."""
        self._own.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._own, ignore_cleanup_errors=True) as folder:
            yield Path(folder)


def remove_left(folder: Path) -> None:
    """Remove what processes that have ended left among the folders of all."""
    for lock in _left(folder):
        _remove(lock)


def left_in(folder: Path) -> list[Path]:
    """What processes that have ended left among the folders of all."""
    found = []
    for lock in _left(folder):
        found.append(Path(lock.lock_file).with_suffix(""))
        lock.release()
    return found


def _left(folder: Path) -> Iterator[filelock.BaseFileLock]:
    """Locks of processes that have ended, held by us."""
    for path in folder.glob("*.lock"):
        lock = filelock.FileLock(path, timeout=0)
        with suppress(filelock.Timeout, OSError):  # its process lives, or it is not ours to remove
            lock.acquire()
            yield lock


def _remove(lock: filelock.BaseFileLock) -> None:
    """Remove the folder that belongs to a lock we hold, and the lock."""
    path = Path(lock.lock_file)
    shutil.rmtree(path.with_suffix(""), ignore_errors=True)
    with suppress(OSError):
        path.unlink(missing_ok=True)
    lock.release()


_making = threading.Lock()


@cache
def _kept(folder: Path) -> Scratch:
    return Scratch(folder)


def scratch_folder(library_folder: Path) -> Path:
    """Where the processes that work on a library have their scratch folders."""
    return working_folder(library_folder) / "scratch"


def scratch_of(library_folder: Path) -> Scratch:
    """The scratch folder of this process in a library's folder; raises as :class:`Scratch`."""
    with _making:
        return _kept(scratch_folder(library_folder))
