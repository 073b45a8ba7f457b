"""A partition of rows into k-means cells (an inverted file); a query scans the cells with the nearest centers.

The cells are leaves with codes. Leaf 0 holds the centers; its items are the leaf numbers of their cells.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from musicsim._arrays import Float32Array, Int32Array, Int64Array, Uint8Array
from musicsim.blas import one_blas_thread
from musicsim.search import cell_kernels as kernels
from musicsim.search._leaves import Leaves, find_step
from musicsim.search._rows import n_threads, read_only
from musicsim.search.code_kernels import BLOCK, code_size, decode
from musicsim.search.tree_index import ProbedIndex

_ROWS_PER_CENTER, _ITERATIONS = 32, 10  # Number of sampled rows per center for k-means, and of iterations
_COMPARED_ROWS, _COMPARED = 2048, 1 << 21  # Maximum number of rows, and of distances (8 MB), computed together
BLOCK_ROWS = 16_384
_ROWS_PER_SPARE = 32  # Number of rows in a cell per spare slot; when a cell is full, whole arrays are copied

RowReader = Callable[[slice | Int64Array], Float32Array]


@dataclass(slots=True, kw_only=True)
class Cells(Leaves):
    @property
    def n_cells(self) -> int:
        return len(self.leaves) - 1

    def add(self, Y: Float32Array, first: int) -> None:
        """Add rows (n, width), numbered starting at `first`, to the cells with the nearest centers."""
        centers = np.empty((self.n_cells, Y.shape[1]), np.float32)
        decode(self.codes, 0, np.float32(self.step), centers)
        cells = self.items[_nearest(Y, centers)]
        self.items, self.codes = kernels.append(
            read_only(Y), first, cells, self.leaves, self.items, self.codes, np.float32(self.step), self.sizes
        )
        self.compact()

    def fits(self, d: int, n: int) -> bool:
        """Return whether leaf 0 lists each cell once, and the cells list each of n rows of width d once."""
        if not (self._has_valid_types() and len(self.seeds) == 1 and len(self.leaves)):
            return False
        n_leaves, n_slots = self.sizes.tolist()[1:]
        shapes = (n_leaves, 4), (n_slots,), (n_slots * code_size(d),)
        if (self.leaves.shape, self.items.shape, self.codes.shape) != shapes or not self._has_valid_slots():
            return False
        first, size = self.leaves[0, :2].tolist()
        # the first block contains the centers, in the order of their cells
        return (
            first == 0
            and np.array_equal(self.items[:size], np.arange(1, n_leaves))
            and kernels.hold_each_once(self.leaves[1:], self.items, n)
        )


def partition(read_rows: RowReader, n: int, n_cells: int, seed: int, threads: int) -> Cells:
    """Partition n rows into cells; `read_rows` returns rows in the space of the cells, (n_rows, width).

    All rows are read twice, in blocks, because the slots of codes depend on the sizes of all cells.
    """
    rng = np.random.default_rng(seed)
    with one_blas_thread(), ThreadPoolExecutor(threads) as pool:
        drawn = rng.permutation(n)[: _ROWS_PER_CENTER * n_cells]
        order = np.argsort(drawn)  # so that a file is read from beginning to end
        sample = np.empty((len(drawn), read_rows(drawn[:0]).shape[1]), np.float32)
        for block in _blocks(len(drawn)):
            sample[order[block]] = read_rows(drawn[order[block]])
        centers = k_means(sample, n_cells, rng, pool)
        del sample
        groups, largest = np.empty(n, np.int64), 0.0
        for block in _blocks(n):
            Y = read_rows(block)
            largest = max(largest, float(np.abs(Y).max()))
            groups[block] = _nearest(Y, centers, pool)
        n_cells, step = len(centers), find_step(largest)
        leaves, items, slots = _lay_out(groups, n_cells)
        codes = np.zeros(len(items) * code_size(centers.shape[1]), np.int8)

        def encode(block: slice) -> None:
            kernels.put_codes(codes, slots[block], read_rows(block), np.float32(step))

        kernels.put_codes(codes, np.arange(n_cells), centers, np.float32(step))
        list(pool.map(encode, _blocks(n)))
    sizes = np.array([0, len(leaves), len(items)], np.int64)
    return Cells(leaves=leaves, items=items, codes=codes, step=step, seeds=(seed,), sizes=sizes)


def _blocks(n: int) -> Iterator[slice]:
    return (slice(start, min(start + BLOCK_ROWS, n)) for start in range(0, n, BLOCK_ROWS))


def _lay_out(groups: Int64Array, n_cells: int) -> tuple[Int64Array, Int32Array, Int64Array]:
    """Return the leaves, the items in their slots, and the slot of each row; overwrites `groups`."""
    sizes = np.concatenate([[n_cells], np.bincount(groups, minlength=n_cells)])
    rooms = np.maximum(-(-(sizes + sizes // _ROWS_PER_SPARE) // BLOCK), 1) * BLOCK
    firsts = np.cumsum(rooms) - rooms
    items = np.full(rooms.sum(), -1, np.int32)
    items[:n_cells] = np.arange(1, n_cells + 1)  # leaf numbers of the cells
    kernels.lay_out(groups, firsts[1:].copy(), items)
    return np.stack([firsts, sizes, rooms, np.full(len(sizes), -1)], axis=1), items, groups


def k_means(sample: Float32Array, n_centers: int, rng: np.random.Generator, pool: ThreadPoolExecutor) -> Float32Array:
    """Return at most `n_centers` cluster centers of rows in random order (Lloyd's algorithm).

    The first rows are the initial centers. An empty group gets a random row as its center.
    """
    centers = sample[:n_centers].copy()
    for _ in range(_ITERATIONS if len(sample) else 0):
        nearest = _nearest(sample, centers, pool)
        sizes = np.bincount(nearest, minlength=len(centers))
        has_rows = sizes > 0
        starts = (np.cumsum(sizes) - sizes)[has_rows]
        centers[has_rows] = np.add.reduceat(sample[np.argsort(nearest, kind="stable")], starts)
        centers[has_rows] /= sizes[has_rows, None].astype(np.float32)
        centers[~has_rows] = sample[rng.integers(len(sample), size=len(centers) - has_rows.sum())]
    return centers


def _nearest(Y: Float32Array, centers: Float32Array, pool: ThreadPoolExecutor | None = None) -> Int64Array:
    """Return the index of the center nearest to each row (n, d)."""
    halves = 0.5 * np.einsum("ij,ij->i", centers, centers)
    nearest = np.empty(len(Y), np.int64)
    size = max(1, min(_COMPARED_ROWS, _COMPARED // max(len(centers), 1)))

    def compare(start: int) -> None:
        products = Y[start : start + size] @ centers.T
        products -= halves
        np.argmax(products, axis=1, out=nearest[start : start + size])

    list((map if pool is None else pool.map)(compare, range(0, len(Y), size)))
    return nearest


class PartitionIndex(ProbedIndex):
    """Find similar songs among millions in a millisecond; the index of the app for large libraries.

    Approximate nearest neighbors from the cells with the nearest centers: an inverted file with 8-bit codes. The
    k-means algorithm finds the centers of the cells, and a query is compared with all centers. Cells hold 8-bit codes
    of their rows along the main axes of all rows, and each row's distance from the space of these axes. The best rows
    by code are ranked by exact distance.

    Parameters
    ----------
    cells : float > 0
        Number of cells, divided by the square root of the number of rows: 3 gives 1,342 cells for 200,000 rows.
    n_probes : int >= 1
        Number of cells that a query scans. :func:`musicsim.search.tune` chooses it for a given recall.
    explained : float in (0, 1]
        Share of the variance that the main axes keep. Fewer axes save time and memory, but may need a higher `ranked`.
    ranked : float >= 1
        Number of rows per result whose exact distance is computed, in addition to ten rows.
    n_jobs, random_state : as in :class:`SpillTree`

    Attributes
    ----------
    center_, axes_ : float32 ndarrays of shape (n_features,) and (n_features, n_axes)
    n_samples_, n_features_in_, n_axes_, n_leaves_ : int
    nbytes_ : int
        Memory in addition to the rows: ``n_axes_`` plus 9 to 12 bytes per row, and about 3% more for new rows. The
        total is about 120 MB for a million rows with 100 axes.

    See Also
    --------
    ExactIndex : Exact, for fewer than 100,000 songs.
    SpillForest : Trees instead of cells.
    calibrate : Chooses `n_probes` for a recall.

    Notes
    -----
    The inverted file follows Jégou, Douze and Schmid: Product quantization for nearest neighbor search, IEEE TPAMI 33
    (2011). Rows are read block by block, so a memory map may be larger than memory. Building the index needs another 16
    bytes per row, and two copies of 32 rows per cell: 0.4 GB for ten million rows with 100 axes. The index is rebuilt
    under the same conditions as :class:`SpillForest`.

    References
    ----------
    - H. Jégou, M. Douze and C. Schmid, Product quantization for nearest neighbor search, IEEE TPAMI 33, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.search import ExactIndex, PartitionIndex
    >>> X = np.random.default_rng(0).normal(size=(2000, 8)).astype(np.float32)
    >>> truth = ExactIndex().fit(X).query(X[:100], k=10)[1]
    >>> index = PartitionIndex(n_probes=16, random_state=0).fit(X)
    >>> recall = np.mean([np.isin(t, f).mean() for f, t in zip(index.query(X[:100], k=10)[1], truth)])
    >>> index.n_leaves_, bool(recall > 0.6)
    (134, True)
    """

    _LEAVES: ClassVar = Cells
    trees_: Cells

    def __init__(
        self,
        cells: float = 3.0,
        n_probes: int = 16,
        *,
        explained: float = 0.99,
        ranked: float = 1.5,
        n_jobs: int | None = -1,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.cells, self.n_probes, self.explained, self.ranked = cells, n_probes, explained, ranked
        self.n_jobs, self.random_state = n_jobs, random_state

    def _check_options(self) -> None:
        super()._check_options()
        if not 0 < self.cells < np.inf:
            raise ValueError(f"cells={self.cells} must be above 0 and finite.")
        if not 1 <= self.ranked < np.inf:
            raise ValueError(f"ranked={self.ranked} must be at least 1 and finite.")

    @property
    def n_leaves_(self) -> int:
        return self.trees_.n_cells

    @property
    def _width(self) -> int:
        return self.n_axes_ + 1

    @property
    def _n_seeds(self) -> int:
        return 2

    def _grow(self, rows: Float32Array, seeds: tuple[int, ...]) -> Cells:
        self._set_axes(rows, seeds[-1])
        n_cells = min(max(round(self.cells * len(rows) ** 0.5), 1), len(rows))

        def read_rows(chosen: slice | Int64Array) -> Float32Array:
            part = read_only(rows[chosen])
            return self._append_offsets(part, self._along_axes(part))

        return partition(read_rows, len(rows), n_cells, seeds[0], n_threads(self.n_jobs))

    def _append_offsets(self, rows: Float32Array, Y: Float32Array) -> Float32Array:
        """Return coordinates along the axes and distances from the space of the axes, (n_rows, n_axes + 1)."""
        result = np.empty((len(Y), self._width), np.float32)
        result[:, :-1] = Y
        kernels.fill_offsets(rows, self.center_, Y, result)
        return result

    def _add_to_leaves(self, rows: Float32Array, Y: Float32Array, first: int) -> bool:
        self.trees_.add(self._append_offsets(rows, Y), first)
        return True

    def _probe(
        self, Q: Float32Array, n_probes: int, shown: Uint8Array, n_shown: int, distances: Float32Array, ids: Int64Array
    ) -> None:
        cells = self.trees_
        n_best = min(int(self.ranked * ids.shape[1]) + 10, n_shown)
        kernels.probe_cells(
            self._X, Q, self.center_, self.axes_, cells.leaves, cells.items, cells.codes, cells.step,
            shown, n_probes, n_best, distances, ids,
        )  # fmt: skip
