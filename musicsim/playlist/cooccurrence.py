"""Groups of songs by co-occurrence in playlists: edges that no description of the songs gives.

Songs found within a few places of the same others are grouped together, whether or not they were ever
in one playlist. Counts of neighbours become positive pointwise mutual information, a truncated singular value
decomposition makes a vector of each song's row, and k-means groups the vectors. This is not in the thesis;
the parts are those of word vectors (Levy, Goldberg and Dagan, TACL 2015).
"""

import string
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import sparse

from musicsim._arrays import Float64Array, Int64Array
from musicsim._checks import check_whole

# Between 0.5, which spreads the groups over weak directions too, and 1; better than 0 and 0.5 on yes.com.
_SINGULAR_POWER = 0.75
# Above, k-means by small batches, whose time grows less with the songs.
_ALL_AT_ONCE = 5_000
_STARTS = 3
_LETTERS = string.ascii_lowercase
_BLOCK = 1024
_MIN_NEAREST, _NEAREST_OF_ROOT = 10, 16 / 3


def _neighbour_counts(playlists: Sequence[Sequence[int]], n_songs: int, window: int) -> sparse.csr_array:
    """Count how often two different songs stand within `window` places: symmetric, (n_songs, n_songs)."""
    lists = [np.asarray(playlist, dtype=np.int64).reshape(-1) for playlist in playlists]
    songs = np.concatenate([np.empty(0, dtype=np.int64), *lists])
    if songs.size and (songs.min() < 0 or songs.max() >= n_songs):
        wrong = songs.min() if songs.min() < 0 else songs.max()
        raise ValueError(f"playlists hold song {wrong}; n_songs={n_songs} has songs 0 to {n_songs - 1}")
    owner = np.repeat(np.arange(len(lists)), [playlist.size for playlist in lists])
    counts = sparse.csr_array((n_songs, n_songs), dtype=np.float64)
    for gap in range(1, min(window, max(songs.size - 1, 0)) + 1):
        near = (owner[gap:] == owner[:-gap]) & (songs[gap:] != songs[:-gap])
        at = (songs[:-gap][near], songs[gap:][near])
        counts = counts + sparse.csr_array((np.ones(at[0].size), at), shape=counts.shape)
    return sparse.csr_array(counts + counts.T)


def _positive_information(counts: sparse.csr_array) -> sparse.csr_array:
    """Return max(0, log(N_xy N / (N_x N_y))) where songs met; 0 elsewhere."""
    seen = np.asarray(counts.sum(axis=1)).ravel()
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    information = np.log(counts.data * seen.sum() / (seen[rows] * seen[counts.indices]))
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
    """Return a vector of each song from its neighbours in playlists.

    Parameters
    ----------
    playlists : sequence of sequences of int, song rows; those of training only
    window : int >= 1
        Songs up to this many places apart are neighbours.
    n_dimensions : int >= 1
        Fewer where fewer songs are seen.
    random_state : int, numpy Generator or None

    Returns
    -------
    ndarray of shape (n_songs, <= n_dimensions), float64
        Left singular vectors times the singular values to the power 0.75. 0 for songs without
        neighbours, and for those that met theirs no more often than chance would have it.

    Raises
    ------
    ValueError
        If an argument is out of range, or a playlist holds no song of the collection.

    Notes
    -----
    Memory: 24 bytes for each pair of neighbours (at most 2 `window` pairs a place of the playlists), and
    8 n_songs n_dimensions bytes, 51 MB for 100,000 songs.
    """
    check_whole("window", window, 1)
    check_whole("n_dimensions", n_dimensions, 1)
    information = _positive_information(_neighbour_counts(playlists, n_songs, window))
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
    """Group songs by the directions of their vectors, by k-means at several granularities.

    Parameters
    ----------
    vectors : array of shape (n_songs, n_dimensions); a vector of zeros: the song joins no group
    sizes : sequence of int >= 2
        Numbers of groups. Those above half the number of songs with a vector are left out.
    n_repeats : int, 1 to 26
        How many groupings of each size, from different starts.
    random_state : int, numpy Generator or None

    Returns
    -------
    dict of label to int array of shape (n_songs,), -1: no group
        Labels "256", "256b", "256c" and so on.

    Notes
    -----
    Above 5,000 songs by small batches. Memory: twice that of `vectors`, and below 5,000 songs
    2 MB more for each 100 groups.
    """
    if not 1 <= n_repeats <= len(_LETTERS):
        raise ValueError(f"n_repeats={n_repeats} must lie in 1 to {len(_LETTERS)}")
    if any(k < 2 for k in sizes) or len(set(sizes)) != len(sizes):
        raise ValueError(f"sizes={tuple(sizes)} must be different numbers of groups, each at least 2")
    points = np.asarray(vectors, dtype=np.float64)
    length = np.linalg.norm(points, axis=1)
    rows = np.flatnonzero(length > 0)
    points = points[rows] / length[rows, None]
    rng = np.random.default_rng(random_state)
    groups = {}
    for k in sizes:
        for repeat in range(n_repeats):
            # drawn for sizes left out too: a size then has the same groups whatever the others
            seed = int(rng.integers(2**31))
            if 2 * k <= rows.size:
                groups[f"{k}{_LETTERS[repeat] if repeat else ''}"] = _spread(
                    _k_means(points, k, seed), rows, len(length)
                )
    return groups


def _k_means(points: Float64Array, k: int, seed: int) -> Int64Array:
    from sklearn.cluster import KMeans, MiniBatchKMeans

    if len(points) <= _ALL_AT_ONCE:
        model = KMeans(k, n_init=_STARTS, random_state=seed)
    else:
        model = MiniBatchKMeans(k, n_init=_STARTS, batch_size=max(1024, 2 * k), random_state=seed)
    return model.fit_predict(points).astype(np.int64)


def _spread(values: Int64Array, rows: Int64Array, n_songs: int) -> Int64Array:
    """Put values at their rows, and -1 elsewhere."""
    spread = np.full(n_songs, -1, dtype=np.int64)
    spread[rows] = values
    return spread


def cooccurrence_clusters(
    playlists: Sequence[Sequence[int]],
    n_songs: int,
    sizes: Sequence[int] = (16, 64, 256, 800),
    *,
    window: int = 2,
    n_dimensions: int = 64,
    n_repeats: int = 3,
    random_state: int | np.random.Generator | None = None,
) -> dict[str, Int64Array]:
    """Group songs by co-occurrence in playlists, at several granularities.

    Several groupings of one size cut the collection at different places: two songs that a border happens to
    part are together in another. Parameters as of `cooccurrence_vectors` and `group_vectors`.

    Returns
    -------
    dict of label to int64 array of shape (n_songs,)
        For `build_edges(cooccurrence_clusters=...)`, labels "256", "256b", "256c"; -1 for songs without
        company. Empty when too few songs were seen for any size.

    Raises
    ------
    ValueError
        If an argument is out of range, or a playlist holds no song of the collection.

    Notes
    -----
    Make them from the playlists that the model is fitted to, never from those it is judged by.
    """
    rng = np.random.default_rng(random_state)
    vectors = cooccurrence_vectors(playlists, n_songs, window=window, n_dimensions=n_dimensions, random_state=rng)
    return group_vectors(vectors, sizes, n_repeats=n_repeats, random_state=rng)


def nearest_by_direction(vectors: npt.ArrayLike, n_nearest: int) -> Int64Array:
    """Return the songs whose vectors point most nearly where each song's does, itself the first.

    Parameters
    ----------
    vectors : array of shape (n_songs, n_dimensions); a vector of zeros points nowhere
    n_nearest : int >= 2, the song itself counted

    Returns
    -------
    int64 array of shape (n_songs, n_nearest), nearest first
        -1 in the rows of songs that point nowhere, and behind the last where too few songs point anywhere.

    Notes
    -----
    Time: n_songs^2 n_dimensions. Memory: 4 KiB a song for one block of cosines.
    """
    check_whole("n_nearest", n_nearest, 2)
    points = np.asarray(vectors, dtype=np.float32)
    length = np.linalg.norm(points, axis=1)
    rows = np.flatnonzero(length > 0)
    points = points[rows] / length[rows, None]
    found = np.full((len(length), n_nearest), -1, dtype=np.int64)
    k = min(n_nearest, rows.size)
    for start in range(0, rows.size, _BLOCK):
        cosines = points[start : start + _BLOCK] @ points.T
        here = np.arange(len(cosines))
        cosines[here, start + here] = np.inf
        nearest = np.argpartition(-cosines, k - 1, axis=1)[:, :k]
        order = np.argsort(-np.take_along_axis(cosines, nearest, axis=1), axis=1, kind="stable")
        found[rows[start + here], :k] = rows[np.take_along_axis(nearest, order, axis=1)]
    return found


def cooccurrence_neighbours(
    playlists: Sequence[Sequence[int]],
    n_songs: int,
    n_nearest: int | None = None,
    *,
    window: int = 2,
    n_dimensions: int = 64,
    random_state: int | np.random.Generator | None = None,
) -> Int64Array:
    """Return the songs nearest to each song by co-occurrence in playlists.

    One edge a song holds them all: unlike groups, these overlap, so that no border parts near songs.
    Parameters as of `cooccurrence_vectors` and `nearest_by_direction`. None for `n_nearest` is 16/3 of the root of the
    number of songs (300 of 3,168), and 10 at least: of what was tried on the yes.com lists, the best on the smaller.

    Returns
    -------
    int64 array of shape (n_songs, n_nearest)
        For `build_edges(cooccurrence_neighbours=...)`; -1 where there is none.

    Notes
    -----
    Make them from the playlists that the model is fitted to, never from those it is judged by.
    """
    vectors = cooccurrence_vectors(
        playlists, n_songs, window=window, n_dimensions=n_dimensions, random_state=random_state
    )
    usual = max(_MIN_NEAREST, round(_NEAREST_OF_ROOT * n_songs**0.5))
    return nearest_by_direction(vectors, usual if n_nearest is None else n_nearest)
