"""Another content for a library's folder: all of it, or none of it, whenever the process is killed.

What comes is made ready in a folder of its own, which one rename puts under a name that everybody who opens the library
looks for: from then on the next one to open it finishes what a killed process has begun. What is replaced stands aside
until all that comes is in its place.
"""

import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import filelock

from musicsim.errors import LibraryError, StoreLockedError
from musicsim.library.disk.writer import writer_lock
from musicsim.storage import writing_to

_COMING, ASIDE = ".restored", ".replaced"
_PARTS = "parts.json"
_PATIENCE_S = 60.0


def replace_parts(folder: Path, ready: Path, parts: Iterable[str]) -> None:
    """Put files and folders in the place of others, in the order of `parts`; for the holder of the library's lock.

    `ready` is a folder on the same disk with the new ones; it is gone afterwards. Parts that it lacks are removed.
    """
    with writing_to(folder):
        (ready / _PARTS).write_text(json.dumps({name: (ready / name).exists() for name in parts}))
        shutil.rmtree(folder / ASIDE, ignore_errors=True)
        os.sync()  # nothing is in its place before it is on the disk
        ready.rename(folder / _COMING)
        _finish(folder)


def finish_replacing(folder: Path) -> None:
    """Finish what a killed process has begun to replace.

    Raises StoreLockedError if a process is at it and does not end; StorageError if the folder cannot be written to.
    """
    if not (folder / _COMING).exists():
        return
    try:
        with writing_to(folder), writer_lock(folder).acquire(timeout=_PATIENCE_S):
            _finish(folder)
    except filelock.Timeout as error:
        raise StoreLockedError(
            f"{folder}: this library is just being restored. Wait until that has finished."
        ) from error


def _finish(folder: Path) -> None:
    coming, aside = folder / _COMING, folder / ASIDE
    if not coming.exists():  # another process was faster
        return
    try:
        parts: dict[str, bool] = json.loads((coming / _PARTS).read_text())
    except ValueError as error:
        raise LibraryError(f"{coming / _PARTS} is damaged: restore the library again.") from error
    aside.mkdir(exist_ok=True)
    for name, comes in parts.items():
        # what comes and is not waiting any more is in its place already
        if (coming / name).exists() or not comes:
            if (folder / name).exists():
                (folder / name).rename(aside / name)
            if comes:
                (coming / name).rename(folder / name)
    coming.rename(aside / _COMING)
    shutil.rmtree(aside, ignore_errors=True)
