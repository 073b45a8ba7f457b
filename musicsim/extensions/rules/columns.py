"""Numbers about the songs of a snapshot that only rules use: plays, last play, date added, rating and thumb.

A column is float64 (n_indexed,): 8 bytes per song, for at most eight columns in memory. Duplicates count for the song
that is shown instead.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import chain
from threading import Lock

import numpy as np
import sqlalchemy as sa

from musicsim._arrays import Float64Array, Int64Array
from musicsim.explorer.snapshot.last_plays import read_last_plays
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Library
from musicsim.library.db import Archive, CachedValue, Changes, schema
from musicsim.library.db.columns import some_ids
from musicsim.library.stores.song_tables import MIN_ARCHIVED
from musicsim.places import places_in_order

_RATED = {f"rated {n}": float(n) for n in range(1, 6)}  # tags that imports and syncs write


def read_column(snapshot: Snapshot, name: str) -> Float64Array:
    """Return a column by its field's name; songs without a value are nan, except 0 for `plays`."""
    if name == "minutes":
        return snapshot.columns.duration_s / 60
    if name == "year":
        return np.where(snapshot.columns.year > 0, snapshot.columns.year, np.nan)
    if name == "thumb":  # changes without a new revision, and is quick to read
        return _largest(snapshot, snapshot.library.feedback().items())
    if name in _READERS:
        return _read(snapshot, name, snapshot.library.player_plays.latest())
    column: Float64Array = getattr(snapshot.columns, name)
    return column


@lru_cache(maxsize=8)
def _read(snapshot: Snapshot, name: str, _latest_play: int) -> Float64Array:
    return _READERS[name](snapshot)


def _count_plays(snapshot: Snapshot) -> Float64Array:
    rows, values = _align(snapshot, snapshot.library.listening.play_counts().items())
    counts = np.zeros(snapshot.n_indexed)
    np.add.at(counts, rows, values)
    return counts


def _read_played(snapshot: Snapshot) -> Float64Array:
    return _largest(snapshot, read_last_plays(snapshot.library).items())


def _read_rating(snapshot: Snapshot) -> Float64Array:
    t = schema.tags.c
    query = sa.select(t.song_id, t.tag).where(t.tag.in_(list(_RATED)))
    with snapshot.library.engine.connect() as connection:
        return _largest(snapshot, ((song_id, _RATED[tag]) for song_id, tag in connection.execute(query)))


def _read_added(snapshot: Snapshot) -> Float64Array:
    ids, times = _added_times(snapshot.library).get()
    places = places_in_order(ids, snapshot.row_ids)
    return np.where(places >= 0, times[places], np.nan) if len(ids) else np.full(snapshot.n_indexed, np.nan)


_READERS: dict[str, Callable[[Snapshot], Float64Array]] = {
    "plays": _count_plays, "played": _read_played, "rating": _read_rating, "added": _read_added,
}  # fmt: skip


def _align(snapshot: Snapshot, pairs: Iterable[tuple[int, float]]) -> tuple[Int64Array, Float64Array]:
    """Return rows and values of the (song id, value) pairs whose songs have a row."""
    table = np.fromiter(chain.from_iterable(pairs), dtype=np.float64).reshape(-1, 2)
    rows = snapshot.rows_of(table[:, 0].astype(np.int64))
    return rows[rows >= 0], table[rows >= 0, 1]


def _largest(snapshot: Snapshot, pairs: Iterable[tuple[int, float]]) -> Float64Array:
    """Return the largest value of each row; nan for rows without one."""
    rows, values = _align(snapshot, pairs)
    column = np.full(snapshot.n_indexed, np.nan)
    np.fmax.at(column, rows, values)
    return column


_Times = tuple[Int64Array, Float64Array]  # ids of all songs, ascending, and the times at which they were added
_lock = Lock()


@lru_cache(maxsize=4)
def _times_of(library: Library) -> CachedValue[_Times]:
    archive: Archive[_Times] = Archive(
        library.folder / "cache" / "added.npz",
        lambda value: {"ids": value[0], "times": value[1]},
        lambda arrays: (arrays["ids"], arrays["times"]),
        lambda value: len(value[0]) >= MIN_ARCHIVED,
    )
    return CachedValue(library.engine, _read_times, _update_times, archive)


def _added_times(library: Library) -> CachedValue[_Times]:
    with _lock:  # two sessions must not read the same library twice
        return _times_of(library)


def _read_times(connection: sa.Connection, ids: Iterable[int] | None = None) -> _Times:
    """Read the times of all songs, or of `ids`; for a million songs, reading takes seconds."""
    s = schema.songs.c
    query = sa.select(s.id, s.added_at).order_by(s.id)
    rows = connection.execute(query if ids is None else query.where(s.id.in_(some_ids(ids))))
    table = np.fromiter(chain.from_iterable(rows), dtype=np.float64).reshape(-1, 2)
    return table[:, 0].astype(np.int64), table[:, 1].copy()


def _update_times(connection: sa.Connection, value: _Times, changes: Changes) -> _Times | None:
    if not changes.songs:
        return value if changes.songs is not None else None
    ids, times = value
    is_kept = ~np.isin(ids, list(changes.songs))
    new_ids, new_times = _read_times(connection, changes.songs)
    ids = np.concatenate([ids[is_kept], new_ids])
    order = np.argsort(ids)
    return ids[order], np.concatenate([times[is_kept], new_times])[order]
