"""Comparison of two spaces of the same songs, before and after learning, on held-out artists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from musicsim import evaluation, relevance
from musicsim._arrays import Float64Array, FloatingArray, Int64Array
from musicsim.explorer.learning.search_ranking import score_search
from musicsim.explorer.requests.training import ORDER

RANKED = {"auc": "AUC", "map": "MAP", "mrr": "MRR", "precision": "P@10"}
MEASURES = RANKED | {ORDER: "comparisons in order"}
BETTER, WORSE, NO_DIFFERENCE = "better", "worse", "no difference shown"
_MAX_FOR_HUBS = 5_000
_SEED = 0
_MAX_COMPARED, _MOST_CHANGED, _SHOWN = 2_000, 10, 5


@dataclass(frozen=True, slots=True)
class Lead:
    """A measure before and after learning, with the mean difference and its 95% bootstrap interval."""

    before: float
    after: float
    mean: float
    low: float
    high: float

    @property
    def words(self) -> str:
        """Verdict: better, worse, or no difference shown."""
        return BETTER if self.low > 0 else WORSE if self.high < 0 else NO_DIFFERENCE


def compare(
    before: FloatingArray,
    after: FloatingArray,
    relevance: relevance.Relevance,
    queries: Int64Array,
    database: Int64Array,
    groups: Any,
    *,
    reduce_hubs: bool,
) -> dict[str, Lead]:
    """Compare the scores of the same queries in two spaces, ranked as in search.

    `before` and `after` (n_songs, d), `relevance` and `groups` cover all songs. The bootstrap resamples `groups`, the
    artists. Returns an empty dict if no query has relevant songs, or all queries are by one artist.
    """
    split = relevance.restrict(queries, database)
    old, new = (score_search(X, queries, database, split, reduce_hubs=reduce_hubs) for X in (before, after))
    return leads_of(old, new, [groups[q] for q in queries])


def leads_of(
    before: Mapping[str, Float64Array], after: Mapping[str, Float64Array], groups: Sequence[Any], random_state: int = 0
) -> dict[str, Lead]:
    """Compare scores like :func:`compare`, given the scores and the artist of each query."""
    has_score = np.isfinite(before["auc"])
    artists = [group for group, is_scored in zip(groups, has_score, strict=True) if is_scored]
    if len(set(artists)) < 2:
        return {}
    leads = {}
    for name in RANKED:
        a, b = after[name][has_score], before[name][has_score]
        interval = evaluation.bootstrap_pairs(a, b, artists, 2000, random_state)
        leads[name] = Lead(float(b.mean()), float(a.mean()), *interval)
    return leads


def is_better(leads: dict[str, Lead], loss: str) -> bool:
    """Return whether the measure of the loss or AUC is significantly better, and no measure is significantly worse."""
    return any(leads[name].low > 0 for name in {loss, "auc", ORDER} & leads.keys()) and not find_losses(leads)


def find_losses(leads: Mapping[str, Lead]) -> list[str]:
    """Return the measures that are significantly worse."""
    return [name for name, lead in leads.items() if lead.high < 0]


def lead_words(name: str, lead: Lead, baseline: str = "") -> str:
    """Describe the values of a measure after and before learning, and their difference with its interval."""
    return (
        f"{MEASURES[name]} {lead.after:.3f} vs {lead.before:.3f}{baseline} "
        f"(difference {lead.mean:+.3f}, 95% interval {lead.low:+.3f} to {lead.high:+.3f})"
    )


def join_words(words: Sequence[str]) -> str:
    """Join words with commas, and with "and" before the last one."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def space_hubness(X: FloatingArray) -> float:
    """Return the skewness of the 10-occurrence, for a seeded sample of at most 5,000 songs."""
    if len(X) > _MAX_FOR_HUBS:
        X = X[np.sort(np.random.default_rng(_SEED).permutation(len(X))[:_MAX_FOR_HUBS])]
    return evaluation.hubness(evaluation.nearest_neighbors(X, min(10, len(X) - 1))) if len(X) > 1 else 0.0


def find_changed_queries(before: FloatingArray, after: FloatingArray) -> list[tuple[int, list[int], list[int]]]:
    """Return the ten songs whose nearest songs changed most: (row, five nearest before, five nearest after)."""
    rows = np.arange(len(before))
    if len(rows) > _MAX_COMPARED:
        rows = np.sort(np.random.default_rng(_SEED).permutation(rows)[:_MAX_COMPARED])
    k = min(10, len(rows) - 1)
    if k < 1:
        return []
    old, new = (evaluation.nearest_neighbors(X[rows], k) for X in (before, after))
    common = (old[:, :, None] == new[:, None, :]).sum(axis=(1, 2))
    order = np.argsort(common, kind="stable")[:_MOST_CHANGED]
    return [(int(rows[i]), rows[old[i, :_SHOWN]].tolist(), rows[new[i, :_SHOWN]].tolist()) for i in order]
