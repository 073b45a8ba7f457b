"""Base classes of the indexes that keep rows in leaves: spill tree, forest, and partition, whose cells are leaves."""

from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from musicsim._arrays import BoolArray, Float32Array, Float64Array, Int32Array, Int64Array, Uint8Array
from musicsim._checks import check_whole
from musicsim._npy import save_array
from musicsim.search import _query_kernels as kernels
from musicsim.search._leaves import SMALLEST, Leaves
from musicsim.search._rows import Neighbors, check_n_jobs, check_rows, map_parts
from musicsim.search._vector_index import VectorIndex
from musicsim.search.code_kernels import code_size
from musicsim.search.tree_kernels import measure_spread

# Minimum number of sampled rows, in total and per column, from which axes are computed.
_BASIS_ROWS, _BASIS_ROWS_PER_COLUMN = 5_000, 5
_BLOCK_ROWS = 16_384
# An index that has grown by more than this factor is rebuilt: its axes, codes and leaves fit only its first rows.
_MAX_GROWTH = 2.0
# An index is rebuilt if more than this share of its codes, and more than this number of codes, are clipped.
# Up to ten clipped rows do no harm: they are always among the best by code, so they are ranked by exact distance.
_MAX_CLIPPED_SHARE, _ALWAYS_ALLOWED_CLIPPED = 0.01, 10
_MIN_EXPLAINED = 0.999  # The index is rebuilt if axes keep less than min(explained, this) * explained of the variance
# Number of rows that can be compared in the time of scanning a leaf: a minimum, and a share of the leaf's rows.
ROWS_PER_LEAF, _SHARE_OF_LEAF = 12, 1 / 8


class TreeIndex(VectorIndex):
    """Base class of the indexes with leaves."""

    # arrays that are saved next to the leaves: a dict from file name to attribute and type
    _SAVED: ClassVar[dict[str, tuple[str, type[np.generic]]]] = {}
    _LEAVES: ClassVar[type[Leaves]]
    n_jobs: int | None
    random_state: int | np.random.Generator | None
    trees_: Leaves

    def fit(self, X: npt.ArrayLike, y: None = None) -> Self:
        """Build the index over rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features); float32 rows are not copied
        """
        rows = check_rows(X, "X")
        self._check_options()
        seeds = np.random.default_rng(self.random_state).integers(2**63, size=self._n_seeds).tolist()
        trees = self._grow(rows, tuple(seeds))
        self._take(rows)
        self.trees_, self.n_built_ = trees, len(rows)
        return self

    @property
    def _n_seeds(self) -> int:
        """Number of seeds: one per tree, and one for the axes if there are any."""
        return 1

    @property
    def _width(self) -> int:
        """Number of columns of a row in the space of the leaves."""
        return self.n_features_in_

    def _grow(self, rows: Float32Array, seeds: tuple[int, ...]) -> Leaves:
        raise NotImplementedError

    def _check_options(self) -> None:
        raise NotImplementedError

    @property
    def n_leaves_(self) -> int:
        """Number of leaves in all trees."""
        return self.trees_.n_leaves

    @property
    def nbytes_(self) -> int:
        """Memory in bytes, in addition to the rows."""
        return self.trees_.nbytes

    def _insert(self, rows: Float32Array, first: int) -> None:
        if not self._try_insert(rows, first):
            seeds = self.trees_.seeds  # does not include the seed of the axes
            self.trees_ = self._grow(self._X, seeds if self._n_seeds == 1 else (*seeds, seeds[0]))
            self.n_built_ = self.n_samples_

    def _try_insert(self, rows: Float32Array, first: int) -> bool:
        """Insert rows into the leaves; return False if the index must be rebuilt instead."""
        raise NotImplementedError

    def _write(self, folder: Path) -> None:
        self.trees_.save(folder)
        for name, (attribute, _) in self._SAVED.items():
            save_array(folder / f"{name}.npy", getattr(self, attribute))

    def _read(self, folder: Path) -> None:
        self.trees_ = self._LEAVES.load(folder)
        self._check_options()
        check_n_jobs(self.n_jobs)
        for name, (attribute, dtype) in self._SAVED.items():
            array = np.load(folder / f"{name}.npy", allow_pickle=False)
            if array.dtype != dtype:
                raise ValueError(f"{name}.npy has type {array.dtype}; it must be {np.dtype(dtype)}.")
            setattr(self, attribute, array)
        # the compiled loops use every stored number without checking it
        if not self.trees_.fits(self._width, self.n_samples_):
            raise ValueError("The trees do not match the rows.")


class ProbedIndex(TreeIndex):
    """Base class of the indexes whose queries scan the `n_probes` most promising leaves, with codes along main axes."""

    _SAVED: ClassVar = {
        "centre": ("center_", np.float32),
        "axes": ("axes_", np.float32),
        "spread": ("_spread", np.float64),
        "n_cut": ("_n_cut", np.int64),
    }
    n_probes: int
    explained: float
    center_: Float32Array
    axes_: Float32Array
    _spread: Float64Array  # (3,): squared distances from the center: sum along the axes, total sum, maximum
    _n_cut: Int64Array  # (1,): number of rows whose codes are clipped

    def _check_options(self) -> None:
        if not 0 < self.explained <= 1:
            raise ValueError(f"explained={self.explained} must be above 0 and at most 1.")
        _check_probes(self.n_probes)

    @property
    def fewest_probes_(self) -> int:
        return 1

    @property
    def n_axes_(self) -> int:
        return self.axes_.shape[1]

    @property
    def _width(self) -> int:
        return self.n_axes_

    def _read(self, folder: Path) -> None:
        super()._read(folder)
        shapes = self.center_.shape, self.axes_.shape, self._spread.shape, self._n_cut.shape
        d, n_codes = self.n_features_in_, len(self.trees_.codes)
        if shapes != ((d,), (d, self.n_axes_), (3,), (1,)):
            raise ValueError("The axes do not match the rows.")
        if n_codes != len(self.trees_.items) * code_size(self._width):
            raise ValueError("The codes do not match the axes.")

    def _set_axes(self, rows: Float32Array, seed: int) -> None:
        self.center_, self.axes_, self._spread = _main_axes(rows, self.explained, seed)
        self._n_cut = np.zeros(1, np.int64)

    def _along_axes(self, rows: Float32Array) -> Float32Array:
        """Return the coordinates of rows along the main axes, float32 (n_rows, n_axes)."""
        Y = np.empty((len(rows), self.axes_.shape[1]), np.float32)
        for start in range(0, len(rows), _BLOCK_ROWS):
            block = slice(start, start + _BLOCK_ROWS)
            np.matmul(rows[block] - self.center_, self.axes_, out=Y[block])
        return Y

    def _try_insert(self, rows: Float32Array, first: int) -> bool:
        if self.n_samples_ > _MAX_GROWTH * self.n_built_:
            return False
        for start in range(0, len(rows), _BLOCK_ROWS):
            block = rows[start : start + _BLOCK_ROWS]
            Y = self._along_axes(block)
            if not (self._still_fits(block, Y) and self._add_to_leaves(block, Y, first + start)):
                return False
        return True

    def _add_to_leaves(self, rows: Float32Array, Y: Float32Array, first: int) -> bool:
        """Add rows with coordinates Y along the axes; return False if the leaves must be regrown."""
        raise NotImplementedError

    def _still_fits(self, rows: Float32Array, Y: Float32Array) -> bool:
        """Return whether codes and axes still fit all rows, including these new ones."""
        reach, largest = np.float32(127.5 * self.trees_.step), self._spread[2]
        n_clipped, explained, total = measure_spread(rows, Y, self.center_, reach, largest)
        self._n_cut = self._n_cut + n_clipped
        self._spread = self._spread + np.array([explained, total, 0.0])
        explained, total, _ = self._spread
        return bool(
            self._n_cut[0] <= max(_ALWAYS_ALLOWED_CLIPPED, _MAX_CLIPPED_SHARE * self.n_samples_)
            and explained >= min(self.explained, _MIN_EXPLAINED) * self.explained * total
        )

    def query(
        self, Q: npt.ArrayLike, k: int = 10, *, n_probes: int | None = None, allowed: BoolArray | None = None
    ) -> Neighbors:
        """Return the nearest rows in the most promising leaves; ties are ordered by id.

        Additional leaves are scanned until there are as many results as :class:`ExactIndex` would return.

        Parameters
        ----------
        Q, k, allowed : as in :meth:`ExactIndex.query`
        n_probes : int >= 1, optional
            Number of leaves to scan; by default the `n_probes` of the index. If only some rows are allowed, it is
            multiplied by ``n / n_allowed``, unless comparing with every allowed row is faster.

        Returns
        -------
        distances, ids : as in :meth:`ExactIndex.query`
        """
        probes = self.n_probes if n_probes is None else n_probes
        _check_probes(probes)
        return self._search(Q, k, allowed, self._fill_from_leaves, probes)

    def _fill_from_leaves(
        self, Q: Float32Array, shown: Uint8Array, n_shown: int, distances: Float32Array, ids: Int64Array, n_probes: int
    ) -> None:
        if len(shown):
            n_probes = -(-n_probes * self.n_samples_ // n_shown)
        probes = min(n_probes, self.n_leaves_)
        rows_per_leaf = max(ROWS_PER_LEAF, _SHARE_OF_LEAF * self.n_samples_ / self.n_leaves_)
        if len(shown) and n_shown <= probes * rows_per_leaf:
            few = np.flatnonzero(shown.view(np.bool_)).astype(np.int32)  # 14 times faster with bool than with bytes
            map_parts(len(Q), self.n_jobs, lambda part: self._compare(Q[part], few, distances[part], ids[part]))
        elif len(Q) == 1:  # without `map_parts`, which would take about as long as the search
            self._probe(Q, probes, shown, n_shown, distances, ids)
        else:
            map_parts(
                len(Q),
                self.n_jobs,
                lambda part: self._probe(Q[part], probes, shown, n_shown, distances[part], ids[part]),
            )

    def _compare(self, Q: Float32Array, rows: Int32Array, distances: Float32Array, ids: Int64Array) -> None:
        for i, query in enumerate(Q):
            kernels.rank_rows(self._X, query, rows, distances[i], ids[i])

    def _probe(
        self, Q: Float32Array, n_probes: int, shown: Uint8Array, n_shown: int, distances: Float32Array, ids: Int64Array
    ) -> None:
        """Fill distances and ids from the leaves. An empty `shown` allows all rows; the other arrays are not empty."""
        raise NotImplementedError


def _check_probes(n_probes: int) -> None:
    if type(n_probes) is not int or n_probes < 1:  # a quick test that avoids the slower check
        check_whole("n_probes", n_probes, 1)


def _main_axes(X: Float32Array, explained: float, seed: int) -> tuple[Float32Array, Float32Array, Float64Array]:
    """Return center (d,), axes (d, n_axes) that keep a share of the variance of a sample, and spread (3,)."""
    n, d = X.shape
    if n == 0:
        return np.zeros(d, np.float32), np.eye(d, max(1, d), dtype=np.float32), np.full(3, SMALLEST)
    chosen = np.sort(np.random.default_rng(seed).permutation(n)[: max(_BASIS_ROWS, _BASIS_ROWS_PER_COLUMN * d)])
    sample = X[chosen].astype(np.float64)
    center = sample.mean(axis=0)
    sample -= center
    variances, axes = np.linalg.eigh(sample.T @ sample)
    variances, axes = np.maximum(variances[::-1], 0.0), axes[:, ::-1]
    is_too_little = np.cumsum(variances) < explained * variances.sum() * (1 - 1e-9)
    n_axes = min(int(is_too_little.sum()) + 1, d)
    scale = n / len(sample)
    largest = max(float(np.einsum("ij,ij->i", sample, sample).max()), SMALLEST)
    spread = np.array([scale * variances[:n_axes].sum(), scale * variances.sum(), largest])
    return center.astype(np.float32), np.ascontiguousarray(axes[:, :n_axes], dtype=np.float32), spread
