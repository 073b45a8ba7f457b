"""Find songs that are the same recording: re-encoded, louder, shifted, or with other silence at the ends.

Two steps. Vectors and durations give *candidates*, cheaply and without an (n, n) matrix; the MFCC of a
candidate pair are then laid over each other at the offset that fits best, and only pairs whose *changes*
agree there are the same recording. Another performance, a remix or a song on the same drum loop has other
changes at other moments, however alike its sound is on the whole.

Conventions: seconds are decoded sound; a pair is (lower row, higher row); similarities go up to 1.
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
# Bands above 5 kHz are what a codec at 64 kbit/s switches off and on; the coefficients are taken of
# the 32 bands below them, and the first of these, the level, is left out.
_N_LOW_BANDS, _N_CONTOURS = 32, 10
# Frames of each of the two means whose difference is a change: 93 ms. Shorter, and the noise of codecs
# counts; longer, and a song played 1 % faster still fits.
_CHANGE = 8
# Every fourth change is looked at; neighbours share three quarters of their frames.
_STRIDE = 4
# Of the shorter song, the part that must lie over the other.
_MIN_OVERLAP = 0.75
_MIN_OVERLAP_S = 1.0
# Product of the summed squares of two columns of changes below which they stand still (dB^4).
_MIN_POWER = 1e-6
# Most candidates are told apart by forty seconds; the rest is read only for pairs that may be the same.
# Different songs agree by less than 0.3 there, poor copies by 0.7 or more (experiments.duplicates): between
# the two the whole songs decide.
_EXCERPT = slice(round(10 * SAMPLE_RATE / HOP), round(50 * SAMPLE_RATE / HOP))
_MIN_EXCERPT = 0.4
# Songs kept while pairs are compared: an excerpt has 35 kB, all changes of four minutes 830 kB.
_KEPT_EXCERPTS, _KEPT_SONGS = 4096, 64


@dataclass(frozen=True, slots=True)
class DuplicatePair:
    """Two songs that are the same recording."""

    # rows, first < second
    first: int
    second: int
    # agreement of the MFCC's changes, at most 1, if `verified`; else `1 - d^2 / 2` of the vectors
    similarity: float
    # what sounds at t seconds in `first` sounds at t + offset_s in `second`; None if not verified
    offset_s: float | None
    verified: bool  # False if frames were missing and only vectors and durations speak for the pair


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
    """Find the pairs of songs that are the same recording.

    Parameters
    ----------
    X : float ndarray of shape (n_songs, n_dimensions), finite
        Song vectors for which ``1 - d^2 / 2`` of the Euclidean distance d is a similarity.
    durations : ndarray of shape (n_songs,), seconds, finite
        Songs that differ by more than max(3 s, 3 %) are never a pair.
    frames_of : callable
        Gives the MFCC of a row: (n_frames, 13 or more columns, the first 13 count), a frame every 256
        samples at 22,050 Hz, any float type; or None if they were not kept.
    rows : int array-like, optional
        Only pairs with at least one of these rows (new songs); all pairs by default.
    least_agreement : float in (0, 1]
        Of the MFCC's changes, for a pair to be the same.
    least_similarity : float <= 1
        Of the vectors, for a pair to be compared at all.
    least_similarity_unverified, tolerance_unverified_s : float
        What vectors and durations must reach where frames are missing.
    max_candidates : int >= 1
        Most similar songs that each song is compared with.
    max_offset_s : float >= 0, seconds
        Largest shift that is tried.
    block_rows : int >= 1
        Songs whose distances are computed at once.

    Returns
    -------
    list of DuplicatePair
        Sorted by rows, each pair once.

    Raises
    ------
    ValueError
        If shapes do not fit, values are not finite, or an option is out of range.

    Notes
    -----
    Memory besides `X`: one copy in order of duration of the songs that are as long as some of `rows` (80 MB for
    100 000 songs of 200 columns),
    10 MB for a tile of distances, 200 MB where the vectors of all songs are alike, and excerpts and
    changes of the songs in hand (200 MB for songs of four minutes).

    What may pass though it is not the same: a change of speed of 1 % or less, in sounds of a few seconds
    3 %; some recordings beside their transposition by a semitone. What is missed: telephone quality
    (8 kHz), some MP3 of 64 kbit/s by LAME's fastest setting, and a song of which a part in the middle was
    cut out, since it has two offsets.
    Silence and steady tones do not change: they are never verified.
    """
    X, durations, queries = _checked(X, durations, rows)
    for name, value, holds in (
        ("least_agreement", least_agreement, 0 < least_agreement <= 1),
        ("least_similarity", least_similarity, least_similarity <= 1),
        ("least_similarity_unverified", least_similarity_unverified, least_similarity_unverified <= 1),
        ("max_candidates", max_candidates, max_candidates >= 1),
        ("max_offset_s", max_offset_s, max_offset_s >= 0),
        ("block_rows", block_rows, block_rows >= 1),
    ):
        if not holds:
            raise ValueError(f"{name}={value} is out of range; see the docstring of find_duplicates.")
    comparison = _Comparison(frames_of, round(max_offset_s * SAMPLE_RATE / HOP))
    found = []
    for first, second, similarity in _candidates(X, durations, queries, least_similarity, max_candidates, block_rows):
        result = comparison.best(first, second)
        if result is None:
            apart = abs(durations[first] - durations[second])
            if similarity >= least_similarity_unverified and apart <= tolerance_unverified_s:
                found.append(DuplicatePair(first, second, similarity, None, False))
            continue
        agreement, offset = result
        if agreement >= least_agreement:
            found.append(DuplicatePair(first, second, agreement, offset * HOP / SAMPLE_RATE, True))
    return sorted(found, key=lambda pair: (pair.first, pair.second))


def group_pairs(n: int, pairs: list[DuplicatePair]) -> Int64Array:
    """Number the groups of songs that pairs connect.

    Parameters
    ----------
    n : int >= 0
        Songs.

    Returns
    -------
    int64 ndarray of shape (n,)
        Equal for songs of one group; a song without a pair has a number of its own. Groups are numbered
        from 0 in the order of their first songs.

    Raises
    ------
    ValueError
        If a pair names a row outside 0..n-1.
    """
    if n == 0 and not pairs:
        return np.empty(0, np.int64)
    ends = np.array([(p.first, p.second) for p in pairs], dtype=np.int64).reshape(-1, 2)
    if len(ends) and not (ends.min() >= 0 and ends.max() < n):
        raise ValueError(f"a pair names row {ends.max() if ends.max() >= n else ends.min()} of {n} songs.")
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(ends), np.int8), (ends[:, 0], ends[:, 1])), shape=(n, n))
    labels = connected_components(graph, directed=False)[1]
    # scipy promises no order of its numbers
    _, firsts, groups = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(firsts))[groups].astype(np.int64)


# --- candidates -------------------------------------------------------------------------------


def _checked(
    X: FloatingArray, durations: FloatingArray, rows: npt.ArrayLike | None
) -> tuple[Float32Array, Float64Array, Int64Array]:
    vectors: Float32Array = np.asanyarray(X, dtype=np.float32)
    seconds: Float64Array = np.asarray(durations, dtype=np.float64)
    if vectors.ndim != 2:
        raise ValueError(f"X should be two-dimensional, one song a row; its shape is {vectors.shape}.")
    n_songs = len(vectors)
    if seconds.shape != (n_songs,):
        raise ValueError(f"durations has shape {seconds.shape}, X has {n_songs} songs.")
    for name, array in (("X", vectors), ("durations", seconds)):
        if not np.isfinite(array).all():
            raise ValueError(f"{name} holds NaN or infinite values.")
    if rows is None:
        return vectors, seconds, np.arange(n_songs, dtype=np.int64)
    given = np.asarray(rows)
    if given.size and not np.issubdtype(given.dtype, np.integer):
        raise ValueError(f"rows should be row numbers, not {given.dtype}.")
    queries = np.unique(given.astype(np.int64))
    if len(queries) and not (queries[0] >= 0 and queries[-1] < n_songs):
        raise ValueError(f"rows goes from {queries[0]} to {queries[-1]}, X has {n_songs} songs.")
    return vectors, seconds, queries


def _tolerance(longer: Float64Array) -> Float64Array:
    return np.maximum(_TOLERANCE_S, _TOLERANCE_SHARE * longer)


def _reach(durations: Float64Array) -> tuple[Float64Array, Float64Array]:
    """The shortest and the longest songs that songs of some lengths are compared with."""
    longest = np.maximum(durations + _TOLERANCE_S, durations / (1 - _TOLERANCE_SHARE)) + 1e-6
    return durations - _tolerance(durations), longest


def _within_reach(lengths: Float64Array, asked: Float64Array) -> BoolArray:
    """Which of the `lengths`, ascending, are compared with any of the lengths `asked`."""
    shortest, longest = _reach(asked)
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
    """Row, higher row and similarity of the nearest songs of similar duration, in order of duration.

    In this order the songs of a pair come soon after each other, so that few are read twice.
    """
    order = np.argsort(durations, kind="stable")
    order = order[_within_reach(durations[order], durations[queries])]
    lengths = durations[order]
    # 2qr - |r|^2 in one product: the last column of a song is -|r|^2 / 2, that of a query 1
    songs = np.empty((len(order), X.shape[1] + 1), np.float32)
    songs[:, :-1] = X[order]
    songs[:, -1] = -0.5 * np.einsum("ij,ij->i", songs[:, :-1], songs[:, :-1])
    place = np.empty(len(X), dtype=np.int64)
    place[order] = np.arange(len(order))
    places = np.sort(place[queries])
    found = [np.empty((0, 3))]
    for start in range(0, len(places), block_rows):
        hits = _near(songs, lengths, places[start : start + block_rows], least_similarity, max_candidates)
        found.append(np.column_stack(hits))
    pairs = np.concatenate(found)
    pairs[:, :2].sort(axis=1)
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    new = np.ones(len(pairs), bool)
    new[1:] = (pairs[1:, :2] != pairs[:-1, :2]).any(axis=1)
    for one, other, similarity in pairs[new]:
        first, second = sorted((int(order[int(one)]), int(order[int(other)])))
        yield first, second, float(similarity)


Hits = tuple[Int64Array, Int64Array, Float64Array]


def _near(songs: Float32Array, lengths: Float64Array, block: Int64Array, least_similarity: float, k: int) -> Hits:
    """Neighbours of the rows `block` (ascending) among all, `lengths` ascending: query, row, similarity."""
    shortest, longest = _reach(lengths[block[[0, -1]]])
    low, high = np.searchsorted(lengths, shortest[0], "left"), np.searchsorted(lengths, longest[1], "right")
    X, halves = songs[:, :-1], -songs[:, -1]
    queries = np.column_stack([X[block], np.ones(len(block), np.float32)])
    # float32 loses digits of a small distance: the sieve is wider by what can be lost, and the
    # differences themselves decide
    slack = 1e-5 * float(halves[low:high].max())
    least = halves[block] - np.float32(1.0 - least_similarity + slack)
    hits: Hits = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    # small tiles first: where sounds are all alike, their k nearest rule out nearly all that come after them
    start, width = low, len(block)
    while start < high:
        products = queries @ songs[start : min(start + width, high)].T
        i, j = np.nonzero(products >= least[:, None])
        q, r = block[i], start + j
        fits = (q != r) & (np.abs(lengths[q] - lengths[r]) <= _tolerance(np.maximum(lengths[q], lengths[r])))
        q, r = q[fits], r[fits]
        similarity = _similarity(X, q, r)
        near = similarity >= least_similarity
        hits = _nearest(
            np.concatenate([hits[0], q[near]]),
            np.concatenate([hits[1], r[near]]),
            np.concatenate([hits[2], similarity[near]]),
            k,
        )
        asked, n_kept = np.unique(hits[0], return_counts=True)
        full = asked[n_kept == k]
        kth = hits[2][np.cumsum(n_kept)[n_kept == k] - 1]
        least[np.searchsorted(block, full)] = halves[full] - (1.0 - kth + slack).astype(np.float32)
        start, width = start + width, min(2 * width, 8 * len(block))
    return hits


def _similarity(X: Float32Array, q: Int64Array, r: Int64Array) -> Float64Array:
    result = np.empty(len(q))
    for start in range(0, len(q), 4096):
        part = slice(start, start + 4096)
        difference = X[q[part]].astype(np.float64) - X[r[part]]
        result[part] = 1.0 - np.einsum("ij,ij->i", difference, difference) / 2.0
    return result


def _nearest(q: Int64Array, r: Int64Array, similarity: Float64Array, k: int) -> Hits:
    """The `k` most similar rows of each query; ties by the lower place."""
    order = np.lexsort((r, -similarity, q))
    q, r, similarity = q[order], r[order], similarity[order]
    starts = np.flatnonzero(np.r_[True, q[1:] != q[:-1]]) if len(q) else np.empty(0, np.int64)
    rank = np.arange(len(q)) - np.repeat(starts, np.diff(np.r_[starts, len(q)]))
    kept = rank < k
    return q[kept], r[kept], similarity[kept]


# --- verification -----------------------------------------------------------------------------


class _Comparison:
    """Compares two rows by an excerpt first, and by the whole songs if that leaves it open."""

    def __init__(self, frames_of: Callable[[int], FloatingArray | None], max_offset: int) -> None:
        self._frames_of, self._max_offset = frames_of, max_offset
        self._excerpt = lru_cache(maxsize=_KEPT_EXCERPTS)(self._read_excerpt)
        self._whole = lru_cache(maxsize=_KEPT_SONGS)(self._read_whole)

    def best(self, first: int, second: int) -> tuple[float, int] | None:
        """Agreement and offset in frames; None if the frames of one were not kept."""
        a, b = self._excerpt(first), self._excerpt(second)
        if a is None or b is None:
            return None
        # shorter excerpts could miss the true offset; whole songs of that length cost little
        if min(len(a), len(b)) >= 3 * self._max_offset // _STRIDE:
            agreement, offset = _coarse(a, b, self._max_offset // _STRIDE, min(len(a), len(b)) / 2)
            if 0.0 < agreement < _MIN_EXCERPT:  # 0: nothing changes there
                return agreement, offset * _STRIDE
        return _align(self._whole(first), self._whole(second), self._max_offset)

    def _read_excerpt(self, row: int) -> Float32Array | None:
        frames = self._frames_of(row)
        return None if frames is None else _changes(frames[_EXCERPT])[::_STRIDE].copy()

    def _read_whole(self, row: int) -> Float32Array:
        frames = self._frames_of(row)
        if frames is None:
            raise ValueError(f"frames_of gave the frames of row {row} once, and None the next time.")
        return _changes(frames)


@lru_cache(maxsize=1)
def _low_bands() -> Float32Array:
    """From 13 MFCC to cosine coefficients 1 to 10 of the lower bands alone: (13, 10)."""
    from scipy.fft import dct

    smoothed = dct(np.eye(_N_MELS), axis=1, norm="ortho")[:, :_N_MFCC].T[:, :_N_LOW_BANDS]
    basis = dct(np.eye(_N_LOW_BANDS), axis=1, norm="ortho")[:, 1 : _N_CONTOURS + 1]
    return np.ascontiguousarray(smoothed @ basis, dtype=np.float32)


def _changes(frames: FloatingArray) -> Float32Array:
    """Mean of eight frames less the mean of the eight before, at every frame: (n_frames - 15, 10).

    A constant gain or filter adds a constant to MFCC: it is gone here.
    """
    if frames.ndim != 2 or frames.shape[1] < _N_MFCC:
        raise ValueError(f"frames_of should give (n_frames, {_N_MFCC}) arrays, not {frames.shape}.")
    if len(frames) < 2 * _CHANGE:
        return np.empty((0, _N_CONTOURS), np.float32)
    means = frames[:, :_N_MFCC].astype(np.float32) @ (_low_bands() / np.float32(_CHANGE))
    for step in (1, 2, 4):  # sums of 2, 4 and 8
        means = means[step:] + means[:-step]
    return means[_CHANGE:] - means[:-_CHANGE]


def _align(a: Float32Array, b: Float32Array, max_offset: int) -> tuple[float, int]:
    """Best agreement over offsets in frames; b[t + offset] lies over a[t]. (-1, 0) if nothing overlaps."""
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
    return min(best, 1.0), best_offset  # rounding goes beyond 1


def _coarse(a: Float32Array, b: Float32Array, max_offset: int, least: float) -> tuple[float, int]:
    """The highest mean correlation and its offset, of those that leave `least` rows; (-1, 0) if none do."""
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
    """Mean correlation over the last axis; what does not change has nothing to agree with and counts 0."""
    return np.mean(products / np.sqrt(np.maximum(powers, _MIN_POWER)), axis=-1)
