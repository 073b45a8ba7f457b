"""Comparison of two spaces of the same songs, before and after learning, on held-out artists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from musicsim import evaluation
from musicsim._arrays import Float64Array, FloatingArray
from musicsim.explorer.learning.two_way import ResampledScores
from musicsim.explorer.requests.training import ORDER_LOSS

RANKING_MEASURES = {"auc": "AUC", "map": "MAP", "mrr": "MRR", "precision": "P@10"}
VERDICT_MEASURES = RANKING_MEASURES | {ORDER_LOSS: "comparisons in order"}
BETTER, WORSE, NO_DIFFERENCE = "better", "worse", "no difference shown"
_MAX_FOR_HUBS = 5_000
_SEED = 0
_MAX_COMPARED, _MOST_CHANGED, _SHOWN = 2_000, 10, 5


@dataclass(frozen=True, slots=True)
class Lead:
    """A measure before and after learning, with the mean difference and its 95% bootstrap interval.

    `shuffled` is the mean difference after the same training on shuffled evidence, and `above_low` to `above_high` is
    the interval of the difference above it. The intervals of all measures together are right in 95% of all cases.
    Without shuffled evidence, these are None.
    """

    before: float
    after: float
    mean: float
    low: float
    high: float
    shuffled: float | None = None
    above_low: float | None = None
    above_high: float | None = None

    @property
    def words(self) -> str:
        """Verdict: better, worse, or no difference shown."""
        if self.low > 0 and (self.above_low is None or self.above_low > 0):
            return BETTER
        return WORSE if self.high < 0 else NO_DIFFERENCE


def leads_of(
    before: Mapping[str, Float64Array], after: Mapping[str, Float64Array], groups: Sequence[Any], random_state: int = 0
) -> dict[str, Lead]:
    """Compare the scores of the same queries before and after learning, given the artist of each query.

    The bootstrap resamples the artists. Returns an empty dict if no query has relevant songs, or all queries are by one
    artist.
    """
    has_score = np.isfinite(before["auc"])
    artists = [group for group, is_scored in zip(groups, has_score, strict=True) if is_scored]
    if len(set(artists)) < 2:
        return {}
    leads = {}
    for name in RANKING_MEASURES:
        a, b = after[name][has_score], before[name][has_score]
        interval = evaluation.bootstrap_pairs(a, b, artists, 2000, random_state)
        leads[name] = Lead(float(b.mean()), float(a.mean()), *interval)
    return leads


def gain_and_error(after: Float64Array, before: Float64Array, groups: Sequence[Any]) -> tuple[float, float]:
    """Return the mean difference of the scores of the same queries, and its standard error over the groups.

    1.96 errors are half of a t interval, which is wider with few groups. The error is infinite with a single group.
    """
    is_scored = np.isfinite(after) & np.isfinite(before)
    n = len({group for group, scored in zip(groups, is_scored, strict=True) if scored})
    if n < 2:
        return float(np.mean((after - before)[is_scored])) if n else np.nan, np.inf
    mean, low, high = evaluation.bootstrap_pairs(after, before, groups, random_state=_SEED)
    return mean, (high - low) / (2 * 1.96) * _widening(n)


def _widening(n: int, tail: float = 0.025) -> float:
    """Return the factor of a bootstrap interval over `n` groups that makes it as wide as a t interval.

    `tail` is the probability of a value below the interval.
    """
    from scipy.special import ndtri, stdtrit

    return float(np.sqrt(n / (n - 1)) * stdtrit(n - 1, 1 - tail) / ndtri(1 - tail))


def first_within_error(scores: Sequence[Float64Array], groups: Sequence[Any]) -> int:
    """Return the place of the first setting that is not worse than the best one by more than a standard error.

    `scores` are those of the same queries with each setting, beginning with the setting that changes the distances
    least. The best setting is often best by chance, and the first ones harm other artists less.
    """
    best = max(range(len(scores)), key=lambda place: finite_mean(scores[place]))

    def is_worse(place: int) -> bool:
        mean, error = gain_and_error(scores[best], scores[place], groups)
        return bool(mean > error)

    return next(place for place in range(len(scores)) if place == best or not is_worse(place))


def leads_above(
    before: ResampledScores, after: ResampledScores, shuffled: Sequence[tuple[ResampledScores, ResampledScores]]
) -> dict[str, Lead]:
    """Compare scores before and after learning, and their difference with that of each shuffled copy of the evidence.

    Each pair in `shuffled` has the scores before and after the training on one copy. Returns an empty dict if there are
    too few scores for an interval.
    """
    leads: dict[str, Lead] = {}
    if before.n_artists < 2:
        return leads
    has_score = np.isfinite(before.each["auc"])
    for name in RANKING_MEASURES:
        gain = _Gain.of(before, after, name)
        old, new = (float(scores.each[name][has_score].mean()) for scores in (before, after))
        leads[name] = Lead(old, new, gain.mean, *gain.interval(before.n_artists))
        copies = [copy for pair in shuffled if np.isfinite((copy := _Gain.of(*pair, name)).mean)]
        if copies:
            above = gain.above(copies)
            low, high = above.interval(before.n_artists, n_measures=len(RANKING_MEASURES))
            by_chance = float(gain.mean - above.mean)
            leads[name] = replace(leads[name], shuffled=by_chance, above_low=low, above_high=high)
    return leads


@dataclass(frozen=True, slots=True)
class _Gain:
    """A mean difference of scores, and its values in resamples as in :class:`ResampledScores`."""

    mean: float
    both: Float64Array
    of_database: Float64Array
    of_queries: Float64Array

    @classmethod
    def of(cls, before: ResampledScores, after: ResampledScores, name: str) -> _Gain:
        differences = after.each[name] - before.each[name]
        mean = float(finite_mean(differences))
        parts = ("both", "of_database", "of_queries")
        return cls(mean, *(getattr(after, part)[name] - getattr(before, part)[name] for part in parts))

    def above(self, others: Sequence[_Gain]) -> _Gain:
        """Return the difference between this gain and the mean of others."""
        parts = ("mean", "both", "of_database", "of_queries")
        return _Gain(*(getattr(self, p) - finite_mean([getattr(one, p) for one in others]) for p in parts))

    def interval(self, n: int, n_measures: int = 1) -> tuple[float, float]:
        """Return the 95% interval for queries by `n` artists.

        With several measures, each gets a wider interval, so that all of them together are right in 95% of all cases
        (Bonferroni). Otherwise, one of them would often be better by chance.

        If both queries and databases are resampled, the variance contains the noise of a query and a song three times;
        otherwise, once (Owen, Annals of Applied Statistics 2007). So it can be subtracted twice. The
        quantiles of the resamples are moved to the mean, and scaled to this variance. They are also widened as for a t
        interval, because a bootstrap of few artists is too narrow.
        """
        two, one, other = (float(np.nanvar(part)) for part in (self.both, self.of_database, self.of_queries))
        variance = max(2 * (one + other) - two, one, other)
        tail = 0.025 / n_measures
        scale = _widening(n, tail) * np.sqrt(variance / two) if two > 0 else 0.0
        low, high = scale * (np.nanquantile(self.both, [tail, 1 - tail]) - np.nanmean(self.both))
        return float(self.mean + low), float(self.mean + high)


def finite_mean(values: Any) -> Any:
    """Return the mean over the first axis, without nan; nan where nothing is left."""
    table = np.asarray(values, np.float64)
    n = np.isfinite(table).sum(axis=0)
    return np.where(n > 0, np.nansum(table, axis=0) / np.maximum(n, 1), np.nan)


def is_better(leads: Mapping[str, Lead]) -> bool:
    """Return whether a measure is significantly better, and no measure is significantly worse."""
    return any(lead.words == BETTER for lead in leads.values()) and not find_losses(leads)


def find_losses(leads: Mapping[str, Lead]) -> list[str]:
    """Return the measures that are significantly worse."""
    return [name for name, lead in leads.items() if lead.high < 0]


def render_lead(lead: Lead) -> dict[str, float]:
    """Return a lead for a report, without the values that it does not have."""
    return {name: value for name, value in asdict(lead).items() if value is not None}


def lead_words(name: str, lead: Lead, baseline: str = "", evidence: str = "") -> str:
    """Describe the values of a measure after and before learning, and their difference with its interval.

    With `evidence`, such as "plays", also describe the difference after training on shuffled evidence.
    """
    shuffled = f"; shuffled {evidence} give {lead.shuffled:+.3f}" if evidence and lead.shuffled is not None else ""
    return (
        f"{VERDICT_MEASURES[name]} {lead.after:.3f} vs {lead.before:.3f}{baseline} "
        f"(difference {lead.mean:+.3f}, 95% interval {lead.low:+.3f} to {lead.high:+.3f}{shuffled})"
    )


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
