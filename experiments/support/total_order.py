"""A space that satisfies all comparisons of a partial order: thesis 2.A, algorithm 2.5 and constant-shift embedding."""

from graphlib import TopologicalSorter

import numpy as np

from musicsim._arrays import Float64Array, Int64Array

__all__ = ["constant_shift", "levels"]


def levels(comparisons: Int64Array, n_songs: int) -> Float64Array:
    """Run algorithm 2.5: a pair is at 1 plus the largest distance of all pairs nearer than it, by default at 1.

    Parameters
    ----------
    comparisons : int array of shape (m, 4)
        Rows (i, j, k, l): i and j are nearer to each other than k and l.

    Returns
    -------
    ndarray of shape (n_songs, n_songs)
        Symmetric dissimilarities, 0 on the diagonal.

    Raises
    ------
    graphlib.CycleError
        If comparisons contradict each other.
    """
    nearer: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for i, j, k, m in comparisons.tolist():
        nearer.setdefault((min(k, m), max(k, m)), set()).add((min(i, j), max(i, j)))
    D = 1.0 - np.eye(n_songs)
    for pair in TopologicalSorter(nearer).static_order():
        if pair in nearer:
            D[pair] = D[pair[::-1]] = max(D[other] for other in nearer[pair]) + 1.0
    return D


def constant_shift(D: Float64Array) -> Float64Array:
    """Return points whose squared distances are D plus a constant off the diagonal (Roth et al., 2003).

    Parameters
    ----------
    D : ndarray of shape (n_songs, n_songs), symmetric, 0 on the diagonal

    Returns
    -------
    ndarray of shape (n_songs, n_songs - 1)
    """
    centred = D - D.mean(axis=0)
    A = -0.5 * (centred - centred.mean(axis=1, keepdims=True))
    values, vectors = np.linalg.eigh(0.5 * (A + A.T))
    points: Float64Array = vectors[:, 1:] * np.sqrt(values[1:] - values[0])
    return points
