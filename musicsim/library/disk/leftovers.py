"""Leftovers of killed processes in a library: scratch folders and partly written files."""

import re
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from musicsim.library.disk.replacing import ASIDE
from musicsim.library.disk.scratch import find_left, remove_left, scratch_folder

# Temporary names of atomic_path and transcode. Readers write caches, so a recent file may be in use.
_TEMPORARY = re.compile(r"\..+(-[0-9a-f]{12}|\.[0-9a-f]{8})(\.\w+)?")
_MIN_AGE_S = 24 * 3600.0


def sweep(library: Path) -> None:
    """Delete leftovers of killed processes; requires the writer lock. Partly written files stay for a day."""
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
    names = ("exports", "cache", "cache/covers", "uploads", "backups")
    for folder in (library, *(library / "models").glob("*/"), *(library / name for name in names)):
        for path in folder.glob(".*"):
            if _TEMPORARY.fullmatch(path.name) and path.is_file() and time.time() - path.stat().st_mtime > _MIN_AGE_S:
                yield path
