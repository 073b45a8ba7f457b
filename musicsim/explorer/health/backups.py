"""Backups of a library: their contents, the folder of those made on the Library page, and restoring one."""

import time
from collections.abc import Callable
from pathlib import Path

from musicsim.explorer.progress import Tell
from musicsim.extensions.listenbrainz.client import TOKEN_FILE
from musicsim.extensions.mpd.client import MPD_FILE
from musicsim.extensions.music_servers.connections import SERVERS_FILE
from musicsim.extensions.player_engine.access import ACCESS_FILE
from musicsim.library import Library
from musicsim.library.archive.backup import (
    ENDING,
    BackupReport,
    Consent,
    Restored,
    refuse,
    restore_backup,
    save_backup,
)
from musicsim.library.db.small_copy import BACKUPS_FOLDER
from musicsim.public import owner_only

_WITH_PASSWORDS = (SERVERS_FILE, TOKEN_FILE, ACCESS_FILE, MPD_FILE)


@owner_only
def back_up(library: Library, target: Path, tell: Tell, *, with_passwords: bool = False) -> BackupReport:
    """Write a library as one file; see :func:`musicsim.library.archive.backup.save_backup`.

    `with_passwords` takes the connections to music servers and players, too, which hold passwords.
    """
    return save_backup(library, target, tell, _WITH_PASSWORDS if with_passwords else ())


@owner_only
def restore(
    source: Path,
    folder: Path,
    tell: Tell,
    *,
    with_passwords: bool = False,
    accept: Callable[[Consent], bool] = refuse,
) -> Restored:
    """Make a library of a backup; see :func:`musicsim.library.archive.backup.restore_backup`.

    `with_passwords` takes the connections to music servers and players from the backup, if it has them.
    """
    return restore_backup(source, folder, tell, _WITH_PASSWORDS, with_private=with_passwords, accept=accept)


@owner_only
def new_backup_path(library: Library) -> Path:
    """Where the next backup that is asked for on the Library page goes."""
    return library.folder / BACKUPS_FOLDER / f"{library.name}{time.strftime(' %Y-%m-%d %H.%M.%S')}{ENDING}"


@owner_only
def backups_of(library: Library) -> list[Path]:
    """The backups that lie in a library's folder, the latest first."""
    folder = library.folder / BACKUPS_FOLDER
    return sorted(folder.glob(f"*{ENDING}"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
