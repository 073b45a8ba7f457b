"""A partition into cells (inverted file), probed by the distance of their centres."""

from functools import partial
from typing import ClassVar

import numpy as np

from musicsim._arrays import Float32Array, Int64Array, Uint8Array
from musicsim.search import _cell_kernels as kernels
from musicsim.search._cells import Cells, partition
from musicsim.search._probed_index import ProbedIndex
from musicsim.search._rows import n_threads, read_only


class PartitionIndex(ProbedIndex):
    """Approximate neighbours from the cells whose centres are nearest: an inverted file with 8-bit codes.

    k-means finds the centres of the cells, all of which a query is compared with. Cells hold 8-bit codes of their rows
    along the main axes of all rows, and how far each row lies from the space of these axes; the best by their codes are
    ranked by their exact distance.

    Parameters
    ----------
    cells : float > 0
        Cells for each square root of the number of rows: 3 are 1,342 of 200,000 rows.
    n_probes : int >= 1
        Cells a query looks into; :func:`musicsim.search.tune` finds the number for a recall.
    explained : float in (0, 1]
        The share of the variance that the main axes keep. Fewer axes are faster and smaller, but need more rows whose
        exact distance is worked out.
    ranked : float >= 1
        Rows whose exact distance is worked out for each answer that is asked for, beside ten.
    n_jobs : int or None
        Threads that build, and that answer when many queries come at once: None is 1, -1 one a core.
    random_state : int, numpy.random.Generator or None

    Attributes
    ----------
    n_samples_, n_features_in_ : int
    n_axes_ : int
        Main axes that are kept.
    n_leaves_ : int
        Cells.
    nbytes_ : int
        Memory in addition to the rows: ``n_axes_`` and 9 to 12 bytes a row, and a thirtieth for new ones: some 120 MB
        for a million rows with 100 axes.

    Notes
    -----
    Jégou, Douze, Schmid: Product quantization for nearest neighbor search, IEEE TPAMI 33 (2011), has the inverted file.
    Rows are read a block at a time, so that those of a memory map need not fit into memory. While it builds it holds
    16 bytes a row besides, and 32 rows for each cell twice: .4 GB for ten million rows with 100 axes.

    Axes, codes and cells are those of the rows it was built over. It is rebuilt over all rows when they have
    doubled; when one in a hundred (and more than ten) lies farther out than codes reach; or when the axes keep less
    than ``explained ** 2`` of the variance. `n_probes` stays what it was: :func:`musicsim.search.calibrate` finds it
    again.
    """

    _LEAVES: ClassVar = Cells
    _trees: Cells

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

    def _check(self) -> None:
        self._check_options()
        if not 0 < self.cells < np.inf:
            raise ValueError(f"cells={self.cells} should be above 0.")
        if not 1 <= self.ranked < np.inf:
            raise ValueError(f"ranked={self.ranked} should be at least 1.")

    @property
    def n_leaves_(self) -> int:
        """Cells."""
        return self._trees.n_cells

    @property
    def _width(self) -> int:
        return self.n_axes_ + 1

    @property
    def _n_seeds(self) -> int:
        return 2

    def _grown(self, rows: Float32Array, seeds: tuple[int, ...]) -> Cells:
        """The cells of some rows, a seed for them and one for the axes; sets these."""
        self._take_axes(rows, seeds[-1])
        n_cells = min(max(round(self.cells * len(rows) ** 0.5), 1), len(rows))
        return partition(partial(self._placed_at, rows), len(rows), n_cells, seeds[0], n_threads(self.n_jobs))

    def _placed_at(self, rows: Float32Array, which: slice | Int64Array) -> Float32Array:
        """Some of the rows in the space of the cells."""
        some = read_only(rows[which])
        return self._with_offset(some, self._along_axes(some))

    def _with_offset(self, rows: Float32Array, Y: Float32Array) -> Float32Array:
        """Coordinates along the axes, and how far rows lie from the space of these: (n_rows, n_axes + 1)."""
        result = np.empty((len(Y), self._width), np.float32)
        result[:, :-1] = Y
        kernels.off_axes(rows, self._centre, Y, result)
        return result

    def _put(self, rows: Float32Array, Y: Float32Array, first: int) -> bool:
        self._trees.add(self._with_offset(rows, Y), first)
        return True

    def _regrown(self) -> Cells:
        (seed,) = self._trees.seeds  # the same after loading
        return self._grown(self._X, (seed, seed))

    def _probe(
        self, Q: Float32Array, n_probes: int, shown: Uint8Array, n_shown: int, distances: Float32Array, ids: Int64Array
    ) -> None:
        cells = self._trees
        n_best = min(int(self.ranked * ids.shape[1]) + 10, n_shown)
        kernels.probe_cells(
            self._X, Q, self._centre, self._axes, cells.leaves, cells.items, cells.codes, cells.step,
            shown, n_probes, n_best, distances, ids,
        )  # fmt: skip
