"""A forest of spill trees, probed best first: recall for time."""

from typing import ClassVar

import numpy as np

from musicsim._arrays import Float32Array, Int64Array, Uint8Array
from musicsim._checks import check_whole
from musicsim.search import _query_kernels as kernels
from musicsim.search._probed_index import ProbedIndex, code_step
from musicsim.search._rows import n_threads, read_only
from musicsim.search._trees import Growth, Trees, grow_trees

_SPACING_LEAVES = 1024


class SpillForest(ProbedIndex):
    """Approximate neighbours from the most promising leaves of several trees.

    The trees have different seeds and, unlike :class:`SpillTree`, no overlap by default: a query comes back to the
    branches it did not take. One queue holds them for all trees, those first that are most likely to hold neighbours
    by the margins on the way, and leaves are looked into until `n_probes` have been. Leaves hold 8-bit codes of their
    rows along the main axes of all rows; the best by their codes are ranked by their exact distance.

    Parameters
    ----------
    n_trees : int >= 1
        More trees: better leaves for the same number of probes, and more memory.
    leaf_size : int
        A node with so many rows or fewer is a leaf.
    n_probes : int >= 1
        Leaves a query looks into, over all trees; :func:`musicsim.search.tune` finds the number for a recall.
    split, spill : as in :class:`SpillTree`
    explained : float in (0, 1]
        The share of the variance that the main axes keep of which trees and codes are made. Fewer axes are faster and
        smaller; what is left out still counts in the exact distances.
    n_sample : int or None
        Rows that a node's direction is worked out from.
    n_jobs : int or None
        Threads that build, and that answer when many queries come at once: None is 1, -1 one a core.
    random_state : int, numpy.random.Generator or None

    Attributes
    ----------
    n_samples_, n_features_in_ : int
    n_axes_ : int
        Main axes that are kept.
    n_leaves_, depth_ : int
    nbytes_ : int
        Memory in addition to the rows: for each tree ``n_axes_`` and 8 to 11 bytes a row where leaves are full, some
        900 MB for 8 trees over a million rows with 100 axes; a third of it where 30 axes are enough.

    Notes
    -----
    Multi-probe search. A neighbour is taken to differ from the query by a Gaussian step of one deviation along any
    axis: margins then say how likely it is to be on either side of a split, and the trees in which the query lies deep
    inside its leaf come first. While it builds it holds ``4 * n_axes_`` bytes a row besides.

    Axes, codes and leaves are those of the rows it was built over. It is rebuilt over all rows when they have
    doubled; when one in a hundred (and more than ten) lies farther out than codes reach; when the axes keep less than
    ``explained ** 2`` of the variance; or when spill makes it hold each row twice as often as it did. `n_probes` stays
    what it was: :func:`musicsim.search.calibrate` finds it again.
    """

    _KEPT: ClassVar = {**ProbedIndex._KEPT, "sharpness": np.float32}
    _LEAVES: ClassVar = Trees
    _trees: Trees
    _sharpness: Float32Array

    def __init__(
        self,
        n_trees: int = 8,
        leaf_size: int = 64,
        n_probes: int = 100,
        *,
        split: str = "pca",
        spill: float = 0.0,
        explained: float = 0.99,
        n_sample: int | None = 1024,
        n_jobs: int | None = -1,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.n_trees, self.leaf_size, self.n_probes = n_trees, leaf_size, n_probes
        self.split, self.spill, self.explained = split, spill, explained
        self.n_sample, self.n_jobs, self.random_state = n_sample, n_jobs, random_state

    def _growth(self) -> Growth:
        growth = Growth(self.split, self.spill, None, self.leaf_size, self.n_sample, fills_leaves=True, n_iterations=4)
        growth.check()
        check_whole("n_trees", self.n_trees, 1)
        self._check_options()
        return growth

    @property
    def fewest_probes_(self) -> int:
        """Leaves that a query looks into at least, for its time to be worth it: one of each tree."""
        return self.n_trees

    def _fits(self) -> bool:
        return self._sharpness.shape == (1,) and super()._fits()

    @property
    def _n_seeds(self) -> int:
        return self.n_trees + 1  # the last one for the axes

    def _check(self) -> None:
        self._growth()

    def _grown(self, rows: Float32Array, seeds: tuple[int, ...]) -> Trees:
        """The trees of some rows, a seed for each and one more; sets their axes."""
        threads = n_threads(self.n_jobs)
        self._take_axes(rows, seeds[-1])
        Y = self._along_axes(rows)
        trees = grow_trees(Y, self._growth(), seeds[:-1], threads)
        self._sharpness = _sharpness(trees, Y)
        trees.encode(Y, code_step(Y), threads)
        return trees

    def _put(self, rows: Float32Array, Y: Float32Array, first: int) -> bool:
        none = read_only(np.empty((0, self.n_axes_), np.float32))
        return self._trees.add(read_only(Y), first, none, self._growth())

    def _regrown(self) -> Trees:
        seeds = self._trees.seeds  # the same after loading
        return self._grown(self._X, (*seeds, seeds[0]))

    def _probe(
        self, Q: Float32Array, n_probes: int, shown: Uint8Array, n_shown: int, distances: Float32Array, ids: Int64Array
    ) -> None:
        trees, k = self._trees, ids.shape[1]
        # codes are rounded: the exact distance chooses among some more
        n_best = min(k + k // 2 + 10, n_shown)
        kernels.probe(
            self._X, Q, self._centre, self._axes, trees.nodes, trees.leaves, trees.items, trees.codes,
            np.float32(trees.step), self._sharpness[0], trees.roots, shown, n_probes, n_best,
            distances, ids,
        )  # fmt: skip


def _sharpness(trees: Trees, Y: Float32Array) -> Float32Array:
    """One over the root mean square by which neighbours differ along an axis, of shape (1,).

    Taken from the nearest in the same leaf, of some leaves; a factor of two makes no difference to the order.
    """
    chosen = np.unique(np.linspace(0, trees.n_leaves - 1, _SPACING_LEAVES).astype(np.int64)) if trees.n_leaves else ()
    squares = []
    for leaf in chosen:
        start, size = trees.leaves[leaf, :2]
        rows = Y[trees.items[start : start + size]].astype(np.float64)
        if size > 1:
            apart = ((rows[0] - rows[1:]) ** 2).sum(axis=1)
            squares.append(np.sort(apart)[: max(1, size // 8)].mean())
    deviation = np.sqrt(np.mean(squares) / Y.shape[1]) if squares else 0.0
    most = float(np.finfo(np.float32).max)  # of rows that hardly differ
    return np.array([min(1.0 / deviation, most) if deviation > 0 else 1.0], np.float32)
