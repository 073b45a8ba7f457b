"""A copy a day of what cannot be made again from the sound: plays, tags, playlists, answers, thumbs and edits.

Each is a SQLite file in the library's folder ``backups``, packed by gzip, which shows what was altered. Its songs are
named by the hashes of their bytes and of their sound and by their paths, so that it can be brought back to a library
whose songs were analysed again.
"""

import gzip
import logging
import re
import shutil
import sqlite3
import time
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import sqlalchemy as sa

from musicsim import LIBRARY_FILE
from musicsim.errors import LibraryError, NotFoundError, StorageError
from musicsim.library.db import schema
from musicsim.library.db.schema_version import join_judgments
from musicsim.library.db.tables import small_copy_tables
from musicsim.library.disk.arrays import private_path
from musicsim.library.disk.scratch import scratch_of

_log = logging.getLogger(__name__)

BACKUPS_FOLDER = "backups"
MAX_COPIES = 7
_CHECKED_EVERY_S = 3600.0
_NAME = re.compile(r"small-\d{4}-\d\d-\d\d-\d{6}-\d{6}\.sqlite\.gz")

_SONGS = """SELECT id, content_hash, sound_hash, edits,
    coalesce((SELECT min(path) FROM main.files WHERE song_id = songs.id), last_path) AS path FROM main.songs"""


def song_columns(table: sa.Table) -> list[str]:
    """The columns of a table that name songs."""
    return [c.name for c in table.c if any(key.column.table is schema.songs for key in c.foreign_keys)]


def said_by_people(table: sa.Table) -> str:
    """Which rows of a table no program can make, as a condition of SQL."""
    return "NOT is_same" if table is schema.duplicates else "1"


class SmallCopies:
    """The copies of one library."""

    def __init__(self, library: Path) -> None:
        self._library, self.folder = library, library / BACKUPS_FOLDER
        self._next_look = 0.0

    def all(self) -> list[Path]:
        """The copies by their dates, the latest last."""
        if not self.folder.is_dir():
            return []
        return sorted(path for path in self.folder.iterdir() if _NAME.fullmatch(path.name))

    def latest(self) -> Path:
        """The copy that was taken last. Raises NotFoundError if there is none."""
        copies = self.all()
        if not copies:
            raise NotFoundError(f"{self.folder}: there is no copy of plays, lists, answers and edits here yet.")
        return copies[-1]

    def keep_daily(self) -> None:
        """Take a copy unless there is one of today; a disk that refuses it is a line in the log."""
        if time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + _CHECKED_EVERY_S
        today = time.strftime("small-%Y-%m-%d-")
        try:
            if not any(path.name.startswith(today) for path in self.all()):
                self.keep_now()
        except (OSError, StorageError, sqlite3.Error) as error:
            _log.warning("No copy of plays, lists, answers and edits was kept today: %s", error)

    def keep_now(self) -> Path | None:
        """Take a copy; None where there is nothing to keep."""
        target = self.folder / datetime.now().strftime("small-%Y-%m-%d-%H%M%S-%f.sqlite.gz")
        with closing(_connect(self._library / LIBRARY_FILE, "rw")) as connection:
            if not _has_something(connection):
                return None
            with private_path(target) as temporary, scratch_of(self._library).folder() as scratch:
                _copy(connection, scratch / "copy")
                with (scratch / "copy").open("rb") as plain, gzip.open(temporary, "wb", 6) as packed:
                    shutil.copyfileobj(plain, packed)
        # of a clock that was set back, the latest copy has not the latest name
        others = [path for path in self.all() if path != target]
        for path in others[: max(0, len(others) + 1 - MAX_COPIES)]:
            path.unlink(missing_ok=True)
        return target


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.as_uri()}?mode={mode}", uri=True, timeout=30, isolation_level=None)


def _has_something(connection: sqlite3.Connection) -> bool:
    looks = [f"SELECT 1 FROM {table.name} WHERE {said_by_people(table)}" for table in small_copy_tables()]
    looks.append("SELECT 1 FROM songs WHERE edits IS NOT NULL")
    return any(connection.execute(f"{look} LIMIT 1").fetchone() for look in looks)


def _copy(connection: sqlite3.Connection, target: Path) -> None:
    connection.execute("ATTACH ? AS copy", (str(target),))
    connection.execute("BEGIN")
    spoken_of = ["SELECT id FROM main.songs WHERE edits IS NOT NULL"]
    for table in small_copy_tables():
        which = said_by_people(table)
        connection.execute(f"CREATE TABLE copy.{table.name} AS SELECT * FROM main.{table.name} WHERE {which}")
        spoken_of += [f"SELECT {column} FROM copy.{table.name}" for column in song_columns(table)]
    connection.execute(f"CREATE TABLE copy.songs AS {_SONGS} WHERE id IN ({' UNION '.join(spoken_of)})")
    connection.execute("COMMIT")


# --- reading --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CopiedSong:
    """A song that a copy says something of."""

    id: int
    content_hash: str
    sound_hash: str | None
    edits: str | None  # JSON
    path: str | None  # as the database has it


class SmallCopy:
    """A copy that is read."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def songs(self) -> Iterator[CopiedSong]:
        """The songs that something is said of."""
        rows = self._connection.execute("SELECT id, content_hash, sound_hash, edits, path FROM songs")
        return (CopiedSong(*row) for row in rows)

    def rows(self, table: sa.Table) -> tuple[list[str], Iterator[tuple[object, ...]]]:
        """The columns of a table that this program has, too, and its rows; none of a table that came later."""
        there = [row[1] for row in self._connection.execute(f"PRAGMA table_info({table.name})")]
        columns = [column for column in there if column in table.c]
        if not columns:
            return [], iter(())
        names = ", ".join(f'"{column}"' for column in columns)
        return columns, self._connection.execute(f"SELECT {names} FROM {table.name}")


@contextmanager
def open_small_copy(path: Path, scratch: Path) -> Iterator[SmallCopy]:
    """Open a copy, which is unpacked into an empty folder.

    Raises LibraryError if it cannot be read, or is none, also where the block finds it out.
    """
    unpacked = scratch / "copy"
    try:
        with gzip.open(path) as packed, unpacked.open("wb") as plain:
            shutil.copyfileobj(packed, plain)
        with closing(_connect(unpacked, "rw")) as connection:
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
            if not {"songs", "plays", "playlists"} <= tables:
                raise sqlite3.DatabaseError("it holds something else")
            if "judgments" not in tables:  # a copy of a library of version 10
                join_judgments(connection.execute)
            yield SmallCopy(connection)
    except FileNotFoundError as error:
        raise NotFoundError(f"{path}: there is no such file.") from error
    except (sqlite3.DatabaseError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise LibraryError(
            f"{path.name}: no copy of plays, lists, answers and edits can be read from this file ({error}); nothing "
            f"was changed. Name another copy."
        ) from error
