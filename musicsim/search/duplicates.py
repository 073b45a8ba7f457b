"""Find songs that are the same recording: re-encoded, louder, shifted, or with different silence at the ends.

Vectors and durations select *candidates* without an (n, n) matrix. Only these are compared frame by frame
(:mod:`musicsim.search.recordings`).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from musicsim._arrays import BoolArray, Float32Array, Float64Array, FloatingArray, Int64Array
from musicsim._checks import check_whole
from musicsim.audio import HOP, SAMPLE_RATE
from musicsim.search.recordings import Comparison, RowArray

_TOLERANCE_S, _TOLERANCE_SHARE = 3.0, 0.03
BLOCK_ROWS = 512  # Number of songs whose distances are computed together


@dataclass(frozen=True, slots=True)
class DuplicatePair:
    """Two songs that are the same recording.

    Examples
    --------
    >>> from musicsim.search import DuplicatePair
    >>> pair = DuplicatePair(first=3, second=8, similarity=0.97, offset_s=1.5)  # the second song starts 1.5 s later
    >>> pair.similarity > 0.6
    True
    """

    first: int  # the lower row
    second: int  # the higher row
    similarity: float  # agreement of the changes, at most 1
    offset_s: float  # time t in `first` is time t + offset_s in `second`, in seconds


def find_duplicates(
    X: FloatingArray,
    durations: FloatingArray,
    frames_of: RowArray,
    *,
    harmony_of: RowArray | None = None,
    rows: npt.ArrayLike | None = None,
    least_similarity: float = 0.6,
    max_candidates: int = 10,
) -> list[DuplicatePair]:
    """Find all pairs of songs that are the same recording.

    Parameters
    ----------
    X, durations, rows, least_similarity, max_candidates : as in :func:`find_candidates`
    frames_of : callable
        Takes a row number and returns the song's MFCCs, (n_frames, n_columns), or None if missing. The first 13 columns
        are used. Frames must be 256 samples apart at 22,050 Hz. Any float type is allowed.
    harmony_of : callable, optional
        Takes a row number and returns the song's :func:`musicsim.audio.harmony`, or None if missing. Without it, some
        transposed songs with loud drums count as duplicates.

    Returns
    -------
    list of DuplicatePair, sorted by rows; each pair occurs once

    Notes
    -----
    Memory in addition to `X`: a copy of all songs whose duration is close to that of one of `rows`. A tile of distances
    takes 10 MB, or 200 MB if the vectors of all songs are similar. Cached changes of four-minute songs take 200 MB.

    A song at a different pitch, or at a speed that differs by more than 0.2%, is not the same recording. In songs of a
    few seconds, the speed may differ by up to 12 ms in total.

    False negatives: telephone quality (8 kHz), some MP3s encoded at 64 kbit/s with LAME's fastest setting, and songs
    with a part cut out in the middle, which have two offsets. Pairs that consist only of silence or steady tones, and
    pairs without frames, are never found.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.audio import mfcc
    >>> from musicsim.search import find_duplicates
    >>> def song(seed):
    ...     pitches = np.random.default_rng(seed).integers(0, 24, 120)  # four notes a second for half a minute
    ...     t = np.arange(120 * 5512) / 22050
    ...     return np.sin(2 * np.pi * t * np.repeat(220 * 2 ** (pitches / 12), 5512)).astype(np.float32)
    ...
    >>> frames = [mfcc(song(seed)) for seed in (1, 2, 1)]
    >>> X = np.array([f.mean(axis=0) for f in frames])
    >>> pairs = find_duplicates(X, np.full(3, 30.0), frames.__getitem__)
    >>> [(pair.first, pair.second, round(pair.similarity, 2), round(pair.offset_s)) for pair in pairs]
    [(0, 2, 1.0, 0)]
    """
    comparison = Comparison(frames_of, harmony_of)
    pairs = []
    for first, second, _ in find_candidates(X, durations, rows, least_similarity, max_candidates):
        match = comparison.match(first, second)
        if match is not None and match.is_same_recording:
            pairs.append(DuplicatePair(first, second, match.agreement, match.offset * HOP / SAMPLE_RATE))
    return sorted(pairs, key=lambda pair: (pair.first, pair.second))


def group_pairs(n: int, pairs: npt.ArrayLike) -> Int64Array:
    """Return the group number of each of n songs: songs connected by pairs of rows, (m, 2), have the same number.

    Groups are numbered from 0, in the order of their first songs. Raises ValueError if a row is outside 0..n-1.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.search import group_pairs
    >>> group_pairs(5, np.array([[0, 3], [3, 4]]))  # three copies of one song, and two other songs
    array([0, 1, 2, 0, 0])
    """
    check_whole("n", n, 0)
    ends = np.asarray(pairs, dtype=np.int64)
    if ends.size and not (ends.ndim == 2 and ends.shape[1] == 2 and 0 <= ends.min() <= ends.max() < n):
        raise ValueError(f"pairs must have shape (m, 2) and contain row numbers from 0 to {n - 1}.")
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    first, second = ends.reshape(-1, 2).T
    graph = coo_array((np.ones(len(first), np.int8), (first, second)), shape=(n, n))
    labels = connected_components(graph, directed=False)[1]
    # scipy does not specify the order of its labels
    _, firsts, groups = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(firsts))[groups].astype(np.int64)


# --- candidates -------------------------------------------------------------------------------


def _tolerance(longer: Float64Array) -> Float64Array:
    return np.maximum(_TOLERANCE_S, _TOLERANCE_SHARE * longer)


def _reach(durations: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return, for each duration, the shortest and the longest duration that it is compared with."""
    longest = np.maximum(durations + _TOLERANCE_S, durations / (1 - _TOLERANCE_SHARE)) + 1e-6
    return durations - _tolerance(durations), longest


def _mask_comparable(lengths: Float64Array, queries: Float64Array) -> BoolArray:
    """Return a mask of the ascending `lengths` that are compared with at least one duration in `queries`."""
    shortest, longest = _reach(queries)
    n_begun = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.add.at(n_begun, np.searchsorted(lengths, shortest, "left"), 1)
    np.add.at(n_begun, np.searchsorted(lengths, longest, "right"), -1)
    return np.cumsum(n_begun[:-1]) > 0


def find_candidates(
    X: FloatingArray,
    durations: FloatingArray,
    rows: npt.ArrayLike | None = None,
    least_similarity: float = 0.6,
    max_candidates: int = 10,
) -> Iterator[tuple[int, int, float]]:
    """Yield (lower row, higher row, similarity) for each pair of similar songs with similar durations.

    Parameters
    ----------
    X : float ndarray of shape (n_songs, n_dimensions), finite
        Song vectors for which ``1 - d^2 / 2`` is a similarity, where d is the Euclidean distance.
    durations : ndarray of shape (n_songs,), seconds of decoded sound, finite
        Songs whose durations differ by more than max(3 s, 3%) are never a pair.
    rows : int array-like, optional
        Find only pairs with at least one of these rows (such as new songs); by default all pairs.
    least_similarity : float <= 1
        Minimum similarity between the vectors.
    max_candidates : int >= 1
        Number of most similar songs that each song is paired with.
    """
    vectors: Float32Array = np.asanyarray(X, dtype=np.float32)
    seconds: Float64Array = np.asarray(durations, dtype=np.float64)
    check_whole("max_candidates", max_candidates, 1)
    if vectors.ndim != 2 or seconds.shape != vectors.shape[:1]:
        raise ValueError(f"X has shape {vectors.shape}, but durations has shape {seconds.shape}.")
    for name, array in (("X", vectors), ("durations", seconds)):
        if not np.isfinite(array).all():
            raise ValueError(f"{name} contains NaN or infinite values.")
    numbers = np.arange(len(vectors)) if rows is None else np.asarray(rows)
    if numbers.size and not (
        np.issubdtype(numbers.dtype, np.integer) and 0 <= numbers.min() <= numbers.max() < len(vectors)
    ):
        raise ValueError(f"rows must be integers from 0 to {len(vectors) - 1}.")
    queries = np.unique(numbers.astype(np.int64))
    order = np.argsort(seconds, kind="stable")
    order = order[_mask_comparable(seconds[order], seconds[queries])]
    lengths = seconds[order]
    # 2qr - |r|^2 is a single product: the last column is -|r|^2 / 2 for a song and 1 for a query
    songs = np.empty((len(order), vectors.shape[1] + 1), np.float32)
    songs[:, :-1] = vectors[order]
    songs[:, -1] = -0.5 * np.einsum("ij,ij->i", songs[:, :-1], songs[:, :-1])
    place = np.empty(len(vectors), dtype=np.int64)
    place[order] = np.arange(len(order))
    places = np.sort(place[queries])
    parts = [np.empty((0, 3))]
    for start in range(0, len(places), BLOCK_ROWS):
        block = places[start : start + BLOCK_ROWS]
        parts.append(np.column_stack(_find_neighbors(songs, lengths, block, least_similarity, max_candidates)))
    pairs = np.concatenate(parts)
    pairs[:, :2].sort(axis=1)
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    is_new = np.ones(len(pairs), bool)
    is_new[1:] = (pairs[1:, :2] != pairs[:-1, :2]).any(axis=1)
    for one, other, similarity in pairs[is_new]:
        first, second = sorted((int(order[int(one)]), int(order[int(other)])))
        yield first, second, float(similarity)


Neighbors = tuple[Int64Array, Int64Array, Float64Array]
"""Row of the query, row of the neighbor, similarity."""


def _find_neighbors(
    songs: Float32Array, lengths: Float64Array, block: Int64Array, least_similarity: float, k: int
) -> Neighbors:
    """Return the k nearest rows of each row in `block`; `block` and `lengths` are ascending."""
    shortest, longest = _reach(lengths[block[[0, -1]]])
    low, high = np.searchsorted(lengths, shortest[0], "left"), np.searchsorted(lengths, longest[1], "right")
    X, halves = songs[:, :-1], -songs[:, -1]
    queries = np.column_stack([X[block], np.ones(len(block), np.float32)])
    # small distances lose digits in float32: the first filter allows for this error, then exact differences decide
    slack = 1e-5 * float(halves[low:high].max())
    least = halves[block] - np.float32(1.0 - least_similarity + slack)
    neighbors: Neighbors = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    # start with small tiles: if all sounds are similar, the k nearest found so far exclude nearly all later ones
    start, width = low, len(block)
    while start < high:
        products = queries @ songs[start : min(start + width, high)].T
        i, j = np.nonzero(products >= least[:, None])
        q, r = block[i], start + j
        fits = (q != r) & (np.abs(lengths[q] - lengths[r]) <= _tolerance(np.maximum(lengths[q], lengths[r])))
        q, r = q[fits], r[fits]
        similarity = compute_similarity(X, q, r)
        is_near = similarity >= least_similarity
        new = q[is_near], r[is_near], similarity[is_near]
        q, r, similarity = (np.concatenate(both) for both in zip(neighbors, new, strict=True))
        neighbors = _keep_nearest(q, r, similarity, k)
        queries_with_any, counts = np.unique(neighbors[0], return_counts=True)
        full = queries_with_any[counts == k]
        kth = neighbors[2][np.cumsum(counts)[counts == k] - 1]
        least[np.searchsorted(block, full)] = halves[full] - (1.0 - kth + slack).astype(np.float32)
        start, width = start + width, min(2 * width, 8 * len(block))
    return neighbors


def compute_similarity(X: Float32Array, q: Int64Array, r: Int64Array) -> Float64Array:
    """Return the similarities between rows `q` and `r` of X, pair by pair, in float64."""
    result = np.empty(len(q))
    for start in range(0, len(q), 4096):
        part = slice(start, start + 4096)
        difference = X[q[part]].astype(np.float64) - X[r[part]]
        result[part] = 1.0 - np.einsum("ij,ij->i", difference, difference) / 2.0
    return result


def _keep_nearest(q: Int64Array, r: Int64Array, similarity: Float64Array, k: int) -> Neighbors:
    """Return the `k` most similar rows of each query; the lower row wins ties."""
    order = np.lexsort((r, -similarity, q))
    q, r, similarity = q[order], r[order], similarity[order]
    starts = np.flatnonzero(np.r_[True, q[1:] != q[:-1]]) if len(q) else np.empty(0, np.int64)
    rank = np.arange(len(q)) - np.repeat(starts, np.diff(np.r_[starts, len(q)]))
    is_kept = rank < k
    return q[is_kept], r[is_kept], similarity[is_kept]
