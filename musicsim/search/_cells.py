"""A partition of rows into cells, found by k-means, as leaves with codes.

Leaf 0 has the centres of the cells, whose items are the numbers of their leaves; the leaves after it are the cells.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from musicsim._arrays import Float32Array, Int32Array, Int64Array
from musicsim._blas import one_blas_thread
from musicsim.search import _cell_kernels as kernels
from musicsim.search._code_kernels import BLOCK, code_size, decode
from musicsim.search._leaves import Leaves, step_to
from musicsim.search._rows import read_only

# Rows for each centre that k-means looks at, and how often.
_ROWS_A_CENTRE, _ROUNDS = 32, 10
# Rows that are compared with all centres at once, and comparisons (8 MB).
_COMPARED_ROWS, _COMPARED = 2048, 1 << 21
_BLOCK_ROWS = 16_384
# Rows of a cell for each place that is left for new ones: where a cell is full, whole arrays are copied.
_ROWS_A_SPARE = 32

Placed = Callable[[slice | Int64Array], Float32Array]


@dataclass(slots=True, kw_only=True)
class Cells(Leaves):
    """The arrays; see the module."""

    @property
    def n_cells(self) -> int:
        """Cells of rows."""
        return len(self.leaves) - 1

    def depth(self) -> int:
        """Steps to a cell."""
        return 1

    def add(self, Y: Float32Array, first: int) -> None:
        """Put rows (n, width), numbered from `first` on, into the cells with the nearest centres."""
        centres = np.empty((self.n_cells, Y.shape[1]), np.float32)
        decode(self.codes, 0, np.float32(self.step), centres)
        cells = self.items[_nearest(Y, centres)]
        self.items, self.codes = kernels.append(
            read_only(Y), first, cells, self.leaves, self.items, self.codes, np.float32(self.step), self.sizes
        )
        self.tidy()

    def fits(self, d: int, n: int) -> bool:
        """Whether leaf 0 leads to the cells, each once, and they to each of n rows of width d once."""
        if not (self._is_of_its_types() and len(self.seeds) == 1 and len(self.leaves)):
            return False
        n_leaves, n_slots = self.sizes.tolist()[1:]
        shapes = (n_leaves, 4), (n_slots,), (n_slots * code_size(d),)
        if (self.leaves.shape, self.items.shape, self.codes.shape) != shapes or not self._lie_in_their_slots():
            return False
        first, size = self.leaves[0, :2].tolist()
        # the first block is that of the centres, in the order of their cells
        return (
            first == 0
            and np.array_equal(self.items[:size], np.arange(1, n_leaves))
            and kernels.hold_each_once(self.leaves[1:], self.items, n)
        )


def partition(placed: Placed, n: int, n_cells: int, seed: int, threads: int) -> Cells:
    """Cells of n rows, which `placed` gives in the space of the cells, (n_asked, width).

    Rows are asked for in blocks, twice: their cells have to be known before their codes have a place.
    """
    rng = np.random.default_rng(seed)
    with one_blas_thread(), ThreadPoolExecutor(threads) as pool:
        centres = k_means(_sample(placed, n, _ROWS_A_CENTRE * n_cells, rng), n_cells, rng, pool)
        groups, largest = np.empty(n, np.int64), 0.0
        for block in _blocks(n):
            Y = placed(block)
            largest = max(largest, float(np.abs(Y).max()))
            groups[block] = _nearest(Y, centres, pool)
        n_cells = len(centres)
        step = step_to(largest)
        leaves, items, slots = _laid_out(groups, n_cells)
        codes = np.zeros(len(items) * code_size(centres.shape[1]), np.int8)
        kernels.put_codes(codes, np.arange(n_cells), centres, np.float32(step))
        for _ in pool.map(
            lambda block: kernels.put_codes(codes, slots[block], placed(block), np.float32(step)), _blocks(n)
        ):
            pass
    sizes = np.array([0, len(leaves), len(items)], np.int64)
    return Cells(leaves=leaves, items=items, codes=codes, step=step, seeds=(seed,), sizes=sizes)


def _blocks(n: int) -> Iterator[slice]:
    return (slice(start, min(start + _BLOCK_ROWS, n)) for start in range(0, n, _BLOCK_ROWS))


def _sample(placed: Placed, n: int, n_drawn: int, rng: np.random.Generator) -> Float32Array:
    """Rows drawn without repetition, in random order; all of them if they are fewer."""
    drawn = rng.permutation(n)[:n_drawn]
    order = np.argsort(drawn)  # a file is read from its beginning to its end
    sample = np.empty((len(drawn), placed(drawn[:0]).shape[1]), np.float32)
    for block in _blocks(len(drawn)):
        sample[order[block]] = placed(drawn[order[block]])
    return sample


def _laid_out(groups: Int64Array, n_cells: int) -> tuple[Int64Array, Int32Array, Int64Array]:
    """Leaves, the items in their slots, and the slot of each row, which takes the place of its group."""
    sizes = np.concatenate([[n_cells], np.bincount(groups, minlength=n_cells)])
    rooms = np.maximum(-(-(sizes + sizes // _ROWS_A_SPARE) // BLOCK), 1) * BLOCK
    firsts = np.cumsum(rooms) - rooms
    items = np.full(rooms.sum(), -1, np.int32)
    items[:n_cells] = np.arange(1, n_cells + 1)  # of a centre the number of its leaf
    kernels.lay_out(groups, firsts[1:].copy(), items)
    return np.stack([firsts, sizes, rooms, np.full(len(sizes), -1)], axis=1), items, groups


def k_means(sample: Float32Array, n_centres: int, rng: np.random.Generator, pool: ThreadPoolExecutor) -> Float32Array:
    """Centres of rows in random order, at most so many, the first ones to begin with (Lloyd).

    A group that has lost all rows gets one that is drawn.
    """
    centres = sample[:n_centres].copy()
    for _ in range(_ROUNDS if len(sample) else 0):
        nearest = _nearest(sample, centres, pool)
        sizes = np.bincount(nearest, minlength=len(centres))
        has_rows = sizes > 0
        starts = (np.cumsum(sizes) - sizes)[has_rows]
        centres[has_rows] = np.add.reduceat(sample[np.argsort(nearest, kind="stable")], starts)
        centres[has_rows] /= sizes[has_rows, None].astype(np.float32)
        centres[~has_rows] = sample[rng.integers(len(sample), size=len(centres) - has_rows.sum())]
    return centres


def _nearest(Y: Float32Array, centres: Float32Array, pool: ThreadPoolExecutor | None = None) -> Int64Array:
    """The number of the nearest centre of each row (n, d)."""
    halves = 0.5 * np.einsum("ij,ij->i", centres, centres)
    found = np.empty(len(Y), np.int64)
    size = max(1, min(_COMPARED_ROWS, _COMPARED // max(len(centres), 1)))

    def compare(start: int) -> None:
        products = Y[start : start + size] @ centres.T
        products -= halves
        np.argmax(products, axis=1, out=found[start : start + size])

    for _ in (map if pool is None else pool.map)(compare, range(0, len(Y), size)):
        pass
    return found
