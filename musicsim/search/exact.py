"""Exact Euclidean neighbours by comparing with every row."""

from typing import Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from musicsim.search._rows import Answers, Index, checked

__all__ = ["ExactIndex"]

# Rows whose distances are held at once; of single queries more, so that the loop over parts costs nothing.
_PART_ENTRIES = 1 << 22

# Found beside the k nearest: |x|^2 - 2qx loses digits, and the differences themselves decide between near ones.
_SPARE = 16


class ExactIndex(Index):
    """Neighbours by brute force: the truth that other indexes are measured against.

    Parameters
    ----------
    block_rows : int
        Queries that are compared at once. Memory: 16 MB of distances, and ``12 * block_rows * k`` bytes.

    Attributes
    ----------
    n_samples_ : int
    n_features_in_ : int
    """

    def __init__(self, block_rows: int = 256) -> None:
        self.block_rows = block_rows

    def fit(self, X: npt.ArrayLike, y: None = None) -> Self:
        """Take the rows to search in; a float32 memory map is used in place, not copied.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Raises
        ------
        ValueError
            If `X` is not two-dimensional or holds NaN, or `block_rows` is below 1.
        """
        if self.block_rows < 1:
            raise ValueError(f"block_rows={self.block_rows} should be at least 1.")
        self._take(checked(X, "X"))
        self._halves = _half_squares(self._X)
        return self

    def add(self, X: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Add rows after :meth:`fit`; returns their ids, shape (n_new,)."""
        check_is_fitted(self, "n_samples_")
        rows = self._same_width(X, "X")
        first = self._append(rows)
        self._halves = np.concatenate([self._halves, _half_squares(rows)])
        return np.arange(first, self.n_samples_)

    def query(
        self, Q: npt.ArrayLike, k: int = 10, *, allowed: npt.NDArray[np.bool_] | None = None
    ) -> Answers:
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
            If `Q` has another width than the rows or holds NaN, `k` is below 1, or `allowed` has another length.
        """
        queries = self._asked(Q, k)
        shown, n_shown = self._visible(allowed)
        rows = np.flatnonzero(shown) if len(shown) else None
        k = min(k, n_shown)
        distances = np.empty((len(queries), k), dtype=np.float32)
        nearest = np.empty((len(queries), k), dtype=np.int64)
        for start in range(0, len(queries) if k else 0, self.block_rows):
            block = slice(start, start + self.block_rows)
            candidates = self._candidates(queries[block], min(k + _SPARE, n_shown), rows)
            for i, chosen in enumerate(candidates, start):
                exact = np.linalg.norm(self._X[chosen] - queries[i], axis=1)
                order = np.lexsort((chosen, exact))[:k]
                distances[i], nearest[i] = exact[order], chosen[order]
        return distances, nearest

    def _candidates(
        self, Q: npt.NDArray[np.float32], m: int, rows: npt.NDArray[np.int64] | None
    ) -> npt.NDArray[np.int64]:
        """The `m` nearest of each query up to rounding, ties by the lower id; int64 (n_queries, m)."""
        n = self.n_samples_ if rows is None else len(rows)
        size = max(m, _PART_ENTRIES // len(Q))
        best = np.full((len(Q), m), np.inf, np.float32)
        ids = np.full((len(Q), m), -1, np.int64)
        for start in range(0, n, size):
            numbers = None if rows is None else rows[start : start + size]
            part = slice(start, start + size) if numbers is None else numbers
            # half of |x - q|^2 without |q|^2, which changes no order
            D = self._halves[part] - Q @ self._X[part].T
            for i, values in enumerate(D):
                limit = best[i, -1]
                columns = np.flatnonzero(values < limit) if np.isfinite(limit) else np.arange(len(values))
                if len(columns) > m:
                    limit = np.partition(values[columns], m - 1)[m - 1]
                    columns = columns[values[columns] <= limit]
                if not len(columns):
                    continue
                found = columns + start if numbers is None else numbers[columns]
                merged = np.concatenate([best[i], values[columns]])
                order = np.argsort(merged, kind="stable")[:m]
                best[i], ids[i] = merged[order], np.concatenate([ids[i], found])[order]
        return ids


def _half_squares(X: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return 0.5 * np.einsum("ij,ij->i", X, X)
