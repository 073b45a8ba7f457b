"""Which words the songs of a library are sung with: a bag of words a song, never the text itself.

A file in which nothing was found is not opened again until it changes.
"""

import json
import logging
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import sqlalchemy as sa

from musicsim._arrays import Int32Array, Int64Array
from musicsim.extensions.lyrics.tables import lyrics
from musicsim.library.db import schema
from musicsim.library.db.database import Tables
from musicsim.library.library import Library

if TYPE_CHECKING:
    from scipy import sparse

_log = logging.getLogger(__name__)
LRC_ENDINGS = (".lrc", ".LRC")
"""Endings of files beside a song that hold its lyrics."""

_AT_ONCE = 1_000  # rows


@dataclass(frozen=True, slots=True)
class UnreadSong:
    """A song whose words were not looked for, or not since its file changed."""

    song_id: int
    path: Path  # a file that holds the song
    mtime_ns: int  # when that file changed last, as the last scan saw it
    lrc_mtime_ns: int | None  # the same of the `.lrc` file beside it; None where there is none


@dataclass(frozen=True, slots=True)
class ReadWords:
    """What was found in the files of a song: how often it says each word; nothing is an answer, too."""

    song: UnreadSong
    words: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class WordTable:
    """How often which song says which word; 8 bytes a word of a song, about 1 kB a song."""

    # (n,): songs that have words, ascending; those whose files are missing, too
    song_ids: Int64Array
    vocabulary: list[str]  # sorted
    counts: "sparse.csr_array"  # (n, n_words): the row of a song that has none of these words is empty


class LyricsStore(Tables):
    """Words of the songs of one library."""

    def __init__(self, library: Library) -> None:
        super().__init__(library.engine, library.write)

    def unread(self) -> list[UnreadSong]:
        """Songs with a file whose words were not looked for, or whose files have changed since, by id.

        Every folder with songs is listed once, to see which ``.lrc`` files have come, changed or gone. Of the songs,
        only those are read that have such a file, or had one, or whose own file has changed.
        """
        f, w = schema.files.c, lyrics.c
        here = sa.select(f.folder).where(f.missing_since.is_(None)).distinct()
        with self._engine.connect() as connection:
            folders = connection.scalars(here).all()
        beside = _lrc_times(folders)
        listed = json.dumps([schema.stored_path(folder) for folder in {path.parent for path in beside}])
        with_lrc = sa.select(sa.func.json_each(listed).table_valued("value").c.value)
        # of several files the first by name: beside min() SQLite gives the other columns of the row that has it
        first = (
            sa.select(f.song_id, sa.func.min(f.path, type_=schema.FilePath()).label("path"), f.folder, f.mtime_ns)
            .where(f.missing_since.is_(None))
            .group_by(f.song_id)
            .subquery()
        ).c
        query = (
            sa.select(first.song_id, first.path, first.mtime_ns, w.mtime_ns.label("seen"), w.lrc_mtime_ns)
            .join(lyrics, w.song_id == first.song_id, isouter=True)
            .where(
                sa.or_(
                    w.mtime_ns.is_distinct_from(first.mtime_ns),
                    w.lrc_mtime_ns.is_not(None),
                    sa.type_coerce(first.folder, sa.Text).in_(with_lrc),
                )
            )
            .order_by(first.song_id)
        )
        found = []
        for row in self._rows(query):
            lrc = beside.get(row.path.with_suffix(""))
            if (row.mtime_ns, lrc) != (row.seen, row.lrc_mtime_ns):
                found.append(UnreadSong(row.song_id, row.path, row.mtime_ns, lrc))
        return found

    def put(self, found: Iterable[ReadWords]) -> None:
        """Write the words of songs in one transaction, in place of earlier ones; forgotten songs are passed over."""
        now = time.time()
        rows = {
            each.song.song_id: {
                "song_id": each.song.song_id,
                "words": dict(each.words),
                "mtime_ns": each.song.mtime_ns,
                "lrc_mtime_ns": each.song.lrc_mtime_ns,
                "read_at": now,
            }
            for each in found
        }
        if not rows:
            return
        with self._write() as connection:
            here = connection.scalars(sa.select(schema.songs.c.id).where(schema.songs.c.id.in_(rows))).all()
            if here:
                statement = lyrics.insert().prefix_with("OR REPLACE")
                connection.execute(statement, [rows[song_id] for song_id in here])

    def words(self, song_id: int) -> dict[str, int]:
        """How often a song says each word; empty where nothing is known."""
        w = lyrics.c
        return self._value(sa.select(w.words).where(w.song_id == song_id)) or {}

    def songs_saying(self, word: str) -> Int64Array:
        """Ids of the songs that say a word, int64."""
        w = lyrics.c
        said = sa.func.json_each(w.words).table_valued("key")
        query = sa.select(w.song_id).select_from(sa.join(lyrics, said, said.c.key == word))
        with self._engine.connect() as connection:
            return np.array(connection.scalars(query).all(), dtype=np.int64)

    def table(self, *, min_songs: int = 2, max_share: float = 0.5) -> WordTable:
        """Words of all songs that have some.

        Parameters
        ----------
        min_songs : int
            Words of fewer songs are dropped: misspellings and names.
        max_share : float, 0 < max_share <= 1
            Words of a larger share of the songs with words are dropped: "the" says nothing of a song.

        Raises
        ------
        ValueError
            If an argument is out of range.

        Notes
        -----
        Takes 40 bytes a word of a song while it works, about 6 kB a song, and 0.3 ms a song.
        """
        if min_songs < 1:
            raise ValueError(f"min_songs={min_songs} must be 1 or more.")
        if not 0 < max_share <= 1:
            raise ValueError(f"max_share={max_share} must be above 0 and at most 1.")
        columns: dict[str, int] = {}
        song_ids: list[int] = []
        rows: list[Int32Array] = []
        w = lyrics.c
        query = sa.select(w.song_id, w.words).order_by(w.song_id)
        with self._engine.connect() as connection:
            for song_id, words in connection.execution_options(yield_per=_AT_ONCE).execute(query):
                if words:
                    song_ids.append(song_id)
                    numbered = [columns.setdefault(word, len(columns)) for word in words]
                    rows.append(np.array([numbered, list(words.values())], dtype=np.int32))
        return _table(song_ids, list(columns), rows, min_songs, max_share)


def _table(
    song_ids: list[int], words: list[str], rows: list[Int32Array], min_songs: int, max_share: float
) -> WordTable:
    """Drop rare and common words, and sort the rest."""
    from scipy import sparse

    columns, counts = np.concatenate([np.empty((2, 0), np.int32), *rows], axis=1)
    bounds = np.cumsum([0, *(row.shape[1] for row in rows)])
    n_songs_with = np.bincount(columns, minlength=len(words))
    kept = np.flatnonzero((n_songs_with >= min_songs) & (n_songs_with <= max_share * len(rows)))
    in_order = sorted(kept.tolist(), key=words.__getitem__)
    table = sparse.csr_array((counts, columns, bounds), shape=(len(rows), len(words)))[:, in_order]
    table.sort_indices()
    return WordTable(np.array(song_ids, dtype=np.int64), [words[column] for column in in_order], table)


def _lrc_times(folders: Iterable[Path]) -> dict[Path, int]:
    """When the ``.lrc`` files of folders changed last, by path without the ending; folders that have gone have none."""
    found: dict[Path, int] = {}
    for folder in folders:
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name.endswith(LRC_ENDINGS) and entry.is_file():
                        found[Path(entry.path).with_suffix("")] = entry.stat().st_mtime_ns
        except OSError as error:
            _log.debug("%s: the folder cannot be listed (%s).", folder, error)
    return found
