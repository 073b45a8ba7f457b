"""Exact Euclidean neighbours by comparing with every row."""

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

__all__ = ["ExactIndex"]


class ExactIndex(BaseEstimator):
    """Neighbours by brute force: the truth that other indexes are measured against.

    Parameters
    ----------
    block_rows : int
        Queries whose distances are held at once: ``4 * block_rows * n`` bytes (100 MB for 256 queries
        and 100 000 rows).

    Attributes
    ----------
    n_samples_ : int
    n_features_in_ : int
    """

    def __init__(self, block_rows: int = 256) -> None:
        self.block_rows = block_rows

    def fit(self, X: npt.ArrayLike, y: None = None) -> "ExactIndex":
        """Take the rows to search in; a float32 memory map is used in place, not copied.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored
        """
        self._X = _checked(X, "X")
        self._squares = np.einsum("ij,ij->i", self._X, self._X)
        self.n_samples_, self.n_features_in_ = self._X.shape
        return self

    def add(self, X: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Add rows after :meth:`fit`; returns their ids, shape (n_new,)."""
        check_is_fitted(self, "n_samples_")
        first = self.n_samples_
        self.fit(np.concatenate([self._X, self._same_width(X, "X")]))
        return np.arange(first, self.n_samples_)

    def query(
        self, Q: npt.ArrayLike, k: int = 10, *, allowed: npt.NDArray[np.bool_] | None = None
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
        """The `k` nearest rows of each query, nearest first; equal distances by the lower id.

        Parameters
        ----------
        Q : array-like of shape (n_queries, n_features)
        k : int >= 1
            Fewer come back when fewer rows are allowed.
        allowed : bool ndarray of shape (n_samples,), optional
            Rows that may be answers; all by default.

        Returns
        -------
        distances : float32 ndarray of shape (n_queries, min(k, n_allowed))
        ids : int64 ndarray of the same shape

        Raises
        ------
        ValueError
            If `Q` has another width than the rows, or `k` is below 1.
        """
        check_is_fitted(self, "n_samples_")
        Q = self._same_width(Q, "Q")
        if k < 1:
            raise ValueError(f"k={k} should be at least 1.")
        ids = np.arange(self.n_samples_) if allowed is None else np.flatnonzero(allowed)
        X = self._X if allowed is None else self._X[ids]
        squares = self._squares[ids]
        k = min(k, len(ids))
        distances = np.empty((len(Q), k), dtype=np.float32)
        nearest = np.empty((len(Q), k), dtype=np.int64)
        for start in range(0, len(Q) if k else 0, self.block_rows):
            block = slice(start, start + self.block_rows)
            D = squares[None, :] - 2.0 * (Q[block] @ X.T)  # the query's own norm changes no order
            columns = _smallest(D, k)
            nearest[block] = ids[columns]
            # the differences themselves: |q|^2 - 2qx + |x|^2 loses the digits of a near-zero distance
            for row, chosen in enumerate(columns):
                distances[start + row] = np.linalg.norm(X[chosen] - Q[start + row], axis=1)
        return distances, nearest

    def _same_width(self, rows: npt.ArrayLike, name: str) -> npt.NDArray[np.float32]:
        checked = _checked(rows, name)
        if checked.shape[1] != self.n_features_in_:
            raise ValueError(f"{name} has {checked.shape[1]} columns, the index has {self.n_features_in_}.")
        return checked


def _checked(rows: npt.ArrayLike, name: str) -> npt.NDArray[np.float32]:
    rows = np.asanyarray(rows, dtype=np.float32)
    if rows.ndim != 2:
        raise ValueError(f"{name} should be two-dimensional, one song a row; its shape is {rows.shape}.")
    if not np.isfinite(rows).all():
        raise ValueError(f"{name} holds NaN or infinite values.")
    return rows


def _smallest(D: npt.NDArray[np.float32], k: int) -> npt.NDArray[np.int64]:
    """Columns of the `k` smallest entries of each row, smallest first, ties by the lower column."""
    if k == D.shape[1]:
        return np.argsort(D, axis=1, kind="stable")
    threshold = np.partition(D, k - 1, axis=1)[:, k - 1]
    columns = np.empty((len(D), k), dtype=np.int64)
    for row, values in enumerate(D):
        candidates = np.flatnonzero(values <= threshold[row])
        columns[row] = candidates[np.argsort(values[candidates], kind="stable")[:k]]
    return columns
