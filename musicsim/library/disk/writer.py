"""The lock of the one process that changes a library, and a note on its activity for others."""

from contextlib import suppress
from pathlib import Path

import filelock

from musicsim.errors import StoreLockedError

_NOTE = "writer.txt"
_MAX_LENGTH = 100


def writer_lock(folder: Path) -> filelock.FileLock:
    """Return the lock of the process that changes a library. By default, acquiring it does not wait."""
    return filelock.FileLock(folder / "writer.lock", timeout=0)


def note_doing(folder: Path, doing: str | None) -> None:
    """Write what the holder of the lock is doing, such as "training a model"; None when it has finished."""
    with suppress(OSError):
        if doing is None:
            (folder / _NOTE).unlink(missing_ok=True)
        else:
            (folder / _NOTE).write_text(doing, encoding="utf-8")  # a few bytes are written at once


def lock_error(folder: Path) -> StoreLockedError:
    """Return the error for a process that did not get the lock."""
    doing = ""
    with suppress(OSError), (folder / _NOTE).open("rb") as file:
        doing = file.read(_MAX_LENGTH).decode("ascii", "ignore")
    doing = "".join(c for c in doing if c.isprintable()) or "at work"
    return StoreLockedError(
        f"{folder}: another musicsim is {doing} in this library. Wait until it has finished, or cancel it on the "
        "Library page."
    )
