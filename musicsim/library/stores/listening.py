"""What listeners said of a library's songs: plays, tags, the imports they came with, and what waits for its song."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain, islice
from typing import Any

import numpy as np
import sqlalchemy as sa

from musicsim._arrays import Int64Array
from musicsim.errors import NotFoundError
from musicsim.library.db import schema
from musicsim.library.db.database import Tables
from musicsim.library.stores.playlists import put_playlists

OTHER_SOURCE = "import"  # of plays and tags that no recorded import brought
MAX_PAUSE_S = 30 * 60
"""Seconds between two starts within one sitting: the custom for visits to web pages, where Catledge and Pitkow
(1995, "Characterizing browsing strategies in the World-Wide Web") found 25.5 minutes. Few songs last longer."""
_AT_ONCE = 10_000  # rows a statement
_TIME = np.dtype("<u4")
_SONG = ("artist", "title", "album", "mbid")

# Hundreds of thousands of rows: as tuples for the driver they take half the time.
_SAY = {
    "plays": "INSERT INTO plays (listener, song_id, source, count) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (listener, song_id, source) DO UPDATE SET count = count + excluded.count",
    "tags": "INSERT INTO tags (tag, song_id, source, weight) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (song_id, tag, source) DO UPDATE SET weight = max(weight, excluded.weight)",
}
_WAIT = "INSERT INTO waiting (import_id, artist, title, album, mbid, who, value, times) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_HEAR = "INSERT INTO listens (import_id, listener, song_id, times) VALUES (?, ?, ?, ?)"


@dataclass(frozen=True, slots=True)
class Plays:
    """Who played what how often, summed over the sources; 24 bytes a row."""

    listeners: list[str]  # names, sorted
    listener: Int64Array  # (n_rows,): rows into `listeners`
    # (n_rows,): sorted by listener, then by song
    song_id: Int64Array
    count: Int64Array


@dataclass(frozen=True, slots=True)
class ImportEntry:
    """One import, as the library remembers it."""

    id: int
    name: str  # names of the files
    kind: str  # plays, tags or playlists
    format: str
    listener: str  # who listened, where the files did not say; else ""
    digest: str
    created_at: float  # seconds since 1970
    # rows that were read; distinct songs in them; how many of these the library has by now
    n_rows: int
    n_songs: int
    n_matched: int
    n_plays: int  # plays in all, whether their songs are here or not; 0 of tags and playlists
    n_skipped: int  # rows that were left out
    # when the first and last listen was, where the files say
    first_at: float | None
    last_at: float | None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A song that was imported and is not in the library; `count` is its plays, or how many tags it has."""

    artist: str
    title: str
    album: str
    count: int


def source_of(import_id: int) -> str:
    """What the rows of an import name as their source."""
    return f"import:{import_id}"


def playlists_source(import_id: int, name: str) -> str:
    """What the playlists of an import name as their source: people read it."""
    return f"{name} (import {import_id})"


class ListeningStore(Tables):
    """Plays, tags and imports of one library."""

    # --- what was said ------------------------------------------------------------------------

    def plays(self) -> Plays:
        """Plays of the songs that the library has, missing ones too."""
        listeners: dict[str, int] = {}
        rows = ((listeners.setdefault(name, len(listeners)), song, n) for name, song, n in self.play_rows())
        table = np.fromiter(chain.from_iterable(rows), dtype=np.int64).reshape(-1, 3)
        return Plays(list(listeners), *(np.ascontiguousarray(column) for column in table.T))

    def play_rows(self) -> Iterator[tuple[str, int, int]]:
        """Listener, song id and number of plays, all sources summed, by listener and song; a few at a time."""
        p = schema.plays.c
        query = sa.select(p.listener, p.song_id, sa.func.sum(p.count)).group_by(p.listener, p.song_id)
        yield from self._streamed(query.order_by(p.listener, p.song_id))

    def tag_rows(self) -> Iterator[tuple[int, str, str, float]]:
        """Song id, tag, source and weight of every tag, by song, then by tag; a few at a time."""
        t = schema.tags.c
        yield from self._streamed(sa.select(t.song_id, t.tag, t.source, t.weight).order_by(t.song_id, t.tag, t.source))

    def _streamed(self, query: sa.Select[Any]) -> Iterator[Any]:
        with self._engine.connect() as connection:
            for row in connection.execution_options(yield_per=_AT_ONCE).execute(query):
                yield tuple(row)

    def play_counts(self) -> dict[int, int]:
        """Plays in all by song id; only songs that were played."""
        p = schema.plays.c
        rows = self._rows(sa.select(p.song_id, sa.func.sum(p.count)).group_by(p.song_id))
        return {song_id: int(count) for song_id, count in rows}

    def add_plays(self, rows: Sequence[Mapping[str, Any]], source: str = OTHER_SOURCE) -> None:
        """Add or replace plays of one source: rows of listener, song_id, count."""
        self._put(schema.plays, rows, source)

    def listeners_of(self, song_ids: Iterable[int]) -> dict[int, frozenset[str]]:
        """Who played these songs: each song that is asked for has a set, an empty one where nobody did."""
        p = schema.plays.c
        heard: dict[int, set[str]] = {song_id: set() for song_id in song_ids}
        query = sa.select(p.song_id, p.listener).where(p.song_id.in_(list(heard)), p.count > 0)
        for song_id, listener in self._rows(query):
            heard[song_id].add(listener)
        return {song_id: frozenset(names) for song_id, names in heard.items()}

    def sittings(self, longest_pause_s: float = MAX_PAUSE_S) -> Int64Array:
        """Which songs were played in one sitting: its number and song id, as of :func:`sittings_of`.

        A listener's imports are one history. Songs that wait keep a sitting going.
        """
        return sittings_of(*self._timed(), longest_pause_s)

    def _timed(self) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Listener, song (-1 while it waits) and second of every listen."""
        h, w = schema.listens.c, schema.waiting.c
        heard = sa.select(h.listener, h.song_id, h.times)
        waits = sa.select(w.who, sa.literal(-1), w.times).where(w.times.is_not(None))
        listeners: dict[str, int] = {}
        who, song_ids, blocks = [], [], []
        for name, song_id, times in self._rows(sa.union_all(heard, waits)):
            who.append(listeners.setdefault(name, len(listeners)))
            song_ids.append(song_id)
            blocks.append(times)
        n_each = np.array([len(times) // _TIME.itemsize for times in blocks], dtype=np.int64)
        return (
            np.repeat(np.array(who, dtype=np.int64), n_each),
            np.repeat(np.array(song_ids, dtype=np.int64), n_each),
            np.frombuffer(b"".join(blocks), dtype=_TIME).astype(np.int64),
        )

    def tags(self) -> dict[int, list[tuple[str, float]]]:
        """Tags of every song that has some, heaviest first; of several sources the heaviest weight."""
        t = schema.tags.c
        weight = sa.func.max(t.weight).label("weight")
        query = sa.select(t.song_id, t.tag, weight).group_by(t.song_id, t.tag).order_by(t.song_id, weight.desc(), t.tag)
        found: dict[int, list[tuple[str, float]]] = {}
        for song_id, tag, weight_of in self._rows(query):
            found.setdefault(song_id, []).append((tag, weight_of))
        return found

    def tag_counts(self) -> Counter[str]:
        """How many songs have each tag."""
        t = schema.tags.c
        query = sa.select(t.tag, sa.func.count(t.song_id.distinct()).label("n")).group_by(t.tag)
        return Counter({row.tag: row.n for row in self._rows(query)})

    def songs_tagged(self, tags: Iterable[str]) -> Int64Array:
        """Ids of the songs that have one of some tags, int64."""
        t = schema.tags.c
        query = sa.select(t.song_id).distinct().where(t.tag.in_(list(tags)))
        return np.array(self._values(query), dtype=np.int64)

    def add_tags(self, rows: Sequence[Mapping[str, Any]], source: str = OTHER_SOURCE) -> None:
        """Add or replace tags of one source: rows of song_id, tag, weight."""
        self._put(schema.tags, rows, source)

    def _put(self, table: sa.Table, rows: Sequence[Mapping[str, Any]], source: str) -> None:
        if rows:
            with self._write() as connection:
                statement = table.insert().prefix_with("OR REPLACE")
                connection.execute(statement, [dict(row) | {"source": source} for row in rows])

    # --- imports ------------------------------------------------------------------------------

    def imports(self) -> list[ImportEntry]:
        """Imports, the latest first."""
        columns = [schema.imports.c[f.name] for f in fields(ImportEntry)]
        query = sa.select(*columns).order_by(schema.imports.c.id.desc())
        return [ImportEntry(*row) for row in self._rows(query)]

    def find_import(self, import_id: int) -> ImportEntry:
        """One import. Raises NotFoundError if there is none of this number."""
        found = next((entry for entry in self.imports() if entry.id == import_id), None)
        if found is None:
            raise NotFoundError(f"there is no import {import_id}. `musicsim imports` lists them.")
        return found

    def enter(
        self,
        values: Mapping[str, Any],
        said: Iterable[tuple[Any, ...]],
        listens: Iterable[tuple[Any, ...]],
        waiting: Iterable[tuple[Any, ...]],
        playlists: Iterable[tuple[str, str | None, Sequence[int]]],
        replacing: Iterable[int],
        confirmed: Iterable[tuple[str, str, int]],
    ) -> int:
        """Write one import whole, in one transaction, and undo those of `replacing`; return its number.

        `values` are those of :class:`ImportEntry` except id and created_at. The others are rows: `said` of
        (listener or tag, song id, plays or weight); `listens` of (listener, song id, seconds since 1970 as
        little-endian uint32); `waiting` of (artist, title, album, mbid, listener or tag, plays or weight, such seconds
        or None). `playlists` are (name, category, song ids), `confirmed` (artist, title, song id) as of :meth:`judge`.
        """
        with self._write() as connection:
            for import_id in replacing:
                _undo(connection, import_id)
            statement = schema.imports.insert().values(**values, created_at=time.time())
            import_id = connection.execute(statement).inserted_primary_key[0]  # type: ignore[index]
            for rows in _in_parts(said):
                _say(connection, values["kind"], source_of(import_id), rows)
            for insertion, given in ((_HEAR, listens), (_WAIT, waiting)):
                for rows in _in_parts(given):
                    connection.exec_driver_sql(insertion, [(import_id, *row) for row in rows])
            put_playlists(connection, playlists, playlists_source(int(import_id), values["name"]))
            _judge(connection, confirmed, True)
        return int(import_id)

    def undo(self, import_id: int) -> ImportEntry:
        """Take an import back, with all it brought; it is given back as it was.

        Raises NotFoundError if there is none of this number.
        """
        entry = self.find_import(import_id)
        with self._write() as connection:
            _undo(connection, import_id)
        return entry

    # --- what waits for its song --------------------------------------------------------------

    def unmatched(self) -> list[Waiting]:
        """Songs that were imported and are not in the library, the most played first."""
        w, i = schema.waiting.c, schema.imports.c
        count = sa.func.sum(sa.case((i.kind == "plays", w.value), else_=1)).label("n")
        query = sa.select(w.artist, w.title, sa.func.max(w.album), count).join(schema.imports, i.id == w.import_id)
        query = query.group_by(w.artist, w.title).order_by(count.desc(), w.artist, w.title)
        return [Waiting(row[0], row[1], row[2], int(row[3])) for row in self._rows(query)]

    def unmatched_count(self) -> int:
        """How many songs were imported and are not in the library."""
        w = schema.waiting.c
        songs = sa.select(w.artist, w.title).distinct().subquery()
        return self._value(sa.select(sa.func.count()).select_from(songs)) or 0

    def waiting_names(self) -> Iterator[tuple[str, str, str, str]]:
        """Distinct artist, title, album and recording id of what waits; 0.3 kB each in the reader's hands."""
        w = schema.waiting.c
        yield from map(tuple, self._rows(sa.select(w.artist, w.title, w.album, w.mbid).distinct()))

    def give(self, found: Mapping[tuple[str, str, str, str], int]) -> int:
        """Let what waits go to its songs, by artist, title, album and recording id.

        Gives how many songs of imports were found.
        """
        if not found:
            return 0
        w, i = schema.waiting, schema.imports
        n_found = 0
        with self._write() as connection:
            for names, song_id in found.items():
                which = sa.and_(*(w.c[c] == v for c, v in zip(_SONG, names, strict=True)))
                query = sa.select(w.c.import_id, i.c.kind, w.c.who, w.c.value, w.c.times).join(i).where(which)
                rows = connection.execute(query).all()
                for import_id, kind in {(row.import_id, row.kind) for row in rows}:
                    own = [(row.who, song_id, row.value) for row in rows if row.import_id == import_id]
                    _say(connection, kind, source_of(import_id), own)
                    change = i.update().where(i.c.id == import_id)
                    connection.execute(change.values(n_matched=i.c.n_matched + 1))
                    n_found += 1
                timed = [(row.import_id, row.who, song_id, row.times) for row in rows if row.times]
                if timed:
                    connection.exec_driver_sql(_HEAR, timed)
                connection.execute(w.delete().where(which))
        return n_found

    # --- what a person said of spellings ------------------------------------------------------

    def judge(self, names: Iterable[tuple[str, str, int]], *, is_same: bool) -> None:
        """Remember that these names (artist, title, song id) are those songs of the library, or are not."""
        with self._write() as connection:
            _judge(connection, names, is_same)

    def judged(self) -> list[tuple[str, str, int, bool]]:
        """Artist, title, song id, and whether the name is the song, of all that a person has said."""
        s = schema.spellings.c
        return [tuple(row) for row in self._rows(sa.select(s.artist, s.title, s.song_id, s.is_same))]

    def forget_judged(self) -> None:
        """Forget what was said of spellings, so that it is asked again; plays that were given stay."""
        with self._write() as connection:
            connection.execute(schema.spellings.delete())


def _in_parts(rows: Iterable[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    waiting = iter(rows)
    while part := list(islice(waiting, _AT_ONCE)):
        yield part


def _judge(connection: sa.Connection, names: Iterable[tuple[str, str, int]], is_same: bool) -> None:
    rows = [dict(zip(("artist", "title", "song_id"), name, strict=True)) | {"is_same": is_same} for name in names]
    if rows:
        connection.execute(schema.spellings.insert().prefix_with("OR REPLACE"), rows)


def _say(connection: sa.Connection, kind: str, source: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Write plays or tags of an import; those of several spellings of a song are summed, or the heaviest."""
    if not rows:
        return
    number: Callable[[Any], Any] = int if kind == "plays" else float
    values = [(who, song_id, source, number(value)) for who, song_id, value in rows]
    connection.exec_driver_sql(_SAY[kind], values)


def _undo(connection: sa.Connection, import_id: int) -> None:
    i, source = schema.imports.c, source_of(import_id)
    row = connection.execute(sa.select(i.kind, i.name).where(i.id == import_id)).one_or_none()
    if row is not None and row.kind == "playlists":
        of_import = schema.playlists.c.source == playlists_source(import_id, row.name)
        connection.execute(schema.playlists.delete().where(of_import))
    connection.execute(schema.plays.delete().where(schema.plays.c.source == source))
    connection.execute(schema.tags.delete().where(schema.tags.c.source == source))
    connection.execute(schema.imports.delete().where(i.id == import_id))


def sittings_of(
    listener: Int64Array, song_id: Int64Array, at: Int64Array, longest_pause_s: float = MAX_PAUSE_S
) -> Int64Array:
    """Divide listens into sittings: who started which song at which second, in any order, int64 (n_listens,).

    A song of -1, which nobody knows, keeps a sitting going and is left out of it.

    Returns int64 (n, 2), the number of a sitting and a song id: distinct pairs of sittings with at least two songs,
    numbered from 0; the songs of each in the order in which they were first played. Memory: 60 bytes for each listen,
    16 bytes for each pair in the end.
    """
    order = np.lexsort((at, listener))
    listener, song_id, at = listener[order], song_id[order], at[order]
    begins = np.r_[True, (np.diff(listener) != 0) | (np.diff(at) > longest_pause_s)][: len(order)]
    known = song_id >= 0
    pairs = np.column_stack((np.cumsum(begins)[known], song_id[known]))
    pairs = pairs[np.sort(np.unique(pairs, axis=0, return_index=True)[1])]
    _, which, n_songs = np.unique(pairs[:, 0], return_inverse=True, return_counts=True)
    pairs = pairs[n_songs[which] > 1]
    pairs[:, 0] = np.unique(pairs[:, 0], return_inverse=True)[1]
    return pairs
