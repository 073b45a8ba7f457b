"""Statistics for listening tests: agreement between listeners, comparison of models, and the order of questions.

Krippendorff's alpha follows K. Krippendorff, Computing Krippendorff's Alpha-Reliability (2011). Models are compared as
in the MIREX task Audio Music Similarity: by Friedman's test on scores per query, then Tukey's test on mean ranks.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float64Array, Int64Array
from musicsim._checks import check_choice, check_whole

Level = Literal["nominal", "ordinal", "interval"]
_LEVELS = ("nominal", "ordinal", "interval")
_MIN_RATINGS = 2  # minimum number of ratings per item, and minimum number of items for an interval


@dataclass(frozen=True, slots=True)
class Agreement:
    """Krippendorff's alpha: 1 for perfect agreement, 0 for agreement by chance, nan if all ratings are equal.

    Examples
    --------
    >>> from musicsim.evaluation import krippendorff_alpha
    >>> agreement = krippendorff_alpha([[1, 2, 2], [1, 2, 1]], "nominal", n_resamples=0)
    >>> round(agreement.alpha, 2), agreement.n_items  # two listeners agree on two of three items
    (0.44, 3)
    """

    alpha: float
    low: float  # 95% percentile interval over resampled items; nan if it cannot be computed
    high: float
    n_items: int  # number of items with at least two ratings


def krippendorff_alpha(
    ratings: npt.ArrayLike, level: Level, *, n_resamples: int = 1000, random_state: Any = None
) -> Agreement:
    """Return the agreement between listeners.

    Parameters
    ----------
    ratings : array-like of shape (n_listeners, n_items)
        nan if a listener did not rate an item. Items with fewer than two ratings are ignored.
    level : {"nominal", "ordinal", "interval"}; type of the ratings: categories, ranks or numbers
    n_resamples : int; number of times that items are resampled for the interval; 0 for no interval
        Items are resampled, not listeners: the songs of a test are a sample, but its listeners are fixed.
    random_state : int, numpy Generator or None

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.evaluation import krippendorff_alpha
    >>> ratings = [[1, 2, 3, 3, 5], [1, 2, 3, 4, 5], [np.nan, 2, 3, 3, 4]]  # three listeners, five songs
    >>> agreement = krippendorff_alpha(ratings, "ordinal", random_state=0)
    >>> round(agreement.alpha, 2), agreement.n_items
    (0.93, 5)
    """
    given = np.asarray(ratings, dtype=np.float64)
    if given.ndim != 2:
        raise ValueError(f"ratings has shape {given.shape}; it must be (n_listeners, n_items).")
    if np.isinf(given).any():
        raise ValueError("ratings must be finite, or nan if missing.")
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
    """Compute alpha from `counts` (n_items, n_values) of ratings; item i counts ``times[i]`` times."""
    totals = times @ counts
    n = totals.sum()
    # The rank of a value is the number of lower ratings, plus half the number of equal ones.
    positions = np.cumsum(totals) - totals / 2 if level == "ordinal" else values

    def sum_differences(counts: Float64Array) -> Float64Array:
        """Sum the squared differences over the pairs of ratings in each row."""
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
    """Results of Friedman's and Tukey's tests for several models.

    Examples
    --------
    >>> from musicsim.evaluation import compare_ranks
    >>> comparison = compare_ranks([[0.2, 0.5], [0.1, 0.4], [0.3, 0.9], [0.6, 0.5]])
    >>> comparison.mean_ranks
    array([1.25, 1.75])
    >>> bool(abs(comparison.mean_ranks[0] - comparison.mean_ranks[1]) > 2 * comparison.half_width)  # too few queries
    False
    """

    mean_ranks: Float64Array  # (n_models,); the best model has the highest mean rank
    chi2: float  # Friedman's statistic, corrected for ties
    p_value: float  # p-value of the hypothesis that all models are equal
    # (n_models, n_models), symmetric: p-value of Tukey's test for each pair of models
    pair_p_values: Float64Array
    half_width: float  # two models differ at the 5% level if the intervals mean rank +- half_width do not overlap


def compare_ranks(scores: npt.ArrayLike) -> RankComparison:
    """Run Friedman's test, then Tukey's honestly significant difference test on the mean ranks.

    Parameters
    ----------
    scores : array-like of shape (n_queries, n_models), both at least 2; higher is better
        Each query is one block: average the scores of several listeners first, as they are not independent.

    Notes
    -----
    S is the standard deviation of ranks within a query; it is sqrt(k (k + 1) / 12) for k models without ties. The
    difference between two mean ranks over n queries, divided by S / sqrt(n), is compared with the studentized range
    distribution for k groups and infinitely many degrees of freedom. This is Nemenyi's test. It is also MATLAB's
    ``multcompare`` after ``friedman``, which MIREX uses.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.evaluation import compare_ranks
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=(40, 3)) + [0.0, 0.1, 1.5]  # 40 queries, three models
    >>> comparison = compare_ranks(scores)
    >>> comparison.p_value < 0.001
    True
    >>> comparison.pair_p_values < 0.05  # the third model differs from both others
    array([[False, False,  True],
           [False, False,  True],
           [ True,  True, False]])
    """
    from scipy.stats import chi2 as chi2_distribution
    from scipy.stats import rankdata, studentized_range

    given = np.asarray(scores, dtype=np.float64)
    if given.ndim != 2 or min(given.shape) < 2:
        raise ValueError(f"scores has shape {given.shape}; it must be (n_queries, n_models), at least (2, 2).")
    if not np.isfinite(given).all():
        raise ValueError("scores must be finite: omit queries for which a model has no score.")
    n, k = given.shape
    ranks = rankdata(given, axis=1)
    mean_ranks = ranks.mean(axis=0)
    variance = ((ranks - (k + 1) / 2) ** 2).sum() / (n * (k - 1))
    if not variance:  # all models tie on every query
        return RankComparison(mean_ranks, 0.0, 1.0, np.ones((k, k)), 0.0)
    statistic = n * ((mean_ranks - (k + 1) / 2) ** 2).sum() / variance
    unit = np.sqrt(variance / n)
    pairs = studentized_range.sf(np.abs(mean_ranks[:, None] - mean_ranks[None, :]) / unit, k, np.inf)
    half_width = studentized_range.isf(0.05, k, np.inf) * unit / 2
    return RankComparison(
        mean_ranks, float(statistic), float(chi2_distribution.sf(statistic, k - 1)), pairs, float(half_width)
    )


def scores_by_query(fine: npt.ArrayLike, query: npt.ArrayLike, gave: npt.ArrayLike) -> Float64Array:
    """Return the score of each model for each query, averaged over listeners, then over the model's results.

    Parameters
    ----------
    fine : array-like of shape (n_listeners, n_pairs); scores of pairs, nan if missing
    query : int array-like of shape (n_pairs,); the query of each pair, from 0
    gave : bool array-like of shape (n_pairs, n_models); True if the model returned the pair's result

    Returns
    -------
    ndarray of shape (n_queries, n_models), float64; nan if none of a model's results has a score

    Examples
    --------
    >>> from musicsim.evaluation import scores_by_query
    >>> fine = [[90, 20, 50], [70, 40, 60]]  # two listeners rate three pairs of a query and a result
    >>> query, gave = [0, 0, 1], [[True, False], [False, True], [True, True]]  # both models gave the third result
    >>> scores_by_query(fine, query, gave)
    array([[80., 30.],
           [55., 55.]])
    """
    scores, queries, from_model = np.asarray(fine, dtype=np.float64), np.asarray(query), np.asarray(gave, dtype=bool)
    if scores.ndim != 2 or queries.shape != (scores.shape[1],) or queries.dtype.kind not in "iu":
        raise ValueError(f"fine has shape {scores.shape} and query {queries.shape}; pass one int in query per pair.")
    if from_model.ndim != 2 or len(from_model) != len(queries):
        raise ValueError(f"gave has shape {from_model.shape}; it must be ({len(queries)}, n_models).")
    n_scores = np.isfinite(scores).sum(axis=0)
    has = n_scores > 0
    mean = np.nansum(scores, axis=0)[has] / n_scores[has]
    sums, counts = np.zeros((2, int(queries.max()) + 1, from_model.shape[1]))
    np.add.at(sums, queries[has], mean[:, None] * from_model[has])
    np.add.at(counts, queries[has], from_model[has])
    return np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)


def williams_square(n: int) -> Int64Array:
    """Return balanced orders of `n` conditions, one per row, int64 (E. J. Williams, 1949).

    Each condition occurs equally often in each position, and equally often after each other condition. The first `n`
    rows are a Latin square. If `n` is odd and above 1, there are `n` more rows.

    Examples
    --------
    >>> from musicsim.evaluation import williams_square
    >>> williams_square(4)  # each model comes once after each other model
    array([[0, 1, 3, 2],
           [1, 2, 0, 3],
           [2, 3, 1, 0],
           [3, 0, 2, 1]])
    """
    check_whole("n", n, 1)
    steps = np.arange(n)
    first = np.where(steps % 2, (steps + 1) // 2, (n - steps // 2) % n)  # 0, 1, n - 1, 2, n - 2, ...
    square: Int64Array = (steps[:, None] + first[None, :]) % n
    return np.concatenate([square, square[:, ::-1]]) if n % 2 and n > 1 else square
