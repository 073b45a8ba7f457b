"""How good neighbours are.

Conventions: rows are songs; a song is never its own neighbour; with an artist filter the songs of
the query's own artist are left out of its candidates. Equal distances go to the lower row. A label of
-1 is unknown: it equals nothing, and a query with it is left out of the mean and counted.
"""

import numpy as np
import numpy.typing as npt
from scipy.stats import skew

__all__ = ["hubness", "k_occurrence", "nearest_neighbours", "share_of_same"]


def nearest_neighbours(
    X: npt.NDArray[np.floating],
    k: int = 10,
    *,
    groups: npt.NDArray[np.int64] | None = None,
    block_rows: int = 512,
) -> npt.NDArray[np.int64]:
    """The `k` nearest other songs of every song by Euclidean distance.

    Parameters
    ----------
    X : ndarray of shape (n_songs, n_features)
    k : int, 1 <= k < n_songs
    groups : int ndarray of shape (n_songs,), optional
        Songs of one group (an artist) are not neighbours of each other; -1 stands alone.
    block_rows : int
        Memory: ``8 * block_rows * n_songs`` bytes (410 MB for 100 000 songs).

    Returns
    -------
    int64 ndarray of shape (n_songs, k); -1 where fewer candidates are left

    Raises
    ------
    ValueError
        If `k` is out of range.
    """
    n = len(X)
    if not 1 <= k < n:
        raise ValueError(f"k={k} should be at least 1 and below the number of songs, {n}.")
    X = np.asarray(X, dtype=np.float64)
    squares = np.einsum("ij,ij->i", X, X)
    neighbours = np.full((n, k), -1, dtype=np.int64)
    for start in range(0, n, block_rows):
        rows = np.arange(start, min(start + block_rows, n))
        D = squares[None, :] - 2.0 * (X[rows] @ X.T)
        if groups is not None:
            D[(groups[rows][:, None] == groups[None, :]) & (groups[rows] >= 0)[:, None]] = np.inf
        D[np.arange(len(rows)), rows] = np.inf
        order = np.argsort(D, axis=1, kind="stable")[:, :k]
        reachable = np.isfinite(np.take_along_axis(D, order, axis=1))
        neighbours[rows] = np.where(reachable, order, -1)
    return neighbours


def k_occurrence(neighbours: npt.NDArray[np.int64], n_songs: int | None = None) -> npt.NDArray[np.int64]:
    """How often each song stands among the neighbours of others.

    Parameters
    ----------
    neighbours : int ndarray of shape (n_queries, k), -1 for none
    n_songs : int, optional
        Size of the collection, by default `n_queries`.

    Returns
    -------
    int64 ndarray of shape (n_songs,)
    """
    return np.bincount(neighbours[neighbours >= 0], minlength=n_songs or len(neighbours))


def hubness(neighbours: npt.NDArray[np.int64], n_songs: int | None = None) -> float:
    """Skew of the k-occurrence: 0 when no song is favoured, above 1 when a few are near everything.

    Notes
    -----
    Schnitzer et al., JMLR 2012; 0 by definition where all occurrences are equal.
    """
    counts = k_occurrence(neighbours, n_songs).astype(np.float64)
    return float(skew(counts)) if counts.std() > 0 else 0.0


def share_of_same(
    neighbours: npt.NDArray[np.int64], labels: npt.NDArray[np.int64]
) -> tuple[float, npt.NDArray[np.float64]]:
    """Share of the neighbours that carry the query's own label.

    Parameters
    ----------
    neighbours : int ndarray of shape (n_songs, k), -1 for none
    labels : int ndarray of shape (n_songs,), -1 for unknown

    Returns
    -------
    mean : float
        Over the queries that have a label and a neighbour; nan when there is none.
    shares : float64 ndarray of shape (n_songs,), nan where a query was left out
    """
    found = neighbours >= 0
    same = (labels[neighbours] == labels[:, None]) & found
    counts = found.sum(axis=1)
    shares = np.full(len(labels), np.nan)
    counted = (labels >= 0) & (counts > 0)
    shares[counted] = same[counted].sum(axis=1) / counts[counted]
    return (float(np.nanmean(shares)) if counted.any() else float("nan")), shares
