"""Search in stages: short codes make a shortlist, long codes rank it, vectors decide among the best."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from numba import njit
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from musicsim._arrays import Float32Array, Int64Array, Uint64Array
from musicsim.search._hamming_kernels import ID_BITS, _distance, _offer
from musicsim.search._query_kernels import prefetch
from musicsim.search._rows import check_rows
from musicsim.search.hamming import HammingIndex, check_codes

# Distance, in candidates, between the prefetched one and the current one.
_AHEAD = 8


class HammingCascade(BaseEstimator):
    """Nearest neighbors by long codes, or by vectors, among the candidates that short codes leave.

    Parameters
    ----------
    n_short : int
        Minimum number of songs that the short codes leave. Ties are not broken: all songs as near as the last one
        stay, so whole bins of equal distance.
    n_long : int
        Number of songs that the long codes leave for the vectors, if there are vectors; at most `n_short`.
    method : "scan" or "balls"
        Search method for the short codes; see :class:`HammingIndex`.
    n_short_bits, n_long_bits : int, optional
        Number of bits that count; by default all, 64 per word.
    n_jobs : int or None
        Threads of the first stage.

    Attributes
    ----------
    short_ : HammingIndex
    n_samples_ : int
    nbytes_ : int
        Memory: that of `short_`, which has its own copy, and 8 bytes per word of each long code. Vectors and long
        codes are not copied. Ten million codes of 32 bits followed by codes of 256 bits take 600 MB, or 360 MB with
        "scan".

    Notes
    -----
    The cascade of Nair, Mahajan and Sundararajan (WWW 2012), section 6, which uses 8 bits, then 256.
    """

    def __init__(
        self,
        n_short: int = 1000,
        n_long: int = 100,
        *,
        method: str = "balls",
        n_short_bits: int | None = None,
        n_long_bits: int | None = None,
        n_jobs: int | None = -1,
    ) -> None:
        self.n_short, self.n_long, self.method = n_short, n_long, method
        self.n_short_bits, self.n_long_bits, self.n_jobs = n_short_bits, n_long_bits, n_jobs

    def fit(self, short: npt.ArrayLike, long: npt.ArrayLike, vectors: npt.ArrayLike | None = None) -> Self:
        """Store the codes of songs, and their vectors if the last stage should use them.

        Parameters
        ----------
        short : uint64 array-like of shape (n_samples, n_short_words)
        long : uint64 array-like of shape (n_samples, n_long_words)
        vectors : float32 array-like of shape (n_samples, n_features), optional

        Raises
        ------
        ValueError
            If lengths, types or shapes do not match, or if `n_long` is below 1 or above `n_short`.
        """
        if not 1 <= self.n_long <= self.n_short:
            raise ValueError(f"n_long={self.n_long} should be 1 to n_short={self.n_short}.")
        rows = check_codes(long, "long", self.n_long_bits)
        n_short = len(np.asarray(short))
        points = None if vectors is None else check_rows(vectors, "vectors")
        if len(rows) != n_short or (points is not None and len(points) != n_short):
            n_vectors = "" if points is None else f", vectors {len(points)}"
            raise ValueError(
                f"short has {n_short} rows, long {len(rows)}{n_vectors}: they should be of the same songs."
            )
        self.short_ = HammingIndex(self.method, n_bits=self.n_short_bits, n_jobs=self.n_jobs).fit(short)
        self._long, self._vectors, self.n_samples_ = rows, points, n_short
        return self

    @property
    def nbytes_(self) -> int:
        """Memory in bytes, without the vectors."""
        return self.short_.nbytes_ + self._long.nbytes

    def shortlist(self, short: npt.ArrayLike) -> list[Int64Array]:
        """Return the songs that the first stage leaves for each query, by distance of their short codes, then id.

        Parameters
        ----------
        short : uint64 array-like of shape (n_queries, n_short_words)
        """
        check_is_fitted(self)
        distances, _ = self.short_.query(short, self.n_short)
        if not distances.size:
            return [np.empty(0, np.int64)] * len(distances)
        return self.short_.radius(short, distances[:, -1])[1]

    def query(
        self, short: npt.ArrayLike, long: npt.ArrayLike, vectors: npt.ArrayLike | None = None, k: int = 10
    ) -> tuple[npt.NDArray[Any], Int64Array]:
        """Return the `k` nearest by the last stage among those the earlier ones left; equal distances by the lower id.

        Parameters
        ----------
        short, long : uint64 array-like of shape (n_queries, n_words)
        vectors : float32 array-like of shape (n_queries, n_features), optional
            Required if :meth:`fit` got vectors.
        k : int >= 1
            At most `n_long` with vectors, else at most `n_short`.

        Returns
        -------
        distances : ndarray of shape (n_queries, min(k, n_samples))
            Euclidean distances of the vectors, float32, if there are vectors; otherwise the number of differing bits
            of the long codes, int32.
        ids : int64 ndarray of the same shape

        Raises
        ------
        ValueError
            If `k` is out of range, or the queries do not fit the songs or each other.
        """
        check_is_fitted(self)
        most = self.n_short if self._vectors is None else self.n_long
        if not 1 <= k <= most:
            raise ValueError(f"k={k} should be 1 to {most}, which the stage before leaves.")
        queries = check_codes(long, "long", self.n_long_bits)
        if queries.shape[1] != self._long.shape[1]:
            raise ValueError(f"long has {queries.shape[1]} words, those of the songs {self._long.shape[1]}.")
        if (vectors is None) != (self._vectors is None):
            raise ValueError("vectors should be given to query if they were to fit, and only then.")
        lists = self.shortlist(short)
        if len(lists) != len(queries):
            raise ValueError(f"short has {len(lists)} rows, long {len(queries)}.")
        answers = self._ranked(queries, lists, min(k if vectors is None else self.n_long, self.n_samples_))
        ids = answers & ((1 << ID_BITS) - 1)
        if vectors is None:
            return (answers >> ID_BITS).astype(np.int32), ids
        return self._decided(check_rows(vectors, "vectors"), ids, k)

    def _ranked(self, queries: Uint64Array, lists: list[Int64Array], k: int) -> Any:
        """Return the `k` nearest of each list by long codes, as integers that encode distance and id."""
        heaps = np.zeros((len(queries), k), np.int64)
        if heaps.size:
            starts = np.cumsum([0, *(len(ids) for ids in lists)])
            _nearest_among(self._long, np.concatenate(lists), starts, queries, heaps)
        return np.sort(-heaps, axis=1)

    def _decided(self, Q: Float32Array, ids: Int64Array, k: int) -> tuple[Float32Array, Int64Array]:
        """Return the `k` nearest of each row of ids by their vectors."""
        assert self._vectors is not None
        if Q.shape != (len(ids), self._vectors.shape[1]):
            raise ValueError(f"vectors has shape {Q.shape}, ({len(ids)}, {self._vectors.shape[1]}) is asked for.")
        k = min(k, ids.shape[1])
        distances, nearest = np.zeros((len(ids), k), np.float32), np.zeros((len(ids), k), np.int64)
        for i, found in enumerate(ids):
            exact = np.linalg.norm(self._vectors[found] - Q[i], axis=1)
            order = np.lexsort((found, exact))[:k]
            distances[i], nearest[i] = exact[order], found[order]
        return distances, nearest


@njit(cache=True, nogil=True)
def _nearest_among(rows, candidates, starts, queries, heaps):
    """Find the nearest of some codes to each query.

    Parameters
    ----------
    rows : uint64 ndarray of shape (n, n_words)
    candidates : int64 ndarray
        Ids of the codes that each query is compared with, one query after another.
    starts : int64 ndarray of shape (n_queries + 1,)
        Start of each query's candidates.
    queries : uint64 ndarray of shape (n_queries, n_words)
    heaps : int64 ndarray of shape (n_queries, k)
        Filled with the k nearest, negated; there must be at least k candidates.
    """
    for i in range(len(queries)):
        size = 0
        for c in range(starts[i], starts[i + 1]):
            if c + _AHEAD < starts[i + 1]:
                prefetch(rows, rows.shape[1] * candidates[c + _AHEAD])
            distance = _distance(rows[candidates[c]], queries[i])
            size = _offer(heaps[i], size, distance << ID_BITS | candidates[c])
