"""Unpack bundles, once for all processes that serve them.

The folders are in the user's cache, under a hash of the file's state. The first process unpacks and checks, and the
others wait. Then all map the same arrays into memory. Each process removes unused folders whose file has changed or is
missing.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

import filelock

from musicsim import __version__
from musicsim.errors import NotFoundError
from musicsim.extensions.bundles.bundle import ENDING, unpack_bundle
from musicsim.library.db.schema_version import SCHEMA_VERSION
from musicsim.library.disk.archive_file import Progress
from musicsim.storage import writing_to

_IN_USE, _UNPACKING = ".used", ".lock"  # locked by all processes that use a folder, and by the one that unpacks it


@contextmanager
def open_bundle(file: Path, progress: Progress) -> Iterator[Path]:
    """Yield the folder of the library in a bundle; it does not change until the block ends.

    Raises NotFoundError if the file does not exist; LibraryError if it is not a bundle, or is damaged.
    """
    file = file.expanduser().resolve()
    if not file.is_file():
        raise NotFoundError(f"{file}: this file does not exist.")
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")  # XDG Base Directory Specification
    folder = caches / "musicsim" / "snapshots"
    with writing_to(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    library_name = file.name.removesuffix(ENDING) or "library"
    with file.open("rb") as stream:
        home = folder / _key(file, os.fstat(stream.fileno()))
        used = _mark_used(home, file)
        try:
            if not home.exists():
                with writing_to(folder), filelock.FileLock(home.with_suffix(_UNPACKING)):
                    if not home.exists():
                        _unpack(stream, file, home, library_name, progress)
            _remove_unused(folder)
            yield home / library_name
        finally:
            os.close(used)


def _key(file: Path, status: os.stat_result) -> str:
    """Return a hash of the state of a file and the version of this program."""
    state = f"{file}\n{status.st_size} {status.st_mtime_ns} {status.st_ino}\n{__version__} {SCHEMA_VERSION}"
    return blake2b(os.fsencode(state), digest_size=12).hexdigest()


def _unpack(stream: BinaryIO, file: Path, home: Path, library_name: str, progress: Progress) -> None:
    temporary = home.with_name(f".{home.name}")
    shutil.rmtree(temporary, ignore_errors=True)  # left by a process that was killed
    try:
        (temporary / library_name).mkdir(parents=True)
        unpack_bundle(stream, file.name, temporary / library_name, progress)
        temporary.rename(home)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _mark_used(home: Path, file: Path) -> int:
    """Mark a folder as used by this process until the descriptor is closed; the mark contains the file's path."""
    mark = home.with_suffix(_IN_USE)
    while True:
        descriptor = os.open(mark, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        with suppress(FileNotFoundError):  # another process removed the mark before it was locked
            if os.fstat(descriptor).st_ino == mark.stat().st_ino:
                os.pwrite(descriptor, os.fsencode(file), 0)
                return descriptor
        os.close(descriptor)


def _remove_unused(folder: Path) -> None:
    """Remove unused folders whose file has changed or is missing."""
    for mark in folder.glob(f"*{_IN_USE}"):
        with suppress(OSError), mark.open("rb") as stream:  # OSError: used, removed by another process, or not ours
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file = Path(os.fsdecode(stream.read()))
            if file.is_file() and _key(file, file.stat()) == mark.stem:
                continue
            for unpacked_folder in (mark.with_suffix(""), mark.with_name(f".{mark.stem}")):
                shutil.rmtree(unpacked_folder, ignore_errors=True)
            mark.with_suffix(_UNPACKING).unlink(missing_ok=True)
            mark.unlink()
