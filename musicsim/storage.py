"""What a disk refuses, in one sentence: no room, no right to write, or a fault of the disk.

The system says it by numbers and SQLite by others; whoever writes for us says it as :class:`StorageError`, so that a
full disk is never taken for a damaged song or a fault of the program.
"""

import errno
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from musicsim import LIBRARY_FILE
from musicsim.errors import StorageError
from musicsim.public import refuse_writing

_AGAIN = "and do the same again; what was finished before is kept."
_DENIED = f"Permission is denied in {{}}. Change its permissions, or take a copy of it, {_AGAIN}"
_SENTENCES = {
    errno.ENOSPC: f"There is no room left in {{}}. Free some space {_AGAIN}",
    errno.EDQUOT: f"The disk quota is used up in {{}}. Free some space {_AGAIN}",
    errno.EROFS: f"{{}} is read-only: nothing can be changed there. Make it writable, or take a copy of it, {_AGAIN}",
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.EIO: f"The disk that holds {{}} reports an error. Check the disk {_AGAIN}",
}
_SQLITE = {sqlite3.SQLITE_FULL: errno.ENOSPC, sqlite3.SQLITE_READONLY: errno.EROFS, sqlite3.SQLITE_IOERR: errno.EIO}
# SQLite reports an I/O error where there is no room for the files it works with; numpy reports no number at all.
_NO_ROOM = 1 << 16  # bytes
_SAID_BY_NUMPY = "requested and"


def storage_error(error: BaseException, path: Path) -> StorageError | None:
    """An error of the system or of SQLite in a sentence of ours; None where storage is not at fault.

    Parameters
    ----------
    path : Path
        What was written, unless the error names another file. The sentence names the library it lies in, else its
        folder.
    """
    code = None
    if isinstance(error, OSError):
        code = errno.EIO if error.errno is None and _SAID_BY_NUMPY in str(error) else error.errno
        path = Path(error.filename) if isinstance(error.filename, str) else path
    elif isinstance(error, sqlite3.Error):
        # the low byte is the kind of error, the others say more of it
        code = _SQLITE.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
    if code not in _SENTENCES:
        return None
    place = _place(path)
    if code == errno.EIO and shutil.disk_usage(place).free < _NO_ROOM:
        code = errno.ENOSPC
    return StorageError(_SENTENCES[code].format(place))


def _place(path: Path) -> Path:
    """The library that a path lies in, else the innermost folder that is there."""
    around = [folder for folder in (path, *path.parents) if folder.is_dir()]
    return next((folder for folder in around if (folder / LIBRARY_FILE).exists()), around[0])


@contextmanager
def writing_to(path: Path) -> Iterator[None]:
    """Raise what keeps the block from writing as :class:`StorageError`; other errors go through.

    What writes for visitors of a public demonstration is refused before the block.
    """
    refuse_writing(path)
    try:
        yield
    except OSError as error:
        if (problem := storage_error(error, path)) is not None:
            raise problem from error
        raise
