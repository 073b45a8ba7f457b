"""A forest of spill trees, searched best first: more time gives a higher recall."""

from pathlib import Path
from typing import ClassVar

import numpy as np

from musicsim._arrays import Float32Array, Int64Array, Uint8Array
from musicsim._checks import check_whole
from musicsim.search import _query_kernels as kernels
from musicsim.search._leaves import find_code_step
from musicsim.search._rows import n_threads, read_only
from musicsim.search._trees import Growth, Trees, grow_trees
from musicsim.search.tree_index import ProbedIndex

_SPACING_LEAVES = 1024


class SpillForest(ProbedIndex):
    """Find similar songs with several trees, which need less overlap than one tree for the same recall.

    Approximate nearest neighbors from the most promising leaves of several trees. The trees have different seeds.
    Unlike in a :class:`SpillTree`, leaves do not overlap by default, because a query can return to branches that it did
    not take. One queue holds the branches of all trees, ordered by how likely they are to hold neighbors, and
    `n_probes` leaves are scanned. Leaves hold 8-bit codes of their rows along the main axes of all rows. The best rows
    by code are ranked by exact distance.

    Parameters
    ----------
    n_trees : int >= 1
        More trees give better leaves for the same number of probes, but need more memory.
    leaf_size, split, spill, n_sample, n_jobs, random_state : as in :class:`SpillTree`
    n_probes : int >= 1
        Number of leaves that a query scans, over all trees. :func:`musicsim.search.tune` chooses it for a given recall.
    explained : float in (0, 1]
        Share of the variance that the main axes keep. Fewer axes are faster and smaller. Exact distances use all
        columns.

    Attributes
    ----------
    center_, axes_ : float32 ndarrays of shape (n_features,) and (n_features, n_axes)
    n_samples_, n_features_in_, n_axes_, n_leaves_ : int
    nbytes_ : int
        Memory in addition to the rows: ``n_axes_`` plus 8 to 11 bytes per tree and row if leaves are full. The
        total is about 900 MB for 8 trees over a million rows with 100 axes.

    See Also
    --------
    SpillTree : One tree, as in the thesis.
    PartitionIndex : Faster and smaller in our benchmarks.

    Notes
    -----
    The index uses multi-probe search. A neighbor is assumed to differ from the query by a Gaussian step with the same
    standard deviation along every axis. The margin of a split then gives the probability that a neighbor is on the
    other side. Trees in which the query is deep inside its leaf come first. Building needs another ``4 * n_axes_``
    bytes per row.

    Axes, codes and leaves are fitted to the rows present when the index was built. The index is rebuilt over all rows

    - when the number of rows has doubled;
    - when more than 1% of the rows, and more than ten, are beyond the range of codes;
    - when the axes keep less than ``explained ** 2`` of the variance; or
    - when spill makes it hold each row twice as often as at first.

    Rebuilding does not change `n_probes`; :func:`musicsim.search.calibrate` chooses it again for a given recall.

    References
    ----------
    - B. McFee, More like this: machine learning approaches to music similarity, PhD thesis, UC San Diego, 2012, chapter
      6.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.search import ExactIndex, SpillForest
    >>> X = np.random.default_rng(0).normal(size=(2000, 8)).astype(np.float32)
    >>> truth = ExactIndex().fit(X).query(X[:100], k=10)[1]
    >>> forest = SpillForest(n_trees=4, n_probes=20, random_state=0).fit(X)
    >>> recall = np.mean([np.isin(t, f).mean() for f, t in zip(forest.query(X[:100], k=10)[1], truth)])
    >>> bool(recall > 0.6)
    True
    """

    _SAVED: ClassVar = {**ProbedIndex._SAVED, "sharpness": ("sharpness_", np.float32)}
    _LEAVES: ClassVar = Trees
    trees_: Trees
    sharpness_: Float32Array

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
        return Growth(self.split, self.spill, None, self.leaf_size, self.n_sample, fills_leaves=True, n_iterations=4)

    def _check_options(self) -> None:
        self._growth()
        check_whole("n_trees", self.n_trees, 1)
        super()._check_options()

    @property
    def fewest_probes_(self) -> int:
        """Smallest useful number of probes: one leaf of each tree."""
        return self.n_trees

    def _read(self, folder: Path) -> None:
        super()._read(folder)
        if self.sharpness_.shape != (1,):
            raise ValueError(f"sharpness.npy has shape {self.sharpness_.shape}; it must be (1,).")

    @property
    def _n_seeds(self) -> int:
        return self.n_trees + 1

    def _grow(self, rows: Float32Array, seeds: tuple[int, ...]) -> Trees:
        threads = n_threads(self.n_jobs)
        self._set_axes(rows, seeds[-1])
        Y = self._along_axes(rows)
        trees = grow_trees(Y, self._growth(), seeds[:-1], threads)
        self.sharpness_ = _sharpness(trees, Y)
        trees.encode(Y, find_code_step(Y), threads)
        return trees

    def _add_to_leaves(self, rows: Float32Array, Y: Float32Array, first: int) -> bool:
        no_rows = read_only(np.empty((0, self.n_axes_), np.float32))
        return self.trees_.add(read_only(Y), first, no_rows, self._growth())

    def _probe(
        self, Q: Float32Array, n_probes: int, shown: Uint8Array, n_shown: int, distances: Float32Array, ids: Int64Array
    ) -> None:
        trees, k = self.trees_, ids.shape[1]
        n_best = min(k + k // 2 + 10, n_shown)  # more than k rows, because codes are rounded
        kernels.probe(
            self._X, Q, self.center_, self.axes_, trees.nodes, trees.leaves, trees.items, trees.codes,
            np.float32(trees.step), self.sharpness_[0], trees.roots, shown, n_probes, n_best,
            distances, ids,
        )  # fmt: skip


def _sharpness(trees: Trees, Y: Float32Array) -> Float32Array:
    """Estimate the inverse RMS difference between neighbors along an axis, (1,), from the rows of some leaves."""
    chosen = np.unique(np.linspace(0, trees.n_leaves - 1, _SPACING_LEAVES).astype(np.int64)) if trees.n_leaves else ()
    means = []
    for leaf in chosen:
        start, size = trees.leaves[leaf, :2]
        rows = Y[trees.items[start : start + size]].astype(np.float64)
        if size > 1:
            squares = ((rows[0] - rows[1:]) ** 2).sum(axis=1)
            means.append(np.sort(squares)[: max(1, size // 8)].mean())
    deviation = np.sqrt(np.mean(means) / Y.shape[1]) if means else 0.0
    largest = float(np.finfo(np.float32).max)  # upper limit, in case the rows hardly differ
    return np.array([min(1.0 / deviation, largest) if deviation > 0 else 1.0], np.float32)
