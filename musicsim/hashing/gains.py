"""Gains: each document's contribution to a query's score if it is one of the query's neighbors.

All four scores of a ranking are sums of gains over neighbors. If a neighbor and another document are swapped, the score
changes by the difference between their gains. So the document with the higher gain should be nearer. The gains are:

- classification: 1 if the labels are equal (equation 7),
- retrieval: 1 if the document is relevant (equation 8),
- hierarchy: the share of levels, from the top, at which the labels are equal (equation 10),
- regression: minus the squared difference between the targets (equation 11). Gains are not divided by the number
  of neighbors, because a swap does not change it, and lambdas are divided by the sum of their weights.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float64Array, Int64Array
from musicsim.relevance import Relevance, label_codes

TASKS = ("classification", "retrieval", "hierarchy", "regression")


class _Uniform:
    """Base class that draws documents uniformly from the rows of a table of labels or targets."""

    def __init__(self, table: npt.NDArray[Any]) -> None:
        self._table = table

    def documents(self, queries: Int64Array, n: int, rng: np.random.Generator) -> Int64Array:
        """Draw at most `n` different documents for `queries`."""
        return rng.choice(len(self._table), min(n, len(self._table)), replace=False)


class LabelGains(_Uniform):
    """Gains for classification (one level) and a hierarchy, whose levels go from the widest class to the narrowest."""

    def gains(self, queries: Int64Array, documents: Int64Array) -> Float64Array:
        """Return gains (n_queries, n_documents), NaN for documents excluded from a query's ranking."""
        shared = np.zeros((len(queries), len(documents)))
        equal = np.ones(shared.shape, bool)
        for level in self._table.T:
            query_labels = level[queries, None]
            equal &= (query_labels == level[documents]) & (query_labels >= 0)
            shared += equal
        shared /= self._table.shape[1]
        shared[queries[:, None] == documents] = np.nan
        return shared


class TargetGains(_Uniform):
    def gains(self, queries: Int64Array, documents: Int64Array) -> Float64Array:
        gains = -np.square(self._table[queries, None] - self._table[documents])
        gains[queries[:, None] == documents] = np.nan
        return np.asarray(gains)


class RelevanceGains:
    """Gains for retrieval. Relevant documents are rare, so half of the drawn documents are relevant to some query."""

    def __init__(self, relevance: Relevance) -> None:
        self._relevance = relevance

    def gains(self, queries: Int64Array, documents: Int64Array) -> Float64Array:
        judgments = self._relevance.restrict(queries, documents).judgments(np.arange(len(queries)))
        return np.where(judgments < 0, np.nan, judgments)

    def documents(self, queries: Int64Array, n: int, rng: np.random.Generator) -> Int64Array:
        relevant = np.unique(np.concatenate([self._relevance.relevant(int(q)) for q in queries]))
        n_drawn = min(n, self._relevance.n_items)
        chosen = rng.permutation(relevant)[: n_drawn // 2]
        others = rng.choice(self._relevance.n_items, n_drawn, replace=False)
        others = others[~np.isin(others, chosen)]
        return np.concatenate([chosen, others[: n_drawn - len(chosen)]])


Gains = LabelGains | TargetGains | RelevanceGains


def make_gains(task: str, y: Any, n_rows: int) -> Gains:
    """Return the gains for a task; raise ValueError if `y` does not suit it or does not have `n_rows` rows."""
    if task == "retrieval":
        return RelevanceGains(_check_relevance(y, n_rows))
    if isinstance(y, Relevance):
        raise ValueError(f"y is a Relevance, which requires task='retrieval', not task={task!r}.")
    if task == "regression":
        return TargetGains(_targets(y, n_rows))
    codes = _levels(y) if task == "hierarchy" else label_codes(y, "y")[:, None]
    _check_length(codes, n_rows)
    _check_labels(codes)
    return LabelGains(codes)


def keep_targets(gains: Float64Array, queries: Float64Array, documents: Float64Array, n_targets: int) -> None:
    """Exclude, for each positive gain, all documents except the `n_targets` nearest to the query.

    Excluded documents become NaN in `gains` (n_queries, n_documents). Documents that tie with the last of these stay.
    """
    levels = np.unique(gains[gains > 0])
    # squared distances without the squared length of the query, which is the same within a row
    distances = np.square(documents).sum(axis=1) - 2.0 * queries @ documents.T
    for level in levels if n_targets < gains.shape[1] else []:
        is_level = gains == level
        level_distances = np.where(is_level, distances, np.inf)
        farthest = np.partition(level_distances, n_targets - 1, axis=1)[:, n_targets - 1, None]
        gains[is_level & (level_distances > farthest)] = np.nan


def _check_length(y: npt.NDArray, n_rows: int) -> None:
    if len(y) != n_rows:
        raise ValueError(f"y has {len(y)} entries, but X has {n_rows} rows; pass one entry per row.")


def _check_labels(codes: Int64Array) -> None:
    """Raise ValueError unless some level (column) has two different labels, and a label that occurs twice."""
    for level in codes.T:
        counts = np.unique(level[level >= 0], return_counts=True)[1]
        if len(np.unique(level)) > 1 and (counts > 1).any():
            return
    raise ValueError("y must have at least two different labels, and one of them must occur twice.")


def _check_relevance(y: Any, n_rows: int) -> Relevance:
    if not isinstance(y, Relevance):
        raise ValueError(f"y is a {type(y).__name__}; with task='retrieval', it must be a Relevance.")
    if len(y) != n_rows or y.n_items != n_rows or not np.array_equal(y.own, np.arange(n_rows)):
        raise ValueError(
            f"y has {len(y)} queries and {y.n_items} songs, but X has {n_rows} rows; query i must be row i of X."
        )
    if not any(len(y.relevant(i)) for i in range(n_rows)):
        raise ValueError("y: no query has a relevant song; there is nothing to learn from.")
    return y


def _levels(y: Any) -> Int64Array:
    table = y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y, dtype=object)
    if table.ndim != 2 or not table.shape[1]:
        raise ValueError(f"y has shape {table.shape}; with task='hierarchy', it must be (n_rows, levels).")
    return np.stack([label_codes(list(level), "y") for level in table.T], axis=1)


def _targets(y: Any, n_rows: int) -> Float64Array:
    targets = np.asarray(y, dtype=np.float64)
    if targets.ndim != 1 or not np.isfinite(targets).all():
        raise ValueError(f"y has shape {targets.shape}; with task='regression', it must be (n_rows,) and finite.")
    _check_length(targets, n_rows)
    spread = targets.std()
    if not spread:
        raise ValueError("y is constant; there is nothing to learn from.")
    return np.asarray(targets / spread)
