"""The songs that follow a rule now."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from musicsim._arrays import BoolArray, Float64Array, Int64Array
from musicsim.explorer import Snapshot, distances_to, match_condition, read_column, snapshot_under, vectors_of
from musicsim.extensions.rules.rule import Rule
from musicsim.extensions.rules.store import RuleStore, SavedRule
from musicsim.library import Library, Song


@dataclass(frozen=True, slots=True)
class RuleResult:
    """The result of a rule."""

    n_matching: int  # number of songs that meet the conditions
    rows: Int64Array  # rows of the songs within the limits, in order


def find_songs(snapshot: Snapshot, rule: Rule, now: float | None = None) -> RuleResult:
    """Return the songs that follow a rule at the time `now`, in seconds since 1970; by default, at this moment.

    Raises NotFoundError if a word, or a song of the condition `similar`, is not in the library.
    """
    now = time.time() if now is None else now
    masks = [
        _join(snapshot, group.match, [match_condition(snapshot, one, now) for one in group.conditions])
        for group in rule.groups
        if group.conditions
    ]
    rows = np.flatnonzero(_join(snapshot, rule.match, masks))
    ordered = _limit(snapshot, rule, _order(snapshot, rule, rows, now))
    return RuleResult(len(rows), ordered)


def save_checked(library: Library, name: str, rule: Rule) -> SavedRule:
    """Save a rule; raises the errors of :func:`find_songs` and of the store before anything changes."""
    find_songs(snapshot_under(library, None), rule)
    return RuleStore(library).save(name, rule)


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


def _order(snapshot: Snapshot, rule: Rule, rows: Int64Array, now: float) -> Int64Array:
    """Sort rows; equal values are in an order that changes every day, and unknown values come last.

    A song that was never played comes before all others if the longest ago come first.
    """
    today = date.fromtimestamp(now).toordinal()
    rows = rows[np.argsort(np.random.default_rng(today).random(snapshot.n_indexed)[rows])]
    if rule.order == "random":
        return rows
    if rule.order == "similar":
        vectors = [v for one in rule.conditions if one.field == "similar" for v in vectors_of(snapshot, one)]
        distances = np.array([distances_to(snapshot, rows, vector) for vector in vectors], dtype=np.float64)
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
