"""Base of all hashes: rows to bits, bits to codes."""

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from musicsim._arrays import BoolArray, Float64Array, Uint64Array
from musicsim._checks import check_whole
from musicsim.hashing._kernels import MAX_BITS
from musicsim.hashing.packing import pack_bits

_ROWS_AT_ONCE = 4096
"""Memory of a transform besides rows and codes: some 16 bytes times (columns + bits) a row of them."""

_MAX_ENTRY = 1e140
"""Squares of what lies between its inverse and this, and their sums over all rows, are floats."""


class BitHash(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Codes of `n_bits` bits; a subclass says in :meth:`_bits` how they come about."""

    n_bits: int

    def transform(self, X: npt.ArrayLike) -> Uint64Array:
        """The codes of rows.

        Parameters
        ----------
        X : array-like of shape (n_songs, d)

        Returns
        -------
        uint64 ndarray of shape (n_songs, ceil(n_bits / 64))
            Bit j is bit ``j % 64`` of word ``j // 64``, least significant first; bits from `n_bits` on are 0.

        Notes
        -----
        A fitted hash gives a row the same code in every process, with any number of threads and on any machine with
        IEEE floats: rows and weights are rounded to grids on which the projection is exact, whatever the order of
        its sums. A projection of exactly 0, where h is 0.5, gives a 0. Rows may reach 8 times as far from the mean as
        the training rows in every column; what is farther is cut.
        """
        check_is_fitted(self)
        rows: Float64Array = validate_data(self, X, dtype=np.float64, reset=False)
        parts = [
            pack_bits(self._bits(rows[start : start + _ROWS_AT_ONCE])) for start in range(0, len(rows), _ROWS_AT_ONCE)
        ]
        return np.concatenate(parts)

    def _bits(self, rows: Float64Array) -> BoolArray:
        raise NotImplementedError

    def _checked_rows(self, X: npt.ArrayLike) -> Float64Array:
        """Training rows, after a look at `n_bits`."""
        check_whole("n_bits", self.n_bits, 1, MAX_BITS)
        rows: Float64Array = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        if (rows == rows[0]).all():
            raise ValueError("All rows of X are equal; there is nothing to tell songs apart by.")
        size = max(rows.max(), -rows.min())
        if size >= _MAX_ENTRY or np.ptp(rows, axis=0).max() * _MAX_ENTRY <= 1:
            raise ValueError(
                f"X has entries up to {size:.2g}; scale it so that they lie below {_MAX_ENTRY:.0e} and differ by more "
                f"than {1 / _MAX_ENTRY:.0e}."
            )
        return rows

    @property
    def _n_features_out(self) -> int:
        return -(-self.n_bits // 64)


def principal_axes(centered: Float64Array, most: int | None = None) -> tuple[Float64Array, Float64Array]:
    """Variances, falling, and axes (d, r) of rows about their mean, at most `most`; axes without variance are left out.

    The sign of an axis is such that its largest entry is positive.
    """
    variances, axes = np.linalg.eigh(centered.T @ centered / len(centered))
    variances, axes = variances[::-1], axes[:, ::-1]
    # below is rounding of the largest one
    r = int(np.count_nonzero(variances > 1e-10 * variances[0]))
    r = r if most is None else min(r, most)
    variances, axes = variances[:r], axes[:, :r]
    largest = axes[np.abs(axes).argmax(axis=0), np.arange(r)]
    return variances, axes * np.where(largest < 0, -1.0, 1.0)
