"""Base class of hashes, which turn rows into bits and bits into codes."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from musicsim._arrays import BoolArray, Float64Array, Uint64Array
from musicsim._checks import check_whole
from musicsim.hashing._kernels import MAX_BITS
from musicsim.hashing.packing import pack_bits

ROWS_AT_ONCE = 4096  # Rows per block; a transform takes about 16 bytes times (columns + bits) per row
_MAX_ENTRY = 1e140  # Sums of squares of numbers between 1 / _MAX_ENTRY and _MAX_ENTRY neither overflow nor underflow


class BitHash(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base class of hashes with codes of `n_bits` bits; subclasses implement :meth:`_bits`."""

    n_bits: int

    def transform(self, X: npt.ArrayLike) -> Uint64Array:
        """Return the codes of rows.

        Parameters
        ----------
        X : array-like of shape (n_songs, d)

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
        rows: Float64Array = validate_data(self, X, dtype=np.float64, reset=False)
        starts = range(0, len(rows), ROWS_AT_ONCE)
        return np.concatenate([pack_bits(self._bits(rows[start : start + ROWS_AT_ONCE])) for start in starts])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # codes are integers
        return tags

    def _bits(self, rows: Float64Array) -> BoolArray:
        raise NotImplementedError

    def _check_training(self, X: npt.ArrayLike) -> Float64Array:
        check_whole("n_bits", self.n_bits, 1, MAX_BITS)
        rows: Float64Array = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        if (rows == rows[0]).all():
            raise ValueError("All rows of X are equal; there is nothing to learn from.")
        size = max(rows.max(), -rows.min())
        if size >= _MAX_ENTRY or np.ptp(rows, axis=0).max() * _MAX_ENTRY <= 1:
            raise ValueError(
                f"X has entries up to {size:.2g}; scale X so that its entries are below {_MAX_ENTRY:.0e} and differ "
                f"by more than {1 / _MAX_ENTRY:.0e}."
            )
        return rows

    @property
    def _n_features_out(self) -> int:
        return -(-self.n_bits // 64)


def principal_axes(centered: Float64Array, max_axes: int) -> tuple[Float64Array, Float64Array]:
    """Return the variances in descending order and the axes (d, r) of centered rows, without axes of variance 0.

    The largest entry of each axis is positive.
    """
    variances, axes = np.linalg.eigh(centered.T @ centered / len(centered))
    variances, axes = variances[::-1], axes[:, ::-1]
    # variances below this share of the largest are rounding errors
    r = min(int(np.count_nonzero(variances > 1e-10 * variances[0])), max_axes)
    variances, axes = variances[:r], axes[:, :r]
    largest = axes[np.abs(axes).argmax(axis=0), np.arange(r)]
    return variances, axes * np.where(largest < 0, -1.0, 1.0)
