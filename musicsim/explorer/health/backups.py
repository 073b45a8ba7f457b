"""Create, list and restore backups of a library."""

import time
from collections.abc import Callable
from pathlib import Path

from musicsim.hooks import extensions
from musicsim.library import Library
from musicsim.library.archive.backup import ENDING, BackupReport, Consent, Restored, refuse, restore_backup, save_backup
from musicsim.library.stores.small_copies import BACKUPS_FOLDER
from musicsim.progress import Progress


def files_with_passwords() -> tuple[str, ...]:
    """Return the names of extension files in a library's folder that contain passwords."""
    return tuple(name for extension in extensions() for name in extension.backup_files)


def back_up(library: Library, target: Path, progress: Progress, *, with_passwords: bool = False) -> BackupReport:
    """Write a library as one file; include connections to servers and players only if `with_passwords`."""
    return save_backup(library, target, progress, files_with_passwords() if with_passwords else ())


def restore(
    source: Path,
    folder: Path,
    progress: Progress,
    *,
    with_passwords: bool = False,
    accept: Callable[[Consent], bool] = refuse,
) -> Restored:
    """Restore a library from a backup; include connections to servers and players only if `with_passwords`."""
    return restore_backup(source, folder, progress, files_with_passwords(), with_private=with_passwords, accept=accept)


def new_backup_path(library: Library) -> Path:
    """Return the path for a new backup from the Library page."""
    return library.folder / BACKUPS_FOLDER / f"{library.name}{time.strftime(' %Y-%m-%d %H.%M.%S')}{ENDING}"


def backups_of(library: Library) -> list[Path]:
    """Return the backups in a library's folder, newest first."""
    folder = library.folder / BACKUPS_FOLDER
    return sorted(folder.glob(f"*{ENDING}"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
