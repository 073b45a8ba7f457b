"""Convert disk errors to :class:`StorageError`, so that a full disk is never mistaken for a damaged song or a bug."""

import errno
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from musicsim import LIBRARY_FILE
from musicsim.errors import DiskFullError, LibraryAwayError, StorageError
from musicsim.public import refuse_writing

_AGAIN = "and try again; finished work is kept."
_DENIED = f"Permission is denied in {{}}. Change its permissions, or use a copy of it, {_AGAIN}"
_MESSAGES = {
    errno.ENOSPC: f"There is no room left in {{}}. Free some space {_AGAIN}",
    errno.EDQUOT: f"The disk quota is used up in {{}}. Free some space {_AGAIN}",
    errno.EROFS: f"{{}} is read-only: nothing can be changed there. Make it writable, or use a copy of it, {_AGAIN}",
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.EIO: f"The disk that holds {{}} reports an error. Check the disk {_AGAIN}",
}
_SQLITE = {sqlite3.SQLITE_FULL: errno.ENOSPC, sqlite3.SQLITE_READONLY: errno.EROFS, sqlite3.SQLITE_IOERR: errno.EIO}
# Without space for temporary files, SQLite reports an I/O error; numpy raises an OSError without an error number.
_NO_ROOM = 1 << 16  # bytes
_NUMPY_MESSAGE = "requested and"
_FULL = (errno.ENOSPC, errno.EDQUOT)
FSTAB = Path("/etc/fstab")


def has_room(folder: Path) -> bool:
    return shutil.disk_usage(folder).free >= _NO_ROOM


def check_mounted(folder: Path) -> None:
    """Raise LibraryAwayError if /etc/fstab has a disk for this folder that is not mounted."""
    try:
        entries = [line.split() for line in FSTAB.read_text(encoding="utf-8", errors="replace").splitlines()]
    except OSError:
        return
    # fstab has octal codes for spaces; swap has no path
    places = [Path(fields[1].replace("\\040", " ")) for fields in entries if len(fields) > 1 and fields[0][0] != "#"]
    for place in places:
        if place.is_absolute() and folder.resolve().is_relative_to(place) and not place.is_mount():
            raise LibraryAwayError(f"{folder}: the disk at {place} is not mounted. Mount it, and try again.")


def storage_error(error: BaseException, path: Path, *, is_full: bool = False) -> StorageError | None:
    """Convert an error that occurred while writing `path`; return None if storage is not the cause.

    If `is_full`, `path` is a database that was opened for reading only because its disk is full.
    """
    code = None
    if isinstance(error, OSError):
        code = errno.EIO if error.errno is None and _NUMPY_MESSAGE in str(error) else error.errno
        path = Path(error.filename) if isinstance(error.filename, str) else path
    elif isinstance(error, sqlite3.Error):
        code = _SQLITE.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)  # the low byte is the primary error code
    if code not in _MESSAGES:
        return None
    parents = [folder for folder in (path, *path.parents) if folder.is_dir()]
    folder = next((folder for folder in parents if (folder / LIBRARY_FILE).exists()), parents[0])
    if (code == errno.EIO and not has_room(folder)) or (code == errno.EROFS and is_full):
        code = errno.ENOSPC
    return (DiskFullError if code in _FULL else StorageError)(_MESSAGES[code].format(folder))


@contextmanager
def writing_to(path: Path) -> Iterator[None]:
    """Raise :class:`StorageError` if writing fails, or OwnerOnlyError immediately if visitors may not write there."""
    refuse_writing(path)
    try:
        yield
    except OSError as error:
        if (problem := storage_error(error, path)) is not None:
            raise problem from error
        raise
