"""What processes that were killed have left in a library: folders of their own, files half written."""

import re
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from musicsim.library.disk.replacing import ASIDE
from musicsim.library.disk.scratch import left_in, remove_left, scratch_folder

# As atomic_path and transcode name what they write. Readers write caches, too, so a file that is young may be in work.
_HALF_WRITTEN = re.compile(r"\..+(-[0-9a-f]{12}|\.[0-9a-f]{8})(\.\w+)?")
_ABANDONED_S = 24 * 3600.0


def sweep(library: Path) -> None:
    """Delete what killed processes have left in a library's folder.

    For the one process that changes the library. Files half written go when nothing has been written to them for a day.
    """
    remove_left(scratch_folder(library))
    with suppress(OSError):
        for path in list(_abandoned(library)):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def leftovers(library: Path) -> list[Path]:
    """What :func:`sweep` would delete."""
    return [*left_in(scratch_folder(library)), *_abandoned(library)]


def _abandoned(library: Path) -> Iterator[Path]:
    """Yield the folder that a restore has replaced, and files half written."""
    if (library / ASIDE).is_dir():
        yield library / ASIDE
    for folder in (
        library,
        *(library / "models").glob("*/"),
        library / "exports",
        library / "cache",
        library / "cache" / "covers",
        library / "uploads",
        library / "backups",
    ):
        for file in folder.glob(".*"):
            if _HALF_WRITTEN.fullmatch(file.name) and _is_abandoned(file):
                yield file


def _is_abandoned(path: Path) -> bool:
    return path.is_file() and time.time() - path.stat().st_mtime > _ABANDONED_S
