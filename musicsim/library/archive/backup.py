"""A library as one file: taken while others write to it, and checked whole before it takes a library's place.

A backup is an archive (:mod:`musicsim.library.disk.archive_file`) with the arrays, then the database as it was at
one moment. Of arrays that grow it holds the rows that this moment of the database knows. Sound is left out, and so is
all that can be made again from the songs (``cache``, logs of jobs).
"""

import re
import shutil
import sqlite3
from collections.abc import Callable, Collection
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import filelock

from musicsim import LIBRARY_FILE
from musicsim.errors import LibraryError, StoreLockedError
from musicsim.library.archive.contents import MODEL_FILES, add_model, checked_library
from musicsim.library.archive.restored import adapt_to_machine, find_addresses, name_some, read_own_texts, renew_tokens
from musicsim.library.db.database import open_engine
from musicsim.library.db.integrity import check_database
from musicsim.library.disk.archive_file import ArchiveKind, ArchiveWriter, Progress, folder_next_to
from musicsim.library.disk.replacing import replace_parts
from musicsim.library.disk.scratch import Scratch, scratch_folder
from musicsim.library.disk.writer import locked_error, note_doing, writer_lock
from musicsim.library.library import Library
from musicsim.storage import storage_error, writing_to

ENDING = ".musicsim-backup"
_WALK_SOURCES = "walk_sources.npz"
_FOLDERS = ("frames", "models", "embeddings")
_JOBS = "jobs"  # logs of jobs, which no restored library has
_PARTS = (f"{LIBRARY_FILE}-wal", f"{LIBRARY_FILE}-shm", LIBRARY_FILE, *_FOLDERS, _WALK_SOURCES, _JOBS)
_MAX_ROUNDS = 5
_BACKUP = ArchiveKind(
    "backup",
    "backup.json",
    re.compile(
        rf"frames/\w\w/\w+(\.v\d+)?\.np[yz]|{MODEL_FILES}|embeddings/\w+/[a-z]+\.(json|npy)"
        rf"|{re.escape(_WALK_SOURCES)}|{re.escape(LIBRARY_FILE)}"
    ),
    "; nothing was changed. Restore another one.",
)


@dataclass(frozen=True, slots=True)
class BackupReport:
    """Contents of a backup."""

    n_songs: int
    n_bytes: int
    damaged: tuple[str, ...]  # names of models that are not in it, as their files are missing or cut off


# --- making one -----------------------------------------------------------------------------------


def save_backup(library: Library, target: Path, progress: Progress, private: Collection[str] = ()) -> BackupReport:
    """Write a library as one file that only its owner can read.

    Parameters
    ----------
    target : Path
        A backup that is there is replaced when the new one is whole.
    private : collection of str
        Names of files of the library's folder that are taken as well, although they hold secrets. Without any, links
        of listening tests get new tokens in the backup.

    Raises
    ------
    LibraryError
        If `target` is something else than a backup, or the library's database is damaged.
    """
    with folder_next_to(target) as work, _BACKUP.write(target, work) as archive:
        n_songs, damaged = _Writing(library, archive, work, progress).run(private)
    return BackupReport(n_songs, target.stat().st_size, damaged)


class _Writing:
    """A backup that is being written."""

    def __init__(self, library: Library, archive: ArchiveWriter, work: Path, progress: Progress) -> None:
        self._library, self._archive, self._work, self._tell = library, archive, work, progress
        self._frames: set[str] = set()  # hashes of songs whose files are in it

    def run(self, private: Collection[str]) -> tuple[int, tuple[str, ...]]:
        """Write it; returns the number of songs, and the names of damaged models."""
        for _ in range(_MAX_ROUNDS):
            database = self._copy_database(with_tokens=bool(private))
            with closing(Library(self._library.folder, open_engine(database, read_only=True))) as moment:
                damaged = self._add_arrays(moment)
                n_songs = len(moment)
            if damaged is not None:
                break
        else:
            raise LibraryError(
                f"{self._library.folder}: songs and models go faster than they can be copied. Wait until the job that "
                "removes them has finished, and start the backup again."
            )
        for name in private:
            self._add(self._library.folder / name)
        self._archive.add_file(LIBRARY_FILE, database)
        return n_songs, tuple(damaged)

    def _add(self, path: Path) -> bool:
        return self._archive.add_file(path.relative_to(self._library.folder).as_posix(), path)

    def _copy_database(self, *, with_tokens: bool) -> Path:
        """Copy the database at one moment; with new tokens for links, unless `with_tokens`."""
        self._tell("copying the database", 0, 0)
        target = self._work / LIBRARY_FILE
        target.unlink(missing_ok=True)
        source = self._library.engine.raw_connection()
        try:
            with closing(sqlite3.connect(target)) as copy:
                source.driver_connection.backup(copy)  # type: ignore[union-attr]
                check_database(copy)
                if not with_tokens:
                    copy.execute("PRAGMA secure_delete=ON")  # or the old ones stay in free pages
                    with copy:
                        renew_tokens(copy)
        except sqlite3.Error as error:
            if (problem := storage_error(error, target)) is not None:
                raise problem from error
            raise LibraryError(
                f"{self._library.folder / LIBRARY_FILE} is damaged ({error}): no backup was made, as it could not be "
                f"restored. Restore an earlier one."
            ) from error
        finally:
            source.close()
        return target

    def _add_arrays(self, moment: Library) -> list[str] | None:
        """Add the arrays that a moment of the database knows.

        Returns the names of damaged models; None if something was deleted meanwhile, so that a later moment is needed.
        """
        songs, models = moment.content_hashes(), moment.models.all(retired=True)
        total = len(songs) + len(models)
        lacking, damaged = set(), {}
        for content_hash in songs:
            if not self._add_frames(content_hash):
                lacking.add(content_hash)
            self._tell("copying songs", len(self._frames), total)
        for record in models:
            if not add_model(self._archive, moment, record):
                damaged[record.id] = record.name
            self._tell("copying models", len(self._frames), total)
        for path in sorted((self._library.folder / "embeddings").glob("*/*.*")):
            self._add(path)
        self._add(self._library.folder / _WALK_SOURCES)
        remaining = {record.id for record in self._library.models.all(retired=True)}
        if not damaged.keys() <= remaining or (lacking and not lacking <= set(self._library.content_hashes())):
            return None
        return sorted(damaged.values())

    def _add_frames(self, content_hash: str) -> bool:
        """Add the stored features of a song; False if they are missing."""
        if content_hash not in self._frames:
            added = [self._add(path) for path in self._library.frame_files.files(content_hash)]
            if not any(added):
                return False
            self._frames.add(content_hash)
        return True


# --- putting one in a library's place -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Restored:
    """A library that was restored."""

    n_songs: int
    created_at: float  # when the backup was made, seconds since 1970
    left_out: tuple[str, ...] = ()  # names of private files in the backup that were not taken


@dataclass(frozen=True, slots=True)
class Consent:
    """Parts of a backup that act beyond the library, for which the owner of this machine is asked."""

    private: tuple[str, ...]  # names of files with the connections to servers and players
    addresses: tuple[str, ...]  # folders and files that are not on this machine: scans and players connect there

    @property
    def words(self) -> str:
        """The same in sentences."""
        said = []
        if self.addresses:
            said.append(f"its music is at addresses that a scan connects to: {name_some(self.addresses)}.")
        if self.private:
            said.append(f"it brings passwords and servers that musicsim will use: {', '.join(self.private)}.")
        return " ".join(said)


def refuse(_: Consent) -> bool:
    """Say no to all."""
    return False


def restore_backup(
    source: Path,
    folder: Path,
    progress: Progress,
    private: Collection[str] = (),
    *,
    with_private: bool = False,
    accept: Callable[[Consent], bool] = refuse,
) -> Restored:
    """Put the library that a backup holds in the place of a library, or make a new one.

    Everything is unpacked and checked first. The library keeps uploaded songs, settings of the
    machine (:func:`musicsim.library.db.settings.is_of_machine`), and the files in `private`.

    Parameters
    ----------
    private : collection of str
        Names of files of the library's folder that hold secrets. A backup may have them.
    with_private : bool
        Take the files in `private`, and the tokens of links to listening tests, from the backup.
    accept : callable
        Is asked before anything is replaced, if the backup has something that needs consent.

    Raises
    ------
    NotFoundError
        If there is no such file.
    LibraryError
        If it is no backup, not as it was written, or `accept` says no; nothing is changed then.
    StoreLockedError
        If another process has the library open.
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
        with writing_to(folder), closing(Scratch(scratch_folder(folder))) as scratch, scratch.folder() as work:
            ready = work / "ready"
            ready.mkdir()
            with _BACKUP.refusing(source.name):
                with _BACKUP.open(source) as stream:
                    names, created_at = _BACKUP.unpack(stream, source.name, ready, progress, private)
                progress("checking the database", 0, 0)
                for name in _FOLDERS:
                    (ready / name).mkdir(exist_ok=True)
                with checked_library(ready) as library:
                    n_songs = len(library)
            brought = tuple(name for name in private if name in names)
            for name in brought:
                (ready / name).chmod(0o600)
            taken = brought if with_private else ()
            consent = Consent(taken, tuple(find_addresses(ready)))
            if (consent.private or consent.addresses) and not accept(consent):
                raise LibraryError(
                    f"{source.name}: {consent.words} Nothing was changed. If you know them all, restore it again and "
                    "say yes (--yes)."
                )
            _close_to_others(folder)
            with _BACKUP.refusing(source.name):
                adapt_to_machine(ready, read_own_texts(folder), with_tokens=with_private)
            replace_parts(folder, ready, [*_PARTS, *taken])
        is_new = False
    except filelock.Timeout as error:
        raise locked_error(folder) from error
    finally:
        if lock.is_locked:
            note_doing(folder, None)
        lock.release()
        if is_new:  # and was refused
            shutil.rmtree(folder, ignore_errors=True)
    return Restored(n_songs, created_at, () if with_private else brought)


def _close_to_others(folder: Path) -> None:
    """Raises StoreLockedError if another process has the library open; else its database is one file from now on."""
    database = folder / LIBRARY_FILE
    if not database.exists():
        return
    try:
        with closing(sqlite3.connect(database, timeout=1)) as connection:
            connection.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise StoreLockedError(
                f"{folder}: another musicsim has this library open. Close the app and what else uses it, and restore "
                f"again."
            ) from error
        # a damaged one, which nobody can work with
