"""Measures of rankings of graded documents: learning to rank, with a query a group of rows.

Conventions. Higher scores come first; of equal scores the less relevant document does, so that a constant ranker
gains nothing. The gain of label l at rank i is (2^l - 1) / log2(i + 1), NDCG@k is the sum over the first k ranks as a
share of the best one, and average precision takes every label above 0 for relevant. A query without a relevant
document is 0 by each measure, as LETOR counts it, or nan, as asked.
"""

from collections.abc import Sequence
from numbers import Integral

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float64Array, Int64Array

_MAX_LABEL = 1000
"""Label: a gain is 2^label, and sums of gains should be finite."""


def check_labels(y: Float64Array) -> None:
    """Raise ValueError where a label is none from 0 to 1000."""
    wrong = np.flatnonzero(~((y >= 0) & (y <= _MAX_LABEL)))
    if len(wrong):
        raise ValueError(f"y: the label of row {wrong[0]}, {y[wrong[0]]:g}, should be from 0 to {_MAX_LABEL}.")


def checked_groups(group: npt.ArrayLike, n_rows: int) -> Int64Array:
    """The first row of each query, and `n_rows` at the end.

    `group` has the rows of each query, one after the other. Raises ValueError if they are not positive whole numbers
    that sum to `n_rows`.
    """
    sizes = np.asarray(group)
    if sizes.ndim != 1 or (sizes.size and sizes.dtype.kind not in "iu") or (sizes < 1).any():
        raise ValueError("group should be a list of whole numbers of at least 1, the rows of each query.")
    if sizes.sum() != n_rows:
        raise ValueError(f"group sums to {int(sizes.sum())}, but there are {n_rows} rows.")
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def graded_scores(
    scores: npt.ArrayLike,
    y: npt.ArrayLike,
    group: npt.ArrayLike,
    ks: Sequence[int] = (1, 3, 5, 10),
    *,
    without_relevant: float = 0.0,
) -> dict[str, Float64Array]:
    """NDCG@k and average precision of every query.

    Parameters
    ----------
    scores : array-like of shape (n_rows,)
        The higher, the earlier.
    y : array-like of shape (n_rows,)
        Labels, from 0 to 1000.
    group : int array-like of shape (n_queries,)
        Rows of each query.
    ks : sequence of int, each at least 1
    without_relevant : float
        Score of a query without a label above 0; nan leaves it out of a nanmean.

    Returns
    -------
    dict of float64 ndarrays of shape (n_queries,): ``ndcg@k`` for each k, and ``map``

    Raises
    ------
    ValueError
        If sizes differ, scores are not finite, a label is out of range, or a k is no whole number of at least 1.
    """
    f, labels = np.asarray(scores, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if f.ndim != 1 or f.shape != labels.shape:
        raise ValueError(f"scores and y: shapes {f.shape} and {labels.shape} should be (n_rows,) in both.")
    if not np.isfinite(f).all():
        raise ValueError(f"scores: row {np.flatnonzero(~np.isfinite(f))[0]} is not finite.")
    check_labels(labels)
    if not len(ks) or not all(isinstance(k, Integral) and k >= 1 for k in ks):
        raise ValueError(f"ks={ks!r} should be whole numbers of at least 1.")
    starts = checked_groups(group, len(f))
    n_queries = len(starts) - 1
    query = np.repeat(np.arange(n_queries), np.diff(starts))
    rank = np.arange(len(f)) - starts[query] + 1
    found = labels[np.lexsort((labels, -f, query))]
    best = labels[np.lexsort((-labels, query))]
    is_relevant = found > 0
    n_relevant = np.bincount(query, is_relevant, minlength=n_queries)
    has = n_relevant > 0

    def share(part: npt.NDArray, whole: npt.NDArray) -> Float64Array:
        return np.where(has, part / np.where(has, whole, 1.0), without_relevant)

    result = {}
    for k in ks:
        discount = np.where(rank <= k, 1.0 / np.log2(rank + 1.0), 0.0)
        gained, possible = (
            np.bincount(query, np.expm1(np.log(2.0) * order) * discount, minlength=n_queries) for order in (found, best)
        )
        result[f"ndcg@{k}"] = share(gained, possible)
    running = np.cumsum(is_relevant)
    before = np.concatenate([[0], running])[starts[:-1]]
    precision = np.where(is_relevant, (running - before[query]) / rank, 0.0)
    result["map"] = share(np.bincount(query, precision, minlength=n_queries), n_relevant)
    return result
