"""Separation oracles for metric learning to rank: the rankings that a metric violates most.

Conventions (thesis 3.2 to 3.4, appendix A): rows of X are songs, and a query q is one of them. The score of song x is
s = -||q - x||_W^2 = <W, phi(q, x)>, where phi(q, x) = -(q - x)(q - x)^T. The sum of
``+-(phi_i - phi_j) / (|X+| |X-|)`` over relevant i and irrelevant j is psi(q, y). The sign is plus if i comes before j.

For every query, the oracle finds the ranking y that maximizes Delta(y*, y) + <W, psi(q, y)>. In y*, all relevant songs
come first, and Delta(y*, y) = Score(y*) - Score(y). The loss is 1 - Score(y), except for P@k and NDCG@k with fewer than
k relevant songs, whose best score is below 1. All five losses are exact. If several rankings are violated equally, any
of them may be chosen. Queries without relevant songs, or without irrelevant songs, are ignored.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from musicsim._arrays import BoolArray, Float64Array, Int32Array, Int64Array
from musicsim.blas import one_blas_thread
from musicsim.evaluation.ranking import ndcg_gains
from musicsim.metric import _kernels as kernels
from musicsim.metric._pairs import Pairs
from musicsim.relevance import Relevance

LOSSES = ("auc", "map", "mrr", "ndcg", "precision")
"""Names of the losses, in the order of the codes in ``_kernels``."""

_ROWS_AT_ONCE = 16  # Number of queries that a thread processes between two sorts, so that they stay in its cache
BLOCK_ROWS = 128  # Maximum number of queries per matrix product; a larger number is not faster
_BLOCK_BYTES = 64 << 20  # Maximum size of each thread's block of scores (queries, n_songs)


@dataclass(frozen=True, slots=True)
class Cut:
    """A cutting plane: xi >= loss - <W, dpsi> for every W."""

    loss: float  # mean of Delta(y*, y)
    dpsi: Float64Array  # (d, d), (d,) if diagonal, or raveled blocks: mean of psi(q, y*) - psi(q, y)
    inner: float  # <W, dpsi> at the metric of the cut, computed from the scores

    @property
    def slack(self) -> float:
        """The structured hinge loss at the metric of the cut; never negative, except for rounding errors."""
        return self.loss - self.inner


class Oracle:
    """Most violated rankings of songs, the rows of X, for one of the `LOSSES`.

    Query i is song i. `queries` are the songs with both relevant and irrelevant songs. The metric and `Cut.dpsi` have
    the shape (d, d), or (d,) with ``structure="diagonal"``. With several `widths`, which sum to d, the metric is
    block-diagonal, and both are the raveled blocks. If `pairs` is not None, a cut of all queries processes pairs
    of songs; other cuts process the queries one by one.

    Memory: a centered copy of X; during a cut, two more arrays of its size (three for a full-rank metric), and
    ``(128 * 8 + 16 * 12) * n_songs`` bytes per thread. The sets take 4 bytes per relevant song, and 4 bytes per
    irrelevant song or per other song, whichever are fewer; with `pairs`, they take twice as much.

    With `query_weights`, (n_songs,), all means over queries are weighted, and songs of weight 0 are not queries. These
    cuts process the queries one by one.

    The result does not depend on the number of threads. Raises ValueError if no query has both sets.
    """

    def __init__(
        self,
        X: Float64Array,
        relevance: Relevance,
        loss: str = "auc",
        k: int = 10,
        structure: str = "full",
        widths: Sequence[int] | None = None,
        query_weights: Float64Array | None = None,
    ) -> None:
        self.loss, self.k, self.structure = loss, k, structure
        self._widths = [X.shape[1]] if widths is None else list(widths)
        ends = np.cumsum(self._widths)
        self._columns = [slice(end - w, end) for end, w in zip(ends, self._widths, strict=True)]
        # Only differences between songs matter; products of centered songs keep more digits. The loops over pairs of
        # songs read rows: in column order, as from a data frame, they were up to twenty times slower.
        self._X = np.ascontiguousarray(X - X.mean(axis=0))
        weights = np.ones(len(X)) if query_weights is None else query_weights
        self._sets = sets = _Sets.build(relevance, weights > 0)
        self.queries, self.n_queries = sets.queries, len(sets.queries)
        if self.n_queries == 0:
            raise ValueError("no query has both relevant and irrelevant songs; there is nothing to rank.")
        # weights of the queries, with a mean of 1; None if all are equal
        self._shares = None if query_weights is None else weights[self.queries] / weights[self.queries].mean()
        self._block = min(max(1, _BLOCK_BYTES // (8 * len(X))), BLOCK_ROWS)
        can_pair = loss == "auc" and self._shares is None
        self.pairs = Pairs.build(len(X), sets.queries, sets.items, sets.start, sets.inverted) if can_pair else None
        # P@k is NDCG@k without a discount; both are divided by the sum of the gains
        self._gains = ndcg_gains(k) if loss == "ndcg" else np.ones(k)
        self._harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, len(X) + 1))])

    def cut(self, W: Float64Array, L: Sequence[Float64Array] | None = None, *, slots: Int64Array | None = None) -> Cut:
        """Find the most violated ranking of each query, and the plane that these rankings give.

        W is positive semidefinite. If its blocks have a low rank, pass their factors L (r, width), W = L^T L, which
        reduces the time for scores to r / d. `slots` are indices of the `queries` to use; by default all of them.
        """
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
            chosen = np.arange(self.n_queries) if slots is None else slots
            folded, column_sums, lost, inner = self._cut_by_query(left, right, norms, chosen)
        # The sum of w (q - x)(q - x)^T over pairs is ``X^T diag(sum w) X - Q^T A X - (Q^T A X)^T`` (3.5). The term with
        # the row sums is 0. Both remaining terms share a product with X.
        folded -= 0.5 * column_sums[:, None] * X
        if self.structure == "diagonal":
            dpsi = 2.0 * np.einsum("ij,ij->j", folded, X)
        else:
            halves = [folded[:, c].T @ X[:, c] for c in self._columns]
            whole = [half + half.T for half in halves]
            dpsi = whole[0] if len(whole) == 1 else np.concatenate([block.ravel() for block in whole])
        return Cut(float(lost.mean()), dpsi / len(lost), float(inner.mean()))

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
            if self._shares is not None:
                shares = self._shares[chosen[block]]
                weights *= shares[:, None]
                lost[block] *= shares
                inner[block] *= shares
            np.matmul(weights, X, out=products[block])
            return np.asarray(weights.sum(axis=0))

        # these threads process the blocks, so BLAS gets a single thread
        with one_blas_thread(), ThreadPoolExecutor(_n_threads()) as threads:
            for sums in threads.map(work, range(0, len(chosen), self._block)):
                column_sums += sums
        folded = np.zeros_like(X)
        np.add.at(folded, self.queries[chosen], products)
        return folded, column_sums, lost, inner

    def _sides(self, W: Float64Array, L: Sequence[Float64Array] | None) -> tuple[Float64Array, Float64Array]:
        """Return two factors whose product is q^T W x for all pairs of songs."""
        X = self._X
        if L is not None:
            side = np.hstack([X[:, c] @ factor.T for c, factor in zip(self._columns, L, strict=True)])
            return side, side
        if self.structure == "diagonal":
            return X * W, X
        blocks = np.split(W.ravel(), np.cumsum(np.square(self._widths))[:-1])
        left = np.empty_like(X)
        for block, c, w in zip(blocks, self._columns, self._widths, strict=True):
            np.matmul(X[:, c], block.reshape(w, w), out=left[:, c])
        return left, X

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
    """The relevant and irrelevant songs of the queries that have both, in a single array.

    The relevant songs of query s are ``items[start[s, 0] : start[s, 1]]``. The entries up to ``start[s, 2]`` are its
    irrelevant songs or, if `inverted`, the songs in neither set, because those are fewer.
    """

    queries: Int64Array
    items: Int32Array
    start: Int64Array
    inverted: BoolArray

    @classmethod
    def build(cls, relevance: Relevance, is_query: BoolArray) -> "_Sets":
        parts: list[Int32Array] = []
        queries, inverted, ends = [], [], [0]
        is_other = np.empty(len(relevance), np.bool_)
        for query in np.flatnonzero(is_query).tolist():
            relevant, irrelevant = relevance.relevant(query), relevance.irrelevant(query)
            if len(relevant) == 0 or len(irrelevant) == 0:
                continue
            is_other[:] = True
            is_other[relevant] = is_other[irrelevant] = False
            others = np.flatnonzero(is_other)
            queries.append(query)
            inverted.append(len(others) < len(irrelevant))
            parts += [relevant.astype(np.int32), (others if inverted[-1] else irrelevant).astype(np.int32)]
            ends += [ends[-1] + len(parts[-2]), ends[-1] + len(parts[-2]) + len(parts[-1])]
        return cls(
            queries=np.array(queries, dtype=np.int64),
            items=np.concatenate([np.empty(0, dtype=np.int32), *parts]),
            start=np.stack([ends[0:-1:2], ends[1::2], ends[2::2]], axis=1),
            inverted=np.array(inverted, dtype=np.bool_),
        )


def _n_threads() -> int:
    from numba import get_num_threads

    return int(get_num_threads())
