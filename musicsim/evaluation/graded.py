"""Measures of rankings with graded relevance, as in learning to rank: a query is a group of rows.

Higher scores come first. If scores are equal, the less relevant document comes first, so ties do not help a constant
ranker. The gain of label l at rank i is (2^l - 1) / log2(i + 1). NDCG@k is the sum of gains over the first k ranks,
divided by the best possible sum. For average precision, every label above 0 is relevant. A query without a relevant
document scores 0, as in LETOR.
"""

from collections.abc import Sequence
from numbers import Integral

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float64Array, Int64Array

_MAX_LABEL = 1000  # keeps sums of the gains 2^label finite


def check_labels(y: Float64Array) -> None:
    """Raise ValueError if a label is not in 0..1000."""
    if y.dtype.kind not in "biuf":
        raise ValueError(f"y has type {y.dtype}; labels must be numbers from 0 to {_MAX_LABEL}.")
    wrong = np.flatnonzero(~((y >= 0) & (y <= _MAX_LABEL)))
    if len(wrong):
        raise ValueError(f"y: the label of row {wrong[0]} is {y[wrong[0]]:g}; labels must be from 0 to {_MAX_LABEL}.")


def check_groups(group: npt.ArrayLike, n_rows: int) -> Int64Array:
    """Return the first row of each query, followed by `n_rows`.

    `group` contains the number of rows per query: positive integers that sum to `n_rows`, or ValueError is raised.
    """
    sizes = np.asarray(group)
    if sizes.ndim != 1 or (sizes.size and sizes.dtype.kind not in "iu") or (sizes < 1).any():
        raise ValueError("group must contain the number of rows for each query, as integers of at least 1.")
    if sizes.sum() != n_rows:
        raise ValueError(f"group sums to {int(sizes.sum())}, but there are {n_rows} rows.")
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def score_groups(
    scores: npt.ArrayLike, y: npt.ArrayLike, group: npt.ArrayLike, ks: Sequence[int] = (1, 3, 5, 10)
) -> dict[str, Float64Array]:
    """Return the average precision of each query, and its NDCG@k for each k in `ks`.

    Parameters
    ----------
    scores : array-like of shape (n_rows,), finite; higher scores come first
    y : array-like of shape (n_rows,); labels from 0 to 1000
    group : int array-like of shape (n_queries,); number of rows of each query
    ks : sequence of int, each at least 1

    Returns
    -------
    dict of float64 ndarrays of shape (n_queries,); the keys are ``ndcg@k`` for each k, and ``map``

    Examples
    --------
    >>> from musicsim.evaluation import score_groups
    >>> scores, labels = [0.9, 0.5, 0.1, 0.2, 0.8], [2, 0, 1, 1, 0]  # a query with three documents, and one with two
    >>> {name: values.round(2) for name, values in score_groups(scores, labels, [3, 2], ks=(1, 3)).items()}
    {'ndcg@1': array([1., 0.]), 'ndcg@3': array([0.96, 0.63]), 'map': array([0.83, 0.5 ])}
    """
    f, labels = np.asarray(scores, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if f.ndim != 1 or f.shape != labels.shape:
        raise ValueError(f"scores has shape {f.shape} and y has shape {labels.shape}; both must be (n_rows,).")
    if not np.isfinite(f).all():
        raise ValueError(f"scores: row {np.flatnonzero(~np.isfinite(f))[0]} is not finite.")
    check_labels(labels)
    if not len(ks) or not all(isinstance(k, Integral) and k >= 1 for k in ks):
        raise ValueError(f"ks={ks!r} must be integers of at least 1.")
    starts = check_groups(group, len(f))
    n_queries = len(starts) - 1
    query = np.repeat(np.arange(n_queries), np.diff(starts))
    rank = np.arange(len(f)) - starts[query] + 1
    ranked = labels[np.lexsort((labels, -f, query))]
    ideal = labels[np.lexsort((-labels, query))]
    is_relevant = ranked > 0
    n_relevant = np.bincount(query, is_relevant, minlength=n_queries)
    has = n_relevant > 0
    result = {}
    for k in ks:
        discount = np.where(rank <= k, 1.0 / np.log2(rank + 1.0), 0.0)
        gained, possible = (
            np.bincount(query, np.expm1(np.log(2.0) * order) * discount, minlength=n_queries)
            for order in (ranked, ideal)
        )
        result[f"ndcg@{k}"] = np.divide(gained, possible, out=np.zeros(n_queries), where=has)
    running = np.cumsum(is_relevant)
    before = np.concatenate([[0], running])[starts[:-1]]
    precision = np.where(is_relevant, (running - before[query]) / rank, 0.0)
    total = np.bincount(query, precision, minlength=n_queries)
    return result | {"map": np.divide(total, n_relevant, out=np.zeros(n_queries), where=has)}
