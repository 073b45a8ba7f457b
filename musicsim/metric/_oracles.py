"""Separation oracles of metric learning to rank: the rankings that a metric violates most.

Conventions (thesis 3.2 to 3.4, appendix A): rows of X are songs, a query is one of them, its score for
song x is s = -||q - x||_W^2 = <W, phi(q, x)> with phi(q, x) = -(q - x)(q - x)^T, and psi(q, y) is the sum
over its relevant i and irrelevant j of ``+-(phi_i - phi_j) / (|X+| |X-|)``, plus where i comes before j.
For every query the oracle finds the ranking y that maximises Delta(y*, y) + <W, psi(q, y)>, where
Delta(y*, y) = Score(y*) - Score(y) and y* puts all relevant songs first. This is 1 - Score(y) except for
P@k and NDCG@k with fewer than k relevant songs, whose best score is below 1. All five are exact; of
equally violated rankings any may come.

A query without relevant or without irrelevant songs says nothing and is not counted.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from musicsim._arrays import BoolArray, Float64Array, Int32Array, Int64Array
from musicsim._blas import one_blas_thread
from musicsim._checks import check_choice, check_whole
from musicsim.evaluation.ranking import ndcg_gains
from musicsim.metric import _kernels as kernels
from musicsim.metric._pairs import Pairs
from musicsim.relevance import Relevance

LOSSES = ("auc", "map", "mrr", "ndcg", "precision")
"""In the order of the codes in ``_kernels``."""

_ROWS_AT_ONCE = 16
"""Queries a thread works on between two sorts, so that they stay in its cache."""
_BLOCK_ROWS = 128
"""Queries of a matrix product, at most; more do not make it faster."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A cutting plane: xi >= loss - <W, dpsi> for every W.

    `loss` is the mean of Delta(y*, y), `dpsi` the mean of psi(q, y*) - psi(q, y), of shape (d, d) or (d,),
    and `inner` is <W, dpsi> at the metric that asked, taken from the scores.
    """

    loss: float
    dpsi: Float64Array
    inner: float

    @property
    def slack(self) -> float:
        """The structured hinge loss of the metric that asked; never below 0 but by rounding."""
        return self.loss - self.inner


class Oracle:
    """Most violated rankings of a collection, for one loss.

    Parameters
    ----------
    X : array-like of shape (n_songs, d)
    relevance : object with ``relevant(i)``, ``irrelevant(i)`` and ``len()``
        The sets of song i, disjoint, as rows of X.
    loss : "auc", "map", "mrr", "ndcg" or "precision"
    k : int >= 1
        Places that "ndcg" and "precision" look at.
    structure : "full" or "diagonal"
        Shape of `dpsi`, and of the metric: (d, d) or (d,).
    widths : sequence of int, optional
        The metric has a full block for each run of this many columns, their sum being d, and zeros
        elsewhere. It and `dpsi` are then flat: the raveled blocks one after another.
    queries : int array-like, optional
        Rows of X that ask; by default all. Those with an empty set are skipped.
    block_bytes : int
        Size of the (queries, n_songs) block of scores that a thread holds, at most 128 queries.

    Attributes
    ----------
    queries : int64 ndarray of shape (n_queries,)
        The rows that ask and have both sets, in the given order.
    n_queries : int
    n_skipped : int

    Raises
    ------
    ValueError
        If an argument is out of range, X and `relevance` differ in length, a song is listed twice for
        a query, or no query is left.

    Notes
    -----
    Memory besides X: a centred float64 copy of X, two more arrays of its size (three with a metric of full
    rank) during a cut and, in a thread, ``(128 * 8 + 16 * 12) * n_songs`` bytes. The sets take 4 bytes
    a relevant song and the same for the shorter of the irrelevant and the left-out ones, by AUC twice where all
    songs ask (:mod:`musicsim.metric._pairs`). 20 000 songs of 256 dimensions with 37 relevant each: below 0.5 GiB.

    The result does not depend on the number of threads of this class (``numba.get_num_threads()``), and on
    `block_bytes` only through the rounding of matrix products.
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
            raise ValueError(f"X should be two-dimensional, one song a row; its shape is {X.shape}.")
        if not np.isfinite(X).all():
            raise ValueError("X holds NaN or infinite values.")
        if len(relevance) != len(X):
            raise ValueError(f"relevance is of {len(relevance)} songs, X has {len(X)} rows.")
        check_choice("loss", loss, LOSSES)
        check_whole("k", k, 1)
        if structure not in {"full", "diagonal"}:
            raise ValueError(f"structure={structure!r} should be 'full' or 'diagonal'.")
        if widths is not None and (sum(widths) != X.shape[1] or min(widths, default=0) < 1):
            raise ValueError(f"widths={widths!r} should be positive and sum to the {X.shape[1]} columns of X.")
        check_whole("block_bytes", block_bytes, 1)
        self.loss, self.k, self.structure = loss, int(k), structure
        ends = np.cumsum([X.shape[1]] if widths is None else widths)
        self._is_flat = widths is not None
        self._columns = [slice(end - w, end) for end, w in zip(ends, np.diff(ends, prepend=0), strict=True)]
        # differences of songs are all that counts; about the mean their products keep more digits
        self._X = X - X.mean(axis=0)
        asked = np.arange(len(X)) if queries is None else _rows(queries, len(X), "queries")
        self._sets = _Sets.of(relevance, asked)
        self.queries = self._sets.queries
        self.n_queries = len(self.queries)
        self.n_skipped = len(asked) - self.n_queries
        if self.n_queries == 0:
            raise ValueError("no query has both relevant and irrelevant songs; there is nothing to rank.")
        self._block = min(max(1, block_bytes // (8 * len(X))), _BLOCK_ROWS)
        sets = self._sets
        self._pairs = Pairs.of(len(X), sets.queries, sets.items, sets.start, sets.inverted) if loss == "auc" else None
        # P@k is NDCG@k without a discount; both are divided by the sum
        self._gains = ndcg_gains(self.k) if loss == "ndcg" else np.ones(self.k)
        self._harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, len(X) + 1))])

    def cut(
        self,
        W: npt.ArrayLike | None = None,
        *,
        L: npt.ArrayLike | Sequence[npt.ArrayLike] | None = None,
        slots: npt.ArrayLike | None = None,
    ) -> Cut:
        """Find the most violated ranking of each query and the plane that they make.

        Parameters
        ----------
        W : array-like of shape (d, d) or, for the diagonal structure, (d,), or flat with `widths`
            The metric, positive semi-definite.
        L : array-like of shape (r, d), or with `widths` one a block, instead of W
            Its factor, W = L^T L; the scores cost r / d of those of W.
        slots : int array-like, optional
            Places in ``queries`` of those that ask this time, for stochastic steps; by default all.

        Raises
        ------
        ValueError
            If the metric has the wrong shape or is not finite, or `slots` is empty or out of range.
        """
        asked = np.arange(self.n_queries) if slots is None else _rows(slots, self.n_queries, "slots")
        if len(asked) == 0:
            raise ValueError("slots is empty; at least one query has to ask.")
        X = self._X
        left, right = self._sides(W, L)
        # -||q - x||^2 but for ||q||^2, which is the same for all songs of a query: the weights sum to 0
        norms = np.einsum("ij,ij->i", left, right)
        left = 2.0 * left
        if self._pairs is not None and slots is None:
            with one_blas_thread():
                found = self._pairs.rankings(left, right, norms, X, self._block, _n_threads())
            folded, column_sums = found.folded, found.sums
            lost, inner = found.lost[self.queries], found.inner[self.queries]
        else:
            folded, column_sums, lost, inner = self._by_query(left, right, norms, asked)
        # sum of w (q - x)(q - x)^T over pairs is X^T diag(sum w) X - Q^T A X - (Q^T A X)^T (3.5), where the
        # term of the row sums is 0; both share a product with X
        folded -= 0.5 * column_sums[:, None] * X
        if self.structure == "diagonal":
            dpsi = 2.0 * np.einsum("ij,ij->j", folded, X)
        else:
            dpsi = self._join([folded[:, c].T @ X[:, c] for c in self._columns])
        return Cut(float(lost.mean()), dpsi / len(asked), float(inner.mean()))

    def _by_query(
        self, left: Float64Array, right: Float64Array, norms: Float64Array, asked: Int64Array
    ) -> tuple[Float64Array, Float64Array, Float64Array, Float64Array]:
        """Halves of dpsi before X, sums of the weights of each song, Delta and <W, dpsi> of each that asks."""
        X = self._X
        lost, inner = np.empty(len(asked)), np.empty(len(asked))
        column_sums = np.zeros(len(X))
        products = np.empty((len(asked), X.shape[1]))

        def work(first: int) -> Float64Array:
            block = slice(first, min(first + self._block, len(asked)))
            weights = left[self.queries[asked[block]]] @ right.T
            weights -= norms
            self._separate(weights, asked[block], lost[block], inner[block])
            np.matmul(weights, X, out=products[block])
            return np.asarray(weights.sum(axis=0))

        # threads of our own share the blocks: one of the products' library each
        with one_blas_thread(), ThreadPoolExecutor(_n_threads()) as threads:
            for sums in threads.map(work, range(0, len(asked), self._block)):
                column_sums += sums
        folded = np.zeros_like(X)
        np.add.at(folded, self.queries[asked], products)
        return folded, column_sums, lost, inner

    def _join(self, halves: list[Float64Array]) -> Float64Array:
        """The blocks of dpsi from their halves."""
        whole = [half + half.T for half in halves]
        return np.concatenate([block.ravel() for block in whole]) if self._is_flat else whole[0]

    def _sides(self, W: Any, L: Any) -> tuple[Float64Array, Float64Array]:
        """Two factors whose product holds q^T W x for all pairs of songs."""
        if (W is None) == (L is None):
            raise ValueError("give either the metric W or its factor L.")
        X, d = self._X, self._X.shape[1]
        if self.structure == "diagonal":
            if W is None:
                raise ValueError("L is for the full structure; give a diagonal metric as W of shape (d,).")
            return X * _checked(W, "W", (d,)), X
        sizes = [c.stop - c.start for c in self._columns]
        if W is not None:
            if self._is_flat:
                flat = _checked(W, "W", (sum(w * w for w in sizes),))
                parts = np.split(flat, np.cumsum([w * w for w in sizes])[:-1])
            else:
                parts = [_checked(W, "W", (d, d))]
            blocks = [part.reshape(w, w) for part, w in zip(parts, sizes, strict=True)]
            mapped = [X[:, c] @ (0.5 * (b + b.T)) for b, c in zip(blocks, self._columns, strict=True)]
            return np.concatenate(mapped, axis=1) if len(mapped) > 1 else mapped[0], X
        factors = list(L) if self._is_flat else [L]
        if len(factors) != len(sizes):
            raise ValueError(f"L has {len(factors)} factors for {len(sizes)} blocks.")
        both = [
            X[:, c] @ _checked(factor, "L", (None, w)).T
            for factor, c, w in zip(factors, self._columns, sizes, strict=True)
        ]
        side = np.concatenate(both, axis=1) if len(both) > 1 else both[0]
        return side, side

    def _separate(self, scores: Float64Array, slots: Int64Array, lost: Float64Array, inner: Float64Array) -> None:
        """Turn rows of scores into weights, a few rows at a time; fills `lost` and `inner`."""
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
                negated[:n].sort(axis=1)  # numpy sorts values several times faster than a compiled loop would
            kernels.separate(
                LOSSES.index(self.loss), self.k, self._gains, self._harmonic, scores[few], slots[few],
                sets.start, sets.items, sets.inverted, columns[:n], negated[:n], lost[few], inner[few],
            )  # fmt: skip


class SampledOracle:
    """An oracle of some of the queries of another."""

    def __init__(self, oracle: Oracle, slots: Int64Array) -> None:
        self._oracle, self._slots = oracle, slots

    def cut(self, W: Float64Array | None = None, *, L: Any = None) -> Cut:
        return self._oracle.cut(W, L=L, slots=self._slots)


@dataclass(frozen=True, slots=True)
class _Sets:
    """The sets of the queries that have both, in a row.

    Those of query s are ``items[start[s, 0] : start[s, 1]]``, the relevant songs, and from there to
    ``start[s, 2]`` the irrelevant ones or, where they are fewer and `inverted` is set, the left-out ones.
    """

    queries: Int64Array
    items: Int32Array
    start: Int64Array
    inverted: BoolArray

    @classmethod
    def of(cls, relevance: Relevance, asked: Int64Array) -> "_Sets":
        parts: list[Int32Array] = []
        kept, inverted, ends = [], [], [0]
        for query, relevant, irrelevant, others in _split(relevance, asked):
            kept.append(query)
            inverted.append(len(others) < len(irrelevant))
            parts += [relevant.astype(np.int32), (others if inverted[-1] else irrelevant).astype(np.int32)]
            ends += [ends[-1] + len(parts[-2]), ends[-1] + len(parts[-2]) + len(parts[-1])]
        start = np.array([ends[0:-1:2], ends[1::2], ends[2::2]], dtype=np.int64).T
        return cls(
            queries=np.array(kept, dtype=np.int64),
            items=np.concatenate([np.empty(0, dtype=np.int32), *parts]),
            start=np.ascontiguousarray(start),
            inverted=np.array(inverted, dtype=np.bool_),
        )


def _split(relevance: Relevance, asked: Int64Array) -> Iterator[tuple[int, Int64Array, Int64Array, Int64Array]]:
    """The relevant, irrelevant and other songs of each query that has the first two."""
    n_songs = len(relevance)
    kind = np.empty(n_songs, dtype=np.int8)
    for query in asked.tolist():
        relevant = _rows(relevance.relevant(query), n_songs, f"relevance.relevant({query})")
        irrelevant = _rows(relevance.irrelevant(query), n_songs, f"relevance.irrelevant({query})")
        if len(relevant) == 0 or len(irrelevant) == 0:
            continue
        kind[:] = 0
        kind[relevant] = 1
        kind[irrelevant] = 2
        if np.count_nonzero(kind == 1) < len(relevant) or np.count_nonzero(kind == 2) < len(irrelevant):
            raise ValueError(f"relevance lists a song of query {query} twice; the sets should be disjoint.")
        yield query, relevant, irrelevant, np.flatnonzero(kind == 0)


def _checked(given: npt.ArrayLike, name: str, shape: tuple[int | None, ...]) -> Float64Array:
    metric = np.asarray(given, dtype=np.float64)
    fits = metric.ndim == len(shape) and all(want in {None, got} for want, got in zip(shape, metric.shape, strict=True))
    if not fits:
        expected = "r" if shape[0] is None else str(shape[0])
        expected = f"({expected},)" if len(shape) == 1 else f"({expected}, {shape[1]})"
        raise ValueError(f"{name} has the shape {metric.shape}, it should be {expected}.")
    if not np.isfinite(metric).all():
        raise ValueError(f"{name} holds NaN or infinite values.")
    return metric


def _rows(values: npt.ArrayLike, n: int, name: str) -> Int64Array:
    rows = np.asarray(values)
    if rows.size == 0:
        return np.empty(0, dtype=np.int64)
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise ValueError(f"{name} should be a list of integers, not {values!r:.60}.")
    if rows.min() < 0 or rows.max() >= n:
        raise ValueError(f"{name} holds {rows.min() if rows.min() < 0 else rows.max()}; 0 to {n - 1} are legal.")
    return rows.astype(np.int64, copy=False)


def _n_threads() -> int:
    from numba import get_num_threads

    return int(get_num_threads())
