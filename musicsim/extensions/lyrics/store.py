"""Word counts of each song's lyrics, without the text itself."""

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
from musicsim.library import Library, Tables, metadata
from musicsim.library.db import schema

_log = logging.getLogger(__name__)
LRC_ENDINGS = (".lrc", ".LRC")  # extensions of lyrics files next to an audio file
_ROWS_AT_ONCE = 1_000


def _is_word_counts(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(n, int) for n in value.values())


# a file without lyrics has a row with empty counts, so that it is not opened again
lyrics = sa.Table(
    "lyrics",
    metadata,
    sa.Column("song_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("words", sa.JSON, nullable=False, info={"check": _is_word_counts}),  # maps each word to its count
    sa.Column("mtime_ns", sa.Integer, nullable=False),  # modification time of the file when it was read
    sa.Column("lrc_mtime_ns", sa.Integer),  # modification time of its .lrc file, or None
    sa.Column("read_at", sa.Float, nullable=False),
)


if TYPE_CHECKING:
    from scipy import sparse


@dataclass(frozen=True, slots=True)
class UnreadSong:
    """A song whose lyrics have not been read since its files changed."""

    song_id: int
    path: Path  # one of its files
    mtime_ns: int  # modification time of `path` at the last scan
    lrc_mtime_ns: int | None  # modification time of the `.lrc` file next to `path`, or None


@dataclass(frozen=True, slots=True)
class LyricTable:
    """Word counts of many songs; a song takes 8 bytes per distinct word, about 1 kB in total."""

    song_ids: Int64Array  # (n,): ascending ids of songs with words; includes songs whose files are missing
    vocabulary: list[str]  # sorted
    counts: "sparse.csr_array"  # (n, n_words); a row is empty if the song has none of the words


class LyricsStore(Tables):
    def __init__(self, library: Library) -> None:
        super().__init__(library.engine, library.write)

    def unread(self) -> list[UnreadSong]:
        """Return the songs whose lyrics have not been read since their files changed, ordered by id."""
        f, w = schema.files.c, lyrics.c
        lrc_times = _lrc_times(self._values(sa.select(f.folder).where(f.missing_since.is_(None)).distinct()))
        lrc_folders = json.dumps([schema.encode_path(folder) for folder in {path.parent for path in lrc_times}])
        with_lrc = sa.select(sa.func.json_each(lrc_folders).table_valued("value").c.value)
        # each song's first file by name; SQLite takes the other columns from the row with min()
        first = (
            sa.select(f.song_id, sa.func.min(f.path, type_=schema.FilePath()).label("path"), f.folder, f.mtime_ns)
            .where(f.missing_since.is_(None))
            .group_by(f.song_id)
            .subquery()
        ).c
        query = (
            sa.select(first.song_id, first.path, first.mtime_ns, w.mtime_ns.label("read_mtime_ns"), w.lrc_mtime_ns)
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
        unread = []
        for row in self._rows(query):
            lrc_time = lrc_times.get(row.path.with_suffix(""))
            if (row.mtime_ns, lrc_time) != (row.read_mtime_ns, row.lrc_mtime_ns):
                unread.append(UnreadSong(row.song_id, row.path, row.mtime_ns, lrc_time))
        return unread

    def put(self, counts: Iterable[tuple[UnreadSong, Mapping[str, int]]]) -> None:
        """Replace the word counts of songs in one transaction; removed songs are skipped."""
        now = time.time()
        rows = {
            song.song_id: {
                "song_id": song.song_id,
                "words": dict(words),
                "mtime_ns": song.mtime_ns,
                "lrc_mtime_ns": song.lrc_mtime_ns,
                "read_at": now,
            }
            for song, words in counts
        }
        if not rows:
            return
        with self._write() as connection:
            ids = connection.scalars(sa.select(schema.songs.c.id).where(schema.songs.c.id.in_(rows))).all()
            if ids:
                statement = lyrics.insert().prefix_with("OR REPLACE")
                connection.execute(statement, [rows[song_id] for song_id in ids])

    def songs_saying(self, word: str) -> Int64Array:
        """Return the ids of the songs whose lyrics contain a word, int64."""
        keys = sa.func.json_each(lyrics.c.words).table_valued("key")
        query = sa.select(lyrics.c.song_id).select_from(sa.join(lyrics, keys, keys.c.key == word))
        return np.array(self._values(query), dtype=np.int64)

    def table(self, *, min_songs: int = 2, max_share: float = 0.5) -> LyricTable:
        """Return all songs' word counts, except words in fewer than `min_songs` songs or a share above `max_share`."""
        from scipy import sparse

        columns: dict[str, int] = {}
        song_ids: list[int] = []
        rows: list[Int32Array] = []
        query = sa.select(lyrics.c.song_id, lyrics.c.words).order_by(lyrics.c.song_id)
        with self._engine.connect() as connection:
            for song_id, words in connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(query):
                if words:
                    song_ids.append(song_id)
                    numbers = [columns.setdefault(word, len(columns)) for word in words]
                    rows.append(np.array([numbers, list(words.values())], dtype=np.int32))
        vocabulary = list(columns)
        word_columns, counts = np.concatenate([np.empty((2, 0), np.int32), *rows], axis=1)
        bounds = np.cumsum([0, *(row.shape[1] for row in rows)])
        n_songs = np.bincount(word_columns, minlength=len(vocabulary))
        chosen = np.flatnonzero((n_songs >= min_songs) & (n_songs <= max_share * len(rows)))
        in_order = sorted(chosen.tolist(), key=vocabulary.__getitem__)
        table = sparse.csr_array((counts, word_columns, bounds), shape=(len(rows), len(vocabulary)))[:, in_order]
        table.sort_indices()
        return LyricTable(np.array(song_ids, dtype=np.int64), [vocabulary[column] for column in in_order], table)


def _lrc_times(folders: Iterable[Path]) -> dict[Path, int]:
    """Return a dict from path without extension to the modification time of its ``.lrc`` file; skip missing folders."""
    times: dict[Path, int] = {}
    for folder in folders:
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name.endswith(LRC_ENDINGS) and entry.is_file():
                        times[Path(entry.path).with_suffix("")] = entry.stat().st_mtime_ns
        except OSError as error:
            _log.debug("%s: the folder cannot be listed (%s).", folder, error)
    return times
