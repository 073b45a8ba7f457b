"""Daily small copies of the data that people entered or imported: plays, tags, playlists, answers, thumbs and edits.

Songs are identified by hashes and paths, so that a copy also matches a library whose songs were reanalyzed.
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
from itertools import islice
from pathlib import Path
from typing import Any, cast

import sqlalchemy as sa

from musicsim import LIBRARY_FILE
from musicsim.errors import NotFoundError, StorageError
from musicsim.library.db import Write, find_wrong_value, schema
from musicsim.library.disk.archive_file import ArchiveKind
from musicsim.library.disk.scratch import scratch_of
from musicsim.library.stores.tag_edits import TagEdits
from musicsim.progress import no_progress

_log = logging.getLogger(__name__)

BACKUPS_FOLDER = "backups"
MAX_COPIES = 7
_CHECK_INTERVAL_S = 3600.0
_NAME = re.compile(r"small-\d{4}-\d\d-\d\d-\d{6}-\d{6}\.tar\.zst")
_SMALL_COPY = ArchiveKind(
    "small copy", "small.json", re.compile(re.escape(LIBRARY_FILE)), "; nothing was changed. Choose another copy."
)
_BLOCK = 10_000  # rows per statement

_SONGS = """SELECT id, content_hash, sound_hash, edits,
    coalesce((SELECT min(path) FROM main.files WHERE song_id = songs.id), last_path) AS path FROM main.songs"""


def _song_columns(table: sa.Table) -> list[str]:
    return [c.name for c in table.c if any(key.column.table is schema.songs for key in c.foreign_keys)]


def _condition(table: sa.Table) -> str:
    """Return the SQL condition for the rows of a table that belong in a small copy."""
    return "NOT is_same" if table is schema.duplicates else "1"


@dataclass(frozen=True, slots=True)
class RestoredCopy:
    n_songs: int  # number of songs in the copy that are in the library
    n_absent: int  # number of songs in the copy that are not in the library; their data was left out
    before: Path | None  # a copy of the replaced data; None if there was no data


class SmallCopies:
    def __init__(self, library: Path, write: Write, edits: TagEdits) -> None:
        self._library, self.folder = library, library / BACKUPS_FOLDER
        self._write, self._edits = write, edits
        self._next_check = 0.0

    def all(self) -> list[Path]:
        """Return the copies, oldest first."""
        if not self.folder.is_dir():
            return []
        return sorted(path for path in self.folder.iterdir() if _NAME.fullmatch(path.name))

    def latest(self) -> Path:
        """Return the latest copy. Raises NotFoundError if there is none."""
        copies = self.all()
        if not copies:
            raise NotFoundError(f"{self.folder}: no copy of plays, playlists, answers and edits found.")
        return copies[-1]

    def keep_daily(self) -> None:
        """Make a copy unless one from today exists. Disk errors are only logged."""
        if time.monotonic() < self._next_check:
            return
        self._next_check = time.monotonic() + _CHECK_INTERVAL_S
        today = time.strftime("small-%Y-%m-%d-")
        try:
            if not any(path.name.startswith(today) for path in self.all()):
                self.keep_now()
        except (OSError, StorageError, sqlite3.Error) as error:
            _log.warning("Today's copy of plays, playlists, answers and edits could not be made: %s", error)

    def keep_now(self) -> Path | None:
        """Make a copy; return None if there is nothing to copy."""
        target = self.folder / datetime.now().strftime("small-%Y-%m-%d-%H%M%S-%f.tar.zst")
        with closing(_connect(self._library / LIBRARY_FILE, "rw")) as connection:
            queries = [f"SELECT 1 FROM {table.name} WHERE {_condition(table)}" for table in schema.small_copy_tables()]
            queries.append("SELECT 1 FROM songs WHERE edits IS NOT NULL")
            if not any(connection.execute(f"{query} LIMIT 1").fetchone() for query in queries):
                return None
            with scratch_of(self._library).folder() as work, _SMALL_COPY.write(target, work) as archive:
                _copy(connection, work / LIBRARY_FILE)
                archive.add_file(LIBRARY_FILE, work / LIBRARY_FILE)
        # if the clock was set back, the latest copy's name does not sort last
        others = [path for path in self.all() if path != target]
        for path in others[: max(0, len(others) + 1 - MAX_COPIES)]:
            path.unlink(missing_ok=True)
        return target

    def bring_back(self, path: Path) -> RestoredCopy:
        """Replace the entered and imported data with the data in a copy, after making a copy of the current data.

        Links to listening tests get new tokens if the copy is outside `folder`. Errors are raised before any change.
        """
        with (
            scratch_of(self._library).folder() as work,
            _SMALL_COPY.open(path) as stream,
            _SMALL_COPY.unpacked(stream, path.name, work, no_progress),
        ):
            try:
                with closing(_connect(work / LIBRARY_FILE, "ro")) as database:
                    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
                    if not {"songs", "plays", "playlists"} <= tables:
                        raise ValueError("it does not have the tables of a small copy")
                    songs = database.execute("SELECT id, content_hash, sound_hash, path, edits FROM songs").fetchall()
                    before = self.keep_now()
                    with self._write() as connection:
                        own_ids = _match_songs(connection, songs)
                        _replace_rows(connection, database, own_ids)
                        edits = {own_ids[i]: json.loads(text) or {} for i, *_, text in songs if text and i in own_ids}
                        _, aliases = _read_rows(database, schema.aliases)
                        self._edits.replace(connection, edits, {str(old): str(new) for old, new in aliases})
                        driver = cast(sqlite3.Connection, connection.connection.driver_connection)
                        wrong = find_wrong_value(driver, (*schema.small_copy_tables(), schema.songs))
                        if wrong is not None:
                            raise ValueError(f"it has an invalid value in column {wrong}")
                        if not path.resolve().is_relative_to(self.folder.resolve()):
                            schema.renew_tokens(driver)  # the author of the file knows the old tokens
            except sqlite3.DatabaseError as error:
                raise ValueError(str(error)) from error
        return RestoredCopy(len(own_ids), len(songs) - len(own_ids), before)


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.as_uri()}?mode={mode}", uri=True, timeout=30, isolation_level=None)


def _copy(connection: sqlite3.Connection, target: Path) -> None:
    connection.execute("ATTACH ? AS copy", (str(target),))
    connection.execute("BEGIN")
    song_ids = ["SELECT id FROM main.songs WHERE edits IS NOT NULL"]
    for table in schema.small_copy_tables():
        name = table.name
        connection.execute(f"CREATE TABLE copy.{name} AS SELECT * FROM main.{name} WHERE {_condition(table)}")
        song_ids += [f"SELECT {column} FROM copy.{name}" for column in _song_columns(table)]
    connection.execute(f"CREATE TABLE copy.songs AS {_SONGS} WHERE id IN ({' UNION '.join(song_ids)})")
    connection.execute("COMMIT")


def _read_rows(database: sqlite3.Connection, table: sa.Table) -> tuple[list[str], Iterator[tuple[object, ...]]]:
    """Return the known columns of a table in a copy, and its rows; both are empty if the copy has no such table."""
    existing = [row[1] for row in database.execute(f"PRAGMA table_info({table.name})")]
    columns = [column for column in existing if column in table.c]
    if not columns:
        return [], iter(())
    names = ", ".join(f'"{column}"' for column in columns)
    return columns, database.execute(f"SELECT {names} FROM {table.name}")


def _match_songs(connection: sa.Connection, songs: Iterable[tuple[Any, ...]]) -> dict[int, int]:
    """Return the library's song ids, keyed by their ids in the copy; `songs` are rows of id, hashes, path and edits."""
    s, f = schema.songs.c, schema.files.c

    def read(key: Any, value: Any, table: sa.Table) -> dict[Any, int]:
        rows = connection.execute(sa.select(key, value).select_from(table).where(key.is_not(None)))
        return {row[0]: row[1] for row in rows}

    by_bytes, by_sound = read(s.content_hash, s.id, schema.songs), read(s.sound_hash, s.id, schema.songs)
    by_path = read(sa.type_coerce(f.path, sa.Text), f.song_id, schema.files)
    matches = {
        copied: by_bytes.get(content_hash) or by_sound.get(sound_hash) or by_path.get(path)
        for copied, content_hash, sound_hash, path, _ in songs
    }
    return {copied: own for copied, own in matches.items() if own is not None}


def _replace_rows(connection: sa.Connection, database: sqlite3.Connection, own_ids: Mapping[int, int]) -> None:
    for table in reversed(schema.small_copy_tables()):
        connection.exec_driver_sql(f"DELETE FROM {table.name} WHERE {_condition(table)}")
    for table in schema.small_copy_tables():
        if table is schema.aliases:
            continue
        columns, rows = _read_rows(database, table)
        names, marks = ", ".join(f'"{name}"' for name in columns), ", ".join("?" * len(columns))
        places = [columns.index(name) for name in _song_columns(table) if name in columns]
        # if two songs in the copy are one song in the library, the first row is kept
        insert = f"INSERT OR IGNORE INTO {table.name} ({names}) VALUES ({marks})"
        changed = _translate_ids(rows, places, own_ids, in_order=table is schema.duplicates)
        while block := list(islice(changed, _BLOCK)):
            connection.exec_driver_sql(insert, block)


def _translate_ids(
    rows: Iterable[tuple[Any, ...]], places: list[int], own_ids: Mapping[int, int], *, in_order: bool
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows whose songs are all in the library, with the library's song ids."""
    for row in rows:
        filled = [place for place in places if row[place] is not None]
        ids = [own_ids[row[place]] for place in filled if row[place] in own_ids]
        if len(ids) < len(filled) or (in_order and len(set(ids)) < len(ids)):
            continue
        changed = list(row)
        for place, song_id in zip(filled, sorted(ids) if in_order else ids, strict=True):
            changed[place] = song_id
        yield tuple(changed)
