"""Numbers about the songs of a snapshot that queries compare: plays, last play, date added, rating and thumb.

A column is float64 (n_indexed,): 8 bytes per song, for at most eight columns in memory. Reading one takes up to 24
bytes per row of its table. Duplicates count for the song that is shown instead.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float64Array, Int64Array
from musicsim.explorer.snapshot.last_plays import read_play_times
from musicsim.explorer.snapshot.snapshot import Snapshot

_RATED = {f"rated {n}": n for n in range(1, 6)}  # tags that imports and syncs write


def play_counts(snapshot: Snapshot) -> Float64Array:
    """Return each row's number of plays by all listeners."""
    ids, counts = snapshot.library.listening.play_count_rows()
    rows = snapshot.rows_of(ids)
    return np.bincount(rows[rows >= 0], counts[rows >= 0], minlength=snapshot.n_indexed).astype(np.float64)


def read_column(snapshot: Snapshot, name: str) -> Float64Array:
    """Return a column by its field's name; songs without a value are nan, except 0 for `plays`."""
    if name == "minutes":
        return snapshot.columns.duration_s / 60
    if name == "year":
        return np.where(snapshot.columns.year > 0, snapshot.columns.year, np.nan)
    if name == "added":
        return snapshot.columns.added_at
    if name == "thumb":  # changes without a new revision, and is quick to read
        thumbs = snapshot.library.feedback()
        return _largest(snapshot, np.array([*thumbs], np.int64), [*thumbs.values()])
    if name in _READERS:
        return _read(snapshot, name, snapshot.library.player_plays.latest())
    column: Float64Array = getattr(snapshot.columns, name)
    return column


@lru_cache(maxsize=8)
def _read(snapshot: Snapshot, name: str, _latest_play: int) -> Float64Array:
    return _READERS[name](snapshot)


def _read_ratings(snapshot: Snapshot) -> Float64Array:
    return _largest(snapshot, *snapshot.library.listening.tag_values(_RATED))


_READERS: dict[str, Callable[[Snapshot], Float64Array]] = {
    "plays": play_counts,
    "played": lambda snapshot: _largest(snapshot, *read_play_times(snapshot.library)),
    "rating": _read_ratings,
}


def _largest(snapshot: Snapshot, song_ids: Int64Array, values: npt.ArrayLike) -> Float64Array:
    """Return the largest value of each row; nan for rows without one."""
    rows = snapshot.rows_of(song_ids)
    column = np.full(snapshot.n_indexed, np.nan)
    np.fmax.at(column, rows[rows >= 0], np.asarray(values, np.float64)[rows >= 0])
    return column
