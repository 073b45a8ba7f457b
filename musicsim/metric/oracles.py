"""Separation oracles for metric learning to rank: the rankings that a metric violates most.

Conventions (thesis 3.2 to 3.4, appendix A): rows of X are songs, and a query q is one of them. The score of song x is
s = -||q - x||_W^2 = <W, phi(q, x)>, where phi(q, x) = -(q - x)(q - x)^T. The sum of
``+-(phi_i - phi_j) / (|X+| |X-|)`` over relevant i and irrelevant j is psi(q, y). The sign is plus if i comes before j.

For every query, the oracle finds the ranking y that maximizes Delta(y*, y) + <W, psi(q, y)>. In y*, all relevant songs
come first, and Delta(y*, y) = Score(y*) - Score(y). The loss is 1 - Score(y), except for P@k and NDCG@k with fewer than
k relevant songs, whose best score is below 1. All five losses are exact. Among equally violated rankings, any may be
chosen. Queries without relevant songs, or without irrelevant songs, are ignored.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from musicsim._arrays import BoolArray, Float64Array, Int32Array, Int64Array
from musicsim._checks import check_choice, check_whole
from musicsim.blas import one_blas_thread
from musicsim.evaluation.ranking import ndcg_gains
from musicsim.metric import _kernels as kernels
from musicsim.metric._pairs import Pairs
from musicsim.relevance import Relevance

LOSSES = ("auc", "map", "mrr", "ndcg", "precision")
"""Names of the losses, in the order of the codes in ``_kernels``."""

_ROWS_AT_ONCE = 16  # Number of queries that a thread processes between two sorts, so that they stay in its cache
_BLOCK_ROWS = 128  # Maximum number of queries per matrix product; a larger number is not faster


@dataclass(frozen=True, slots=True)
class Cut:
    """A cutting plane: xi >= loss - <W, dpsi> for every W."""

    loss: float  # mean of Delta(y*, y)
    dpsi: Float64Array  # (d, d) or (d,): mean of psi(q, y*) - psi(q, y)
    inner: float  # <W, dpsi> at the metric of the cut, computed from the scores

    @property
    def slack(self) -> float:
        """The structured hinge loss at the metric of the cut; never below 0, except by rounding."""
        return self.loss - self.inner


class Oracle:
    """Most violated rankings of a set of songs, for one loss.

    Parameters
    ----------
    X : array-like of shape (n_songs, d)
    relevance : object with ``relevant(i)``, ``irrelevant(i)`` and ``len()``
        The two sets of song i are disjoint; they contain row numbers of X.
    loss : "auc", "map", "mrr", "ndcg" or "precision"
    k : int >= 1, for "ndcg" and "precision"
    structure : "full" or "diagonal"
        Shape of `dpsi` and of the metric: (d, d) or (d,).
    widths : sequence of int, optional
        Sizes of the blocks of a block-diagonal metric; they sum to d. The metric and `dpsi` are then flat: the raveled
        blocks.
    queries : int array-like, optional
        Rows of X that are queries; by default all rows. Queries with an empty set are skipped.
    block_bytes : int
        Size of each thread's block of scores (queries, n_songs); a block has at most 128 queries.

    Attributes
    ----------
    queries : int64 ndarray of shape (n_queries,)
        Queries with two nonempty sets, in the given order.
    pairs : Pairs or None
        Set if cuts of all queries go through pairs of songs; other cuts go through the queries one by one.
    n_queries, n_skipped : int

    Raises
    ------
    ValueError
        If a song is listed twice for a query, or no query has both relevant and irrelevant songs.

    Notes
    -----
    Memory: a centered float64 copy of X; during a cut, two more arrays of its size (three for a full-rank metric), and
    ``(128 * 8 + 16 * 12) * n_songs`` bytes per thread. The sets take 4 bytes per relevant song, and 4 bytes per
    irrelevant song or per other song, whichever are fewer; with `pairs`, they take twice as much.

    The result does not depend on the number of threads (``numba.get_num_threads()``). `block_bytes` affects the result
    only through the rounding of matrix products.
    """

    def __init__(
        self,
        X: npt.ArrayLike,
        relevance: Relevance,
        loss: str = "auc",
        k: int = 10,
        structure: str = "full",
        widths: Sequence[int] | None = None,
        queries: npt.ArrayLike | None = None,
        block_bytes: int = 64 << 20,
    ) -> None:
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2:
            raise ValueError(f"X has shape {X.shape}; it must be two-dimensional, with one song per row.")
        if not np.isfinite(X).all():
            raise ValueError("X contains NaN or infinite values.")
        if len(relevance) != len(X):
            raise ValueError(f"relevance has {len(relevance)} songs, but X has {len(X)} rows.")
        check_choice("loss", loss, LOSSES)
        check_whole("k", k, 1)
        if structure not in {"full", "diagonal"}:
            raise ValueError(f"structure={structure!r} must be 'full' or 'diagonal'.")
        if widths is not None and (sum(widths) != X.shape[1] or min(widths, default=0) < 1):
            raise ValueError(f"widths={widths!r} must be positive and sum to the {X.shape[1]} columns of X.")
        check_whole("block_bytes", block_bytes, 1)
        self.loss, self.k, self.structure = loss, int(k), structure
        ends = np.cumsum([X.shape[1]] if widths is None else widths)
        self._is_flat = widths is not None
        self._columns = [slice(end - w, end) for end, w in zip(ends, np.diff(ends, prepend=0), strict=True)]
        # only differences between songs matter; products of centered songs keep more digits
        self._X = X - X.mean(axis=0)
        chosen = np.arange(len(X)) if queries is None else _rows(queries, len(X), "queries")
        self._sets = _Sets.build(relevance, chosen)
        self.queries = self._sets.queries
        self.n_queries = len(self.queries)
        self.n_skipped = len(chosen) - self.n_queries
        if self.n_queries == 0:
            raise ValueError("no query has both relevant and irrelevant songs; there is nothing to rank.")
        self._block = min(max(1, block_bytes // (8 * len(X))), _BLOCK_ROWS)
        sets = self._sets
        self.pairs = Pairs.build(len(X), sets.queries, sets.items, sets.start, sets.inverted) if loss == "auc" else None
        # P@k is NDCG@k without a discount; both are divided by the sum of the gains
        self._gains = ndcg_gains(self.k) if loss == "ndcg" else np.ones(self.k)
        self._harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, len(X) + 1))])

    def cut(
        self,
        W: npt.ArrayLike | None = None,
        *,
        L: npt.ArrayLike | Sequence[npt.ArrayLike] | None = None,
        slots: npt.ArrayLike | None = None,
    ) -> Cut:
        """Find the most violated ranking of each query, and the plane that these rankings give.

        Parameters
        ----------
        W : array-like of shape (d, d), or (d,) for the diagonal structure, or flat with `widths`
            The metric, positive semidefinite.
        L : array-like of shape (r, d), or one array per block with `widths`
            Factor of the metric, W = L^T L, given instead of W. The scores then cost only r / d as much time.
        slots : int array-like, optional
            Indices of the ``queries`` to use, for stochastic steps; by default all queries.
        """
        chosen = np.arange(self.n_queries) if slots is None else _rows(slots, self.n_queries, "slots")
        if len(chosen) == 0:
            raise ValueError("slots is empty; give at least one query.")
        X = self._X
        left, right = self._sides(W, L)
        # -||q - x||^2 without ||q||^2, which has no effect: it is equal for a query's songs, and their weights sum to 0
        norms = np.einsum("ij,ij->i", left, right)
        left = 2.0 * left
        if self.pairs is not None and slots is None:
            with one_blas_thread():
                folded, column_sums, *values = self.pairs.rankings(left, right, norms, X, self._block, _n_threads())
            lost, inner = (array[self.queries] for array in values)
        else:
            folded, column_sums, lost, inner = self._cut_by_query(left, right, norms, chosen)
        # The sum of w (q - x)(q - x)^T over pairs is ``X^T diag(sum w) X - Q^T A X - (Q^T A X)^T`` (3.5). The term of
        # the row sums is 0. Both remaining terms share a product with X.
        folded -= 0.5 * column_sums[:, None] * X
        if self.structure == "diagonal":
            dpsi = 2.0 * np.einsum("ij,ij->j", folded, X)
        else:
            dpsi = self._join([folded[:, c].T @ X[:, c] for c in self._columns])
        return Cut(float(lost.mean()), dpsi / len(chosen), float(inner.mean()))

    def _cut_by_query(
        self, left: Float64Array, right: Float64Array, norms: Float64Array, chosen: Int64Array
    ) -> tuple[Float64Array, Float64Array, Float64Array, Float64Array]:
        """Return weighted sums of songs, sums of weights, Delta and <W, dpsi>, like `Pairs.rankings`."""
        X = self._X
        lost, inner = np.empty(len(chosen)), np.empty(len(chosen))
        column_sums = np.zeros(len(X))
        products = np.empty((len(chosen), X.shape[1]))

        def work(first: int) -> Float64Array:
            block = slice(first, min(first + self._block, len(chosen)))
            weights = left[self.queries[chosen[block]]] @ right.T
            weights -= norms
            self._separate(weights, chosen[block], lost[block], inner[block])
            np.matmul(weights, X, out=products[block])
            return np.asarray(weights.sum(axis=0))

        # these threads process the blocks, so BLAS gets a single thread
        with one_blas_thread(), ThreadPoolExecutor(_n_threads()) as threads:
            for sums in threads.map(work, range(0, len(chosen), self._block)):
                column_sums += sums
        folded = np.zeros_like(X)
        np.add.at(folded, self.queries[chosen], products)
        return folded, column_sums, lost, inner

    def _join(self, halves: list[Float64Array]) -> Float64Array:
        whole = [half + half.T for half in halves]
        return np.concatenate([block.ravel() for block in whole]) if self._is_flat else whole[0]

    def _sides(self, W: Any, L: Any) -> tuple[Float64Array, Float64Array]:
        """Return two factors whose product is q^T W x for all pairs of songs."""
        if (W is None) == (L is None):
            raise ValueError("give either the metric W or its factor L.")
        X, d = self._X, self._X.shape[1]
        if self.structure == "diagonal":
            if W is None:
                raise ValueError("L is for the full structure; give a diagonal metric as W of shape (d,).")
            return X * _check_metric(W, "W", (d,)), X
        sizes = [c.stop - c.start for c in self._columns]
        if W is not None:
            if self._is_flat:
                flat = _check_metric(W, "W", (sum(w * w for w in sizes),))
                parts = np.split(flat, np.cumsum([w * w for w in sizes])[:-1])
            else:
                parts = [_check_metric(W, "W", (d, d))]
            blocks = [part.reshape(w, w) for part, w in zip(parts, sizes, strict=True)]
            mapped = [X[:, c] @ (0.5 * (b + b.T)) for b, c in zip(blocks, self._columns, strict=True)]
            return np.concatenate(mapped, axis=1) if len(mapped) > 1 else mapped[0], X
        factors = list(L) if self._is_flat else [L]
        if len(factors) != len(sizes):
            raise ValueError(f"L has {len(factors)} factors, but the metric has {len(sizes)} blocks.")
        both = [
            X[:, c] @ _check_metric(factor, "L", (None, w)).T
            for factor, c, w in zip(factors, self._columns, sizes, strict=True)
        ]
        side = np.concatenate(both, axis=1) if len(both) > 1 else both[0]
        return side, side

    def _separate(self, scores: Float64Array, slots: Int64Array, lost: Float64Array, inner: Float64Array) -> None:
        """Turn rows of scores into weights, a few rows at a time; fill `lost` and `inner`."""
        sets = self._sets
        n_songs = scores.shape[1]
        columns = np.empty((_ROWS_AT_ONCE, n_songs), dtype=np.int32)
        negated = np.empty((_ROWS_AT_ONCE, n_songs))
        for first in range(0, len(slots), _ROWS_AT_ONCE):
            few = slice(first, min(first + _ROWS_AT_ONCE, len(slots)))
            n = few.stop - first
            if self.loss != "auc":
                kernels.gather_irrelevant(
                    scores[few], slots[few], sets.start, sets.items, sets.inverted, columns[:n], negated[:n]
                )
                negated[:n].sort(axis=1)  # numpy sorts several times faster than a compiled loop
            kernels.separate(
                LOSSES.index(self.loss), self.k, self._gains, self._harmonic, scores[few], slots[few],
                sets.start, sets.items, sets.inverted, columns[:n], negated[:n], lost[few], inner[few],
            )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Sets:
    """The sets of the queries that have both sets, in a single array.

    The relevant songs of query s are ``items[start[s, 0] : start[s, 1]]``. The entries up to ``start[s, 2]`` are its
    irrelevant songs. For queries marked by `inverted`, these entries are instead the songs in neither set, because
    those are fewer.
    """

    queries: Int64Array
    items: Int32Array
    start: Int64Array
    inverted: BoolArray

    @classmethod
    def build(cls, relevance: Relevance, queries: Int64Array) -> "_Sets":
        parts: list[Int32Array] = []
        used, inverted, ends = [], [], [0]
        for query, relevant, irrelevant, others in _split(relevance, queries):
            used.append(query)
            inverted.append(len(others) < len(irrelevant))
            parts += [relevant.astype(np.int32), (others if inverted[-1] else irrelevant).astype(np.int32)]
            ends += [ends[-1] + len(parts[-2]), ends[-1] + len(parts[-2]) + len(parts[-1])]
        start = np.array([ends[0:-1:2], ends[1::2], ends[2::2]], dtype=np.int64).T
        return cls(
            queries=np.array(used, dtype=np.int64),
            items=np.concatenate([np.empty(0, dtype=np.int32), *parts]),
            start=np.ascontiguousarray(start),
            inverted=np.array(inverted, dtype=np.bool_),
        )


def _split(relevance: Relevance, queries: Int64Array) -> Iterator[tuple[int, Int64Array, Int64Array, Int64Array]]:
    """Yield each query with relevant and irrelevant songs, together with these songs and all other songs."""
    n_songs = len(relevance)
    kind = np.empty(n_songs, dtype=np.int8)
    for query in queries.tolist():
        relevant = _rows(relevance.relevant(query), n_songs, f"relevance.relevant({query})")
        irrelevant = _rows(relevance.irrelevant(query), n_songs, f"relevance.irrelevant({query})")
        if len(relevant) == 0 or len(irrelevant) == 0:
            continue
        kind[:] = 0
        kind[relevant] = 1
        kind[irrelevant] = 2
        if np.count_nonzero(kind == 1) < len(relevant) or np.count_nonzero(kind == 2) < len(irrelevant):
            raise ValueError(f"relevance lists a song of query {query} twice; the two sets must be disjoint.")
        yield query, relevant, irrelevant, np.flatnonzero(kind == 0)


def _check_metric(metric: npt.ArrayLike, name: str, shape: tuple[int | None, ...]) -> Float64Array:
    metric = np.asarray(metric, dtype=np.float64)
    if metric.ndim != len(shape) or any(n not in {None, m} for n, m in zip(shape, metric.shape, strict=True)):
        expected = "r" if shape[0] is None else str(shape[0])
        expected = f"({expected},)" if len(shape) == 1 else f"({expected}, {shape[1]})"
        raise ValueError(f"{name} has shape {metric.shape}; it must be {expected}.")
    if not np.isfinite(metric).all():
        raise ValueError(f"{name} contains NaN or infinite values.")
    return metric


def _rows(values: npt.ArrayLike, n: int, name: str) -> Int64Array:
    rows = np.asarray(values)
    if rows.size == 0:
        return np.empty(0, dtype=np.int64)
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise ValueError(f"{name} must be a list of integers, not {values!r:.60}.")
    if rows.min() < 0 or rows.max() >= n:
        raise ValueError(f"{name} contains {rows.min() if rows.min() < 0 else rows.max()}; rows are 0 to {n - 1}.")
    return rows.astype(np.int64, copy=False)


def _n_threads() -> int:
    from numba import get_num_threads

    return int(get_num_threads())
