"""The songs that follow a rule now.

Conditions are masks over the songs of a snapshot. Masks that do not depend on the time are cached, because only one
condition changes while a person types. They take 1 byte per song and condition, for at most 32 conditions.
"""

import math
import operator
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Any

import numpy as np

from musicsim._arrays import BoolArray, Float32Array, Float64Array, Int64Array
from musicsim.explorer.requests.filters import Filters
from musicsim.explorer.snapshot.filtering import filter_rows
from musicsim.explorer.snapshot.snapshot import Snapshot, snapshot_under
from musicsim.extensions.rules.columns import read_column
from musicsim.extensions.rules.rule import FIELDS, MAX_NEAREST, Condition, Rule
from musicsim.extensions.rules.store import RuleStore
from musicsim.library import Library, Song

_DAY_S = 86_400.0
_BLOCK = 10_000  # vectors that are compared at once; larger blocks do not fit into the processor's cache
_FILTERS = {"artist": "artists", "genre": "genres", "tag": "tags", "key": "keys", "mode": "modes", "words": "words"}
_THUMBS = {"up": 1.0, "down": -1.0}
_OPERATORS: dict[str, Callable[[Any, float], Any]] = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt, "=": operator.eq,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a rule."""

    n_matching: int  # number of songs that meet the conditions
    rows: Int64Array  # rows of the songs within the limits, in order


def find_songs(snapshot: Snapshot, rule: Rule, now: float | None = None) -> Found:
    """Return the songs that follow a rule at the time `now`, in seconds since 1970; by default, at this moment.

    Raises NotFoundError if a word, or a song of the condition `similar`, is not in the library.
    """
    now = time.time() if now is None else now
    masks = [
        _join(snapshot, group.match, [_match(snapshot, one, now) for one in group.conditions])
        for group in rule.groups
        if group.conditions
    ]
    rows = np.flatnonzero(_join(snapshot, rule.match, masks))
    ordered = _limit(snapshot, rule, _order(snapshot, rule, rows, now))
    return Found(len(rows), ordered)


def songs_named(library: Library, name: str, model: str | None) -> Sequence[Song] | None:
    """Return the songs that follow the saved rule with this name now; None if there is no such rule."""
    saved = RuleStore(library).find(name)
    if saved is None:
        return None
    snapshot = snapshot_under(library, model)
    return snapshot.songs_at(find_songs(snapshot, saved.rule).rows)


def _join(snapshot: Snapshot, match: str, masks: Sequence[BoolArray]) -> BoolArray:
    """Return the mask of the rows that are in all masks or in any, bool (n_indexed,); all rows without masks."""
    if not masks:
        return np.ones(snapshot.n_indexed, dtype=bool)
    joined: BoolArray = (np.logical_and if match == "all" else np.logical_or).reduce(masks)
    return joined


def _match(snapshot: Snapshot, condition: Condition, now: float) -> BoolArray:
    if FIELDS[condition.field] == "days":
        # a song that was never played was not played in the last days
        is_recent: BoolArray = read_column(snapshot, condition.field) >= now - float(condition.value[0]) * _DAY_S
        return is_recent if condition.comparison == "in the last" else ~is_recent
    if condition.field == "thumb":
        mask: BoolArray = np.isin(read_column(snapshot, "thumb"), [_THUMBS[str(name)] for name in condition.value])
        return mask if condition.comparison == "is" else ~mask
    return _match_lasting(snapshot, condition, snapshot.library.player_plays.latest())


@lru_cache(maxsize=32)
def _match_lasting(snapshot: Snapshot, condition: Condition, _latest_play: int) -> BoolArray:
    """Return the mask of a condition whose result changes only with the library or with a play."""
    kind = FIELDS[condition.field]
    if kind == "similar":
        return _nearest(snapshot, condition)
    if kind == "number":
        values = read_column(snapshot, condition.field)
        low, *high = (float(value) for value in condition.value)
        compared: BoolArray = (
            (low <= values) & (values <= high[0]) if high else _OPERATORS[condition.comparison](values, low)
        )
        return compared
    value: Any = condition.value[0] if kind == "words" else frozenset(condition.value)
    mask = filter_rows(snapshot, Filters(**{_FILTERS[condition.field]: value}))
    assert mask is not None  # the value is not empty
    return ~mask if "not" in condition.comparison else mask


def _nearest(snapshot: Snapshot, condition: Condition) -> BoolArray:
    """Return the mask of the songs nearest to each given song, which also belong to them."""
    number, n = float(condition.value[0]), snapshot.n_indexed
    k = math.ceil(number) if condition.comparison == "nearest songs" else math.ceil(number / 100 * n)
    k = min(k + 1, n)
    mask = np.zeros(n, dtype=bool)
    for vector in _vectors_of(snapshot, condition):
        if k <= MAX_NEAREST:
            mask[snapshot.nearest(vector, k)] = True
        else:  # an index is made for few neighbors
            mask[np.argpartition(_distances(snapshot, np.arange(n), vector), k - 1)[:k]] = True
    return mask


def _vectors_of(snapshot: Snapshot, condition: Condition) -> Iterator[Float32Array]:
    for song_id in condition.songs:
        yield snapshot.vectors_at([snapshot.row_of(song_id)])[0]


def _distances(snapshot: Snapshot, rows: Int64Array, vector: Float32Array) -> Float64Array:
    distances = np.empty(len(rows))
    for start in range(0, len(rows), _BLOCK):
        offsets = snapshot.vectors_at(rows[start : start + _BLOCK]) - vector
        distances[start : start + _BLOCK] = np.einsum("ij,ij->i", offsets, offsets)
    return np.sqrt(distances)


def _order(snapshot: Snapshot, rule: Rule, rows: Int64Array, now: float) -> Int64Array:
    """Sort rows; equal values are in an order that changes every day, and unknown values come last.

    A song that was never played comes before all others if the longest ago come first.
    """
    today = date.fromtimestamp(now).toordinal()
    rows = rows[np.argsort(np.random.default_rng(today).random(snapshot.n_indexed)[rows])]
    if rule.order == "random":
        return rows
    if rule.order == "similar":
        vectors = [v for one in rule.conditions if one.field == "similar" for v in _vectors_of(snapshot, one)]
        distances = np.array([_distances(snapshot, rows, vector) for vector in vectors], dtype=np.float64)
        values: Float64Array = np.asarray(distances.min(axis=0))
    else:
        values = read_column(snapshot, rule.order)[rows]
    if rule.order == "played":
        values = np.where(np.isnan(values), -np.inf, values)
    return rows[np.argsort(-values if rule.descending else values, kind="stable")]


def _limit(snapshot: Snapshot, rule: Rule, rows: Int64Array) -> Int64Array:
    rows = rows[: rule.songs]
    if rule.minutes is not None:
        lengths = np.cumsum(snapshot.columns.duration_s[rows])
        rows = rows[: np.searchsorted(lengths, rule.minutes * 60, side="right")]
    return rows
