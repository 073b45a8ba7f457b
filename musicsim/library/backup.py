"""A library as one file: taken while others write to it, and checked whole before it takes a library's place.

A backup is a tar archive: ``backup.json`` says what it is, then come the arrays, the database as it was at one moment,
and last ``hashes.txt``, which ``sha256sum --check`` reads, too. Of arrays that grow it holds the rows that this moment
of the database knows. What can be made again from the songs is left out (``cache``, logs of jobs), and so is all sound.
"""

import hashlib
import io
import json
import os
import re
import shutil
import sqlite3
import tarfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import filelock
import sqlalchemy as sa

from musicsim import LIBRARY_FILE, __version__
from musicsim.errors import LibraryError, NotFoundError, StoreLockedError
from musicsim.library.db import schema
from musicsim.library.db.database import open_engine
from musicsim.library.db.integrity import check_database
from musicsim.library.disk.replacing import replace_parts, writer_lock
from musicsim.library.disk.scratch import Scratch, scratch_folder
from musicsim.library.store import Store
from musicsim.storage import storage_error, writing_to

Tell = Callable[[str, int, int], None]
"""Told a message, and how many of how many files are done; what it raises ends the work."""

ENDING = ".musicsim-backup"
_ABOUT, _HASHES = "backup.json", "hashes.txt"
_FORMAT = 1
_WALK_SOURCES = "walk_sources.npz"
_FOLDERS = ("frames", "models", "embeddings")
_PARTS = (f"{LIBRARY_FILE}-wal", f"{LIBRARY_FILE}-shm", LIBRARY_FILE, *_FOLDERS, _WALK_SOURCES)
_MAX_ROUNDS = 5
_MAX_ABOUT = 1 << 16
_CHUNK = 1 << 20
# of a model's folder what it cannot do without; rows.npz and the index are caches
_MODEL_FILES = re.compile(r"(?!rows\.npz)[a-z_]+\.(json|npz|f32)")
_NAMES = re.compile(
    rf"frames/\w\w/\w+(\.v\d+)?\.np[yz]|models/[\w-]+/{_MODEL_FILES.pattern}|embeddings/\w+/[a-z]+\.(json|npy)"
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
        Names of files of the library's folder that are taken besides, because of what secrets they hold.

    Raises
    ------
    LibraryError
        If `target` is something else than a backup, or the library's database is damaged.
    """
    if target.exists() and not _is_backup(target):
        raise LibraryError(f"{target}: this is there already, and no backup. Name another file.")
    working = target.absolute().parent / ".musicsim-backup"
    scratch = Scratch(working)  # beside it: there has to be room there anyway
    try:
        with scratch.folder() as work, writing_to(target):
            written = work / "backup"
            written.touch(0o600)
            with written.open("wb") as stream:
                with tarfile.open(fileobj=stream, mode="w") as tar:
                    report = _Writing(library, tar, work, tell).run(private)
                stream.flush()
                os.fsync(stream.fileno())
            written.replace(target)
    finally:
        scratch.close()
        with suppress(OSError):  # another one may be at work there
            working.rmdir()
    return report


class _Writing:
    """A backup that is being written."""

    def __init__(self, library: Store, tar: tarfile.TarFile, work: Path, tell: Tell) -> None:
        self._library, self._tar, self._work, self._tell = library, tar, work, tell
        self._hashes: list[str] = []
        self._frames: set[str] = set()  # hashes of songs whose files are in it
        self._total = 0

    def run(self, private: Iterable[str]) -> BackupReport:
        about = {"format": _FORMAT, "musicsim": __version__, "created_at": time.time()}
        self._add_bytes(_ABOUT, json.dumps(about).encode())
        for _ in range(_MAX_ROUNDS):
            database = self._copy_database()
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
            self._add_file(name, self._library.folder / name)
        self._add_file(LIBRARY_FILE, database)
        self._add_bytes(_HASHES, "".join(self._hashes).encode())
        return BackupReport(n_songs, self._tar.offset, tuple(damaged))

    def _copy_database(self) -> Path:
        """The database as it is at one moment, whole."""
        self._tell("copying the database", 0, 0)
        target = self._work / LIBRARY_FILE
        target.unlink(missing_ok=True)
        source = self._library.engine.raw_connection()
        try:
            with closing(sqlite3.connect(target)) as copy:
                source.driver_connection.backup(copy)  # type: ignore[union-attr]
                check_database(copy)
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
            self._add_file(path.relative_to(self._library.folder).as_posix(), path)
        self._add_file(_WALK_SOURCES, self._library.folder / _WALK_SOURCES)
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
            found |= self._add_file(path.relative_to(self._library.folder).as_posix(), path)
        if found:
            self._frames.add(content_hash)
        self._tell("copying songs", len(self._frames), self._total)
        return found

    def _add_model(self, moment: Store, model_id: str) -> bool:
        """Add a model; False where its files are not all there."""
        folder = self._library.models.path(model_id)
        grown = moment.models.row_bytes(moment.models.get(model_id))
        is_whole = (folder / "model.json").exists()
        for path in sorted({*folder.glob("*.*"), *grown}):
            if _MODEL_FILES.fullmatch(path.name):
                name = path.relative_to(self._library.folder).as_posix()
                is_added = self._add_file(name, path, grown.get(path))
                is_whole &= is_added or path not in grown
        self._tell("copying models", len(self._frames), self._total)
        return is_whole

    def _add_file(self, name: str, path: Path, n_bytes: int | None = None) -> bool:
        """Add a file, or its first bytes; False where there is none, or not so many."""
        try:
            stream = path.open("rb")
        except (FileNotFoundError, NotADirectoryError):
            return False
        with stream:
            there = stream.seek(0, io.SEEK_END)
            size = there if n_bytes is None else n_bytes
            stream.seek(0)
            if size > there:
                return False
            self._add(name, stream, size)
        return True

    def _add_bytes(self, name: str, data: bytes) -> None:
        self._add(name, io.BytesIO(data), len(data))

    def _add(self, name: str, stream: BinaryIO, size: int) -> None:
        member = tarfile.TarInfo(name)
        member.size, member.mtime, member.mode = size, int(time.time()), 0o600
        read = _Hashed(stream)
        self._tar.addfile(member, read)  # type: ignore[arg-type]  # it reads, and no more
        self._tar.members.clear()  # type: ignore[attr-defined]  # or all are remembered
        self._hashes.append(f"{read.digest}  {name}\n")


class _Hashed:
    """A stream whose bytes are hashed as they are read."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._hash = stream, hashlib.sha256()

    def read(self, n_bytes: int) -> bytes:
        block = self._stream.read(n_bytes)
        self._hash.update(block)
        return block

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()


# --- putting one in a library's place -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Restored:
    """What a library holds that was restored."""

    n_songs: int
    created_at: float  # when the backup was made, seconds since 1970


def restore_backup(source: Path, folder: Path, tell: Tell, private: Collection[str] = ()) -> Restored:
    """Put what a backup holds in the place of a library, or make one of it.

    Everything is unpacked and checked first. Songs that were uploaded stay in the library's folder, and what is not in
    the backup of the files in `private`.

    Raises
    ------
    NotFoundError
        If there is no such file.
    LibraryError
        If it is no backup, or not as it was written; nothing is changed then.
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
        with (
            writing_to(folder),
            closing(Scratch(scratch_folder(folder))) as scratch,
            scratch.folder() as work,
        ):
            ready = work / "ready"
            ready.mkdir()
            names, about = _unpack(source, ready, tell, private)
            tell("checking the database", 0, 0)
            n_songs = _check_library(source, ready)
            _close_to_others(folder)
            replace_parts(folder, ready, [*_PARTS, *(name for name in private if name in names)])
        is_new = False
    except filelock.Timeout as error:
        raise StoreLockedError(
            f"{folder}: another musicsim is adding songs to this library. Wait until it has finished."
        ) from error
    finally:
        lock.release()
        if is_new:  # and was refused
            shutil.rmtree(folder, ignore_errors=True)
    return Restored(n_songs, float(about["created_at"]))


def _is_backup(path: Path) -> bool:
    try:
        with _members(path) as members:
            return next(members)[0].name == _ABOUT
    except (LibraryError, OSError, StopIteration):
        return False


@contextmanager
def _members(source: Path) -> Iterator[Iterator[tuple[tarfile.TarInfo, tarfile.TarFile]]]:
    """The members of a backup in their order; raises LibraryError where it is damaged, also what the block finds."""

    def each(tar: tarfile.TarFile) -> Iterator[tuple[tarfile.TarInfo, tarfile.TarFile]]:
        while (member := tar.next()) is not None:
            if member.type != tarfile.REGTYPE or member.issparse() or member.size < 0:
                raise ValueError(f"{member.name[:80]!r} is no plain file")
            yield member, tar
            tar.members.clear()  # type: ignore[attr-defined]  # or all are remembered

    if not source.exists():
        raise NotFoundError(f"{source}: there is no such file.")
    try:
        with tarfile.open(source, "r:") as tar:
            yield each(tar)
    except (tarfile.TarError, ValueError, EOFError, KeyError, TypeError, RecursionError) as error:
        raise _refused(source, error) from error


def _refused(source: Path, why: object) -> LibraryError:
    return LibraryError(
        f"{source.name}: this is no whole backup of musicsim ({why}); nothing was changed. Restore another one."
    )


def _unpack(
    source: Path, ready: Path, tell: Tell, private: Collection[str]
) -> tuple[set[str], dict[str, float]]:
    """Write the members of a backup into a folder; names of those that lie in no folder, and what it says of itself."""
    seen = hashlib.sha256()
    with _members(source) as members:
        first, tar = next(members, (None, None))
        if first is None or tar is None or first.name != _ABOUT or first.size > _MAX_ABOUT:
            raise ValueError("it does not begin as one")
        data = _read(tar, first)
        about = json.loads(data)
        seen.update(f"{hashlib.sha256(data).hexdigest()}  {_ABOUT}\n".encode())
        if about["format"] != _FORMAT:
            raise LibraryError(
                f"{source.name}: this backup was made by a newer musicsim. Update musicsim, and restore it then."
            )
        found = set()
        for n_members, (member, _) in enumerate(members, start=1):
            if member.name == _HASHES:
                data = _read(tar, member)
                if hashlib.sha256(data).digest() != seen.digest():
                    raise ValueError(_first_altered(data, ready))
                if next(members, None) is not None:
                    raise ValueError("something was added to it")
                break
            if not (_NAMES.fullmatch(member.name) or member.name in private):
                raise ValueError(f"{member.name[:80]!r} is not what one holds")
            seen.update(f"{_write(tar, member, ready)}  {member.name}\n".encode())
            found.add(member.name)
            tell("unpacking", n_members, 0)
        else:
            raise ValueError("it is cut off")
        if LIBRARY_FILE not in found:
            raise ValueError("it has no database")
    for name in _FOLDERS:
        (ready / name).mkdir(exist_ok=True)
    return {name for name in found if "/" not in name}, about


def _read(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream = tar.extractfile(member)
    data = stream.read() if stream else b""
    if len(data) < member.size:
        raise ValueError("it is cut off")
    return data


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, ready: Path) -> str:
    """Write a member to a file; its hash."""
    target = ready / member.name
    target.parent.mkdir(parents=True, exist_ok=True)
    stream = tar.extractfile(member)
    found, left = hashlib.sha256(), member.size
    with target.open("wb") as out:
        if "/" not in member.name and member.name != LIBRARY_FILE:
            target.chmod(0o600)
        while stream and (block := stream.read(min(_CHUNK, left))):
            found.update(block)
            out.write(block)
            left -= len(block)
    if left:
        raise ValueError("it is cut off")
    return found.hexdigest()


def _first_altered(hashes: bytes, ready: Path) -> str:
    """Which member is not as it was written."""
    for line in hashes.decode("utf-8", "replace").splitlines():
        digest, _, name = line.partition("  ")
        if _NAMES.fullmatch(name) and (ready / name).is_file():
            with (ready / name).open("rb") as stream:
                if hashlib.file_digest(stream, "sha256").hexdigest() != digest:
                    return f"{name} was altered"
    return "it was altered"


def _check_library(source: Path, ready: Path) -> int:
    """How many songs an unpacked library has; raises LibraryError if its database or arrays are not whole.

    That of an older version is brought up to date on the way.
    """
    database = ready / LIBRARY_FILE
    try:
        with closing(sqlite3.connect(database)) as connection:
            check_database(connection)
    except sqlite3.DatabaseError as error:
        raise _refused(source, error) from error
    with Store.open(ready, create=False) as library:
        look = sa.inspect(library.engine)
        found = {name: {c["name"] for c in look.get_columns(name)} for name in look.get_table_names()}
        wanted = {table.name: {c.name for c in table.c} for table in schema.metadata.sorted_tables}
        if {name: found.get(name) for name in wanted} != wanted:
            raise _refused(source, "its tables are not those of a library")
        if look.get_view_names() or _has_triggers(library.engine):
            raise _refused(source, "its database holds what no library does")
        for record in library.models.all(retired=True):
            for path, n_bytes in library.models.row_bytes(record).items():
                if path.exists() and path.stat().st_size != n_bytes:
                    raise _refused(source, f"the rows of the model {record.name!r} are not all there")
        return len(library)


def _has_triggers(engine: sa.Engine) -> bool:
    with engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT 1 FROM sqlite_master WHERE type = 'trigger' LIMIT 1")
        return found.first() is not None


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
