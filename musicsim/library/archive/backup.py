"""A library as one file: taken while others write to it, and checked whole before it takes a library's place.

A backup is a tar archive: ``backup.json`` says what it is, then come the arrays, the database as it was at one moment,
and last ``hashes.txt``, which ``sha256sum --check`` reads, too. Of arrays that grow it holds the rows that this moment
of the database knows. What can be made again from the songs is left out (``cache``, logs of jobs), and so is all sound.
"""

import json
import re
import shutil
import sqlite3
import tarfile
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock

from musicsim import LIBRARY_FILE, __version__
from musicsim.errors import LibraryError, NotFoundError, StoreLockedError
from musicsim.library.archive.restored import adapt_to_machine, find_addresses, name_some, read_own_texts, renew_tokens
from musicsim.library.archive.unpacked import MODEL_FILES, checked_library, model_files
from musicsim.library.db.database import open_engine
from musicsim.library.db.integrity import check_database
from musicsim.library.disk.archives import DAMAGED, check_arrays_are_stored
from musicsim.library.disk.hashed_tar import MALFORMED, HashedTar, max_members, new_archive, read_about, unpack
from musicsim.library.disk.replacing import replace_parts
from musicsim.library.disk.scratch import Scratch, scratch_folder
from musicsim.library.disk.writer import locked_error, note_doing, writer_lock
from musicsim.library.store import Store
from musicsim.storage import storage_error, writing_to

Tell = Callable[[str, int, int], None]
"""Told a message, and how many of how many files are done; what it raises ends the work."""

ENDING = ".musicsim-backup"
_ABOUT = "backup.json"
_FORMAT = 1
_WALK_SOURCES = "walk_sources.npz"
_FOLDERS = ("frames", "models", "embeddings")
_JOBS = "jobs"  # logs of jobs, which no restored library has
_PARTS = (f"{LIBRARY_FILE}-wal", f"{LIBRARY_FILE}-shm", LIBRARY_FILE, *_FOLDERS, _WALK_SOURCES, _JOBS)
_MAX_ROUNDS = 5
_LATEST_S = 2.5e11  # in the year 9892
_LEAST_SONG = 2048  # bytes of the files of a song on average: a second of sound has more
_NAMES = re.compile(
    rf"frames/\w\w/\w+(\.v\d+)?\.np[yz]|{MODEL_FILES}|embeddings/\w+/[a-z]+\.(json|npy)"
    rf"|{re.escape(_WALK_SOURCES)}|{re.escape(LIBRARY_FILE)}"
)


@dataclass(frozen=True, slots=True)
class BackupReport:
    """What a backup holds."""

    n_songs: int
    n_bytes: int
    damaged: tuple[str, ...]  # names of models whose files are gone or cut off: they are not in it


# --- making one -----------------------------------------------------------------------------------


def save_backup(library: Store, target: Path, tell: Tell, private: Iterable[str] = ()) -> BackupReport:
    """Write a library as one file that only its owner can read.

    Parameters
    ----------
    target : Path
        A backup that is there is replaced when the new one is whole.
    private : iterable of str
        Names of files of the library's folder that are taken as well, although they hold secrets. Without any, links
        of listening tests get new tokens in the backup.

    Raises
    ------
    LibraryError
        If `target` is something else than a backup, or the library's database is damaged.
    """
    if target.exists() and not _is_backup(target):
        raise LibraryError(f"{target}: this is there already, and no backup. Name another file.")
    with new_archive(target, 0o600) as (work, stream), tarfile.open(fileobj=stream, mode="w") as tar:
        return _Writing(library, tar, work, tell).run(private)


class _Writing:
    """A backup that is being written."""

    def __init__(self, library: Store, tar: tarfile.TarFile, work: Path, tell: Tell) -> None:
        self._library, self._tar, self._work, self._tell = library, tar, work, tell
        self._archive = HashedTar(tar)
        self._frames: set[str] = set()  # hashes of songs whose files are in it
        self._total = 0

    def run(self, private: Iterable[str]) -> BackupReport:
        about = {"format": _FORMAT, "musicsim": __version__, "created_at": time.time()}
        self._archive.add_bytes(_ABOUT, json.dumps(about).encode())
        private = list(private)
        for _ in range(_MAX_ROUNDS):
            database = self._copy_database(with_tokens=bool(private))
            moment = Store(self._library.folder, open_engine(database, read_only=True))
            with closing(moment):
                damaged = self._add_arrays(moment)
                if damaged is None:
                    continue
                n_songs = len(moment)
            break
        else:
            raise LibraryError(
                f"{self._library.folder}: songs and models go faster than they can be copied. Wait until the job that "
                "removes them has finished, and start the backup again."
            )
        for name in private:
            self._archive.add_file(name, self._library.folder / name)
        self._archive.add_file(LIBRARY_FILE, database)
        self._archive.finish()
        return BackupReport(n_songs, self._tar.offset, tuple(damaged))

    def _copy_database(self, *, with_tokens: bool) -> Path:
        """Copy the database as it is at one moment, whole; with new tokens for links, unless `with_tokens`."""
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

    def _add_arrays(self, moment: Store) -> list[str] | None:
        """Add the arrays that a moment of the database knows.

        Returns the names of models that are damaged; None where something was deleted on the way: then they are to be
        those of a later moment.
        """
        songs, models = moment.content_hashes(), moment.models.all(retired=True)
        self._total = len(songs) + len(models)
        lacking = {content_hash for content_hash in songs if not self._add_frames(content_hash)}
        damaged = {record.id: record.name for record in models if not self._add_model(moment, record.id)}
        folder = self._library.folder / "embeddings"
        for path in sorted(folder.glob("*/*.*")):
            self._archive.add_file(path.relative_to(self._library.folder).as_posix(), path)
        self._archive.add_file(_WALK_SOURCES, self._library.folder / _WALK_SOURCES)
        if lacking and not lacking <= set(self._library.content_hashes()):
            return None
        if damaged.keys() - {record.id for record in self._library.models.all(retired=True)}:
            return None
        return sorted(damaged.values())

    def _add_frames(self, content_hash: str) -> bool:
        """Add what is kept of a song; False where nothing is."""
        if content_hash in self._frames:
            return True
        found = False
        for path in self._library.frame_files.files(content_hash):
            found |= self._archive.add_file(path.relative_to(self._library.folder).as_posix(), path)
        if found:
            self._frames.add(content_hash)
        self._tell("copying songs", len(self._frames), self._total)
        return found

    def _add_model(self, moment: Store, model_id: str) -> bool:
        """Add a model; False where its files are not all there."""
        folder = self._library.models.path(model_id)
        grown = moment.models.row_bytes(moment.models.get(model_id))
        is_whole = (folder / "model.json").exists()
        for path, n_bytes in model_files(folder, grown).items():
            name = path.relative_to(self._library.folder).as_posix()
            is_added = self._archive.add_file(name, path, n_bytes)
            is_whole &= is_added or path not in grown
        self._tell("copying models", len(self._frames), self._total)
        return is_whole


# --- putting one in a library's place -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Restored:
    """A library that was restored."""

    n_songs: int
    created_at: float  # when the backup was made, seconds since 1970
    left_out: tuple[str, ...] = ()  # names of private files that are in the backup and were not asked for


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
    tell: Tell,
    private: Collection[str] = (),
    *,
    with_private: bool = False,
    accept: Callable[[Consent], bool] = refuse,
) -> Restored:
    """Put the library that a backup holds in the place of a library, or make a new one.

    Everything is unpacked and checked first. These stay as they are on this machine: uploaded songs, settings of the
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
            names, about = _unpack(source, ready, tell, private)
            tell("checking the database", 0, 0)
            n_songs = _check_library(source, ready)
            taken = tuple(name for name in private if name in names and with_private)
            _ask(source, Consent(taken, tuple(find_addresses(ready))), accept)
            _close_to_others(folder)
            _adapt(source, ready, folder, with_tokens=with_private)
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
    left_out = tuple(name for name in private if name in names and name not in taken)
    return Restored(n_songs, float(about["created_at"]), left_out)


def _ask(source: Path, consent: Consent, accept: Callable[[Consent], bool]) -> None:
    """Raise LibraryError unless what needs consent gets it."""
    if (consent.private or consent.addresses) and not accept(consent):
        raise LibraryError(
            f"{source.name}: {consent.words} Nothing was changed. If you know them all, restore it again and say yes "
            "(--yes)."
        )


def _adapt(source: Path, ready: Path, folder: Path, *, with_tokens: bool) -> None:
    try:
        adapt_to_machine(ready, read_own_texts(folder), with_tokens=with_tokens)
    except ValueError as error:
        raise _refused(source, error) from error


def _check_time(seconds: object) -> None:
    """Raises ValueError unless these are seconds since 1970 that have a date."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < _LATEST_S:
        raise ValueError("it does not say when it was made")


def _is_backup(path: Path) -> bool:
    try:
        with tarfile.open(path, "r:") as tar:
            read_about(tar, _ABOUT)
    except (*MALFORMED, OSError):
        return False
    return True


def _refused(source: Path, why: object) -> LibraryError:
    return LibraryError(
        f"{source.name}: this is no whole backup of musicsim ({why}); nothing was changed. Restore another one."
    )


def _unpack(source: Path, ready: Path, tell: Tell, private: Collection[str]) -> tuple[set[str], dict[str, Any]]:
    """Write the members of a backup into a folder; names of those that lie in no folder, and what it says of itself."""

    def check_about(about: dict[str, Any]) -> None:
        if about["format"] != _FORMAT:
            raise LibraryError(
                f"{source.name}: this backup was made by a newer musicsim. Update musicsim, and restore it then."
            )
        _check_time(about["created_at"])

    def is_expected(name: str) -> bool:
        return _NAMES.fullmatch(name) is not None or name in private

    if not source.exists():
        raise NotFoundError(f"{source}: there is no such file.")
    try:
        with tarfile.open(source, "r:") as tar:
            found, about = unpack(
                tar,
                ready,
                about=_ABOUT,
                check_about=check_about,
                is_expected=is_expected,
                tell=tell,
                max_members=max_members(source.stat().st_size, _LEAST_SONG),
            )
        if LIBRARY_FILE not in found:
            raise ValueError("it has no database")
    except MALFORMED as error:
        raise _refused(source, error) from error
    for name in private:
        if name in found:
            (ready / name).chmod(0o600)
    for name in _FOLDERS:
        (ready / name).mkdir(exist_ok=True)
    return {name for name in found if "/" not in name}, about


def _check_library(source: Path, ready: Path) -> int:
    """How many songs an unpacked library has; raises LibraryError if it is not whole."""
    try:
        check_arrays_are_stored(ready)
        with checked_library(ready) as library:
            return len(library)
    except DAMAGED as error:
        raise _refused(source, error) from error


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
