"""Compiled loops for the playlist model: the edges that two songs share."""

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _count(indptr: Any, indices: Any, x: Any, y: Any) -> Any:
    """Return the offsets of each pair's common edges, int64 (n_pairs + 1,)."""
    start = np.zeros(len(x) + 1, dtype=np.int64)
    for pair in range(len(x)):
        i, j, n = indptr[x[pair]], indptr[y[pair]], 0
        while i < indptr[x[pair] + 1] and j < indptr[y[pair] + 1]:
            a, b = indices[i], indices[j]
            n += a == b
            i += a <= b
            j += b <= a
        start[pair + 1] = start[pair] + n
    return start


@njit(cache=True, nogil=True)
def _fill(indptr: Any, indices: Any, x: Any, y: Any, start: Any) -> Any:
    edges = np.empty(start[-1], dtype=np.int32)
    for pair in range(len(x)):
        i, j, n = indptr[x[pair]], indptr[y[pair]], start[pair]
        while i < indptr[x[pair] + 1] and j < indptr[y[pair] + 1]:
            a, b = indices[i], indices[j]
            if a == b:
                edges[n] = a
                n += 1
            i += a <= b
            j += b <= a
    return edges


def common_edges(indptr: Any, indices: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Intersect the sorted rows x[k] and y[k] of a CSR matrix: return int64 `start` (n_pairs + 1,) and int32 `edges`.

    The common edges of pair k are ``edges[start[k] : start[k + 1]]``, ascending.
    """
    start = _count(indptr, indices, x, y)
    return start, _fill(indptr, indices, x, y, start)
