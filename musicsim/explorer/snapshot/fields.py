"""The songs that meet one condition of a query, such as ``tempo:>120``, ``played:never`` or ``similar:12``.

Masks that do not depend on the time are cached, because only one condition changes while a person types. They take 1
byte per song and condition, for at most 32 conditions.
"""

import math
import operator
import time
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from musicsim._arrays import BoolArray, Float32Array, Float64Array, Int64Array
from musicsim.errors import NotFoundError
from musicsim.explorer.requests.query import MAX_NEAREST, QUERY_FIELDS, FieldCondition
from musicsim.explorer.snapshot.conditions import Among, Listed
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.explorer.snapshot.song_numbers import read_column
from musicsim.library import genre_key

_DAY_S = 86_400.0
_BLOCK = 10_000  # vectors that are compared at once; larger blocks do not fit into the processor's cache
_THUMBS = {"up": 1.0, "down": -1.0}
_OPERATORS: dict[str, Callable[[Any, float], Any]] = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt, "=": operator.eq,
}  # fmt: skip


def match_field(snapshot: Snapshot, condition: FieldCondition, now: float | None = None) -> BoolArray:
    """Return the mask (n_indexed,) of the songs that meet a condition on any field but `words`.

    `now` is the time in seconds since 1970; by default, this moment. Raises NotFoundError if a song of the condition
    `similar` is not in the library.
    """
    mask: BoolArray
    if QUERY_FIELDS[condition.field] == "days":
        now = time.time() if now is None else now
        # a song that was never played was not played in the last days
        mask = read_column(snapshot, condition.field) >= now - float(condition.value[0]) * _DAY_S
    elif condition.field == "thumb":
        mask = np.isin(read_column(snapshot, "thumb"), [_THUMBS[str(name)] for name in condition.value])
    else:
        mask = _match_lasting(snapshot, condition, snapshot.library.player_plays.latest())
    return ~mask if condition.is_negative else mask


@lru_cache(maxsize=32)
def _match_lasting(snapshot: Snapshot, condition: FieldCondition, _latest_play: int) -> BoolArray:
    """Return the mask of a condition without its “not”, whose result changes only with the library or with a play."""
    kind = QUERY_FIELDS[condition.field]
    if kind == "similar":
        return _match_nearest(snapshot, condition)
    if kind == "number":
        values = read_column(snapshot, condition.field)
        low, *high = (float(value) for value in condition.value)
        compared: BoolArray = (
            (low <= values) & (values <= high[0]) if high else _OPERATORS[condition.comparison](values, low)
        )
        return compared
    names = [str(name) for name in condition.value]
    return _MATCHERS[condition.field](snapshot, _Names(names, condition.is_exact))


class _Names:
    """Names to look for: whole names, in any spelling for genres and tags, or parts of names in any case."""

    def __init__(self, names: Iterable[str], is_exact: bool) -> None:
        self.names, self.is_exact = frozenset(names), is_exact
        self._keys = {genre_key(name) for name in self.names}
        self._parts = [name.casefold() for name in self.names]

    def fit(self, name: str) -> bool:
        return name in self.names if self.is_exact else any(part in name.casefold() for part in self._parts)

    def fit_genre(self, name: str) -> bool:
        return genre_key(name) in self._keys if self.is_exact else self.fit(name)


def _match_tag(snapshot: Snapshot, names: _Names) -> BoolArray:
    if names.is_exact:
        return has_tag(snapshot, names.names).passing
    tags = [tag for tag in snapshot.library.listening.tag_counts() if names.fit(tag)]
    return _match_genre(snapshot, names) | np.isin(snapshot.row_ids, snapshot.library.listening.songs_tagged(tags))


def _match_genre(snapshot: Snapshot, names: _Names) -> BoolArray:
    return snapshot.columns.genre.where(names.fit_genre)


def _match_title(snapshot: Snapshot, names: _Names) -> BoolArray:
    ids = [
        song.id
        for name in names.names
        for song in snapshot.songs_with(name, snapshot.n_indexed)
        if names.fit(song.title)
    ]
    return np.isin(snapshot.row_ids, np.array(ids, np.int64))


def _match_album(snapshot: Snapshot, names: _Names) -> BoolArray:
    ids = [song_id for song_id, (album, _) in snapshot.library.albums().items() if names.fit(album)]
    return np.isin(snapshot.row_ids, np.array(ids, np.int64))


def _match_column(name: str) -> Callable[[Snapshot, _Names], BoolArray]:
    return lambda snapshot, names: getattr(snapshot.columns, name).where(names.fit)


_MATCHERS: dict[str, Callable[[Snapshot, _Names], BoolArray]] = {
    **{name: _match_column(name) for name in ("artist", "folder", "key", "mode")},
    "genre": _match_genre, "tag": _match_tag, "title": _match_title, "album": _match_album,
}  # fmt: skip


def has_tag(snapshot: Snapshot, tags: Iterable[str]) -> Listed:
    """Return the condition that one of the names is a tag or the genre of a song, in any spelling of the genre."""
    ids = snapshot.library.listening.songs_tagged(tags)
    return Listed(has_genre(snapshot, tags).rows(snapshot.columns) | np.isin(snapshot.row_ids, ids))


def has_genre(snapshot: Snapshot, genres: Iterable[str]) -> Among:
    """Return the condition that a song's genre is one of the names, in any spelling."""
    names = _Names(genres, is_exact=True)
    return Among("genre", frozenset(filter(names.fit_genre, snapshot.columns.genre.names)))


def find_titled(snapshot: Snapshot, title: str) -> int:
    """Return the id of the song with a title, or of the only one whose title contains it; raises NotFoundError."""
    songs = [song for song in snapshot.songs_with(title, MAX_NEAREST) if title.casefold() in song.title.casefold()]
    whole = [song for song in songs if song.title.casefold() == title.casefold()]
    if len(whole) == 1 or (len(songs) == 1 and not whole):
        return (whole or songs)[0].id
    if not songs:
        raise NotFoundError(f"no song is called “{title}”. Write the number of a song instead.")
    ids = ", ".join(f"{song.id} ({song.label})" for song in (whole or songs)[:5])
    raise NotFoundError(f"several songs are called “{title}”. Write the number of one instead: {ids}.")


def vectors_of(snapshot: Snapshot, condition: FieldCondition) -> Iterator[Float32Array]:
    """Yield the vector of each song that the condition `similar` compares with."""
    for song in condition.songs:
        song_id = find_titled(snapshot, song) if isinstance(song, str) else song
        yield snapshot.vectors_at([snapshot.row_of(song_id)])[0]


def distances_to(snapshot: Snapshot, rows: Int64Array, vector: Float32Array) -> Float64Array:
    """Return the distances of some rows from a vector, float64 (n_rows,)."""
    distances = np.empty(len(rows))
    for start in range(0, len(rows), _BLOCK):
        offsets = snapshot.vectors_at(rows[start : start + _BLOCK]) - vector
        distances[start : start + _BLOCK] = np.einsum("ij,ij->i", offsets, offsets)
    return np.sqrt(distances)


def _match_nearest(snapshot: Snapshot, condition: FieldCondition) -> BoolArray:
    """Return the mask of the songs nearest to each given song, which also belong to them."""
    number, n = float(condition.value[0]), snapshot.n_indexed
    k = math.ceil(number) if condition.comparison == "nearest songs" else math.ceil(number / 100 * n)
    k = min(k + 1, n)
    mask = np.zeros(n, dtype=bool)
    for vector in vectors_of(snapshot, condition):
        if k <= MAX_NEAREST:
            mask[snapshot.nearest(vector, k)] = True
        else:  # an index is made for few neighbors
            mask[np.argpartition(distances_to(snapshot, np.arange(n), vector), k - 1)[:k]] = True
    return mask
