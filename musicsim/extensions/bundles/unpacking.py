"""Bundles that are served on this machine, each unpacked once for all processes that serve it.

Each is in a folder of the user's caches, whose name depends on the content of the file. The first process unpacks and
checks it, and the others wait; then all map the same arrays into memory. The next process removes folders that are
neither used nor current.
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
from musicsim.library.archive.archive_file import Tell
from musicsim.library.db.schema_version import SCHEMA_VERSION
from musicsim.storage import writing_to

_IN_USE, _AT_WORK = ".used", ".lock"  # held by all who use a folder, and by the one who makes it


@contextmanager
def unpacked(file: Path, tell: Tell) -> Iterator[Path]:
    """Give the folder of the library in a bundle, unchanged until the block ends.

    Raises NotFoundError if the file is missing; LibraryError if it is something else, or was altered; StorageError if
    the disk is full.
    """
    file = file.expanduser().resolve()
    if not file.is_file():
        raise NotFoundError(f"{file}: there is no such file.")
    folder = _caches_folder() / "snapshots"
    with writing_to(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with file.open("rb") as stream:
        home = folder / _key(file, os.fstat(stream.fileno()))
        used = _mark_used(home, file)
        try:
            if not home.exists():
                with writing_to(folder), filelock.FileLock(home.with_suffix(_AT_WORK)):
                    if not home.exists():
                        _unpack(stream, file, home, tell)
            _remove_unused(folder)
            yield _library_in(home, file)
        finally:
            os.close(used)


def _caches_folder() -> Path:
    """The user's caches, by the XDG Base Directory Specification."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "musicsim"


def _key(file: Path, facts: os.stat_result) -> str:
    """A name that depends on the state of the file and on the version of the program."""
    said = f"{file}\n{facts.st_size} {facts.st_mtime_ns} {facts.st_ino}\n{__version__} {SCHEMA_VERSION}"
    return blake2b(os.fsencode(said), digest_size=12).hexdigest()


def _library_in(home: Path, file: Path) -> Path:
    return home / (file.name.removesuffix(ENDING) or "library")


def _unpack(stream: BinaryIO, file: Path, home: Path, tell: Tell) -> None:
    making = home.with_name(f".{home.name}")
    shutil.rmtree(making, ignore_errors=True)  # of a process that was killed
    try:
        library = _library_in(making, file)
        library.mkdir(parents=True)
        unpack_bundle(stream, file.name, library, tell)
        making.rename(home)
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _mark_used(home: Path, file: Path) -> int:
    """Say that this process uses a folder, until the descriptor is closed; the mark holds the path of the file."""
    mark = home.with_suffix(_IN_USE)
    while True:
        descriptor = os.open(mark, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        with suppress(FileNotFoundError):  # another process has removed it before we held it
            if os.fstat(descriptor).st_ino == mark.stat().st_ino:
                os.pwrite(descriptor, os.fsencode(file), 0)
                return descriptor
        os.close(descriptor)


def _remove_unused(folder: Path) -> None:
    """Remove unused folders whose file is missing or has changed."""
    for mark in folder.glob(f"*{_IN_USE}"):
        with suppress(OSError), mark.open("rb") as held:  # used, removed by another one, or not ours
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file = Path(os.fsdecode(held.read()))
            if file.is_file() and _key(file, file.stat()) == mark.stem:
                continue
            for made in (mark.with_suffix(""), mark.with_name(f".{mark.stem}")):
                shutil.rmtree(made, ignore_errors=True)
            mark.with_suffix(_AT_WORK).unlink(missing_ok=True)
            mark.unlink()
