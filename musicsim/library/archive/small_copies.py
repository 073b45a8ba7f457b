"""Daily copies of everything that people said: plays, tags, playlists, answers, thumbs and edits.

Each is an archive in the library's folder ``backups`` with a database of these tables. It identifies songs by the
hashes of their bytes and of their sound and by their paths, so it also fits a library whose songs were analyzed again.
"""

import json
import logging
import re
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, cast

import sqlalchemy as sa

from musicsim import LIBRARY_FILE
from musicsim.errors import NotFoundError, StorageError
from musicsim.library.archive.archive_file import ArchiveKind
from musicsim.library.archive.restored import renew_tokens
from musicsim.library.db import schema
from musicsim.library.db.tables import small_copy_tables
from musicsim.library.db.value_check import find_wrong_value
from musicsim.library.disk.scratch import scratch_of
from musicsim.library.store import Store

_log = logging.getLogger(__name__)

BACKUPS_FOLDER = "backups"
MAX_COPIES = 7
_CHECKED_EVERY_S = 3600.0
_NAME = re.compile(r"small-\d{4}-\d\d-\d\d-\d{6}-\d{6}\.tar\.zst")
_SMALL_COPY = ArchiveKind(
    "small copy", "small.json", re.compile(re.escape(LIBRARY_FILE)), "; nothing was changed. Name another one."
)

_SONGS = """SELECT id, content_hash, sound_hash, edits,
    coalesce((SELECT min(path) FROM main.files WHERE song_id = songs.id), last_path) AS path FROM main.songs"""


def song_columns(table: sa.Table) -> list[str]:
    """The columns of a table that name songs."""
    return [c.name for c in table.c if any(key.column.table is schema.songs for key in c.foreign_keys)]


def said_by_people(table: sa.Table) -> str:
    """A condition in SQL for the rows of a table that people made."""
    return "NOT is_same" if table is schema.duplicates else "1"


@dataclass(frozen=True, slots=True)
class BroughtBack:
    """Result of bringing a copy back."""

    n_songs: int  # songs of the copy that are in the library
    n_absent: int  # songs of the copy that are missing, with all that was said of them
    before: Path | None  # a copy of the replaced rows, if there were any


class SmallCopies:
    """The copies of one library."""

    def __init__(self, library: Store) -> None:
        self._library, self.folder = library, library.folder / BACKUPS_FOLDER
        self._next_look = 0.0

    def all(self) -> list[Path]:
        """The copies by their dates, the latest last."""
        if not self.folder.is_dir():
            return []
        return sorted(path for path in self.folder.iterdir() if _NAME.fullmatch(path.name))

    def latest(self) -> Path:
        """The last copy. Raises NotFoundError without any."""
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
        """Take a copy; None if people have not said anything."""
        target = self.folder / datetime.now().strftime("small-%Y-%m-%d-%H%M%S-%f.tar.zst")
        with closing(_connect(self._library.folder / LIBRARY_FILE, "rw")) as connection:
            if not _has_something(connection):
                return None
            with scratch_of(self._library.folder).folder() as work, _SMALL_COPY.write(target, work) as archive:
                _copy(connection, work / LIBRARY_FILE)
                archive.add_file(LIBRARY_FILE, work / LIBRARY_FILE)
        # of a clock that was set back, the latest copy has not the latest name
        others = [path for path in self.all() if path != target]
        for path in others[: max(0, len(others) + 1 - MAX_COPIES)]:
            path.unlink(missing_ok=True)
        return target

    def bring_back(self, path: Path) -> BroughtBack:
        """Replace the rows of what people said by those of a copy, after taking a copy of the present ones.

        Songs are matched by the hash of their bytes, that of their sound, or their path. Links of listening tests get
        new tokens if the copy is not one of the library's own.

        Raises NotFoundError or LibraryError if the copy cannot be read; nothing is changed then.
        """
        library = self._library
        with scratch_of(library.folder).folder() as work, _SMALL_COPY.refusing(path.name):
            with _SMALL_COPY.open(path) as stream:
                _SMALL_COPY.unpack(stream, path.name, work, lambda *_: None)
            try:
                with closing(_connect(work / LIBRARY_FILE, "ro")) as database:
                    copy = _SmallCopy(database)
                    songs = copy.songs
                    before = self.keep_now()
                    with library.write() as connection:
                        here = _matched(connection, songs)
                        _replace(connection, copy, here)
                        edits = {here[s.id]: json.loads(s.edits) or {} for s in songs if s.edits and s.id in here}
                        _, aliases = copy.rows(schema.aliases)
                        library.edits.replace(connection, edits, {str(old): str(new) for old, new in aliases})
                        wrong = find_wrong_value(_driver(connection), (*small_copy_tables(), schema.songs))
                        if wrong is not None:
                            raise ValueError(f"it has a value in the column {wrong} that no library has")
                        if not path.resolve().is_relative_to(self.folder.resolve()):
                            renew_tokens(_driver(connection))  # whoever wrote the file knows the old ones
            except sqlite3.DatabaseError as error:
                raise ValueError(str(error)) from error
        return BroughtBack(len(here), len(songs) - len(here), before)


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.as_uri()}?mode={mode}", uri=True, timeout=30, isolation_level=None)


def _driver(connection: sa.Connection) -> sqlite3.Connection:
    return cast(sqlite3.Connection, connection.connection.driver_connection)


# --- taking one -----------------------------------------------------------------------------------


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


# --- bringing one back ----------------------------------------------------------------------------


class _CopiedSong(NamedTuple):
    """A song that a copy says something of."""

    id: int
    content_hash: str
    sound_hash: str | None
    edits: str | None  # JSON
    path: str | None  # as the database has it


class _SmallCopy:
    """A copy that is read. Raises sqlite3.DatabaseError for another database."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        rows = connection.execute("SELECT id, content_hash, sound_hash, edits, path FROM songs")
        self.songs = [_CopiedSong(*row) for row in rows]

    def rows(self, table: sa.Table) -> tuple[list[str], Iterator[tuple[object, ...]]]:
        """The columns of a table that this program has, too, and its rows; none of a table that came later."""
        there = [row[1] for row in self._connection.execute(f"PRAGMA table_info({table.name})")]
        columns = [column for column in there if column in table.c]
        if not columns:
            return [], iter(())
        names = ", ".join(f'"{column}"' for column in columns)
        return columns, self._connection.execute(f"SELECT {names} FROM {table.name}")


def _matched(connection: sa.Connection, songs: Iterable[_CopiedSong]) -> dict[int, int]:
    """The library's song of each song of a copy, by id; those that are not here are left out."""
    s, f = schema.songs.c, schema.files.c

    def known(key: Any, value: Any, table: sa.Table) -> dict[Any, int]:
        rows = connection.execute(sa.select(key, value).select_from(table).where(key.is_not(None)))
        return {row[0]: row[1] for row in rows}

    by_bytes, by_sound = known(s.content_hash, s.id, schema.songs), known(s.sound_hash, s.id, schema.songs)
    by_path = known(sa.type_coerce(f.path, sa.Text), f.song_id, schema.files)
    ways = (
        (song, by_bytes.get(song.content_hash) or by_sound.get(song.sound_hash) or by_path.get(song.path))
        for song in songs
    )
    return {song.id: song_id for song, song_id in ways if song_id is not None}


def _replace(connection: sa.Connection, copy: _SmallCopy, here: Mapping[int, int]) -> None:
    """Replace the rows of all tables except the aliases of artists."""
    for table in reversed(small_copy_tables()):
        connection.exec_driver_sql(f"DELETE FROM {table.name} WHERE {said_by_people(table)}")
    for table in small_copy_tables():
        columns, rows = copy.rows(table)
        if table is schema.aliases or not columns:
            continue
        names, marks = ", ".join(f'"{name}"' for name in columns), ", ".join("?" * len(columns))
        places = [columns.index(name) for name in song_columns(table) if name in columns]
        # of two songs that are one by now, the first has the say
        put = f"INSERT OR IGNORE INTO {table.name} ({names}) VALUES ({marks})"
        _driver(connection).executemany(put, _with_own_ids(rows, places, here, in_order=table is schema.duplicates))


def _with_own_ids(
    rows: Iterable[tuple[Any, ...]], places: list[int], here: Mapping[int, int], *, in_order: bool
) -> Iterator[tuple[Any, ...]]:
    """Rows whose songs are all in the library, with the library's ids for them."""
    for row in rows:
        named = [place for place in places if row[place] is not None]
        ids = [here[row[place]] for place in named if row[place] in here]
        if len(ids) < len(named) or (in_order and len(set(ids)) < len(ids)):
            continue
        changed = list(row)
        for place, song_id in zip(named, sorted(ids) if in_order else ids, strict=True):
            changed[place] = song_id
        yield tuple(changed)
