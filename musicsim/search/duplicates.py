"""Find songs that are the same recording: re-encoded, louder, shifted, or with other silence at the ends.

Vectors and durations give *candidates* without an (n, n) matrix. The MFCC of a candidate pair are then aligned at the
best offset, and only pairs whose *changes* agree there are the same recording. Another performance, a remix or a song
with the same drum loop has other changes at other times, even if it sounds similar.

Conventions: seconds are those of decoded sound; a pair is (lower row, higher row); similarities are at most 1.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from musicsim._arrays import BoolArray, Float32Array, Float64Array, FloatingArray, Int64Array
from musicsim.audio import HOP, SAMPLE_RATE

_TOLERANCE_S, _TOLERANCE_SHARE = 3.0, 0.03
_N_MFCC, _N_MELS = 13, 40
# A codec at 64 kbit/s switches bands above 5 kHz on and off. The coefficients are those of the 32 bands below, without
# the first one, the level.
_N_LOW_BANDS, _N_CONTOURS = 32, 10
# Frames of each of the two means whose difference is a change: 93 ms. If shorter, the noise of codecs matters; if
# longer, a song played 1% faster still fits.
_CHANGE = 8
_STRIDE = 4  # Every fourth change is used; neighbors share three quarters of their frames
_MIN_OVERLAP = 0.75  # Minimum share of the shorter song that overlaps the other
_MIN_OVERLAP_S = 1.0
_MIN_POWER = 1e-6  # Product of the summed squares of two columns of changes below which they are constant (dB^4)
# Forty seconds exclude most candidates; whole songs are read only for pairs that may be the same. Different songs agree
# by less than 0.3 there, poor duplicates by 0.7 or more (experiments.duplicates).
_EXCERPT = slice(round(10 * SAMPLE_RATE / HOP), round(50 * SAMPLE_RATE / HOP))
_MIN_EXCERPT = 0.4
# Sizes of caches: an excerpt has 35 kB, all changes of four minutes 830 kB.
_KEPT_EXCERPTS, _KEPT_SONGS = 4096, 64


@dataclass(frozen=True, slots=True)
class DuplicatePair:
    """Two songs that are the same recording."""

    first: int  # the lower row
    second: int  # the higher row
    similarity: float  # agreement of changes, at most 1, if `verified`; else `1 - d^2 / 2` of the vectors
    offset_s: float | None  # t seconds in `first` correspond to t + offset_s in `second`; None if not verified
    verified: bool  # False if frames were missing, so that only vectors and durations were compared


def find_duplicates(
    X: FloatingArray,
    durations: FloatingArray,
    frames_of: Callable[[int], FloatingArray | None],
    *,
    rows: npt.ArrayLike | None = None,
    least_agreement: float = 0.82,
    least_similarity: float = 0.6,
    least_similarity_unverified: float = 0.995,
    tolerance_unverified_s: float = 0.25,
    max_candidates: int = 10,
    max_offset_s: float = 5.0,
    block_rows: int = 512,
) -> list[DuplicatePair]:
    """Find the pairs of songs that are the same recording, sorted by rows, each once.

    Raises ValueError if shapes do not fit, values are not finite, or an option is out of range.

    Parameters
    ----------
    X : float ndarray of shape (n_songs, n_dimensions), finite
        Song vectors for which ``1 - d^2 / 2`` of the Euclidean distance d is a similarity.
    durations : ndarray of shape (n_songs,), seconds, finite
        Songs whose durations differ by more than max(3 s, 3%) are never a pair.
    frames_of : callable
        Returns the MFCC of a row, (n_frames, 13 or more columns, of which 13 are used), a frame every 256 samples at
        22,050 Hz, any float type; None if they are missing.
    rows : int array-like, optional
        Only pairs with at least one of these rows (new songs); all pairs by default.
    least_agreement : float in (0, 1]
        Minimum agreement of changes of MFCC.
    least_similarity : float <= 1
        Minimum similarity of the vectors of candidates.
    least_similarity_unverified, tolerance_unverified_s : float
        Minimum similarity and maximum difference of durations if frames are missing.
    max_candidates, block_rows : int >= 1
        Most similar songs that each song is compared with, and songs whose distances are computed at once.
    max_offset_s : float >= 0, seconds
        Largest shift.

    Notes
    -----
    Memory in addition to `X`: a copy of the songs that are as long as some of `rows`, 10 MB for a tile of distances,
    200 MB if the vectors of all songs are similar, and 200 MB for excerpts and changes of songs of four minutes.

    False positives: speed changes of 1% or less (3% in sounds of a few seconds), and some transpositions by a semitone.
    False negatives: telephone quality (8 kHz), some MP3 of 64 kbit/s by LAME's fastest setting, and songs with a part
    cut out in the middle, which have two offsets. Silence and steady tones are never verified.
    """
    X, durations, queries = _check_songs(X, durations, rows)
    for name, value, is_valid in (
        ("least_agreement", least_agreement, 0 < least_agreement <= 1),
        ("least_similarity", least_similarity, least_similarity <= 1),
        ("least_similarity_unverified", least_similarity_unverified, least_similarity_unverified <= 1),
        ("max_candidates", max_candidates, max_candidates >= 1),
        ("max_offset_s", max_offset_s, max_offset_s >= 0),
        ("block_rows", block_rows, block_rows >= 1),
    ):
        if not is_valid:
            raise ValueError(f"{name}={value} is out of range; see the docstring of find_duplicates.")
    comparison = _Comparison(frames_of, round(max_offset_s * SAMPLE_RATE / HOP))
    pairs = []
    for first, second, similarity in _candidates(X, durations, queries, least_similarity, max_candidates, block_rows):
        result = comparison.best(first, second)
        if result is None:
            difference = abs(durations[first] - durations[second])
            if similarity >= least_similarity_unverified and difference <= tolerance_unverified_s:
                pairs.append(DuplicatePair(first, second, similarity, None, False))
            continue
        agreement, offset = result
        if agreement >= least_agreement:
            pairs.append(DuplicatePair(first, second, agreement, offset * HOP / SAMPLE_RATE, True))
    return sorted(pairs, key=lambda pair: (pair.first, pair.second))


def group_pairs(n: int, pairs: list[DuplicatePair]) -> Int64Array:
    """Return the group of each of n songs, int64 (n,): songs connected by pairs have the same number.

    Groups are numbered from 0 in the order of their first songs. Raises ValueError if a pair has a row outside 0..n-1.
    """
    if n == 0 and not pairs:
        return np.empty(0, np.int64)
    ends = np.array([(p.first, p.second) for p in pairs], dtype=np.int64).reshape(-1, 2)
    if len(ends) and not (ends.min() >= 0 and ends.max() < n):
        raise ValueError(f"a pair has row {ends.max() if ends.max() >= n else ends.min()} of {n} songs.")
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(ends), np.int8), (ends[:, 0], ends[:, 1])), shape=(n, n))
    labels = connected_components(graph, directed=False)[1]
    # the order of scipy's numbers is not specified
    _, firsts, groups = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(firsts))[groups].astype(np.int64)


# --- candidates -------------------------------------------------------------------------------


def _check_songs(
    X: FloatingArray, durations: FloatingArray, rows: npt.ArrayLike | None
) -> tuple[Float32Array, Float64Array, Int64Array]:
    vectors: Float32Array = np.asanyarray(X, dtype=np.float32)
    seconds: Float64Array = np.asarray(durations, dtype=np.float64)
    if vectors.ndim != 2:
        raise ValueError(f"X should be two-dimensional, one song per row; its shape is {vectors.shape}.")
    n_songs = len(vectors)
    if seconds.shape != (n_songs,):
        raise ValueError(f"durations has shape {seconds.shape}, X has {n_songs} songs.")
    for name, array in (("X", vectors), ("durations", seconds)):
        if not np.isfinite(array).all():
            raise ValueError(f"{name} contains NaN or infinite values.")
    if rows is None:
        return vectors, seconds, np.arange(n_songs, dtype=np.int64)
    numbers = np.asarray(rows)
    if numbers.size and not np.issubdtype(numbers.dtype, np.integer):
        raise ValueError(f"rows should be row numbers, not {numbers.dtype}.")
    queries = np.unique(numbers.astype(np.int64))
    if len(queries) and not (queries[0] >= 0 and queries[-1] < n_songs):
        raise ValueError(f"rows ranges from {queries[0]} to {queries[-1]}, X has {n_songs} songs.")
    return vectors, seconds, queries


def _tolerance(longer: Float64Array) -> Float64Array:
    return np.maximum(_TOLERANCE_S, _TOLERANCE_SHARE * longer)


def _reach(durations: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return the shortest and the longest durations that durations are compared with."""
    longest = np.maximum(durations + _TOLERANCE_S, durations / (1 - _TOLERANCE_SHARE)) + 1e-6
    return durations - _tolerance(durations), longest


def _mask_comparable(lengths: Float64Array, queries: Float64Array) -> BoolArray:
    """Return which of the ascending `lengths` are compared with any of those of `queries`."""
    shortest, longest = _reach(queries)
    n_begun = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.add.at(n_begun, np.searchsorted(lengths, shortest, "left"), 1)
    np.add.at(n_begun, np.searchsorted(lengths, longest, "right"), -1)
    return np.cumsum(n_begun[:-1]) > 0


def _candidates(
    X: Float32Array,
    durations: Float64Array,
    queries: Int64Array,
    least_similarity: float,
    max_candidates: int,
    block_rows: int,
) -> Iterator[tuple[int, int, float]]:
    """Yield row, higher row and similarity of the nearest songs of similar duration.

    The order is that of durations, in which the songs of a pair are close, so that few are read twice.
    """
    order = np.argsort(durations, kind="stable")
    order = order[_mask_comparable(durations[order], durations[queries])]
    lengths = durations[order]
    # 2qr - |r|^2 in one product, because the last column of a song is -|r|^2 / 2, that of a query 1
    songs = np.empty((len(order), X.shape[1] + 1), np.float32)
    songs[:, :-1] = X[order]
    songs[:, -1] = -0.5 * np.einsum("ij,ij->i", songs[:, :-1], songs[:, :-1])
    place = np.empty(len(X), dtype=np.int64)
    place[order] = np.arange(len(order))
    places = np.sort(place[queries])
    parts = [np.empty((0, 3))]
    for start in range(0, len(places), block_rows):
        block = places[start : start + block_rows]
        parts.append(np.column_stack(_find_neighbors(songs, lengths, block, least_similarity, max_candidates)))
    pairs = np.concatenate(parts)
    pairs[:, :2].sort(axis=1)
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    is_new = np.ones(len(pairs), bool)
    is_new[1:] = (pairs[1:, :2] != pairs[:-1, :2]).any(axis=1)
    for one, other, similarity in pairs[is_new]:
        first, second = sorted((int(order[int(one)]), int(order[int(other)])))
        yield first, second, float(similarity)


Neighbors = tuple[Int64Array, Int64Array, Float64Array]  # query, row, similarity


def _find_neighbors(
    songs: Float32Array, lengths: Float64Array, block: Int64Array, least_similarity: float, k: int
) -> Neighbors:
    """Return the k nearest rows of each row of `block` (ascending); `lengths` are ascending."""
    shortest, longest = _reach(lengths[block[[0, -1]]])
    low, high = np.searchsorted(lengths, shortest[0], "left"), np.searchsorted(lengths, longest[1], "right")
    X, halves = songs[:, :-1], -songs[:, -1]
    queries = np.column_stack([X[block], np.ones(len(block), np.float32)])
    # float32 loses digits of small distances: the first filter allows for that, and the differences decide
    slack = 1e-5 * float(halves[low:high].max())
    least = halves[block] - np.float32(1.0 - least_similarity + slack)
    neighbors: Neighbors = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    # small tiles first: if all sounds are similar, their k nearest exclude nearly all later ones
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
    """Return the similarities of the pairs of rows `q` and `r` of X in float64."""
    result = np.empty(len(q))
    for start in range(0, len(q), 4096):
        part = slice(start, start + 4096)
        difference = X[q[part]].astype(np.float64) - X[r[part]]
        result[part] = 1.0 - np.einsum("ij,ij->i", difference, difference) / 2.0
    return result


def _keep_nearest(q: Int64Array, r: Int64Array, similarity: Float64Array, k: int) -> Neighbors:
    """Return the `k` most similar rows of each query; ties by the lower row."""
    order = np.lexsort((r, -similarity, q))
    q, r, similarity = q[order], r[order], similarity[order]
    starts = np.flatnonzero(np.r_[True, q[1:] != q[:-1]]) if len(q) else np.empty(0, np.int64)
    rank = np.arange(len(q)) - np.repeat(starts, np.diff(np.r_[starts, len(q)]))
    is_kept = rank < k
    return q[is_kept], r[is_kept], similarity[is_kept]


# --- verification -----------------------------------------------------------------------------


class _Comparison:
    """Compares two rows by excerpts first, and by whole songs if these do not exclude the pair."""

    def __init__(self, frames_of: Callable[[int], FloatingArray | None], max_offset: int) -> None:
        self._frames_of, self._max_offset = frames_of, max_offset
        self._excerpt = lru_cache(maxsize=_KEPT_EXCERPTS)(self._read_excerpt)
        self._whole = lru_cache(maxsize=_KEPT_SONGS)(self._read_whole)

    def best(self, first: int, second: int) -> tuple[float, int] | None:
        """Return agreement and offset in frames; None if frames are missing."""
        a, b = self._excerpt(first), self._excerpt(second)
        if a is None or b is None:
            return None
        # shorter excerpts could miss the true offset, and whole songs of that length are cheap
        if min(len(a), len(b)) >= 3 * self._max_offset // _STRIDE:
            agreement, offset = _coarse(a, b, self._max_offset // _STRIDE, min(len(a), len(b)) / 2)
            if 0.0 < agreement < _MIN_EXCERPT:  # 0: constant
                return agreement, offset * _STRIDE
        return _align(self._whole(first), self._whole(second), self._max_offset)

    def _read_excerpt(self, row: int) -> Float32Array | None:
        frames = self._frames_of(row)
        return None if frames is None else _changes(frames[_EXCERPT])[::_STRIDE].copy()

    def _read_whole(self, row: int) -> Float32Array:
        frames = self._frames_of(row)
        if frames is None:
            raise ValueError(f"frames_of returned frames of row {row} first, and None later.")
        return _changes(frames)


@lru_cache(maxsize=1)
def _low_bands() -> Float32Array:
    """Return the map (13, 10) from MFCC to cosine coefficients 1 to 10 of the lower bands."""
    from scipy.fft import dct

    smoothed = dct(np.eye(_N_MELS), axis=1, norm="ortho")[:, :_N_MFCC].T[:, :_N_LOW_BANDS]
    basis = dct(np.eye(_N_LOW_BANDS), axis=1, norm="ortho")[:, 1 : _N_CONTOURS + 1]
    return np.ascontiguousarray(smoothed @ basis, dtype=np.float32)


def _changes(frames: FloatingArray) -> Float32Array:
    """Return the mean of eight frames minus that of the eight before, (n_frames - 15, 10).

    This removes a constant gain or filter, which adds a constant to MFCC.
    """
    if frames.ndim != 2 or frames.shape[1] < _N_MFCC:
        raise ValueError(f"frames_of should return (n_frames, {_N_MFCC}) arrays, not {frames.shape}.")
    if len(frames) < 2 * _CHANGE:
        return np.empty((0, _N_CONTOURS), np.float32)
    means = frames[:, :_N_MFCC].astype(np.float32) @ (_low_bands() / np.float32(_CHANGE))
    for step in (1, 2, 4):  # sums of 2, 4 and 8
        means = means[step:] + means[:-step]
    return means[_CHANGE:] - means[:-_CHANGE]


def _align(a: Float32Array, b: Float32Array, max_offset: int) -> tuple[float, int]:
    """Return the best agreement and its offset in frames: b[t + offset] matches a[t]. (-1, 0) without overlap."""
    least = max(_MIN_OVERLAP * min(len(a), len(b)), _MIN_OVERLAP_S * SAMPLE_RATE / HOP - 2 * _CHANGE)
    agreement, coarse = _coarse(a[::_STRIDE], b[::_STRIDE], max_offset // _STRIDE, least / _STRIDE)
    if agreement == -1.0:
        return -1.0, 0
    best, best_offset = -1.0, 0
    low, high = max((coarse - 1) * _STRIDE, -max_offset), min((coarse + 1) * _STRIDE, max_offset)
    for offset in range(low, high + 1):
        x, y = a[max(0, -offset) :], b[max(0, offset) :]
        n = min(len(x), len(y))
        x, y = x[:n:_STRIDE], y[:n:_STRIDE]
        products = np.einsum("ij,ij->j", x, y)
        powers = np.einsum("ij,ij->j", x, x) * np.einsum("ij,ij->j", y, y)
        agreement = float(_agreement(products, powers))
        if agreement > best:
            best, best_offset = agreement, offset
    return min(best, 1.0), best_offset  # rounding may exceed 1


def _coarse(a: Float32Array, b: Float32Array, max_offset: int, least: float) -> tuple[float, int]:
    """Return the highest mean correlation with an overlap of `least` rows, and its offset; (-1, 0) without one."""
    from scipy.fft import irfft, next_fast_len, rfft

    offsets = np.arange(-max_offset, max_offset + 1)
    starts, ends = np.maximum(0, -offsets), np.minimum(len(a), len(b) - offsets)
    fits = (ends - starts >= least) & (ends > starts)
    if not fits.any():
        return -1.0, 0
    offsets, starts, ends = offsets[fits], starts[fits], ends[fits]
    length = next_fast_len(len(a) + len(b), real=True)
    spectrum = np.conj(rfft(a, length, axis=0)) * rfft(b, length, axis=0)
    products = irfft(spectrum, length, axis=0)[offsets]  # a negative offset counts from the end
    power_a, power_b = (np.zeros((len(s) + 1, s.shape[1])) for s in (a, b))
    np.cumsum(np.square(a, dtype=np.float64), axis=0, out=power_a[1:])
    np.cumsum(np.square(b, dtype=np.float64), axis=0, out=power_b[1:])
    powers = (power_a[ends] - power_a[starts]) * (power_b[ends + offsets] - power_b[starts + offsets])
    agreements = _agreement(products, powers)
    best = int(np.argmax(agreements))
    return float(agreements[best]), int(offsets[best])


def _agreement(products: FloatingArray, powers: FloatingArray) -> FloatingArray:
    """Return the mean correlation over the last axis; constant columns count 0."""
    return np.mean(products / np.sqrt(np.maximum(powers, _MIN_POWER)), axis=-1)
