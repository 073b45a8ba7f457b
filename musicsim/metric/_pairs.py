"""Most violated rankings by AUC if all songs are queries, computed from pairs of songs.

For AUC, a song's score alone determines whether it comes before a relevant song. Therefore, both matrix products of
:mod:`musicsim.metric.oracles` need only half the multiplications. The score of song j for query i and the score of i
for j share the product x_i^T W x_j. In the second product, the weights of (i, j) and (j, i) are added before they are
multiplied by X. Rows are processed in blocks: each block with itself and with the songs after it.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Self

import numpy as np

from musicsim._arrays import BoolArray, Float64Array, Int32Array, Int64Array
from musicsim.metric import _pair_kernels as kernels

_MIN_SHARE = 0.75  # Minimum share of songs that are queries; below this, processing half of all pairs takes longer
_FEW = 1 / 8  # Share of nonzero weights below which the weights are multiplied one by one


@dataclass(frozen=True, slots=True)
class Pairs:
    """Relevant and unranked songs of each song; 4 bytes per listed song, and 16 per relevant song during a cut."""

    begins: Int64Array  # (n_songs + 1,)
    relevant: Int32Array
    barred_begins: Int64Array  # (n_songs + 1,)
    barred: Int32Array  # songs that are not ranked; ascending for each song
    units: Float64Array  # (n_songs,): 2 / (p m)

    @classmethod
    def build(
        cls, n_songs: int, queries: Int64Array, items: Int32Array, start: Int64Array, inverted: BoolArray
    ) -> Self | None:
        """Convert the queries' sets of songs; return None if few songs are queries or many songs are unranked."""
        if len(queries) < _MIN_SHARE * n_songs or not inverted.all():
            return None
        slots = np.full(n_songs, -1)
        slots[queries] = np.arange(len(queries))
        empty = np.empty(0, dtype=np.int32)
        relevant = [items[start[s, 0] : start[s, 1]] if s >= 0 else empty for s in slots.tolist()]
        barred = [np.sort(items[start[s, 0] : start[s, 2]]) if s >= 0 else empty for s in slots.tolist()]
        n_relevant, n_barred = np.array([*map(len, relevant)]), np.array([*map(len, barred)])
        return cls(
            begins=np.concatenate([[0], np.cumsum(n_relevant)]),
            relevant=np.concatenate(relevant),
            barred_begins=np.concatenate([[0], np.cumsum(n_barred)]),
            barred=np.concatenate(barred),
            units=np.where(slots >= 0, 2.0 / np.maximum(n_relevant * (n_songs - n_barred), 1), 0.0),
        )

    def rankings(
        self, left: Float64Array, right: Float64Array, norms: Float64Array, X: Float64Array, block: int, n_threads: int
    ) -> tuple[Float64Array, Float64Array, Float64Array, Float64Array]:
        """Find the most violated rankings of all songs, whose scores are ``left @ right.T - norms``.

        Returns four arrays with a row per song: weighted sums of songs, (n_songs, d), from which dpsi is computed; sums
        of weights; Delta; <W, dpsi>. The last two are valid only for queries.
        """
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
            list(threads.map(rank, _blocks(n, block)))
            thresholds = scores - 0.5  # a comes before j if and only if r_a - t_j >= 1/2
            # summed in the order of the rows, so that the result does not depend on the number of threads
            for rows, (here, there, counts) in zip(
                _blocks(n, block), threads.map(weigh, _blocks(n, block)), strict=True
            ):
                sums[rows.start :] += here
                totals[rows.start :] += there
                placed[self.begins[rows.start] + rows.start :] += counts
            for here in threads.map(place, _blocks(n, block)):
                sums += here
        return folded, sums, lost, inner


def _blocks(n: int, size: int) -> Iterator[slice]:
    return (slice(first, min(first + size, n)) for first in range(0, n, size))
