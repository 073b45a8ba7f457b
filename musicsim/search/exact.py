"""Exact Euclidean nearest neighbors: compare each query with every row."""

from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float32Array, Int64Array, Uint8Array
from musicsim._checks import check_dense
from musicsim.blas import one_blas_thread
from musicsim.search._rows import check_n_jobs, check_rows, check_sparse_rows, map_parts
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
    Memory of a query: 16 MB of distances, and 3 k kB. Sparse rows stay sparse; 256 queries are dense at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.search import ExactIndex
    >>> X = np.random.default_rng(0).normal(size=(1000, 8)).astype(np.float32)
    >>> index = ExactIndex().fit(X)
    >>> distances, ids = index.query(X[:2], k=3)
    >>> ids.shape, ids[:, 0]  # a row of the index is its own nearest neighbor
    ((2, 3), array([0, 1]))
    >>> index.remove([0])
    >>> int(index.query(X[:1], k=1)[1][0, 0]) == int(ids[0, 1])
    True
    """

    def __init__(self, *, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs

    def fit(self, X: npt.ArrayLike, y: None = None) -> Self:
        """Store the rows.

        Parameters
        ----------
        X : array-like or SciPy sparse matrix of shape (n_samples, n_features); a float32 memory map is not copied
        """
        check_n_jobs(self.n_jobs)
        self._take(self._check_rows(X, "X"))
        # sparse rows stay sparse only without a center
        self._center = np.zeros(self.n_features_in_, np.float32) if hasattr(self._X, "tocsr") else _medians(self._X)
        self._longest = self._farthest = 0.0
        self._halves = self._half_squares(self._X)
        return self

    def save(self, folder: str | Path) -> None:
        """Raise NotImplementedError, because this index has nothing to save except its rows."""
        raise NotImplementedError("an ExactIndex cannot be saved: save its rows, and fit it to them again.")

    def add(self, X: npt.ArrayLike) -> Int64Array:
        """Add rows, and return their int64 ids; sparse rows are added to sparse rows, and dense rows to dense rows."""
        self._check_is_fitted("n_samples_")
        if not hasattr(self._X, "tocsr"):
            check_dense("X", X)
            return super().add(X)
        from scipy import sparse  # this import takes 0.1 s

        rows, first = self._check_width(sparse.csr_array(X), "X"), self.n_samples_
        self._X = sparse.vstack([self._X, rows], format="csr")
        self.n_samples_ = self._X.shape[0]
        self._extend_shown(rows.shape[0])
        self._insert(rows, first)
        return np.arange(first, self.n_samples_)

    def _check_rows(self, rows: npt.ArrayLike, name: str) -> Any:
        return check_sparse_rows(rows, name) if hasattr(rows, "tocsr") else check_rows(rows, name)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

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
                map_parts(Q.shape[0], self.n_jobs, search)

    def _compare(
        self, Q: Float32Array, rows: Int64Array | None, n_shown: int, distances: Float32Array, ids: Int64Array
    ) -> None:
        """Fill in the neighbors of queries among `rows` (None for all), of which there are `n_shown`."""
        k = ids.shape[1]
        for start in range(0, Q.shape[0], BLOCK_QUERIES):
            queries = _dense(Q[start : start + BLOCK_QUERIES])
            centered = queries - self._center
            values, candidates = self._candidates(centered, min(k + _SPARE, n_shown), rows)
            limits = values[:, k - 1] + 2 * self._rounding_errors(centered)
            for i, limit in enumerate(limits):
                chosen = candidates[i]
                if len(chosen) < n_shown and values[i, -1] <= limit:
                    chosen = self._rows_within(limit, centered[i], rows)
                exact = self._distances(queries[i], chosen)
                order = np.lexsort((chosen, exact))[:k]
                distances[start + i], ids[start + i] = exact[order], chosen[order]

    def _distances(self, q: Float32Array, chosen: Int64Array) -> Float32Array:
        """Return the distances of a query to chosen rows; sparse rows are dense only in small parts."""
        if not hasattr(self._X, "tocsr"):
            return np.asarray(np.linalg.norm(self._X[chosen] - q, axis=1))
        X: Any = self._X
        size = max(1, PART_ENTRIES // len(q))
        parts = (X[chosen[start : start + size]].toarray() for start in range(0, len(chosen), size))
        return np.concatenate([np.linalg.norm(part - q, axis=1) for part in parts], dtype=np.float32)

    def _half_squares(self, X: Any) -> Float32Array:
        """Return half of each squared distance from the center; update the maximum and the longest row's length."""
        halves = np.empty(X.shape[0], np.float32)
        if hasattr(X, "tocsr"):
            squares = np.asarray(X.multiply(X).sum(axis=1), np.float32).ravel()
            self._longest = max(self._longest, float(squares.max(initial=0.0)) ** 0.5)
            self._farthest = max(self._farthest, 0.5 * float(squares.max(initial=0.0)))
            return 0.5 * squares
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


def _dense(rows: Any) -> Float32Array:
    """Return a few rows as a dense array."""
    return np.asarray(rows.toarray() if hasattr(rows, "tocsr") else rows)


def _medians(X: Float32Array) -> Float32Array:
    """Return each column's lower median over a sample; it is an entry of the column, so integers stay integers."""
    if not len(X):
        return np.zeros(X.shape[1], np.float32)
    sample = X[np.linspace(0, len(X) - 1, min(len(X), _CENTER_ROWS)).astype(np.int64)]
    return np.partition(sample, (len(sample) - 1) // 2, axis=0)[(len(sample) - 1) // 2]
