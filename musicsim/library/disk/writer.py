"""The lock of the one process that changes a library, and the atomic replacement of the library's content.

One rename moves the prepared folder to a name that every process checks when it opens the library. If the replacement
is interrupted after that, the next process finishes it. Until then, the old content stays in a separate folder.
"""

import json
import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import filelock

from musicsim.errors import LibraryError, StoreLockedError
from musicsim.storage import writing_to

_NOTE = "writer.txt"
_MAX_LENGTH = 100
_NEW, ASIDE = ".restored", ".replaced"
_PARTS = "parts.json"
TIMEOUT_S = 60.0


def writer_lock(folder: Path) -> filelock.FileLock:
    """Return the lock of the process that changes a library. By default, acquiring the lock does not wait."""
    return filelock.FileLock(folder / "writer.lock", timeout=0)


def note_doing(folder: Path, doing: str | None) -> None:
    """Record what the holder of the lock is doing, such as "training a model"; `doing` is None once it has finished."""
    with suppress(OSError):
        if doing is None:
            (folder / _NOTE).unlink(missing_ok=True)
        else:
            (folder / _NOTE).write_text(doing, encoding="utf-8")  # a write this short is atomic


def lock_error(folder: Path) -> StoreLockedError:
    doing = ""
    with suppress(OSError), (folder / _NOTE).open("rb") as file:
        doing = file.read(_MAX_LENGTH).decode("ascii", "ignore")
    doing = "".join(c for c in doing if c.isprintable()) or "at work"
    return StoreLockedError(
        f"{folder}: another musicsim process is {doing} in this library. Wait until it has finished, or cancel it on "
        "the Library page."
    )


def replace_parts(folder: Path, ready: Path, parts: Iterable[str]) -> None:
    """Replace `parts` of a locked library, in order, with those in the folder `ready` on the same disk.

    Parts that are not in `ready` are deleted. :func:`finish_locked` must have been called before.
    """
    with writing_to(folder):
        (ready / _PARTS).write_text(json.dumps({name: (ready / name).exists() for name in parts}))
        for left in (ASIDE, _NEW):  # the new parts are still there only if they are damaged
            shutil.rmtree(folder / left, ignore_errors=True)
        os.sync()  # write everything to disk before anything is replaced
        ready.rename(folder / _NEW)
        finish_locked(folder)


def finish_replacing(folder: Path) -> None:
    """Finish an interrupted replacement. Raises StoreLockedError if another process holds the lock for too long."""
    if not (folder / _NEW).exists():
        return
    try:
        with writing_to(folder), writer_lock(folder).acquire(timeout=TIMEOUT_S):
            finish_locked(folder)
    except filelock.Timeout as error:
        raise StoreLockedError(f"{folder}: this library is being restored. Wait for the restore to finish.") from error


def finish_locked(folder: Path) -> None:
    """Finish an interrupted replacement in a locked library. Raises LibraryError if it is damaged."""
    new, aside = folder / _NEW, folder / ASIDE
    if not new.exists():  # another process has already finished the replacement
        return
    try:
        parts: dict[str, bool] = json.loads((new / _PARTS).read_text())
    except (FileNotFoundError, ValueError) as error:
        raise LibraryError(f"{new / _PARTS} is damaged: restore the library again.") from error
    aside.mkdir(exist_ok=True)
    for name, is_new in parts.items():
        # a new part that is no longer in `new` has already been moved
        if (new / name).exists() or not is_new:
            if (folder / name).exists():
                (folder / name).rename(aside / name)
            if is_new:
                (new / name).rename(folder / name)
    new.rename(aside / _NEW)
    shutil.rmtree(aside, ignore_errors=True)
