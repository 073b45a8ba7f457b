"""Rows that are dense or sparse (CSR): means and extremes of columns, and centered rows without a dense copy."""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from musicsim._arrays import Float64Array

Rows = Any
"""A dense array or a CSR array, (n, d), float64."""


def canonical_rows(X: Any) -> Rows:
    """Return dense rows unchanged, and sparse rows as a CSR array in which each entry occurs once."""
    if not sparse.issparse(X):
        return X
    rows = sparse.csr_array(X)
    if not rows.has_canonical_format:
        rows = rows.copy()  # the caller may own the arrays
        rows.sum_duplicates()
    return rows


def column_means(rows: Rows) -> Float64Array:
    """Return the mean of each column, (d,)."""
    return np.asarray(rows.mean(axis=0), dtype=np.float64).ravel()


def column_extremes(rows: Rows) -> tuple[Float64Array, Float64Array]:
    """Return the smallest and the largest entry of each column, both (d,)."""
    lows, highs = rows.min(axis=0), rows.max(axis=0)
    if sparse.issparse(lows):
        return lows.toarray().ravel(), highs.toarray().ravel()
    return lows, highs


class CenteredRows(LinearOperator):
    """Sparse rows minus their mean, as a matrix to multiply with; the difference is never stored."""

    def __init__(self, rows: sparse.csr_array) -> None:
        super().__init__(np.dtype(np.float64), rows.shape)
        self.rows, self.mean = rows, column_means(rows)

    def _matmat(self, X: Float64Array) -> Float64Array:
        return np.asarray(self.rows @ X - self.mean @ X)

    def _rmatmat(self, X: Float64Array) -> Float64Array:
        return np.asarray(self.rows.T @ X - np.outer(self.mean, X.sum(axis=0)))

    def covariance(self) -> Float64Array:
        """Return the covariance of the columns, (d, d)."""
        return (self.rows.T @ self.rows).toarray() / self.rows.shape[0] - np.outer(self.mean, self.mean)


def center_rows(rows: Rows) -> Any:
    """Return rows minus their mean: an array, or a :class:`CenteredRows`. Both can be multiplied with ``@``."""
    return CenteredRows(rows) if sparse.issparse(rows) else rows - rows.mean(axis=0)
