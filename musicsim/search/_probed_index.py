"""Base of the indexes that look into leaves of 8-bit codes, the most promising first, until they have seen enough."""

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from musicsim._arrays import BoolArray, Float32Array, Float64Array, Int32Array, Int64Array, Uint8Array
from musicsim._checks import check_whole
from musicsim.search import _query_kernels as kernels
from musicsim.search._code_kernels import code_size
from musicsim.search._kernels import beyond
from musicsim.search._leaves import SMALLEST, step_to
from musicsim.search._rows import Answers, ask_parts
from musicsim.search._tree_index import TreeIndex

# Rows that axes are worked out from: so many, and so many for each column where that is more.
_BASIS_ROWS, _BASIS_ROWS_A_COLUMN = 5_000, 5
_BLOCK_ROWS = 16_384
# An index that has grown by more is rebuilt: its axes, codes and leaves are those of the first rows.
_MAX_GROWTH = 2.0
# Rows whose codes are cut, as a share of all and however few there are, above which it is rebuilt. So few are all
# among the best by their codes, whose exact distances are compared.
_MAX_CUT_SHARE, _ALWAYS_ALLOWED_CUT = 0.01, 10
# It is rebuilt, too, where axes keep less than `explained` of what they should, or less than this if that is all.
_MIN_EXPLAINED = 0.999
# Rows that are compared, wherever they lie, in the time of looking into a leaf: a small one; a share of a large one's.
_ROWS_A_LEAF, _SHARE_OF_LEAF = 12, 1 / 8


class ProbedIndex(TreeIndex):
    """Rows along their main axes, codes in leaves, and a query that looks into `n_probes` of them."""

    _KEPT: ClassVar = {"centre": np.float32, "axes": np.float32, "spread": np.float64, "n_cut": np.int64}
    n_probes: int
    explained: float
    _centre: Float32Array
    _axes: Float32Array
    _spread: Float64Array
    _n_cut: Int64Array

    def _check_options(self) -> None:
        if not 0 < self.explained <= 1:
            raise ValueError(f"explained={self.explained} should be above 0 and at most 1.")
        _check_probes(self.n_probes)

    @property
    def fewest_probes_(self) -> int:
        """Leaves that a query looks into at least, for its time to be worth it."""
        return 1

    @property
    def n_axes_(self) -> int:
        """Main axes that are kept."""
        return self._axes.shape[1]

    @property
    def _width(self) -> int:
        return self.n_axes_

    def _fits(self) -> bool:
        d, width = self.n_features_in_, self._width
        return (
            (self._centre.shape, self._axes.shape) == ((d,), (d, self.n_axes_))
            and (self._spread.shape, self._n_cut.shape) == ((3,), (1,))
            and len(self._trees.codes) == len(self._trees.items) * code_size(width)
            and super()._fits()
        )

    def _take_axes(self, rows: Float32Array, seed: int) -> None:
        """Set the main axes to those of some rows."""
        self._centre, self._axes, self._spread = _main_axes(rows, self.explained, seed)
        self._n_cut = np.zeros(1, np.int64)

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
        for start in range(0, len(rows), _BLOCK_ROWS):
            block = rows[start : start + _BLOCK_ROWS]
            Y = self._along_axes(block)
            if not (self._suit(block, Y) and self._put(block, Y, first + start)):
                return False
        return True

    def _put(self, rows: Float32Array, Y: Float32Array, first: int) -> bool:
        """Put rows and their coordinates along the axes into leaves; False where these have to be regrown."""
        raise NotImplementedError

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
        self, Q: npt.ArrayLike, k: int = 10, *, n_probes: int | None = None, allowed: BoolArray | None = None
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
        return self._answers(Q, k, allowed, self._from_leaves, probes)

    def _from_leaves(
        self, Q: Float32Array, shown: Uint8Array, n_shown: int, distances: Float32Array, ids: Int64Array, n_probes: int
    ) -> None:
        if len(shown):
            n_probes = -(-n_probes * self.n_samples_ // n_shown)
        probes = min(n_probes, self.n_leaves_)
        if len(shown) and n_shown <= probes * self._rows_a_leaf():
            few = np.flatnonzero(shown.view(np.bool_)).astype(np.int32)  # bytes take fourteen times as long
            ask_parts(len(Q), self.n_jobs, lambda part: self._compare(Q[part], few, distances[part], ids[part]))
        elif len(Q) == 1:  # which takes little longer than parting it
            self._probe(Q, probes, shown, n_shown, distances, ids)
        else:
            ask_parts(
                len(Q),
                self.n_jobs,
                lambda part: self._probe(Q[part], probes, shown, n_shown, distances[part], ids[part]),
            )

    def _rows_a_leaf(self) -> float:
        """Rows that are compared, wherever they lie, in the time of looking into a leaf."""
        return max(_ROWS_A_LEAF, _SHARE_OF_LEAF * self.n_samples_ / self.n_leaves_)

    def _compare(self, Q: Float32Array, rows: Int32Array, distances: Float32Array, ids: Int64Array) -> None:
        for i, query in enumerate(Q):
            kernels.nearest_of(self._X, query, rows, distances[i], ids[i])

    def _probe(
        self, Q: Float32Array, n_probes: int, shown: Uint8Array, n_shown: int, distances: Float32Array, ids: Int64Array
    ) -> None:
        """Fill the answers from the leaves; none of the arrays is empty but `shown`, where all rows may be."""
        raise NotImplementedError


def _check_probes(n_probes: int) -> None:
    if type(n_probes) is not int or n_probes < 1:  # much quicker than the check
        check_whole("n_probes", n_probes, 1)


def code_step(Y: Float32Array) -> float:
    """The unit in which codes reach as far as all rows (n, width) do."""
    sizes = (float(np.abs(Y[i : i + _BLOCK_ROWS]).max()) for i in range(0, len(Y), _BLOCK_ROWS))
    return step_to(max(sizes, default=0.0))


def _main_axes(X: Float32Array, explained: float, seed: int) -> tuple[Float32Array, Float32Array, Float64Array]:
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
        return np.zeros(d, np.float32), np.eye(d, max(1, d), dtype=np.float32), np.full(3, SMALLEST)
    chosen = np.sort(np.random.default_rng(seed).permutation(n)[: max(_BASIS_ROWS, _BASIS_ROWS_A_COLUMN * d)])
    sample = X[chosen].astype(np.float64)
    centre = sample.mean(axis=0)
    sample -= centre
    variances, axes = np.linalg.eigh(sample.T @ sample)
    variances, axes = np.maximum(variances[::-1], 0.0), axes[:, ::-1]
    kept = np.cumsum(variances) < explained * variances.sum() * (1 - 1e-9)
    n_axes = min(int(kept.sum()) + 1, d)
    each = n / len(sample)
    largest = max(float(np.einsum("ij,ij->i", sample, sample).max()), SMALLEST)
    spread = np.array([each * variances[:n_axes].sum(), each * variances.sum(), largest])
    return centre.astype(np.float32), np.ascontiguousarray(axes[:, :n_axes], dtype=np.float32), spread
