"""Temporary files of a process, and leftovers of killed processes: scratch folders and partly written files."""

import re
import secrets
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import filelock

from musicsim.library.disk.writer import ASIDE
from musicsim.public import working_folder
from musicsim.storage import writing_to

# Temporary names made by atomic_path and transcode. Readers also write caches, so a recent file may be in use.
_TEMPORARY = re.compile(r"\..+(-[0-9a-f]{12}|\.[0-9a-f]{8})(\.\w+)?")
_MIN_AGE_S = 24 * 3600.0


class Scratch:
    """A folder for this process in a shared folder on the library's disk; removes the folders of exited processes."""

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
    """Remove the folders of exited processes from a shared folder."""
    for lock in _acquire_left(folder):
        _remove(lock)


def find_left(folder: Path) -> list[Path]:
    folders = []
    for lock in _acquire_left(folder):
        folders.append(Path(lock.lock_file).with_suffix(""))
        lock.release()
    return folders


def _acquire_left(folder: Path) -> Iterator[filelock.BaseFileLock]:
    """Acquire and yield the locks of exited processes."""
    for path in folder.glob("*.lock"):
        lock = filelock.FileLock(path, timeout=0)
        with suppress(filelock.Timeout, OSError):  # its process is running, or we lack the permission to remove it
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
    return working_folder(library_folder) / "scratch"


def scratch_of(library_folder: Path) -> Scratch:
    """Return this process's scratch folder for a library; raises the same errors as :class:`Scratch`."""
    with _lock:
        return _scratch(scratch_folder(library_folder))


def sweep(library: Path) -> None:
    """Delete leftovers of killed processes; requires the writer lock. Partly written files are kept for a day."""
    remove_left(scratch_folder(library))
    with suppress(OSError):
        for path in list(_leftovers(library)):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def leftovers(library: Path) -> list[Path]:
    """Return the paths that :func:`sweep` would delete."""
    return [*find_left(scratch_folder(library)), *_leftovers(library)]


def _leftovers(library: Path) -> Iterator[Path]:
    if (library / ASIDE).is_dir():
        yield library / ASIDE
    names = ("exports", "cache", "cache/covers", "uploads", "backups", "tag_backups")
    folders = [folder for name in ("models", "tag_backups") for folder in (library / name).glob("*/")]
    for folder in (library, *folders, *(library / name for name in names)):
        for path in folder.glob(".*"):
            if _TEMPORARY.fullmatch(path.name) and path.is_file() and time.time() - path.stat().st_mtime > _MIN_AGE_S:
                yield path
