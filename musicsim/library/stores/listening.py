"""A library's listening data: plays, tags, their imports, and imported entries whose songs are not in the library."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import numpy as np
import sqlalchemy as sa

from musicsim._arrays import Int64Array
from musicsim.errors import NotFoundError
from musicsim.library.db import Tables, schema, some_ids
from musicsim.library.stores.playlists import put_playlists

OTHER_SOURCE = "import"  # source of plays and tags without a recorded import
MAX_PAUSE_S = 30 * 60
"""Maximum seconds between two starts in one listening session. 30 minutes is usual for visits to websites (Catledge
and Pitkow 1995, "Characterizing browsing strategies in the World-Wide Web", found 25.5). Few songs last longer."""
_BLOCK = 10_000  # rows per statement
_TIME = np.dtype("<u4")
_SONG = ("artist", "title", "album", "mbid")

# For hundreds of thousands of rows, passing tuples to the driver takes half as long as SQLAlchemy.
_INSERT_ENTRIES = {
    "plays": "INSERT INTO plays (listener, song_id, source, count) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (listener, song_id, source) DO UPDATE SET count = count + excluded.count",
    "tags": "INSERT INTO tags (tag, song_id, source, weight) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (song_id, tag, source) DO UPDATE SET weight = max(weight, excluded.weight)",
}
_INSERT_WAITING = (
    "INSERT INTO waiting (import_id, artist, title, album, mbid, who, value, times) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_INSERT_LISTENS = "INSERT INTO listens (import_id, listener, song_id, times) VALUES (?, ?, ?, ?)"


@dataclass(frozen=True, slots=True)
class Plays:
    """Plays per listener and song, summed over the sources; 24 bytes per row."""

    listeners: list[str]  # names, sorted
    listener: Int64Array  # (n_rows,): indices into `listeners`; rows are sorted by listener, then by song
    song_id: Int64Array  # (n_rows,)
    count: Int64Array  # (n_rows,)


@dataclass(frozen=True, slots=True)
class ImportEntry:
    id: int
    name: str  # names of the files
    kind: str  # plays, tags or playlists
    format: str
    listener: str  # the listener of all rows; "" if the files name the listeners
    digest: str
    created_at: float  # seconds since 1970
    n_rows: int
    n_songs: int  # distinct songs
    n_matched: int  # number of songs that are in the library now
    n_plays: int  # number of plays, including those of unmatched songs; 0 for tags and playlists
    n_skipped: int  # number of rows that were left out
    first_at: float | None  # times of the first and last play, if the files contain them
    last_at: float | None


@dataclass(frozen=True, slots=True)
class Waiting:
    """An imported song that is not in the library; `count` is its number of plays or tags."""

    artist: str
    title: str
    album: str
    count: int


def source_of(import_id: int) -> str:
    return f"import:{import_id}"


def playlists_source(import_id: int, name: str) -> str:
    """Return the source of an import's playlists, as shown to people."""
    return f"{name} (import {import_id})"


class ListeningStore(Tables):
    def plays(self) -> Plays:
        """Return the plays of the songs in the library, including missing ones."""
        listeners: dict[str, int] = {}
        rows = ((listeners.setdefault(name, len(listeners)), song, n) for name, song, n in self.play_rows())
        table = np.fromiter(chain.from_iterable(rows), dtype=np.int64).reshape(-1, 3)
        return Plays(list(listeners), *(np.ascontiguousarray(column) for column in table.T))

    def play_rows(self) -> Iterator[tuple[str, int, int]]:
        """Yield (listener, song id, plays summed over the sources), ordered by listener and song; read in blocks."""
        p = schema.plays.c
        query = sa.select(p.listener, p.song_id, sa.func.sum(p.count)).group_by(p.listener, p.song_id)
        yield from self._stream(query.order_by(p.listener, p.song_id))

    def tag_rows(self) -> Iterator[tuple[int, str, str, float]]:
        """Yield the song id, name, source and weight of every tag, ordered by song and tag; read in blocks."""
        t = schema.tags.c
        yield from self._stream(sa.select(t.song_id, t.tag, t.source, t.weight).order_by(t.song_id, t.tag, t.source))

    def _stream(self, query: sa.Select[Any]) -> Iterator[Any]:
        with self._engine.connect() as connection:
            yield from map(tuple, connection.execution_options(yield_per=_BLOCK).execute(query))

    def play_counts(self) -> dict[int, int]:
        """Return the number of plays, keyed by song id, for played songs only."""
        p = schema.plays.c
        rows = self._rows(sa.select(p.song_id, sa.func.sum(p.count)).group_by(p.song_id))
        return {song_id: int(count) for song_id, count in rows}

    def play_count_rows(self) -> tuple[Int64Array, Int64Array]:
        """Return song ids and numbers of plays; a song occurs once per listener and source."""
        p = schema.plays.c
        song_ids, counts = self._integers(sa.select(p.song_id, p.count))
        return song_ids, counts

    def add_plays(self, rows: Sequence[Mapping[str, Any]], source: str = OTHER_SOURCE) -> None:
        """Add or replace plays from one source; each row has a listener, song_id and count."""
        self._put(schema.plays, rows, source)

    def listeners_of(self, song_ids: Iterable[int]) -> dict[int, frozenset[str]]:
        """Return each song's listeners, keyed by song id; an empty set for songs without listeners."""
        p = schema.plays.c
        listeners: dict[int, set[str]] = {song_id: set() for song_id in song_ids}
        query = sa.select(p.song_id, p.listener).where(p.song_id.in_(list(listeners)), p.count > 0)
        for song_id, listener in self._rows(query):
            listeners[song_id].add(listener)
        return {song_id: frozenset(names) for song_id, names in listeners.items()}

    def sittings(self) -> Int64Array:
        """Return the listening sessions (:func:`sittings_of`) in all imports; unmatched songs do not end a session."""
        h, w = schema.listens.c, schema.waiting.c
        matched = sa.select(h.listener, h.song_id, h.times)
        unmatched = sa.select(w.who, sa.literal(-1), w.times).where(w.times.is_not(None))
        rows = list(self._rows(sa.union_all(matched, unmatched)))
        names, song_ids, blocks = zip(*rows, strict=True) if rows else ((), (), ())
        indices = {name: index for index, name in enumerate(dict.fromkeys(names))}
        n_each, times = _unpack_times(blocks)
        return sittings_of(
            np.repeat(np.array([indices[name] for name in names], dtype=np.int64), n_each),
            np.repeat(np.array(song_ids, dtype=np.int64), n_each),
            times,
        )

    def last_listens(self) -> tuple[Int64Array, Int64Array]:
        """Return the song id and the last time (seconds since 1970) of each listener's imported listens to a song."""
        h = schema.listens.c
        rows = self._plain_rows(sa.select(h.song_id, h.times).where(sa.func.length(h.times) > 0))
        n_each, times = _unpack_times([block for _, block in rows])
        last = np.maximum.reduceat(times, np.cumsum(n_each) - n_each) if rows else times
        return np.array([song_id for song_id, _ in rows], dtype=np.int64), last

    def listen_times(self, song_ids: Iterable[int]) -> tuple[Int64Array, Int64Array]:
        """Return the song id and time (seconds since 1970) of each imported listen to some songs, in any order."""
        h = schema.listens.c
        rows = self._plain_rows(sa.select(h.song_id, h.times).where(h.song_id.in_(some_ids(song_ids))))
        n_each, times = _unpack_times([block for _, block in rows])
        return np.repeat(np.array([song_id for song_id, _ in rows], dtype=np.int64), n_each), times

    def tags(self, song_ids: Iterable[int] | None = None) -> dict[int, list[tuple[str, float]]]:
        """Return the tags of all songs, or of `song_ids`, with the largest weight from any source, heaviest first."""
        t = schema.tags.c
        weight = sa.func.max(t.weight).label("weight")
        query = sa.select(t.song_id, t.tag, weight).group_by(t.song_id, t.tag).order_by(t.song_id, weight.desc(), t.tag)
        if song_ids is not None:
            query = query.where(t.song_id.in_(some_ids(song_ids)))
        tags: dict[int, list[tuple[str, float]]] = {}
        for song_id, tag, tag_weight in self._rows(query):
            tags.setdefault(song_id, []).append((tag, tag_weight))
        return tags

    def tag_counts(self) -> Counter[str]:
        t = schema.tags.c
        query = sa.select(t.tag, sa.func.count(t.song_id.distinct()).label("n")).group_by(t.tag)
        return Counter({row.tag: row.n for row in self._rows(query)})

    def songs_tagged(self, tags: Iterable[str]) -> Int64Array:
        """Return the ids of songs with at least one of `tags`, int64; a song may occur several times."""
        t = schema.tags.c
        return self._integers(sa.select(t.song_id).where(t.tag.in_(list(tags))))[0]

    def tag_values(self, value_of: Mapping[str, int]) -> tuple[Int64Array, Int64Array]:
        """Return song ids and the values of their tags, given values keyed by tag; a song may have several."""
        t = schema.tags.c
        value = sa.case(dict(value_of), value=t.tag)
        song_ids, values = self._integers(sa.select(t.song_id, value).where(t.tag.in_(list(value_of))))
        return song_ids, values

    def add_tags(self, rows: Sequence[Mapping[str, Any]], source: str = OTHER_SOURCE) -> None:
        """Add or replace tags from one source; each row has a song_id, tag and weight."""
        self._put(schema.tags, rows, source)

    def _put(self, table: sa.Table, rows: Sequence[Mapping[str, Any]], source: str) -> None:
        statement = table.insert().prefix_with("OR REPLACE")
        self._write_rows((statement, [dict(row) | {"source": source} for row in rows]))

    def imports(self) -> list[ImportEntry]:
        query = sa.select(schema.imports).order_by(schema.imports.c.id.desc())
        return [ImportEntry(**row._mapping) for row in self._rows(query)]

    def enter(
        self,
        values: Mapping[str, Any],
        entries: Iterable[tuple[Any, ...]],
        listens: Iterable[tuple[Any, ...]],
        waiting: Iterable[tuple[Any, ...]],
        playlists: Iterable[tuple[str, str | None, Sequence[int]]],
        replacing: Iterable[int],
        confirmed: Iterable[tuple[str, str, int]],
    ) -> int:
        """Write an import in one transaction, undo the imports in `replacing`, and return the import's id.

        `values` are the fields of :class:`ImportEntry` except id and created_at. The other arguments are rows.
        `entries`: (listener or tag, song id, plays or weight). `listens`: (listener, song id, times), where times are
        seconds since 1970 as little-endian uint32. `waiting`: (artist, title, album, mbid, listener or tag, plays or
        weight, times or None). `playlists`: (name, category, song ids). `confirmed`: as for :meth:`judge`.
        """
        with self._write() as connection:
            for import_id in replacing:
                _undo(connection, import_id)
            statement = schema.imports.insert().values(**values, created_at=time.time())
            import_id = connection.execute(statement).inserted_primary_key[0]  # type: ignore[index]
            for block in _blocks(entries):
                _insert_entries(connection, values["kind"], source_of(import_id), block)
            for insertion, rows in ((_INSERT_LISTENS, listens), (_INSERT_WAITING, waiting)):
                for block in _blocks(rows):
                    connection.exec_driver_sql(insertion, [(import_id, *row) for row in block])
            put_playlists(connection, playlists, playlists_source(int(import_id), values["name"]))
            _judge(connection, confirmed, True)
        return int(import_id)

    def undo(self, import_id: int) -> ImportEntry:
        """Delete an import with all its data, and return its record. Raises NotFoundError if it does not exist."""
        entry = next((entry for entry in self.imports() if entry.id == import_id), None)
        if entry is None:
            raise NotFoundError(f"import {import_id} does not exist. `musicsim imports` lists all imports.")
        with self._write() as connection:
            _undo(connection, import_id)
        return entry

    def list_unmatched(self) -> list[Waiting]:
        """Return the imported songs that are not in the library, most played first."""
        w, i = schema.waiting.c, schema.imports.c
        count = sa.func.sum(sa.case((i.kind == "plays", w.value), else_=1)).label("n")
        query = sa.select(w.artist, w.title, sa.func.max(w.album), count).join(schema.imports, i.id == w.import_id)
        query = query.group_by(w.artist, w.title).order_by(count.desc(), w.artist, w.title)
        return [Waiting(artist, title, album, int(n)) for artist, title, album, n in self._rows(query)]

    def waiting_names(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield the distinct (artist, title, album, recording id) of unmatched entries; 0.3 kB each in a list."""
        w = schema.waiting.c
        yield from map(tuple, self._rows(sa.select(w.artist, w.title, w.album, w.mbid).distinct()))

    def give(self, matches: Mapping[tuple[str, str, str, str], int]) -> int:
        """Match unmatched entries, given as (artist, title, album, recording id), to song ids; return their number."""
        if not matches:
            return 0
        w, i = schema.waiting, schema.imports
        n_matched = 0
        with self._write() as connection:
            for names, song_id in matches.items():
                is_song = sa.and_(*(w.c[c] == v for c, v in zip(_SONG, names, strict=True)))
                query = sa.select(w.c.import_id, i.c.kind, w.c.who, w.c.value, w.c.times).join(i).where(is_song)
                rows = connection.execute(query).all()
                for import_id, kind in {(row.import_id, row.kind) for row in rows}:
                    entries = [(row.who, song_id, row.value) for row in rows if row.import_id == import_id]
                    _insert_entries(connection, kind, source_of(import_id), entries)
                    change = i.update().where(i.c.id == import_id)
                    connection.execute(change.values(n_matched=i.c.n_matched + 1))
                    n_matched += 1
                listens = [(row.import_id, row.who, song_id, row.times) for row in rows if row.times]
                if listens:
                    connection.exec_driver_sql(_INSERT_LISTENS, listens)
                connection.execute(w.delete().where(is_song))
        return n_matched

    def judge(self, names: Iterable[tuple[str, str, int]], *, is_same: bool) -> None:
        """Store a person's decision on whether names match songs: tuples (artist, title, song id)."""
        with self._write() as connection:
            _judge(connection, names, is_same)

    def list_decisions(self) -> list[tuple[str, str, int, bool]]:
        """Return (artist, title, song id, is_same) for each decision about a spelling."""
        s = schema.spellings.c
        return [tuple(row) for row in self._rows(sa.select(s.artist, s.title, s.song_id, s.is_same))]

    def forget_decisions(self) -> None:
        """Delete all decisions about spellings, so that musicsim asks again; matched plays stay."""
        self._execute(schema.spellings.delete())


def _blocks(rows: Iterable[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    rest = iter(rows)
    while block := list(islice(rest, _BLOCK)):
        yield block


def _judge(connection: sa.Connection, names: Iterable[tuple[str, str, int]], is_same: bool) -> None:
    rows = [{"artist": artist, "title": title, "song_id": i, "is_same": is_same} for artist, title, i in names]
    if rows:
        connection.execute(schema.spellings.insert().prefix_with("OR REPLACE"), rows)


def _insert_entries(connection: sa.Connection, kind: str, source: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Write plays or tags; for several spellings of a song, plays are summed and the largest weight is kept."""
    if rows:
        number: Callable[[Any], Any] = int if kind == "plays" else float
        values = [(who, song_id, source, number(value)) for who, song_id, value in rows]
        connection.exec_driver_sql(_INSERT_ENTRIES[kind], values)


def _undo(connection: sa.Connection, import_id: int) -> None:
    i, source = schema.imports.c, source_of(import_id)
    row = connection.execute(sa.select(i.kind, i.name).where(i.id == import_id)).one_or_none()
    if row is not None and row.kind == "playlists":
        p = schema.playlists
        connection.execute(p.delete().where(p.c.source == playlists_source(import_id, row.name)))
    for table in (schema.plays, schema.tags):
        connection.execute(table.delete().where(table.c.source == source))
    connection.execute(schema.imports.delete().where(i.id == import_id))


def sittings_of(listener: Int64Array, song_id: Int64Array, at: Int64Array) -> Int64Array:
    """Divide listens into listening sessions, with at most :data:`MAX_PAUSE_S` between two starts.

    `listener`, `song_id` and `at` (seconds) are int64 (n_listens,), in any order; the unknown song -1 is left out.
    Returns int64 (n, 2): distinct pairs of a session number, starting at 0, and a song id, for sessions with at least
    two songs. The songs in a session are ordered by their first start.
    """
    order = np.lexsort((at, listener))
    listener, song_id, at = listener[order], song_id[order], at[order]
    begins = np.r_[True, (np.diff(listener) != 0) | (np.diff(at) > MAX_PAUSE_S)][: len(order)]
    known = song_id >= 0
    pairs = np.column_stack((np.cumsum(begins)[known], song_id[known]))
    pairs = pairs[np.sort(np.unique(pairs, axis=0, return_index=True)[1])]
    _, sitting, n_songs = np.unique(pairs[:, 0], return_inverse=True, return_counts=True)
    pairs = pairs[n_songs[sitting] > 1]
    pairs[:, 0] = np.unique(pairs[:, 0], return_inverse=True)[1]
    return pairs


def _unpack_times(blocks: Sequence[bytes]) -> tuple[Int64Array, Int64Array]:
    """Return the number of times in each stored block, and all times in seconds since 1970."""
    n_each = np.array([len(block) // _TIME.itemsize for block in blocks], dtype=np.int64)
    return n_each, np.frombuffer(b"".join(blocks), dtype=_TIME).astype(np.int64)
