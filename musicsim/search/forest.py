"""A forest of spill trees, probed best first: recall for time."""

from functools import partial
from numbers import Integral
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from musicsim._arrays import BoolArray, Float32Array, Float64Array, Int32Array, Int64Array, Uint8Array
from musicsim.search import _query_kernels as kernels
from musicsim.search._kernels import N_LINKS, beyond
from musicsim.search._rows import Answers, ask_parts, n_threads, read_only
from musicsim.search._tree_index import TreeIndex
from musicsim.search._trees import Growth, Trees, grow_trees

_BASIS_ROWS = 20_000
_BLOCK_ROWS = 16_384
# A forest that has grown by more is rebuilt: its axes, codes and leaves are those of the first rows.
_MAX_GROWTH = 2.0
# Rows whose codes are cut, as a share of all and however few there are, above which it is rebuilt. So few are all
# among the best by their codes, whose exact distances are compared.
_MAX_CUT_SHARE, _ALWAYS_ALLOWED_CUT = 0.01, 10
# It is rebuilt, too, where axes keep less than `explained` of what they should, or less than this if that is all.
_MIN_EXPLAINED = 0.999
# Rows that are compared, wherever they lie, in the time of looking into one leaf.
_ROWS_A_LEAF = 12
_SPACING_LEAVES = 1024
_MIN_FLOAT32 = float(np.finfo(np.float32).tiny)


class SpillForest(TreeIndex):
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
        Memory in addition to the rows: for each tree ``n_axes_ + 4`` bytes a row where leaves are full, 864 MB for 8
        trees over a million rows with 100 axes; a third of it where 30 axes are enough.

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

    _KEPT: ClassVar = {
        "shown": np.uint8,
        "centre": np.float32,
        "axes": np.float32,
        "sharpness": np.float32,
        "spread": np.float64,
        "n_cut": np.int64,
    }
    _centre: Float32Array
    _axes: Float32Array
    _sharpness: Float32Array
    _spread: Float64Array
    _n_cut: Int64Array

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
        growth = Growth(
            self.split, self.spill, None, self.leaf_size, self.n_sample, fills_leaves=True, n_iterations=4
        )
        growth.check()
        if not (isinstance(self.n_trees, Integral) and self.n_trees >= 1):
            raise ValueError(f"n_trees={self.n_trees!r} should be a whole number of at least 1.")
        if not 0 < self.explained <= 1:
            raise ValueError(f"explained={self.explained} should be above 0 and at most 1.")
        _check_probes(self.n_probes)
        return growth

    @property
    def n_axes_(self) -> int:
        """Main axes that are kept."""
        return self._axes.shape[1]

    @property
    def _width(self) -> int:
        return self.n_axes_

    def _fits(self) -> bool:
        d, width = self.n_features_in_, self._trees.nodes.shape[1] - N_LINKS
        return (
            (self._centre.shape, self._axes.shape) == ((d,), (d, width))
            and (self._sharpness.shape, self._spread.shape, self._n_cut.shape) == ((1,), (3,), (1,))
            and len(self._trees.codes) == len(self._trees.items) * width
            and super()._fits()
        )

    @property
    def _n_seeds(self) -> int:
        return self.n_trees + 1  # the last one for the axes

    def _grown(self, rows: Float32Array, growth: Growth, seeds: tuple[int, ...]) -> Trees:
        """The trees of some rows, a seed for each and one more; sets their axes."""
        threads = n_threads(self.n_jobs)
        self._centre, self._axes, self._spread = _main_axes(rows, self.explained, seeds[-1])
        self._n_cut = np.zeros(1, np.int64)
        Y = self._along_axes(rows)
        trees = grow_trees(Y, growth, seeds[:-1], threads)
        self._sharpness = _sharpness(trees, Y)
        sizes = (float(np.abs(Y[i : i + _BLOCK_ROWS]).max()) for i in range(0, len(Y), _BLOCK_ROWS))
        # of rows that are all equal it is as small as can be: codes of all others are cut
        trees.encode(Y, max(max(sizes, default=0.0) / 127, _MIN_FLOAT32), threads)
        return trees

    def _along_axes(self, rows: Float32Array) -> Float32Array:
        """Coordinates along the main axes, float32 (n_rows, n_axes)."""
        Y = np.empty((len(rows), self._axes.shape[1]), np.float32)
        for start in range(0, len(rows), _BLOCK_ROWS):
            block = slice(start, start + _BLOCK_ROWS)
            np.matmul(rows[block] - self._centre, self._axes, out=Y[block])
        return Y

    def _placed(self, rows: Float32Array, first: int) -> bool:
        if self.n_samples_ > _MAX_GROWTH * self.n_built_:
            return False
        none = read_only(np.empty((0, self.n_axes_), np.float32))
        for start in range(0, len(rows), _BLOCK_ROWS):
            block = rows[start : start + _BLOCK_ROWS]
            Y = self._along_axes(block)
            if not self._suit(block, Y):
                return False
            if not self._trees.add(read_only(Y), first + start, none, self._growth()):
                return False
        return True

    def _regrown(self) -> Trees:
        seeds = self._trees.seeds  # the same after loading
        return self._grown(self._X, self._growth(), (*seeds, seeds[0]))

    def _suit(self, rows: Float32Array, Y: Float32Array) -> bool:
        """Whether codes and axes still do for all rows, with these and their coordinates along the axes."""
        reach, largest = np.float32(127.5 * self._trees.step), self._spread[2]
        n_cut, kept, in_all = beyond(rows, Y, self._centre, reach, largest)
        self._n_cut = self._n_cut + n_cut
        self._spread = self._spread + np.array([kept, in_all, 0.0])
        kept, in_all, _ = self._spread
        return bool(
            self._n_cut[0] <= max(_ALWAYS_ALLOWED_CUT, _MAX_CUT_SHARE * self.n_samples_)
            and kept >= min(self.explained, _MIN_EXPLAINED) * self.explained * in_all
        )

    def query(
        self,
        Q: npt.ArrayLike,
        k: int = 10,
        *,
        n_probes: int | None = None,
        allowed: BoolArray | None = None,
    ) -> Answers:
        """The nearest rows that the most promising leaves hold, nearest first; equal distances by the lower id.

        Leaves are looked into until there are enough rows: as many come back as from :class:`ExactIndex`.

        Parameters
        ----------
        Q, k, allowed
            As of :meth:`ExactIndex.query`.
        n_probes : int >= 1, optional
            Instead of the index's own. Where only some rows are allowed it is multiplied by ``n / n_allowed``, unless
            comparing with each of them takes less time.

        Returns
        -------
        distances, ids
            As of :meth:`ExactIndex.query`.

        Raises
        ------
        ValueError
            If an argument is out of range or does not fit the rows.
        """
        probes = self.n_probes if n_probes is None else n_probes
        _check_probes(probes)
        return self._answers(Q, k, allowed, partial(self._from_leaves, n_probes=probes))

    def _from_leaves(
        self,
        Q: Float32Array,
        shown: Uint8Array,
        n_shown: int,
        distances: Float32Array,
        ids: Int64Array,
        *,
        n_probes: int,
    ) -> None:
        probes = min(-(-n_probes * self.n_samples_ // n_shown), self.n_leaves_)
        few = None
        if len(shown) and n_shown <= _ROWS_A_LEAF * probes:
            few = np.flatnonzero(shown).astype(np.int32)

        def ask(part: slice) -> None:
            if few is None:
                self._probe(Q[part], probes, shown, n_shown, distances[part], ids[part])
            else:
                self._compare(Q[part], few, distances[part], ids[part])

        ask_parts(len(Q), self.n_jobs, ask)

    def _compare(
        self,
        Q: Float32Array,
        rows: Int32Array,
        distances: Float32Array,
        ids: Int64Array,
    ) -> None:
        for i, query in enumerate(Q):
            kernels.nearest_of(self._X, query, rows, distances[i], ids[i])

    def _probe(
        self,
        Q: Float32Array,
        n_probes: int,
        shown: Uint8Array,
        n_shown: int,
        distances: Float32Array,
        ids: Int64Array,
    ) -> None:
        trees, k = self._trees, ids.shape[1]
        # codes are rounded: the exact distance chooses among some more
        n_best = min(k + k // 2 + 10, n_shown)
        kernels.probe(
            self._X, Q, self._centre, self._axes, trees.nodes, trees.leaves, trees.items, trees.codes,
            np.float32(trees.step), self._sharpness[0], trees.roots, shown, n_probes, trees.longest, n_best,
            distances, ids,
        )  # fmt: skip


def _check_probes(n_probes: int) -> None:
    if not (isinstance(n_probes, Integral) and n_probes >= 1):
        raise ValueError(f"n_probes={n_probes!r} should be a whole number of at least 1.")


def _sharpness(trees: Trees, Y: Float32Array) -> Float32Array:
    """One over the root mean square by which neighbours differ along an axis, of shape (1,).

    Taken from the nearest in the same leaf, of some leaves; a factor of two makes no difference to the order.
    """
    chosen = (
        np.unique(np.linspace(0, trees.n_leaves - 1, _SPACING_LEAVES).astype(np.int64))
        if trees.n_leaves
        else ()
    )
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


def _main_axes(
    X: Float32Array, explained: float, seed: int
) -> tuple[Float32Array, Float32Array, Float64Array]:
    """The axes that keep a share of the variance of a sample of rows.

    Returns
    -------
    centre : (d,)
    axes : (d, n_axes)
    spread : (3,)
        Of squared distances from the centre: what the axes keep of their sum over all rows, this sum, and the largest.
    """
    n, d = X.shape
    if n == 0:
        return np.zeros(d, np.float32), np.eye(d, max(1, d), dtype=np.float32), np.full(3, _MIN_FLOAT32)
    chosen = np.sort(np.random.default_rng(seed).permutation(n)[:_BASIS_ROWS])
    sample = X[chosen].astype(np.float64)
    centre = sample.mean(axis=0)
    sample -= centre
    variances, axes = np.linalg.eigh(sample.T @ sample)
    variances, axes = np.maximum(variances[::-1], 0.0), axes[:, ::-1]
    kept = np.cumsum(variances) < explained * variances.sum() * (1 - 1e-9)
    n_axes = min(int(kept.sum()) + 1, d)
    each = n / len(sample)
    largest = max(float(np.einsum("ij,ij->i", sample, sample).max()), _MIN_FLOAT32)
    spread = np.array([each * variances[:n_axes].sum(), each * variances.sum(), largest])
    return centre.astype(np.float32), np.ascontiguousarray(axes[:, :n_axes], dtype=np.float32), spread
