"""Bringing back what people said from a small copy: plays, tags, lists, answers, thumbs and edits."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, cast

import sqlalchemy as sa

from musicsim.errors import LibraryError
from musicsim.library.archive.restored import renew_tokens
from musicsim.library.db import schema
from musicsim.library.db.small_copy import CopiedSong, SmallCopy, open_small_copy, said_by_people, song_columns
from musicsim.library.db.tables import small_copy_tables
from musicsim.library.db.value_check import find_wrong_value
from musicsim.library.disk.scratch import scratch_of
from musicsim.library.store import Store

_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class BroughtBack:
    """What came of it."""

    n_songs: int  # songs of the copy that are in the library
    n_absent: int  # and those that are not: what is said of them was left out
    before: Path | None  # a copy of what was replaced; None where there was nothing


def bring_back(library: Store, path: Path) -> BroughtBack:
    """Let people have said what a small copy holds, and nothing else; what they have said by now is copied first.

    Songs are found by the hash of their bytes, that of their sound, or their path. Links for other people get new
    tokens if the copy is not one of the library's own.

    Raises NotFoundError or LibraryError if the copy cannot be read; nothing is changed then.
    """
    with scratch_of(library.folder).folder() as scratch, open_small_copy(path, scratch) as copy:
        before = library.copies.keep_now()
        with library.write() as connection:
            songs = list(copy.songs())
            here = _found(connection, songs)
            for table in reversed(small_copy_tables()):
                connection.exec_driver_sql(f"DELETE FROM {table.name} WHERE {said_by_people(table)}")
            for table in small_copy_tables():
                if table is not schema.aliases:
                    _put(connection, table, copy, here)
            edits = {here[s.id]: json.loads(s.edits) or {} for s in songs if s.edits and s.id in here}
            _, aliases = copy.rows(schema.aliases)
            library.edits.replace(connection, edits, {str(old): str(new) for old, new in aliases})
            _check_values(connection, path)
            if not path.resolve().is_relative_to(library.copies.folder.resolve()):
                renew_tokens(_database(connection))  # whoever wrote the file knows the old ones
    return BroughtBack(len(here), len(songs) - len(here), before)


def _check_values(connection: sa.Connection, path: Path) -> None:
    """Raises LibraryError, which takes everything back, if the copy had values that no library holds."""
    wrong = find_wrong_value(_database(connection), (*small_copy_tables(), schema.songs))
    if wrong is not None:
        raise LibraryError(
            f"{path.name}: this small copy has a value in the column {wrong} that no library has; nothing was changed. "
            "Bring back another one."
        )


def _database(connection: sa.Connection) -> sqlite3.Connection:
    return cast(sqlite3.Connection, connection.connection.driver_connection)


def _found(connection: sa.Connection, songs: Iterable[CopiedSong]) -> dict[int, int]:
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


def _put(connection: sa.Connection, table: sa.Table, copy: SmallCopy, here: Mapping[int, int]) -> None:
    columns, rows = copy.rows(table)
    names, marks = ", ".join(f'"{name}"' for name in columns), ", ".join("?" * len(columns))
    places = [columns.index(name) for name in song_columns(table) if name in columns]
    # of two songs that are one by now, the first has the say
    put = f"INSERT OR IGNORE INTO {table.name} ({names}) VALUES ({marks})"
    changed = _here(rows, places, here, in_order=table is schema.duplicates)
    while part := list(islice(changed, _AT_ONCE)):
        connection.exec_driver_sql(put, part)


def _here(
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
