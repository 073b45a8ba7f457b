"""The most violated rankings by AUC when all songs ask: pairs of songs instead of queries and songs.

By AUC a song stands in front of a relevant one or not by its own score alone. So the songs need not be looked at query
by query, and both products of :mod:`musicsim.metric._oracles` take half the multiplications: the score of song j for
query i and that of i for j share the product x_i^T W x_j, and as X^T A X is added to its transpose, the weights of
(i, j) and (j, i) are added before they meet X. Rows are worked on in blocks, each with itself and the songs behind it.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Self

import numpy as np

from musicsim._arrays import BoolArray, Float64Array, Int32Array, Int64Array
from musicsim.metric import _pair_kernels as kernels

_MIN_SHARE = 0.75
"""Of the songs that have to ask: below, half the pairs are more than all queries with all songs."""
_FEW = 1 / 8
"""Share of weights that are not 0 below which they are multiplied one by one."""


@dataclass(frozen=True, slots=True)
class Rankings:
    """What a cut is made of: halves of dpsi before X, sums of the weights of each song, Delta and <W, dpsi>.

    `folded` is of shape (n_songs, d), the others have an entry a song, 0 of those that do not ask.
    """

    folded: Float64Array
    sums: Float64Array
    lost: Float64Array
    inner: Float64Array


@dataclass(frozen=True, slots=True)
class Pairs:
    """Who is relevant and who is not ranked, by song; built by :meth:`of`.

    Memory: 4 bytes a song that is listed, and in a cut 16 a relevant song; a thread takes 8 n_songs bytes a row of its
    block, and the blocks 4 a relevant song until they are summed up.
    """

    begins: Int64Array  # (n_songs + 1,)
    relevant: Int32Array
    barred_begins: Int64Array  # (n_songs + 1,)
    barred: Int32Array  # ascending for each song
    units: Float64Array  # (n_songs,): 2 / (p m)

    @classmethod
    def of(
        cls, n_songs: int, queries: Int64Array, items: Int32Array, start: Int64Array, inverted: BoolArray
    ) -> Self | None:
        """The pairs of some sets; None where few songs ask, one asks twice, or most are left out of a ranking."""
        asks = np.zeros(n_songs, dtype=np.int64)
        asks[queries] = np.arange(1, len(queries) + 1)
        n_asking = np.count_nonzero(asks)
        if n_asking < len(queries) or n_asking < _MIN_SHARE * n_songs or not inverted.all():
            return None
        nobody = np.empty(0, dtype=np.int32)
        slots = (asks - 1).tolist()
        relevant = [items[start[s, 0] : start[s, 1]] if s >= 0 else nobody for s in slots]
        barred = [np.sort(items[start[s, 0] : start[s, 2]]) if s >= 0 else nobody for s in slots]
        n_relevant, n_barred = np.array([*map(len, relevant)]), np.array([*map(len, barred)])
        return cls(
            begins=np.concatenate([[0], np.cumsum(n_relevant)]),
            relevant=np.concatenate(relevant),
            barred_begins=np.concatenate([[0], np.cumsum(n_barred)]),
            barred=np.concatenate(barred),
            units=np.where(asks > 0, 2.0 / np.maximum(n_relevant * (n_songs - n_barred), 1), 0.0),
        )

    def rankings(
        self, left: Float64Array, right: Float64Array, norms: Float64Array, X: Float64Array, block: int, n_threads: int
    ) -> Rankings:
        """The most violated rankings of all songs, whose scores are ``left @ right.T - norms``."""
        n = len(X)
        ranked, scores = np.empty_like(self.relevant), np.empty(len(self.relevant))
        folded = np.empty_like(X)
        sums, totals = np.zeros(n), np.zeros(n)
        placed = np.zeros(len(scores) + n, dtype=np.int64)
        lost, inner = np.empty(n), np.empty(n)

        def rank(rows: slice) -> None:
            kernels.rank_relevant(left, right, norms, rows.start, rows.stop, self.begins, self.relevant, ranked, scores)

        def weigh(rows: slice) -> tuple[Float64Array, Float64Array, Int32Array]:
            first, behind = rows.start, slice(rows.start, n)
            weights = left[rows] @ right[behind].T
            here, there = np.zeros(n - first), np.zeros(n - first)
            counts = np.zeros(len(placed) - self.begins[first] - first, dtype=np.int32)
            n_weights = kernels.weigh_pairs(
                weights, first, norms, self.begins, thresholds, self.barred_begins, self.barred, self.units,
                here, there, counts,
            )  # fmt: skip
            if n_weights < _FEW * weights.size:
                kernels.combine_few(weights, X[behind], folded[rows])
            else:
                np.matmul(weights, X[behind], out=folded[rows])
            return here, there, counts

        def place(rows: slice) -> Float64Array:
            here = np.zeros(n)
            kernels.place_relevant(
                X, rows.start, rows.stop, self.begins, ranked, scores, placed, self.units, totals, folded, here,
                lost, inner,
            )  # fmt: skip
            return here

        with ThreadPoolExecutor(n_threads) as threads:
            for _ in threads.map(rank, _blocks(n, block)):
                pass
            thresholds = scores - 0.5  # a stands before j exactly where r_a - t_j >= 1/2
            # summed up in the order of the rows, whichever thread was first
            for rows, (here, there, counts) in zip(
                _blocks(n, block), threads.map(weigh, _blocks(n, block)), strict=True
            ):
                sums[rows.start :] += here
                totals[rows.start :] += there
                placed[self.begins[rows.start] + rows.start :] += counts
            for here in threads.map(place, _blocks(n, block)):
                sums += here
        return Rankings(folded, sums, lost, inner)


def _blocks(n: int, size: int) -> Iterator[slice]:
    return (slice(first, min(first + size, n)) for first in range(0, n, size))
