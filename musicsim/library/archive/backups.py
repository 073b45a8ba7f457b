"""Backups: a library in one file, written even while the library changes, and fully checked before a restore.

A backup does not contain the music, or data that can be rebuilt from it. It may come from an untrusted person: its
settings could name workers that run code, its jobs contain paths, and its author knows its tokens.
"""

import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock

from musicsim import LIBRARY_FILE
from musicsim.addresses import is_address, strip_user
from musicsim.errors import LibraryError, StoreLockedError
from musicsim.library.archive.copies import WALK_SOURCES, CopyWriter, copy_kind, open_copy, write_copy
from musicsim.library.db import check_database, merge_restored, path_of, renew_tokens
from musicsim.library.disk.scratch import Scratch, scratch_folder
from musicsim.library.disk.writer import finish_locked, lock_error, note_doing, replace_parts, writer_lock
from musicsim.library.library import Library
from musicsim.library.stores.small_copies import BACKUPS_FOLDER
from musicsim.progress import Progress
from musicsim.registry import extensions
from musicsim.storage import storage_error, writing_to

ENDING = ".musicsim-backup"
_FOLDERS = ("frames", "models", "embeddings")
_JOBS = "jobs"  # job logs are not backed up
_PARTS = (f"{LIBRARY_FILE}-wal", f"{LIBRARY_FILE}-shm", LIBRARY_FILE, *_FOLDERS, WALK_SOURCES, _JOBS)
_MAX_ROUNDS = 5
_OF_MACHINE = "key = 'settings' OR key LIKE 'machine.%'"
_OWN_TEXTS = f"SELECT key, value FROM meta WHERE ({_OF_MACHINE}) AND typeof(value) = 'text'"
_OWN_ROOTS = "SELECT path FROM roots WHERE typeof(path) = 'text'"
_PATHS = (("roots", "path"), ("files", "folder"), ("files", "path"), ("failures", "path"), ("songs", "last_path"))
_MAX_LISTED = 10
_BACKUP = copy_kind(
    "backup",
    "backup.json",
    r"frames/\w\w/\w+(\.v\d+)?\.np[yz]|embeddings/\w+/[a-z]+\.(json|npy|onnx|rows)",
    "; nothing was changed. Restore another backup.",
)


@dataclass(frozen=True, slots=True)
class BackupReport:
    n_songs: int
    n_bytes: int
    damaged: tuple[str, ...]  # names of models that were left out because their files are missing or truncated


def new_backup_path(library: Library) -> Path:
    """Return the path for a new backup from the Library page."""
    return library.folder / BACKUPS_FOLDER / f"{library.name}{time.strftime(' %Y-%m-%d %H.%M.%S')}{ENDING}"


def backups_of(library: Library) -> list[Path]:
    """Return the backups in a library's folder, newest first."""
    folder = library.folder / BACKUPS_FOLDER
    return sorted(folder.glob(f"*{ENDING}"), key=lambda path: path.stat().st_mtime_ns, reverse=True)


def files_with_passwords() -> tuple[str, ...]:
    """Return the names of extensions' files in a library's folder that connect to servers and players."""
    return tuple(name for extension in extensions() for name in extension.backup_files)


def back_up(library: Library, target: Path, progress: Progress, *, with_passwords: bool = False) -> BackupReport:
    """Write a library to one file that only its owner can read. It replaces an earlier backup once it is complete.

    Only with passwords, it includes the connections to servers and players, and the tokens in links to listening tests.
    """
    with write_copy(_BACKUP, library, target) as writer:
        n_songs, damaged = _BackupWriter(writer, progress).run(with_passwords=with_passwords)
    return BackupReport(n_songs, target.stat().st_size, damaged)


class _BackupWriter:
    def __init__(self, writer: CopyWriter, progress: Progress) -> None:
        self._writer, self._library, self._progress = writer, writer.library, progress
        self._frames: set[str] = set()  # content hashes of songs whose files were added

    def run(self, *, with_passwords: bool) -> tuple[int, tuple[str, ...]]:
        """Write the backup; return the number of songs and the names of damaged models."""
        for _ in range(_MAX_ROUNDS):
            self._copy_database(with_tokens=with_passwords)
            with closing(self._writer.open_database()) as copy:
                damaged = self._add_arrays(copy)
                n_songs = len(copy)
            if damaged is not None:
                break
        else:
            raise LibraryError(
                f"{self._library.folder}: songs and models are being removed faster than they can be copied. Wait "
                "until the job that removes them has finished, and start the backup again."
            )
        for name in files_with_passwords() if with_passwords else ():
            self._writer.add(self._library.folder / name)
        return n_songs, tuple(damaged)

    def _copy_database(self, *, with_tokens: bool) -> None:
        """Copy the database; links get new tokens in the copy unless `with_tokens` is set."""
        self._progress("copying the database", 0, 0)
        target = self._writer.database
        target.unlink(missing_ok=True)
        source = self._library.engine.raw_connection()
        try:
            with closing(sqlite3.connect(target)) as copy:
                source.driver_connection.backup(copy)  # type: ignore[union-attr]
                check_database(copy)
                if not with_tokens:
                    copy.execute("PRAGMA secure_delete=ON")  # otherwise old tokens stay in free pages
                    with copy:
                        renew_tokens(copy)
        except sqlite3.Error as error:
            if (problem := storage_error(error, target)) is not None:
                raise problem from error
            raise LibraryError(
                f"{self._library.folder / LIBRARY_FILE} is damaged ({error}): no backup was made, because it could "
                "not be restored. Restore an earlier backup."
            ) from error
        finally:
            source.close()

    def _add_arrays(self, copy: Library) -> list[str] | None:
        """Add songs and models; return the names of damaged models, or None if any were deleted in the meantime."""
        songs, models = copy.content_hashes(), copy.models.all(retired=True)
        total = len(songs) + len(models)
        missing: set[str] = set()
        damaged: dict[str, str] = {}
        for content_hash in songs:
            if content_hash not in self._frames:
                added = [self._writer.add(path) for path in self._library.frame_files.files(content_hash)]
                (self._frames if any(added) else missing).add(content_hash)
            self._progress("copying songs", len(self._frames), total)
        for record in models:
            if not self._writer.add_model(copy, record):
                damaged[record.id] = record.name
            self._progress("copying models", len(self._frames), total)
        for path in sorted((self._library.folder / "embeddings").glob("*/*.*")):
            self._writer.add(path)
        remaining = {record.id for record in self._library.models.all(retired=True)}
        if not damaged.keys() <= remaining or (missing and not missing <= set(self._library.content_hashes())):
            return None
        return sorted(damaged.values())


@dataclass(frozen=True, slots=True)
class Restored:
    n_songs: int
    created_at: float  # when the backup was made, seconds since 1970
    left_out: tuple[str, ...] = ()  # names of private files in the backup that were not restored


@dataclass(frozen=True, slots=True)
class Consent:
    """Parts of a backup that act outside the library and therefore need the consent of the machine's owner."""

    private: tuple[str, ...]  # names of files with connections to servers and players
    addresses: tuple[str, ...]  # remote folders and files that scans and players would connect to
    folders: tuple[str, ...]  # folders of this machine that the library did not contain yet

    @property
    def words(self) -> str:
        sentences = []
        if self.folders:
            some = _list_some(self.folders)
            sentences.append(f"musicsim will scan and play files in folders that are new to this library: {some}.")
        if self.addresses:
            sentences.append(f"its music is at addresses that a scan connects to: {_list_some(self.addresses)}.")
        if self.private:
            sentences.append(
                f"it contains passwords and server connections that musicsim will use: {', '.join(self.private)}."
            )
        return " ".join(sentences)


def _list_some(names: Sequence[str]) -> str:
    more = len(names) - _MAX_LISTED
    return ", ".join(names[:_MAX_LISTED]) + (f" and {more:,} more" if more > 0 else "")


def refuse(_: Consent) -> bool:
    return False


def restore(
    source: Path,
    folder: Path,
    progress: Progress,
    *,
    with_passwords: bool = False,
    accept: Callable[[Consent], bool] = refuse,
) -> Restored:
    """Replace a library with the one in a backup, or create a new one; everything is checked before any change.

    The library keeps its uploaded songs, its machine settings, and its own connections to servers and players. Only
    with passwords, these and the tokens in links to listening tests come from the backup. `accept` is called if consent
    is needed.
    """
    folder = folder.expanduser().absolute()
    is_new = not folder.exists()
    with writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
    lock = writer_lock(folder)
    try:
        with writing_to(folder):
            lock.acquire()
        note_doing(folder, "restoring a backup")
        with writing_to(folder), suppress(LibraryError):  # a damaged replacement is replaced, too
            finish_locked(folder)
        with writing_to(folder), closing(Scratch(scratch_folder(folder))) as scratch, scratch.folder() as work:
            ready = work / "ready"
            n_songs, created_at, secrets = _unpack(source, ready, progress)
            restored = secrets if with_passwords else ()
            consent = Consent(restored, tuple(_find_addresses(ready)), tuple(_find_folders(ready, folder)))
            if (consent.private or consent.addresses or consent.folders) and not accept(consent):
                advice = "Nothing was changed. If you trust all of these, restore the backup again and confirm (--yes)."
                raise LibraryError(f"{source.name}: {consent.words} {advice}")
            _prepare_database(folder)
            with _BACKUP.refusing(source.name):
                own = dict(_read_own(folder, _OWN_TEXTS))
                _adapt_to_machine(ready, own, with_tokens=with_passwords)
            replace_parts(folder, ready, [*_PARTS, *restored])
        is_new = False
    except filelock.Timeout as error:
        raise lock_error(folder) from error
    finally:
        if lock.is_locked:
            note_doing(folder, None)
        lock.release()
        if is_new:  # the backup was refused
            shutil.rmtree(folder, ignore_errors=True)
    return Restored(n_songs, created_at, () if with_passwords else secrets)


def _unpack(source: Path, ready: Path, progress: Progress) -> tuple[int, float, tuple[str, ...]]:
    """Unpack and check a backup; return its number of songs, its creation time, and its files with passwords."""
    private = files_with_passwords()
    ready.mkdir()
    with _BACKUP.open(source) as stream, open_copy(_BACKUP, stream, source.name, ready, progress, private) as copy:
        n_songs = len(copy.library)
    for name in _FOLDERS:
        (ready / name).mkdir(exist_ok=True)
    secrets = tuple(name for name in private if name in copy.names)
    for name in secrets:
        (ready / name).chmod(0o600)
    return n_songs, copy.created_at, secrets


def _prepare_database(folder: Path) -> None:
    """Make the database a single file. Raises StoreLockedError if another process has the library open."""
    database = folder / LIBRARY_FILE
    if not database.exists():
        return
    try:
        with closing(sqlite3.connect(database, timeout=1)) as connection:
            connection.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise StoreLockedError(
                f"{folder}: another musicsim process has this library open. Close the app and all other programs that "
                "use it, and restore again."
            ) from error
        # a damaged database is replaced: no other process can have it open


def _read_own(folder: Path, query: str) -> list[Any]:
    """Return rows of a library that is being replaced; none if the library is missing or damaged."""
    file = folder / LIBRARY_FILE
    if not file.exists():
        return []
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as database:
            return database.execute(query).fetchall()
    except (sqlite3.Error, UnicodeDecodeError):
        return []


def _adapt_to_machine(folder: Path, own: Mapping[str, str], *, with_tokens: bool) -> None:
    """Store this machine's entries, `own`, in an unpacked library; delete its jobs and, by default, renew tokens."""
    with closing(sqlite3.connect(folder / LIBRARY_FILE)) as database, database:
        row = database.execute("SELECT value FROM meta WHERE key = 'settings'").fetchone()
        merged = {**own, "settings": merge_restored(row[0] if row else None, own.get("settings"))}
        database.execute(f"DELETE FROM meta WHERE {_OF_MACHINE}")
        texts = ((key, value) for key, value in merged.items() if value is not None)
        database.executemany("INSERT INTO meta (key, value) VALUES (?, ?)", texts)
        database.execute("DELETE FROM jobs")
        if not with_tokens:
            renew_tokens(database)


def _find_addresses(folder: Path) -> list[str]:
    """Return the addresses that a scan or player would connect to, without user names; omit files in listed folders."""
    addresses: dict[str, None] = {}
    with closing(sqlite3.connect(folder / LIBRARY_FILE)) as database:
        for table, column in _PATHS:
            query = f"SELECT DISTINCT {column} FROM {table} WHERE {column} LIKE '%:/%' ORDER BY {column}"
            for (stored,) in database.execute(query):
                path = path_of(stored)  # decoded like any stored path, so that "./s3:/bucket" is also found
                if is_address(path) and not any(os.fspath(p) in addresses for p in (path, *path.parents)):
                    addresses[os.fspath(path)] = None
    return [strip_user(address) for address in addresses]


def _find_folders(ready: Path, library: Path) -> list[str]:
    """Return the local folders that a scan or a page would read, except those in `library` before the restore."""
    known = {os.fspath(library), *(os.path.abspath(path_of(root)) for (root,) in _read_own(library, _OWN_ROOTS))}
    found: dict[str, None] = {}
    with closing(sqlite3.connect(ready / LIBRARY_FILE)) as database:
        for table, column in _PATHS:
            if column != "folder":  # only its files are read
                for (stored,) in database.execute(f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL"):
                    path = path_of(stored)
                    # without ".."; musicsim stores no relative path, so that one is always listed
                    text = os.path.abspath(path) if path.is_absolute() else os.fspath(path)
                    if not is_address(path) and not any(_is_in(text, places) for places in (known, found)):
                        found[text if table == "roots" else os.path.dirname(text)] = None
    return sorted(found)


def _is_in(path: str, folders: Collection[str]) -> bool:
    """Return whether a path is one of the folders, or in one, in a time that does not depend on their number."""
    while path not in folders:
        path, inner = os.path.dirname(path), path
        if path == inner:
            return False
    return True
