"""Statistics of listening tests: agreement of listeners, comparison of models, and the order of questions.

Krippendorff's alpha is that of K. Krippendorff, Computing Krippendorff's Alpha-Reliability (2011). Models are compared
as in the MIREX task Audio Music Similarity: Friedman's test on their scores by query, then Tukey's honestly significant
difference on the mean ranks.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float64Array, Int64Array
from musicsim._checks import check_choice, check_whole

Level = Literal["nominal", "ordinal", "interval"]
_LEVELS = ("nominal", "ordinal", "interval")
_MIN_RATINGS = 2  # ratings per item, and items per bootstrap


@dataclass(frozen=True, slots=True)
class Agreement:
    """Krippendorff's alpha: 1 for full agreement, 0 for agreement by chance, nan if all ratings are equal."""

    alpha: float
    low: float  # 95% percentile interval over resampled items; nan if it cannot be computed
    high: float
    n_items: int  # items with at least two ratings


def krippendorff_alpha(
    ratings: npt.ArrayLike, level: Level, *, n_resamples: int = 1000, random_state: Any = None
) -> Agreement:
    """Return the agreement of listeners in `ratings`, (n_listeners, n_items), nan if an item was not rated.

    The `level` is the type of the ratings: categories, ranks or numbers. Items with fewer than two ratings are ignored.
    For the interval, items are resampled `n_resamples` times (0: no interval), not listeners: the songs of a test are a
    sample, its listeners are fixed. Raises ValueError if ratings are not a matrix or infinite, or the level is unknown.
    """
    given = np.asarray(ratings, dtype=np.float64)
    if given.ndim != 2:
        raise ValueError(f"ratings: shape {given.shape} should be (n_listeners, n_items).")
    if np.isinf(given).any():
        raise ValueError("ratings should be finite, or nan if missing.")
    check_choice("level", level, _LEVELS)
    given = given[:, np.isfinite(given).sum(axis=0) >= _MIN_RATINGS]
    n_items = given.shape[1]
    values = np.unique(given[np.isfinite(given)])
    counts = (given[:, :, None] == values).sum(axis=0).astype(np.float64)  # (n_items, n_values)
    if not n_items:
        return Agreement(np.nan, np.nan, np.nan, 0)
    alpha = _alpha(counts, np.ones(n_items), values, level)
    low = high = np.nan
    if n_resamples and n_items >= _MIN_RATINGS:
        rng = np.random.default_rng(random_state)
        drawn = rng.multinomial(n_items, np.full(n_items, 1 / n_items), size=n_resamples).astype(np.float64)
        alphas = np.array([_alpha(counts, times, values, level) for times in drawn])
        if np.isfinite(alphas).any():
            low, high = np.nanquantile(alphas, (0.025, 0.975))
    return Agreement(alpha, float(low), float(high), n_items)


def _alpha(counts: Float64Array, times: Float64Array, values: Float64Array, level: Level) -> float:
    """Compute alpha of items that occur `times` each; `counts` (n_items, n_values) are their ratings."""
    totals = times @ counts
    n = totals.sum()
    # rank of a value: the number of ratings below it, plus half of its own
    positions = np.cumsum(totals) - totals / 2 if level == "ordinal" else values

    def sum_differences(counts: Float64Array) -> Float64Array:
        """Sum the squared differences over pairs of ratings, by row."""
        m = counts.sum(axis=-1)
        if level == "nominal":
            return np.asarray(m**2 - (counts**2).sum(axis=-1))
        centered = positions - (totals @ positions) / n
        return np.asarray(2 * (m * (counts @ centered**2) - (counts @ centered) ** 2))

    expected = float(sum_differences(totals))
    observed = float(times @ (sum_differences(counts) / (counts.sum(axis=1) - 1)))
    return float(1 - (n - 1) * observed / expected) if expected > 0 else np.nan


@dataclass(frozen=True, slots=True)
class RankComparison:
    """The results of Friedman's and Tukey's tests for some models."""

    mean_ranks: Float64Array  # (n_models,); the best has the highest
    chi2: float  # Friedman's statistic, corrected for ties
    p_value: float  # p-value of the hypothesis that all models are equal
    pair_p_values: Float64Array  # (n_models, n_models), symmetric: that two models are equal, by Tukey's test
    half_width: float  # two models differ at the 5% level if the intervals mean rank +- half_width do not overlap


def compare_ranks(scores: npt.ArrayLike) -> RankComparison:
    """Compute Friedman's test, then Tukey's honestly significant difference on the mean ranks.

    `scores` are (n_queries, n_models), higher is better. Each query is one block: average the scores of several
    listeners first, because they are not independent. Raises ValueError if scores are not finite, or there are fewer
    than two queries or models.

    Notes
    -----
    S is the standard deviation of ranks within a query, sqrt(k (k + 1) / 12) for k models without ties. The difference
    of two mean ranks over n queries, divided by S / sqrt(n), is compared with the studentized range of k and infinitely
    many degrees of freedom. This is Nemenyi's test, and MATLAB's ``multcompare`` after ``friedman``, which MIREX uses.
    """
    from scipy.stats import chi2 as chi2_distribution
    from scipy.stats import rankdata, studentized_range

    given = np.asarray(scores, dtype=np.float64)
    if given.ndim != 2 or min(given.shape) < 2:
        raise ValueError(f"scores: shape {given.shape} should be (n_queries, n_models), two of each or more.")
    if not np.isfinite(given).all():
        raise ValueError("scores should be finite: leave out queries that lack a model's score.")
    n, k = given.shape
    ranks = rankdata(given, axis=1)
    mean_ranks = ranks.mean(axis=0)
    variance = ((ranks - (k + 1) / 2) ** 2).sum() / (n * (k - 1))
    if not variance:  # every query is a tie
        return RankComparison(mean_ranks, 0.0, 1.0, np.ones((k, k)), 0.0)
    statistic = n * ((mean_ranks - (k + 1) / 2) ** 2).sum() / variance
    unit = np.sqrt(variance / n)
    pairs = studentized_range.sf(np.abs(mean_ranks[:, None] - mean_ranks[None, :]) / unit, k, np.inf)
    half_width = studentized_range.isf(0.05, k, np.inf) * unit / 2
    return RankComparison(
        mean_ranks, float(statistic), float(chi2_distribution.sf(statistic, k - 1)), pairs, float(half_width)
    )


def scores_by_query(fine: npt.ArrayLike, query: npt.ArrayLike, gave: npt.ArrayLike) -> Float64Array:
    """Return the score of each model for each query: the mean over its results of the mean over listeners.

    `fine` are the scores of pairs, (n_listeners, n_pairs), nan if missing. `query` is the query of each pair,
    (n_pairs,), from 0. `gave` tells which models returned the result of each pair: bool (n_pairs, n_models). The result
    is float64 (n_queries, n_models), nan if no result of a model has a score.
    """
    scores, queries, from_model = np.asarray(fine, dtype=np.float64), np.asarray(query), np.asarray(gave, dtype=bool)
    n_scores = np.isfinite(scores).sum(axis=0)
    has = n_scores > 0
    mean = np.nansum(scores, axis=0)[has] / n_scores[has]
    sums, counts = np.zeros((2, int(queries.max()) + 1, from_model.shape[1]))
    np.add.at(sums, queries[has], mean[:, None] * from_model[has])
    np.add.at(counts, queries[has], from_model[has])
    return np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)


def williams_square(n: int) -> Int64Array:
    """Return orders of `n` things: each is equally often in each place, and equally often right after each other one.

    There is one order per row: int64 (n, n), or (2 n, n) if n is odd and above 1. The first `n` rows are a Latin
    square. E. J. Williams, Experimental designs balanced for the estimation of residual effects of treatments (1949).
    Raises ValueError if n is below 1.
    """
    check_whole("n", n, 1)
    steps = np.arange(n)
    first = np.where(steps % 2, (steps + 1) // 2, (n - steps // 2) % n)  # 0, 1, n - 1, 2, n - 2, ...
    square: Int64Array = (steps[:, None] + first[None, :]) % n
    return np.concatenate([square, square[:, ::-1]]) if n % 2 and n > 1 else square
