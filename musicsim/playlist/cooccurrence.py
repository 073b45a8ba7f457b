"""Groups of songs by co-occurrence in playlists.

Songs that occur near the same other songs are grouped, whether or not they share a playlist. Counts of neighbors are
converted to positive pointwise mutual information. A truncated singular value decomposition turns each song's row into
a vector, and k-means groups the vectors. This is not in the thesis; the method comes from word vectors (Levy, Goldberg
and Dagan, TACL 2015).
"""

import string
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import sparse

from musicsim._arrays import Float64Array, Int64Array
from musicsim._checks import check_whole

# Lower powers emphasize weak directions. For the yes.com playlists, 0.75 is better than 0 and 0.5.
_SINGULAR_POWER = 0.75
# With more songs than this, k-means uses mini-batches.
_MAX_FULL_KMEANS = 5_000
_STARTS = 3
_LETTERS = string.ascii_lowercase
_BLOCK = 1024


def _count_neighbors(playlists: Sequence[Sequence[int]], n_songs: int, window: int) -> sparse.csr_array:
    """Return a symmetric matrix that counts how often two different songs are at most `window` positions apart."""
    lists = [np.asarray(playlist, dtype=np.int64).reshape(-1) for playlist in playlists]
    songs = np.concatenate([np.empty(0, dtype=np.int64), *lists])
    if songs.size and (songs.min() < 0 or songs.max() >= n_songs):
        wrong = songs.min() if songs.min() < 0 else songs.max()
        raise ValueError(f"playlists contain song {wrong}; with n_songs={n_songs}, songs must be 0 to {n_songs - 1}")
    owner = np.repeat(np.arange(len(lists)), [playlist.size for playlist in lists])
    counts = sparse.csr_array((n_songs, n_songs), dtype=np.float64)
    for gap in range(1, min(window, max(songs.size - 1, 0)) + 1):
        near = (owner[gap:] == owner[:-gap]) & (songs[gap:] != songs[:-gap])
        at = (songs[:-gap][near], songs[gap:][near])
        counts = counts + sparse.csr_array((np.ones(at[0].size), at), shape=counts.shape)
    return sparse.csr_array(counts + counts.T)


def _positive_information(counts: sparse.csr_array) -> sparse.csr_array:
    """Return max(0, log(N_xy N / (N_x N_y))) for pairs with counts, and 0 for others."""
    totals = np.asarray(counts.sum(axis=1)).ravel()
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    information = np.log(counts.data * totals.sum() / (totals[rows] * totals[counts.indices]))
    matrix = sparse.csr_array((np.maximum(information, 0.0), counts.indices, counts.indptr), counts.shape)
    matrix.eliminate_zeros()
    return matrix


def cooccurrence_vectors(
    playlists: Sequence[Sequence[int]],
    n_songs: int,
    *,
    window: int = 2,
    n_dimensions: int = 64,
    random_state: int | np.random.Generator | None = None,
) -> Float64Array:
    """Compute a vector for each song from its neighbors in playlists.

    Parameters
    ----------
    playlists : sequence of sequences of int; song rows; pass only the training playlists
    window : int >= 1; songs that are at most this many positions apart are neighbors
    n_dimensions : int >= 1; with fewer songs that have neighbors, the other dimensions are 0
    random_state : int, numpy Generator or None

    Returns
    -------
    ndarray of shape (n_songs, n_dimensions), float64
        Left singular vectors times the singular values to the power 0.75. Zeros for songs without neighbors, and for
        songs whose neighbors are not more frequent than by chance.

    Notes
    -----
    This needs 24 bytes per pair of neighbors, and 8 n_songs n_dimensions bytes (51 MB for 100,000 songs).

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.playlist import cooccurrence_vectors
    >>> playlists = [[0, 1, 2], [2, 1, 0], [1, 0, 2], [3, 4, 5], [5, 4, 3], [4, 3, 5]]
    >>> vectors = cooccurrence_vectors(playlists, 7, n_dimensions=3, random_state=0)
    >>> bool(vectors[0] @ vectors[1] > vectors[0] @ vectors[4])  # songs 0 and 1 share playlists
    True
    >>> vectors[6]  # in no playlist
    array([0., 0., 0.])
    """
    check_whole("window", window, 1)
    check_whole("n_dimensions", n_dimensions, 1)
    information = _positive_information(_count_neighbors(playlists, n_songs, window))
    vectors = np.zeros((n_songs, n_dimensions))
    seen = np.flatnonzero(np.diff(information.indptr))
    n_kept = min(n_dimensions, seen.size)
    if n_kept:
        from sklearn.utils.extmath import randomized_svd

        seed = int(np.random.default_rng(random_state).integers(2**31))
        left, values, _ = randomized_svd(information[seen][:, seen], n_kept, random_state=seed)
        vectors[seen, :n_kept] = left * values**_SINGULAR_POWER
    return vectors


def group_vectors(
    vectors: npt.ArrayLike,
    sizes: Sequence[int],
    *,
    n_repeats: int = 1,
    random_state: int | np.random.Generator | None = None,
) -> dict[str, Int64Array]:
    """Group songs by the directions of their vectors, using k-means at several granularities.

    Several groupings per size divide the library along different borders, so close songs share at least one group.

    Parameters
    ----------
    vectors : array-like of shape (n_songs, n_dimensions); a song whose vector is 0 gets no group
    sizes : sequence of int >= 2; numbers of groups; sizes above half the number of songs with a vector are skipped
    n_repeats : int, 1 to 26; number of groupings per size, from different starts
    random_state : int, numpy Generator or None

    Returns
    -------
    dict from label to int64 ndarray of shape (n_songs,), -1 for no group; labels are "256", "256b", "256c" and so on

    Notes
    -----
    Beyond 5,000 songs, k-means uses mini-batches. This needs twice the memory of `vectors`, and 2 MB per 100 groups.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.playlist import group_vectors
    >>> vectors = np.array([[1.0, 0.1], [2.0, 0.1], [0.1, 1.0], [0.1, 3.0], [0.0, 0.0]])
    >>> groups = group_vectors(vectors, [2], random_state=0)["2"]
    >>> bool(groups[0] == groups[1] != groups[2] == groups[3]), int(groups[4])
    (True, -1)
    """
    if not 1 <= n_repeats <= len(_LETTERS):
        raise ValueError(f"n_repeats={n_repeats} must be from 1 to {len(_LETTERS)}")
    if any(k < 2 for k in sizes) or len(set(sizes)) != len(sizes):
        raise ValueError(f"sizes={tuple(sizes)} must contain distinct integers of at least 2")
    points = np.asarray(vectors, dtype=np.float64)
    length = np.linalg.norm(points, axis=1)
    rows = np.flatnonzero(length > 0)
    points = points[rows] / length[rows, None]
    rng = np.random.default_rng(random_state)
    groups = {}
    for k in sizes:
        for repeat in range(n_repeats):
            # drawn even for skipped sizes, so that the groups of one size do not depend on the other sizes
            seed = int(rng.integers(2**31))
            if 2 * k <= rows.size:
                labels = np.full(len(length), -1, dtype=np.int64)
                labels[rows] = _k_means(points, k, seed)
                groups[f"{k}{_LETTERS[repeat] if repeat else ''}"] = labels
    return groups


def _k_means(points: Float64Array, k: int, seed: int) -> Int64Array:
    from sklearn.cluster import KMeans, MiniBatchKMeans

    if len(points) <= _MAX_FULL_KMEANS:
        model = KMeans(k, n_init=_STARTS, random_state=seed)
    else:
        model = MiniBatchKMeans(k, n_init=_STARTS, batch_size=max(1024, 2 * k), random_state=seed)
    return model.fit_predict(points).astype(np.int64)


def nearest_by_direction(vectors: npt.ArrayLike, n_nearest: int) -> Int64Array:
    """Return the songs nearest to each song by cosine similarity, in O(n_songs^2 n_dimensions).

    Unlike groups, neighborhoods overlap, so no border separates close songs. Each row of the result, int64 (n_songs,
    n_nearest), begins with the song itself, and ends with -1 if there are fewer neighbors. `n_nearest` is at least 2. A
    song whose vector is 0 has no neighbors.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.playlist import nearest_by_direction
    >>> vectors = np.array([[1.0, 0.1], [2.0, 0.1], [0.1, 1.0], [0.0, 0.0]])
    >>> nearest_by_direction(vectors, 2)  # the last has no neighbors
    array([[ 0,  1],
           [ 1,  0],
           [ 2,  0],
           [-1, -1]])
    """
    check_whole("n_nearest", n_nearest, 2)
    points = np.asarray(vectors, dtype=np.float32)
    length = np.linalg.norm(points, axis=1)
    rows = np.flatnonzero(length > 0)
    points = points[rows] / length[rows, None]
    neighbors = np.full((len(length), n_nearest), -1, dtype=np.int64)
    k = min(n_nearest, rows.size)
    for start in range(0, rows.size, _BLOCK):
        cosines = points[start : start + _BLOCK] @ points.T
        here = np.arange(len(cosines))
        cosines[here, start + here] = np.inf
        nearest = np.argpartition(-cosines, k - 1, axis=1)[:, :k]
        order = np.argsort(-np.take_along_axis(cosines, nearest, axis=1), axis=1, kind="stable")
        neighbors[rows[start + here], :k] = rows[np.take_along_axis(nearest, order, axis=1)]
    return neighbors
