"""Statistics of listening tests: how far listeners agree, which of several models is better, and in which order to ask.

Krippendorff's alpha is that of K. Krippendorff, Computing Krippendorff's Alpha-Reliability (2011). Models are compared
as MIREX compares the systems of its task Audio Music Similarity: Friedman's test on their scores by query, then
Tukey's honestly significant difference on the mean ranks.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float64Array, Int64Array
from musicsim._checks import check_choice, check_whole

Level = Literal["nominal", "ordinal", "interval"]
_LEVELS = ("nominal", "ordinal", "interval")
_MIN_RATINGS = 2  # of an item, and items of a bootstrap


# --- agreement ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Agreement:
    """Krippendorff's alpha: 1 where all agree, 0 where they agree as by chance, nan where nothing differs."""

    alpha: float
    # the percentile interval that holds 95 % of the values of resampled items; nan where there is none
    low: float
    high: float
    n_items: int  # items that two listeners or more have rated


def krippendorff_alpha(
    ratings: npt.ArrayLike, level: Level, *, n_resamples: int = 1000, random_state: Any = None
) -> Agreement:
    """How far listeners agree.

    Parameters
    ----------
    ratings : array-like of shape (n_listeners, n_items)
        nan where a listener has not rated an item. Items with fewer than two ratings count for nothing.
    level : {"nominal", "ordinal", "interval"}
        What differs: names, ranks or numbers.
    n_resamples : int
        Resamples of the items for the interval; 0 for none.
    random_state : int, numpy Generator or None

    Raises
    ------
    ValueError
        If ratings are no matrix, or infinite, or the level is none of the three.

    Notes
    -----
    Items are resampled, as the songs of a test are drawn and its listeners are who they are.
    """
    given = np.asarray(ratings, dtype=np.float64)
    if given.ndim != 2:
        raise ValueError(f"ratings: shape {given.shape} should be (n_listeners, n_items).")
    if np.isinf(given).any():
        raise ValueError("ratings should be finite, or nan where there is none.")
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
        found = np.array([_alpha(counts, times, values, level) for times in drawn])
        if np.isfinite(found).any():
            low, high = np.nanquantile(found, (0.025, 0.975))
    return Agreement(alpha, float(low), float(high), n_items)


def _alpha(counts: Float64Array, times: Float64Array, values: Float64Array, level: Level) -> float:
    """Alpha of items that occur so many times; `counts` (n_items, n_values) are their ratings."""
    n_of = times @ counts
    n = n_of.sum()
    # of ranks, a value is as far along as there are ratings below it, and half of its own
    at = np.cumsum(n_of) - n_of / 2 if level == "ordinal" else values

    def apart(of: Float64Array) -> Float64Array:
        """The sum over pairs of ratings of their squared differences, by row."""
        m = of.sum(axis=-1)
        if level == "nominal":
            return np.asarray(m**2 - (of**2).sum(axis=-1))
        centred = at - (n_of @ at) / n
        return np.asarray(2 * (m * (of @ centred**2) - (of @ centred) ** 2))

    expected = float(apart(n_of))
    observed = float(times @ (apart(counts) / (counts.sum(axis=1) - 1)))
    return float(1 - (n - 1) * observed / expected) if expected > 0 else np.nan


# --- which is better ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RankComparison:
    """What Friedman's test and Tukey's say of some models."""

    mean_ranks: Float64Array  # (n_models,); the best has the highest
    chi2: float  # Friedman's statistic, corrected for ties
    p_value: float  # of all models being the same
    pair_p_values: Float64Array  # (n_models, n_models): of each two being the same, by Tukey's test; symmetric
    # mean ranks differ at 5 % where intervals of so much to either side of them do not overlap
    half_width: float


def compare_ranks(scores: npt.ArrayLike) -> RankComparison:
    """Friedman's test, then Tukey's honestly significant difference on the mean ranks.

    Parameters
    ----------
    scores : array-like of shape (n_queries, n_models)
        Higher is better. Each query is a block of its own: several listeners' scores of one are to be averaged first,
        as they are not independent.

    Raises
    ------
    ValueError
        If scores are not finite, or there are fewer than two queries or models.

    Notes
    -----
    With S the standard deviation of ranks within a query, sqrt(k (k + 1) / 12) of k models without ties, and n queries,
    two mean ranks differ as the studentized range q of k and infinitely many degrees of freedom says of their
    difference over S / sqrt(n): Nemenyi's test, and MATLAB's ``multcompare`` after ``friedman``, which MIREX uses.
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
    """The score of each model for each query: the mean over its results of the mean over listeners.

    Parameters
    ----------
    fine : array-like of shape (n_listeners, n_pairs)
        Scores of pairs; nan where there is none.
    query : int array-like of shape (n_pairs,)
        The query of each pair, from 0 on.
    gave : bool array-like of shape (n_pairs, n_models)
        Which models gave the result of each pair.

    Returns
    -------
    float64 ndarray of shape (n_queries, n_models)
        nan where no result of a model has a score.
    """
    given, of, made = np.asarray(fine, dtype=np.float64), np.asarray(query), np.asarray(gave, dtype=bool)
    n_scores = np.isfinite(given).sum(axis=0)
    has = n_scores > 0
    mean = np.nansum(given, axis=0)[has] / n_scores[has]
    sums, counts = np.zeros((2, int(of.max()) + 1, made.shape[1]))
    np.add.at(sums, of[has], mean[:, None] * made[has])
    np.add.at(counts, of[has], made[has])
    return np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)


# --- the order of questions -----------------------------------------------------------------------


def williams_square(n: int) -> Int64Array:
    """Orders of `n` things so that each is as often in each place, and each as often right after each other one.

    Returns
    -------
    int64 ndarray of shape (n, n), or (2 n, n) where n is odd and above 1
        An order a row; the first `n` rows are a Latin square.

    Raises ValueError if n is below 1.

    Notes
    -----
    E. J. Williams, Experimental designs balanced for the estimation of residual effects of treatments (1949).
    """
    check_whole("n", n, 1)
    steps = np.arange(n)
    first = np.where(steps % 2, (steps + 1) // 2, (n - steps // 2) % n)  # 0, 1, n - 1, 2, n - 2, ...
    square: Int64Array = (steps[:, None] + first[None, :]) % n
    return np.concatenate([square, square[:, ::-1]]) if n % 2 and n > 1 else square
