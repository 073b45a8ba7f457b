"""A partition of rows into cells, found by k-means, as leaves with codes.

Leaf 0 has the centres of the cells, whose items are the numbers of their leaves; the leaves after it are the cells.
"""

from dataclasses import dataclass

import numpy as np

from musicsim._arrays import Float32Array, Int32Array, Int64Array
from musicsim.search import _cell_kernels as kernels
from musicsim.search._kernels import BLOCK
from musicsim.search._leaves import Leaves, encoded
from musicsim.search._rows import read_only

# Rows for each centre that k-means looks at, how often, and for how many of them it compares at once.
_ROWS_A_CENTRE, _ROUNDS, _BLOCK_ROWS = 64, 12, 2048


@dataclass(slots=True, kw_only=True)
class Cells(Leaves):
    """The arrays; see the module."""

    @property
    def width(self) -> int:
        """Numbers of a row in the space of the cells."""
        return len(self.codes) // max(len(self.items), 1)

    @property
    def n_cells(self) -> int:
        """Cells of rows."""
        return len(self.leaves) - 1

    def depth(self) -> int:
        """Steps to a cell."""
        return 1

    def add(self, Y: Float32Array, first: int) -> None:
        """Put rows (n, width), numbered from `first` on, into the cells with the nearest centres."""
        n, d, room = self.n_cells, self.width, int(self.leaves[0, 2])
        blocks = self.codes[: room * d].reshape(-1, d, BLOCK)
        centres = blocks.transpose(0, 2, 1).reshape(room, d)[:n] * np.float32(self.step)
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
        shapes = (n_leaves, 4), (n_slots,), (n_slots * d,)
        if (
            self.leaves.shape,
            self.items.shape,
            self.codes.shape,
        ) != shapes or not self._lie_in_their_slots():
            return False
        first, size = self.leaves[:, 0], self.leaves[:, 1]
        taken = np.repeat(first - (np.cumsum(size) - size), size) + np.arange(size.sum())
        cells, rows = np.split(self.items[taken], size[:1])
        # the first block is that of the centres, in the order of their cells
        return (
            first[0] == 0
            and np.array_equal(cells, np.arange(1, n_leaves))
            and np.array_equal(np.sort(rows), np.arange(n))
        )


def partition(Y: Float32Array, n_cells: int, step: float, seed: int, threads: int) -> Cells:
    """Cells of rows (n, width), with codes in units of `step`."""
    Y = read_only(Y)
    centres = k_means(Y, n_cells, np.random.default_rng(seed))
    n_cells = len(centres)
    centre_leaf, centre_items = _laid_out(np.zeros(n_cells, np.int64), 1)
    leaves, items = _laid_out(_nearest(Y, centres), n_cells)
    leaves[:, 0] += len(centre_items)
    return Cells(
        leaves=np.concatenate([centre_leaf, leaves]),
        # of a centre the number of its leaf
        items=np.concatenate([np.where(centre_items >= 0, centre_items + 1, -1).astype(np.int32), items]),
        codes=np.concatenate(
            [encoded(read_only(centres), centre_items, step, 1), encoded(Y, items, step, threads)]
        ),
        step=step,
        seeds=(seed,),
        sizes=np.array([0, 1 + n_cells, len(centre_items) + len(items)], np.int64),
    )


def _laid_out(groups: Int64Array, n_groups: int) -> tuple[Int64Array, Int32Array]:
    """Leaves, each with the numbers of one group, and the items in their slots."""
    order = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups, minlength=n_groups)
    rooms = np.maximum(-(-sizes // BLOCK), 1) * BLOCK
    firsts = np.cumsum(rooms) - rooms
    items = np.full(rooms.sum(), -1, np.int32)
    items[np.repeat(firsts - (np.cumsum(sizes) - sizes), sizes) + np.arange(len(groups))] = order
    return np.stack([firsts, sizes, rooms, np.full(n_groups, -1)], axis=1), items


def k_means(Y: Float32Array, n_centres: int, rng: np.random.Generator) -> Float32Array:
    """Centres of rows, at most so many, from some of them (Lloyd); of a group that has lost all rows a row drawn."""
    if not len(Y):
        return Y
    sample = Y[rng.permutation(len(Y))[: _ROWS_A_CENTRE * n_centres]]
    centres = sample[:n_centres].copy()
    for _ in range(_ROUNDS):
        nearest = _nearest(sample, centres)
        sizes = np.bincount(nearest, minlength=len(centres))
        has_rows = sizes > 0
        starts = (np.cumsum(sizes) - sizes)[has_rows]
        centres[has_rows] = np.add.reduceat(sample[np.argsort(nearest, kind="stable")], starts)
        centres[has_rows] /= sizes[has_rows, None].astype(np.float32)
        centres[~has_rows] = sample[rng.integers(len(sample), size=len(centres) - has_rows.sum())]
    return centres


def _nearest(Y: Float32Array, centres: Float32Array) -> Int64Array:
    """The number of the nearest centre of each row (n, d)."""
    halves = 0.5 * np.einsum("ij,ij->i", centres, centres)
    found = np.empty(len(Y), np.int64)
    for start in range(0, len(Y), _BLOCK_ROWS):
        block = slice(start, start + _BLOCK_ROWS)
        found[block] = np.argmax(Y[block] @ centres.T - halves, axis=1)
    return found
