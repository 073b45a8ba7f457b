"""The lock of the one process that changes a library, and what that process is doing, in words for others."""

from contextlib import suppress
from pathlib import Path

import filelock

from musicsim.errors import StoreLockedError

_DOING = "writer.txt"
_MAX_WORDS = 100  # characters


def writer_lock(folder: Path) -> filelock.FileLock:
    """The lock of the one process that changes a library; it waits for nobody."""
    return filelock.FileLock(folder / "writer.lock", timeout=0)


def note_doing(folder: Path, doing: str | None) -> None:
    """Tell other processes what the holder of the lock is doing ("training a model"); None when it has finished.

    Nothing depends on it: a killed process leaves its words, which the next holder replaces.
    """
    with suppress(OSError):
        if doing is None:
            (folder / _DOING).unlink(missing_ok=True)
        else:
            (folder / _DOING).write_text(doing, encoding="utf-8")  # few bytes: one write


def locked_error(folder: Path) -> StoreLockedError:
    """The error for a process that did not get the lock; it says what the holder is doing."""
    doing = ""
    with suppress(OSError), (folder / _DOING).open("rb") as file:
        doing = file.read(_MAX_WORDS).decode("ascii", "ignore")
    doing = "".join(c for c in doing if c.isprintable()) or "at work"
    return StoreLockedError(
        f"{folder}: another musicsim is {doing} in this library. Wait until it has finished, or cancel it on the "
        "Library page."
    )
