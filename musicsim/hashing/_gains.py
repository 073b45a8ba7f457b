"""Gains: what a document adds to the score of a query when it is among its neighbours.

All four scores of a ranking are sums over neighbours of such a gain, so that swapping a neighbour and another document
changes the score by the difference of their gains, and the document of higher gain should be the nearer one:

- classification: 1 if the labels are equal (equation 7),
- retrieval: 1 if the document is relevant (equation 8),
- hierarchy: the share of levels, from the top, on which the labels are equal (equation 10),
- regression: the squared difference of the targets, negative (equation 11, without the number of neighbours, which
  a swap leaves as it is and which the lambdas, being divided by the sum of their weights, do not depend on).
"""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float64Array, Int64Array
from musicsim.relevance import Relevance, label_codes

SCORES = ("classification", "retrieval", "hierarchy", "regression")


class Gains(Protocol):
    """Gains of documents for queries, both rows of X."""

    def gains(self, queries: Int64Array, documents: Int64Array) -> Float64Array:
        """(n_queries, n_documents), nan where a document is left out of the ranking of a query."""
        ...

    def documents(self, queries: Int64Array, n: int, rng: np.random.Generator) -> Int64Array:
        """Draw at most `n` documents for `queries`, none twice."""
        ...


class _AllAlike:
    """Documents drawn from all rows."""

    def __init__(self, n_rows: int) -> None:
        self._n_rows = n_rows

    def documents(self, queries: Int64Array, n: int, rng: np.random.Generator) -> Int64Array:
        return rng.choice(self._n_rows, min(n, self._n_rows), replace=False)


class LabelGains(_AllAlike):
    """Classification, of one level, and hierarchy: levels from the widest class to the narrowest."""

    def __init__(self, labels: Int64Array) -> None:
        super().__init__(len(labels))
        self._labels = labels

    def gains(self, queries: Int64Array, documents: Int64Array) -> Float64Array:
        shared = np.zeros((len(queries), len(documents)))
        equal = np.ones(shared.shape, bool)
        for level in self._labels.T:
            asked = level[queries, None]
            equal &= (asked == level[documents]) & (asked >= 0)
            shared += equal
        shared /= self._labels.shape[1]
        shared[queries[:, None] == documents] = np.nan
        return shared


class TargetGains(_AllAlike):
    """Regression."""

    def __init__(self, targets: Float64Array) -> None:
        super().__init__(len(targets))
        self._targets = targets

    def gains(self, queries: Int64Array, documents: Int64Array) -> Float64Array:
        gains = -np.square(self._targets[queries, None] - self._targets[documents])
        gains[queries[:, None] == documents] = np.nan
        return np.asarray(gains)


class RelevanceGains:
    """Retrieval. Relevant documents are rare: half of those drawn are relevant to one of the queries."""

    def __init__(self, relevance: Relevance) -> None:
        self._relevance = relevance

    def gains(self, queries: Int64Array, documents: Int64Array) -> Float64Array:
        judged = self._relevance.restrict(queries, documents).judgements(np.arange(len(queries)))
        return np.where(judged < 0, np.nan, judged)

    def documents(self, queries: Int64Array, n: int, rng: np.random.Generator) -> Int64Array:
        relevant = np.unique(np.concatenate([self._relevance.relevant(int(q)) for q in queries]))
        n_drawn = min(n, self._relevance.n_items)
        chosen = rng.permutation(relevant)[: n_drawn // 2]
        others = rng.choice(self._relevance.n_items, n_drawn, replace=False)
        others = others[~np.isin(others, chosen)]
        return np.concatenate([chosen, others[: n_drawn - len(chosen)]])


def gains_of(score: str, y: Any, n_rows: int) -> Gains:
    """The gains of a score. Raises ValueError if `y` is not what `score` needs, or not of `n_rows` rows."""
    if score == "retrieval":
        return RelevanceGains(_relevance(y, n_rows))
    if isinstance(y, Relevance):
        raise ValueError(f"y is a Relevance, which score='retrieval' takes; score={score!r} does not.")
    if score == "hierarchy":
        return LabelGains(_levels(y, n_rows))
    if score == "regression":
        return TargetGains(_targets(y, n_rows))
    codes = _one_a_row(label_codes(y, "y"), n_rows)
    if not _tells_apart(codes):
        raise ValueError("y should have two labels or more, one of them twice; there is nothing to learn.")
    return LabelGains(codes[:, None])


def keep_targets(gains: Float64Array, queries: Float64Array, documents: Float64Array, n_targets: int) -> None:
    """Leave out, of the documents of each gain above 0, all but the nearest ones to the query.

    Those left out become nan in `gains` (n_queries, n_documents). Of each gain `n_targets` documents stay, more where
    the last ones are equally far; queries and documents are rows of d columns.
    """
    levels = np.unique(gains[gains > 0])
    # without the squared length of the query, which is the same along a row
    distances = np.square(documents).sum(axis=1) - 2.0 * queries @ documents.T
    for level in levels if n_targets < gains.shape[1] else []:
        is_level = gains == level
        among = np.where(is_level, distances, np.inf)
        farthest = np.partition(among, n_targets - 1, axis=1)[:, n_targets - 1, None]
        gains[is_level & (among > farthest)] = np.nan


def _one_a_row(y: npt.NDArray, n_rows: int) -> npt.NDArray:
    if len(y) != n_rows:
        raise ValueError(f"y has {len(y)} entries, X has {n_rows} rows; give one a row.")
    return y


def _tells_apart(codes: Int64Array) -> bool:
    counts = np.unique(codes[codes >= 0], return_counts=True)[1]
    return len(np.unique(codes)) > 1 and bool((counts > 1).any())


def _relevance(y: Any, n_rows: int) -> Relevance:
    if not isinstance(y, Relevance):
        raise ValueError(f"y: {type(y).__name__} should be a Relevance with score='retrieval'.")
    if len(y) != n_rows or y.n_items != n_rows or not np.array_equal(y.own, np.arange(n_rows)):
        raise ValueError(
            f"y is of {len(y)} queries and {y.n_items} songs, X has {n_rows} rows; query i should be row i of X."
        )
    if not any(len(y.relevant(i)) for i in range(n_rows)):
        raise ValueError("y has no relevant song for any query; there is nothing to learn.")
    return y


def _levels(y: Any, n_rows: int) -> Int64Array:
    table = y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y, dtype=object)
    if table.ndim != 2 or not table.shape[1]:
        raise ValueError(f"y: shape {table.shape} should be (n_rows, levels) with score='hierarchy'.")
    codes = np.stack([label_codes(list(level), "y") for level in table.T], axis=1)
    _one_a_row(codes, n_rows)
    if not any(_tells_apart(level) for level in codes.T):
        raise ValueError("y should have two labels or more, one of them twice; there is nothing to learn.")
    return codes


def _targets(y: Any, n_rows: int) -> Float64Array:
    targets = np.asarray(y, dtype=np.float64)
    if targets.ndim != 1 or not np.isfinite(targets).all():
        raise ValueError(f"y: shape {targets.shape} should be (n_rows,), finite, with score='regression'.")
    _one_a_row(targets, n_rows)
    spread = targets.std()
    if not spread:
        raise ValueError("y is the same everywhere; there is nothing to learn.")
    return np.asarray(targets / spread)
