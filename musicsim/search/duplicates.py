"""Find songs that are the same recording: re-encoded, louder, shifted, or with different silence at the ends.

Vectors and durations select *candidates* without an (n, n) matrix. The MFCCs of each pair are then aligned at the best
offset. The pair is the same recording only if the *changes* of its MFCCs agree. Another performance, a remix, or a
song with the same drum loop has different changes at different times, even if it sounds similar.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from musicsim._arrays import BoolArray, Float32Array, Float64Array, FloatingArray, Int64Array
from musicsim._checks import check_whole
from musicsim.audio import HOP, SAMPLE_RATE

_TOLERANCE_S, _TOLERANCE_SHARE = 3.0, 0.03
_N_MFCC, _N_MELS = 13, 40
# A codec at 64 kbit/s switches bands above 5 kHz on and off, so only the 32 bands below 5 kHz are used. Their first
# cosine coefficient, the level, is omitted.
_N_LOW_BANDS, _N_CONTOURS = 32, 10
# Number of frames in each of two adjacent means; a "change" is their difference. 8 frames are 93 ms. With fewer frames,
# codec noise matters; with more, a song played 1% faster would still match.
_CHANGE = 8
_STRIDE = 4  # Only every fourth change is used, because adjacent changes share most of their frames
_MIN_OVERLAP = 0.75  # Minimum share of the shorter song that must overlap the other song
_MIN_OVERLAP_S = 1.0
_MIN_POWER = 1e-6  # Two columns of changes are constant if the product of their summed squares is below this (dB^4)
# A 40-second excerpt excludes most candidates; whole songs are read only for pairs that may be the same. The agreement
# is below 0.3 for excerpts of different songs, and 0.7 or more for poor duplicates (experiments.duplicates).
_EXCERPT = slice(round(10 * SAMPLE_RATE / HOP), round(50 * SAMPLE_RATE / HOP))
_MIN_EXCERPT = 0.4
# Cache sizes: an excerpt takes 35 kB, and all changes of a four-minute song take 830 kB.
_KEPT_EXCERPTS, _KEPT_SONGS = 4096, 64
BLOCK_ROWS = 512  # Number of songs whose distances are computed together
MAX_OFFSET = round(5.0 * SAMPLE_RATE / HOP)  # Largest shift between the two songs, in frames
LEAST_AGREEMENT = 0.82  # Minimum agreement between the changes of two songs


@dataclass(frozen=True, slots=True)
class DuplicatePair:
    """Two songs that are the same recording."""

    first: int  # the lower row
    second: int  # the higher row
    similarity: float  # agreement of the changes, at most 1
    offset_s: float  # time t in `first` is time t + offset_s in `second`, in seconds


def find_duplicates(
    X: FloatingArray,
    durations: FloatingArray,
    frames_of: Callable[[int], FloatingArray | None],
    *,
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

    Returns
    -------
    list of DuplicatePair, sorted by rows; each pair occurs once

    Notes
    -----
    Memory in addition to `X`: a copy of all songs whose duration is close to that of one of `rows`. A tile of distances
    takes 10 MB, or 200 MB if the vectors of all songs are similar. Cached changes of four-minute songs take 200 MB.

    False positives: speed changes of 1% or less (3% in sounds of a few seconds), and some transpositions by a semitone.
    False negatives: telephone quality (8 kHz), some MP3s encoded at 64 kbit/s with LAME's fastest setting, and songs
    with a part cut out in the middle, which have two offsets. Pairs that consist only of silence or steady tones, and
    pairs without frames, are never found.
    """
    comparison = _Comparison(frames_of)
    pairs = []
    for first, second, _ in find_candidates(X, durations, rows, least_similarity, max_candidates):
        agreement, offset = comparison.best(first, second)
        if agreement >= LEAST_AGREEMENT:
            pairs.append(DuplicatePair(first, second, agreement, offset * HOP / SAMPLE_RATE))
    return sorted(pairs, key=lambda pair: (pair.first, pair.second))


def group_pairs(n: int, pairs: npt.ArrayLike) -> Int64Array:
    """Return the group number of each of n songs: songs connected by pairs of rows, (m, 2), have the same number.

    Groups are numbered from 0, in the order of their first songs. Raises ValueError if a row is outside 0..n-1.
    """
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


# --- verification -----------------------------------------------------------------------------


class _Comparison:
    """Comparison of two rows, first by excerpts, then by whole songs unless the excerpts exclude the pair."""

    def __init__(self, frames_of: Callable[[int], FloatingArray | None]) -> None:
        self._frames_of = frames_of
        self._excerpt = lru_cache(maxsize=_KEPT_EXCERPTS)(self._read_excerpt)
        self._whole = lru_cache(maxsize=_KEPT_SONGS)(self._read_whole)

    def best(self, first: int, second: int) -> tuple[float, int]:
        """Return the best agreement and its offset in frames; (-1, 0) if frames are missing."""
        a, b = self._excerpt(first), self._excerpt(second)
        if a is None or b is None:
            return -1.0, 0
        # short excerpts could miss the true offset, and comparing such short songs completely is cheap
        if min(len(a), len(b)) >= 3 * MAX_OFFSET // _STRIDE:
            agreement, offset = _coarse(a, b, min(len(a), len(b)) / 2)
            if 0.0 < agreement < _MIN_EXCERPT:  # an agreement of 0 means that the excerpt is constant
                return agreement, offset * _STRIDE
        return _align(self._whole(first), self._whole(second))

    def _read_excerpt(self, row: int) -> Float32Array | None:
        frames = self._frames_of(row)
        return None if frames is None else _changes(frames[_EXCERPT])[::_STRIDE].copy()

    def _read_whole(self, row: int) -> Float32Array:
        frames = self._frames_of(row)
        return _changes(frames) if frames is not None else np.empty((0, _N_CONTOURS), np.float32)


@lru_cache(maxsize=1)
def _low_bands() -> Float32Array:
    """Return the matrix (13, 10) that maps MFCCs to cosine coefficients 1 to 10 of the lower bands."""
    from scipy.fft import dct

    smoothed = dct(np.eye(_N_MELS), axis=1, norm="ortho")[:, :_N_MFCC].T[:, :_N_LOW_BANDS]
    basis = dct(np.eye(_N_LOW_BANDS), axis=1, norm="ortho")[:, 1 : _N_CONTOURS + 1]
    return np.ascontiguousarray(smoothed @ basis, dtype=np.float32)


def _changes(frames: FloatingArray) -> Float32Array:
    """Return, for each frame, the mean of eight frames minus the mean of the eight before, (n_frames - 15, 10).

    The difference removes a constant gain or filter, which adds a constant to the MFCCs.
    """
    if frames.ndim != 2 or frames.shape[1] < _N_MFCC:
        raise ValueError(f"frames_of returned shape {frames.shape}; it must be (n_frames, {_N_MFCC} or more).")
    if len(frames) < 2 * _CHANGE:
        return np.empty((0, _N_CONTOURS), np.float32)
    means = frames[:, :_N_MFCC].astype(np.float32) @ (_low_bands() / np.float32(_CHANGE))
    for step in (1, 2, 4):  # sums of 2, 4 and 8 frames
        means = means[step:] + means[:-step]
    return means[_CHANGE:] - means[:-_CHANGE]


def _align(a: Float32Array, b: Float32Array) -> tuple[float, int]:
    """Return the best agreement and its offset in frames: b[t + offset] matches a[t]; (-1, 0) without overlap."""
    least = max(_MIN_OVERLAP * min(len(a), len(b)), _MIN_OVERLAP_S * SAMPLE_RATE / HOP - 2 * _CHANGE)
    agreement, coarse = _coarse(a[::_STRIDE], b[::_STRIDE], least / _STRIDE)
    if agreement == -1.0:
        return -1.0, 0
    best, best_offset = -1.0, 0
    low, high = max((coarse - 1) * _STRIDE, -MAX_OFFSET), min((coarse + 1) * _STRIDE, MAX_OFFSET)
    for offset in range(low, high + 1):
        x, y = a[max(0, -offset) :], b[max(0, offset) :]
        n = min(len(x), len(y))
        x, y = x[:n:_STRIDE], y[:n:_STRIDE]
        products = np.einsum("ij,ij->j", x, y)
        powers = np.einsum("ij,ij->j", x, x) * np.einsum("ij,ij->j", y, y)
        agreement = float(_agreement(products, powers))
        if agreement > best:
            best, best_offset = agreement, offset
    return min(best, 1.0), best_offset  # because of rounding, the agreement may exceed 1


def _coarse(a: Float32Array, b: Float32Array, least: float) -> tuple[float, int]:
    """Return the highest mean correlation over at least `least` common rows, and its offset in strides, or (-1, 0)."""
    from scipy.fft import irfft, next_fast_len, rfft

    max_offset = MAX_OFFSET // _STRIDE
    offsets = np.arange(-max_offset, max_offset + 1)
    starts, ends = np.maximum(0, -offsets), np.minimum(len(a), len(b) - offsets)
    fits = (ends - starts >= least) & (ends > starts)
    if not fits.any():
        return -1.0, 0
    offsets, starts, ends = offsets[fits], starts[fits], ends[fits]
    length = next_fast_len(len(a) + len(b), real=True)
    spectrum = np.conj(rfft(a, length, axis=0)) * rfft(b, length, axis=0)
    products = irfft(spectrum, length, axis=0)[offsets]  # a negative offset indexes from the end
    power_a, power_b = (np.zeros((len(s) + 1, s.shape[1])) for s in (a, b))
    np.cumsum(np.square(a, dtype=np.float64), axis=0, out=power_a[1:])
    np.cumsum(np.square(b, dtype=np.float64), axis=0, out=power_b[1:])
    powers = (power_a[ends] - power_a[starts]) * (power_b[ends + offsets] - power_b[starts + offsets])
    agreements = _agreement(products, powers)
    best = int(np.argmax(agreements))
    return float(agreements[best]), int(offsets[best])


def _agreement(products: FloatingArray, powers: FloatingArray) -> FloatingArray:
    """Return the mean correlation over the last axis; constant columns have correlation 0."""
    return np.mean(products / np.sqrt(np.maximum(powers, _MIN_POWER)), axis=-1)
