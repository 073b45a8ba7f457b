"""Measures of rankings with graded relevance, as in learning to rank: a query is a group of rows.

Higher scores come first. Of equal scores, the less relevant document comes first, so a constant ranker does not profit
from ties. The gain of label l at rank i is (2^l - 1) / log2(i + 1). NDCG@k is the sum over the first k ranks, as a
share of the best possible one. Average precision counts every label above 0 as relevant. A query without a relevant
document is 0 by each measure, as in LETOR, or nan if requested.
"""

from collections.abc import Sequence
from numbers import Integral

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float64Array, Int64Array

_MAX_LABEL = 1000  # labels are limited so that sums of gains, 2^label, are finite


def check_labels(y: Float64Array) -> None:
    """Raise ValueError if a label is not in 0..1000."""
    wrong = np.flatnonzero(~((y >= 0) & (y <= _MAX_LABEL)))
    if len(wrong):
        raise ValueError(f"y: the label of row {wrong[0]}, {y[wrong[0]]:g}, should be from 0 to {_MAX_LABEL}.")


def check_groups(group: npt.ArrayLike, n_rows: int) -> Int64Array:
    """Return the first row of each query, and `n_rows` at the end.

    `group` has the number of rows of each query. Raises ValueError if these are not positive integers that sum to
    `n_rows`.
    """
    sizes = np.asarray(group)
    if sizes.ndim != 1 or (sizes.size and sizes.dtype.kind not in "iu") or (sizes < 1).any():
        raise ValueError("group should be a list of whole numbers of at least 1, the rows of each query.")
    if sizes.sum() != n_rows:
        raise ValueError(f"group sums to {int(sizes.sum())}, but there are {n_rows} rows.")
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def score_groups(
    scores: npt.ArrayLike,
    y: npt.ArrayLike,
    group: npt.ArrayLike,
    ks: Sequence[int] = (1, 3, 5, 10),
    *,
    without_relevant: float = 0.0,
) -> dict[str, Float64Array]:
    """Return NDCG@k for each of `ks`, and average precision, of every query: ``ndcg@k`` and ``map``, (n_queries,) each.

    `scores` and the labels `y`, from 0 to 1000, are (n_rows,); `group` is the number of rows of each query. Higher
    scores come first. `without_relevant` is the score of a query without a label above 0; nan leaves it out of a
    nanmean. Raises ValueError if sizes differ, scores are not finite, or labels, `group` or `ks` are out of range.
    """
    f, labels = np.asarray(scores, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if f.ndim != 1 or f.shape != labels.shape:
        raise ValueError(f"scores and y: shapes {f.shape} and {labels.shape} should be (n_rows,) in both.")
    if not np.isfinite(f).all():
        raise ValueError(f"scores: row {np.flatnonzero(~np.isfinite(f))[0]} is not finite.")
    check_labels(labels)
    if not len(ks) or not all(isinstance(k, Integral) and k >= 1 for k in ks):
        raise ValueError(f"ks={ks!r} should be whole numbers of at least 1.")
    starts = check_groups(group, len(f))
    n_queries = len(starts) - 1
    query = np.repeat(np.arange(n_queries), np.diff(starts))
    rank = np.arange(len(f)) - starts[query] + 1
    ranked = labels[np.lexsort((labels, -f, query))]
    ideal = labels[np.lexsort((-labels, query))]
    is_relevant = ranked > 0
    n_relevant = np.bincount(query, is_relevant, minlength=n_queries)
    has = n_relevant > 0

    def share(part: npt.NDArray, whole: npt.NDArray) -> Float64Array:
        return np.where(has, part / np.where(has, whole, 1.0), without_relevant)

    result = {}
    for k in ks:
        discount = np.where(rank <= k, 1.0 / np.log2(rank + 1.0), 0.0)
        gained, possible = (
            np.bincount(query, np.expm1(np.log(2.0) * order) * discount, minlength=n_queries)
            for order in (ranked, ideal)
        )
        result[f"ndcg@{k}"] = share(gained, possible)
    running = np.cumsum(is_relevant)
    before = np.concatenate([[0], running])[starts[:-1]]
    precision = np.where(is_relevant, (running - before[query]) / rank, 0.0)
    result["map"] = share(np.bincount(query, precision, minlength=n_queries), n_relevant)
    return result
