"""Base class of hashes, which turn rows into bits and bits into codes."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import svds
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from musicsim._arrays import BoolArray, Float64Array, Uint64Array
from musicsim._checks import check_whole
from musicsim._sparse_rows import CenteredRows, Rows, canonical_rows, column_extremes
from musicsim.hashing._kernels import MAX_BITS
from musicsim.hashing.packing import pack_bits

ROWS_AT_ONCE = 4096  # Rows per block; a transform takes about 16 bytes times (columns + bits) per row
_MAX_GRAM = 1_000  # Number of columns of sparse rows up to which their (d, d) covariance is computed
_MAX_ENTRY = 1e140  # Sums of squares of numbers between 1 / _MAX_ENTRY and _MAX_ENTRY neither overflow nor underflow


class BitHash(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base class of hashes with codes of `n_bits` bits; subclasses implement :meth:`_bits`."""

    n_bits: int

    def transform(self, X: npt.ArrayLike) -> Uint64Array:
        """Return the codes of rows.

        Parameters
        ----------
        X : array-like or SciPy sparse matrix of shape (n_songs, d)

        Returns
        -------
        uint64 ndarray of shape (n_songs, ceil(n_bits / 64))
            Bit j is bit ``j % 64`` of word ``j // 64``, least significant first; bits from `n_bits` upward are 0.

        Notes
        -----
        The code of a row does not depend on the process, the number of threads or the machine (with IEEE floats). To
        achieve this, rows and weights are rounded to grids on which sums are exact in any order. A projection of
        exactly 0, for which h is 0.5, gives the bit 0. In every column, rows are clipped at 8 times the largest
        distance between a training row and the mean.
        """
        check_is_fitted(self)
        rows = canonical_rows(validate_data(self, X, dtype=np.float64, accept_sparse="csr", reset=False))
        starts = range(0, rows.shape[0], ROWS_AT_ONCE)
        return np.concatenate([pack_bits(self._bits(rows[start : start + ROWS_AT_ONCE])) for start in starts])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # codes are integers
        tags.input_tags.sparse = True
        return tags

    def _bits(self, rows: Rows) -> BoolArray:
        raise NotImplementedError

    def _check_training(self, X: npt.ArrayLike) -> Rows:
        check_whole("n_bits", self.n_bits, 1, MAX_BITS)
        rows = canonical_rows(validate_data(self, X, dtype=np.float64, accept_sparse="csr", ensure_min_samples=2))
        lows, highs = column_extremes(rows)
        if (lows == highs).all():
            raise ValueError("All rows of X are equal; there is nothing to learn from.")
        size = max(highs.max(), -lows.min())
        if size >= _MAX_ENTRY or (highs - lows).max() * _MAX_ENTRY <= 1:
            raise ValueError(
                f"X has entries up to {size:.2g}; scale X so that its entries are below {_MAX_ENTRY:.0e} and differ "
                f"by more than {1 / _MAX_ENTRY:.0e}."
            )
        return rows

    @property
    def _n_features_out(self) -> int:
        return -(-self.n_bits // 64)


def principal_axes(centered: Any, max_axes: int) -> tuple[Float64Array, Float64Array]:
    """Return the variances in descending order and the axes (d, r) of centered rows, without axes of variance 0.

    `centered` is from :func:`center_rows`. The largest entry of each axis is positive. Sparse rows of many columns need
    no (d, d) matrix, and give at most min(n, d) - 1 axes.
    """
    if isinstance(centered, CenteredRows) and centered.shape[1] > _MAX_GRAM:
        variances, axes = _iterate_axes(centered, max_axes)
    else:
        covariance = (
            centered.covariance() if isinstance(centered, CenteredRows) else centered.T @ centered / len(centered)
        )
        variances, axes = np.linalg.eigh(covariance)
        variances, axes = variances[::-1], axes[:, ::-1]
    # variances below this share of the largest are rounding errors
    r = min(int(np.count_nonzero(variances > 1e-10 * variances[0])), max_axes)
    variances, axes = variances[:r], axes[:, :r]
    largest = axes[np.abs(axes).argmax(axis=0), np.arange(r)]
    return variances, axes * np.where(largest < 0, -1.0, 1.0)


def _iterate_axes(centered: CenteredRows, max_axes: int) -> tuple[Float64Array, Float64Array]:
    """Return the variances, descending, and the axes of sparse rows by Lanczos steps, in O(d) memory per axis."""
    k = min(max_axes, min(centered.shape) - 1)
    # the same start in every run; it is unlikely to be orthogonal to an axis
    start = np.random.default_rng(0).standard_normal(min(centered.shape))
    _, lengths, axes = svds(centered, k=k, v0=start)
    order = np.argsort(-lengths)
    return lengths[order] ** 2 / centered.shape[0], axes[order].T
