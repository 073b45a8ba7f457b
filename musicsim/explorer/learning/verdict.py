"""Is a learned model better? Two spaces of the same songs, compared on queries by artists that were held out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from musicsim import evaluation, relevance
from musicsim._arrays import Float64Array, FloatingArray, Int64Array
from musicsim.explorer.requests.training import ORDER

RANKED = {"auc": "AUC", "map": "MAP", "mrr": "MRR", "precision": "P@10"}
MEASURES = RANKED | {ORDER: "comparisons in order"}
BETTER, WORSE, NO_DIFFERENCE = "better", "worse", "no difference shown"
_MAX_FOR_HUBS = 5_000
_MAX_COMPARED, _MOST_CHANGED, _SHOWN = 2_000, 10, 5


@dataclass(frozen=True, slots=True)
class Lead:
    """A measure before and after learning, with the interval that holds 95 % of the resampled differences."""

    before: float
    after: float
    mean: float
    low: float
    high: float

    @property
    def words(self) -> str:
        """What the interval says."""
        return BETTER if self.low > 0 else WORSE if self.high < 0 else NO_DIFFERENCE


def compare(
    before: FloatingArray,
    after: FloatingArray,
    relevance: relevance.Relevance,
    queries: Int64Array,
    database: Int64Array,
    groups: Any,
    random_state: int = 0,
) -> dict[str, Lead]:
    """Scores of the same queries in two spaces.

    `before` and `after` (n_songs, d), `relevance` and `groups` are of all songs: groups are the artists, which the
    interval is drawn over. Empty where no query has relevant songs, or all are of one artist.
    """
    split = relevance.restrict(queries, database)
    scores = [evaluation.query_scores(X[queries], X[database], split, k=10) for X in (before, after)]
    return leads_of(scores[0], scores[1], [groups[q] for q in queries], random_state)


def leads_of(
    before: Mapping[str, Float64Array], after: Mapping[str, Float64Array], groups: Sequence[Any], random_state: int = 0
) -> dict[str, Lead]:
    """As :func:`compare`, of the scores of the same queries, and the artist of each."""
    counted = np.isfinite(before["auc"])
    artists = [group for group, counts in zip(groups, counted, strict=True) if counts]
    if len(set(artists)) < 2:
        return {}
    leads = {}
    for name in RANKED:
        a, b = after[name][counted], before[name][counted]
        leads[name] = Lead(
            float(b.mean()), float(a.mean()), *evaluation.paired_bootstrap(a, b, artists, 2000, random_state)
        )
    return leads


def is_better(leads: dict[str, Lead], loss: str) -> bool:
    """Whether the measure that was asked for, or AUC, rose beyond its interval, and no measure fell so."""
    asked = [leads[name] for name in {loss, "auc", ORDER} & leads.keys()]
    return any(lead.low > 0 for lead in asked) and not fallen(leads)


def fallen(leads: Mapping[str, Lead]) -> list[str]:
    """The measures that fell beyond their intervals."""
    return [name for name, lead in leads.items() if lead.high < 0]


def lead_words(name: str, lead: Lead) -> str:
    """A measure after and before, the difference and its interval."""
    return (
        f"{MEASURES[name]} {lead.after:.3f} against {lead.before:.3f} "
        f"({lead.mean:+.3f}, 95 % between {lead.low:+.3f} and {lead.high:+.3f})"
    )


def listed(words: Sequence[str]) -> str:
    """Words with commas, and an "and" before the last."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def space_hubness(X: FloatingArray, random_state: int = 0) -> float:
    """Skew of the 10-occurrence, of a seeded sample of 5 000 songs where there are more."""
    if len(X) > _MAX_FOR_HUBS:
        X = X[np.sort(np.random.default_rng(random_state).permutation(len(X))[:_MAX_FOR_HUBS])]
    return evaluation.hubness(evaluation.nearest_neighbours(X, min(10, len(X) - 1))) if len(X) > 1 else 0.0


def changed_queries(
    before: FloatingArray, after: FloatingArray, random_state: int = 0
) -> list[tuple[int, list[int], list[int]]]:
    """The ten songs whose ten nearest changed most, as (row, five nearest rows before, five nearest rows after).

    Those with fewest answers in common come first. Of more than 2,000 songs a seeded sample is looked through, within
    which both spaces, (n_songs, d) each, are then compared.
    """
    rows = np.arange(len(before))
    if len(rows) > _MAX_COMPARED:
        rows = np.sort(np.random.default_rng(random_state).permutation(rows)[:_MAX_COMPARED])
    k = min(10, len(rows) - 1)
    if k < 1:
        return []
    old, new = (evaluation.nearest_neighbours(X[rows], k) for X in (before, after))
    common = (old[:, :, None] == new[:, None, :]).sum(axis=(1, 2))
    order = np.argsort(common, kind="stable")[:_MOST_CHANGED]
    return [(int(rows[i]), rows[old[i, :_SHOWN]].tolist(), rows[new[i, :_SHOWN]].tolist()) for i in order]
