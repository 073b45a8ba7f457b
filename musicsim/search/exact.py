"""Exact Euclidean nearest neighbors: compare each query with every row."""

from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float32Array, Int64Array, Uint8Array
from musicsim.blas import one_blas_thread
from musicsim.search._rows import check_n_jobs, check_rows, map_parts
from musicsim.search._vector_index import VectorIndex

# Maximum number of queries, and of distances, in memory; with fewer queries, more rows are compared at a time.
BLOCK_QUERIES, PART_ENTRIES = 256, 1 << 22
# Number of candidates beyond the k nearest. |x|^2 - 2qx loses precision, so exact differences decide between
# candidates. If rounding cannot separate any of these candidates, all rows within the rounding error are compared.
_SPARE = 16
_CENTER_ROWS = 1001
_BLOCK_ROWS = 16_384


class ExactIndex(VectorIndex):
    """Find the nearest songs by comparing all of them; exact, and fast enough for 100,000 songs.

    Nearest neighbors by brute force: the ground truth for other indexes.

    Parameters
    ----------
    n_jobs : int or None
        Number of threads for many queries: -1 is one per core. With None, only the matrix products use several threads.
        Results do not depend on it.

    Attributes
    ----------
    n_samples_, n_features_in_ : int

    See Also
    --------
    PartitionIndex : For more songs.
    calibrate : Compares an index with this one.

    Notes
    -----
    Memory of a query: 16 MB of distances, and 3 k kB.
    """

    def __init__(self, *, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs

    def fit(self, X: npt.ArrayLike, y: None = None) -> Self:
        """Store the rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features); a float32 memory map is not copied
        """
        check_n_jobs(self.n_jobs)
        self._take(check_rows(X, "X"))
        self._center = _medians(self._X)
        self._longest = self._farthest = 0.0
        self._halves = self._half_squares(self._X)
        return self

    def save(self, folder: str | Path) -> None:
        """Raise NotImplementedError, because this index has nothing to save except its rows."""
        raise NotImplementedError("an ExactIndex cannot be saved: save its rows, and fit it to them again.")

    def _insert(self, rows: Float32Array, first: int) -> None:
        self._halves = np.concatenate([self._halves, self._half_squares(rows)])

    def _fill_nearest(
        self, Q: Float32Array, shown: Uint8Array, n_shown: int, distances: Float32Array, ids: Int64Array
    ) -> None:
        rows = np.flatnonzero(shown.view(np.bool_)) if len(shown) else None

        def search(part: slice) -> None:
            self._compare(Q[part], rows, n_shown, distances[part], ids[part])

        if self.n_jobs is None:
            search(slice(None))
        else:
            with one_blas_thread():
                map_parts(len(Q), self.n_jobs, search)

    def _compare(
        self, Q: Float32Array, rows: Int64Array | None, n_shown: int, distances: Float32Array, ids: Int64Array
    ) -> None:
        """Fill in the neighbors of queries among `rows` (None for all), of which there are `n_shown`."""
        k = ids.shape[1]
        for start in range(0, len(Q), BLOCK_QUERIES):
            centered = Q[start : start + BLOCK_QUERIES] - self._center
            values, candidates = self._candidates(centered, min(k + _SPARE, n_shown), rows)
            limits = values[:, k - 1] + 2 * self._rounding_errors(centered)
            for i, limit in enumerate(limits):
                chosen = candidates[i]
                if len(chosen) < n_shown and values[i, -1] <= limit:
                    chosen = self._rows_within(limit, centered[i], rows)
                exact = np.linalg.norm(self._X[chosen] - Q[start + i], axis=1)
                order = np.lexsort((chosen, exact))[:k]
                distances[start + i], ids[start + i] = exact[order], chosen[order]

    def _half_squares(self, X: Float32Array) -> Float32Array:
        """Return half of each squared distance from the center; update the maximum and the longest row's length."""
        halves = np.empty(len(X), np.float32)
        for start in range(0, len(X), _BLOCK_ROWS):
            block = X[start : start + _BLOCK_ROWS]
            self._longest = max(self._longest, float(np.einsum("ij,ij->i", block, block).max()) ** 0.5)
            block = block - self._center
            halves[start : start + _BLOCK_ROWS] = 0.5 * np.einsum("ij,ij->i", block, block)
        self._farthest = max(self._farthest, float(halves.max(initial=0.0)))
        return halves

    def _rounding_errors(self, Q: Float32Array) -> Float32Array:
        """Return an upper bound on the rounding error of each centered query's values, (n_queries,)."""
        eps = np.finfo(np.float32).eps
        size = self._longest * np.linalg.norm(Q, axis=1) + self._farthest
        # the rounding error of a sum of d products grows as the square root of d
        return (4 + self.n_features_in_**0.5) * eps * size

    def _rows_within(self, limit: float, q: Float32Array, rows: Int64Array | None) -> Int64Array:
        """Return all rows whose value for a centered query is at most `limit`."""
        numbers = np.arange(self.n_samples_) if rows is None else rows
        parts = [numbers[start : start + _BLOCK_ROWS] for start in range(0, len(numbers), _BLOCK_ROWS)]
        return np.concatenate([part[self._halves[part] - self._X[part] @ q <= limit] for part in parts])

    def _candidates(self, Q: Float32Array, m: int, rows: Int64Array | None) -> tuple[Float32Array, Int64Array]:
        """Return values and ids of the `m` rows nearest to each centered query, up to rounding; lower ids win ties."""
        n = self.n_samples_ if rows is None else len(rows)
        size = max(m, PART_ENTRIES // len(Q))
        best = np.full((len(Q), m), np.inf, np.float32)
        ids = np.full((len(Q), m), -1, np.int64)
        for start in range(0, n, size):
            numbers = None if rows is None else rows[start : start + size]
            part = slice(start, start + size) if numbers is None else numbers
            # half of |x - q|^2 without |q|^2, which is the same for all x; values are small near the center
            D = self._halves[part] - Q @ self._X[part].T
            for i, values in enumerate(D):
                limit = best[i, -1]
                columns = np.flatnonzero(values < limit) if np.isfinite(limit) else np.arange(len(values))
                if len(columns) > m:
                    limit = np.partition(values[columns], m - 1)[m - 1]
                    columns = columns[values[columns] <= limit]
                if not len(columns):
                    continue
                new_ids = columns + start if numbers is None else numbers[columns]
                merged = np.concatenate([best[i], values[columns]])
                order = np.argsort(merged, kind="stable")[:m]
                best[i], ids[i] = merged[order], np.concatenate([ids[i], new_ids])[order]
        return best, ids


def _medians(X: Float32Array) -> Float32Array:
    """Return each column's lower median over a sample; it is an entry of the column, so integers stay integers."""
    if not len(X):
        return np.zeros(X.shape[1], np.float32)
    sample = X[np.linspace(0, len(X) - 1, min(len(X), _CENTER_ROWS)).astype(np.int64)]
    return np.partition(sample, (len(sample) - 1) // 2, axis=0)[(len(sample) - 1) // 2]
