"""A partition into cells (inverted file), probed by the distance of their centers."""

from typing import ClassVar

import numpy as np

from musicsim._arrays import Float32Array, Int64Array, Uint8Array
from musicsim.search import cell_kernels as kernels
from musicsim.search._rows import n_threads, read_only
from musicsim.search.cells import Cells, partition
from musicsim.search.tree_index import ProbedIndex


class PartitionIndex(ProbedIndex):
    """Approximate neighbors from the cells with the nearest centers: an inverted file with 8-bit codes.

    k-means finds the centers of the cells, and a query is compared with all of them. Cells hold 8-bit codes of their
    rows along the main axes of all rows, and the distance of each row from the space of these axes. The best rows by
    code are ranked by exact distance.

    Parameters
    ----------
    cells : float > 0
        Cells per square root of the number of rows: 3 gives 1,342 cells for 200,000 rows.
    n_probes : int >= 1
        Cells that a query scans; :func:`musicsim.search.tune` finds the number for a recall.
    explained : float in (0, 1]
        Share of the variance that the main axes keep. Fewer axes are faster and smaller, but need more exact distances.
    ranked : float >= 1
        Rows per result whose exact distance is computed, in addition to ten.
    n_jobs, random_state : as in :class:`SpillTree`

    Attributes
    ----------
    center_, axes_ : float32 ndarrays of shape (n_features,) and (n_features, n_axes)
    n_samples_, n_features_in_, n_axes_, n_leaves_ : int
    nbytes_ : int
        Memory in addition to the rows: ``n_axes_`` and 9 to 12 bytes per row, and a thirtieth for new rows; about 120
        MB for a million rows with 100 axes.

    Notes
    -----
    The inverted file is that of Jégou, Douze, Schmid: Product quantization for nearest neighbor search, IEEE TPAMI 33
    (2011). Rows are read block by block, so a memory map need not fit into memory. Building needs another 16 bytes per
    row, and 32 rows per cell twice: 0.4 GB for ten million rows with 100 axes. The index is rebuilt as
    :class:`SpillForest` is.
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
            raise ValueError(f"cells={self.cells} should be above 0.")
        if not 1 <= self.ranked < np.inf:
            raise ValueError(f"ranked={self.ranked} should be at least 1.")

    @property
    def n_leaves_(self) -> int:
        """Number of cells."""
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
