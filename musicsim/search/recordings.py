"""Comparison of two songs, frame by frame: are they the same recording, at the same speed and pitch?

The *changes* of their MFCCs are aligned at the best offset. Another performance, a remix, or a song with the same drum
loop has different changes at different times, even if it sounds similar. Four tests follow:

- *Speed*: short segments are aligned on their own. In the same recording, their offsets lie on a line whose slope is at
  most 0.2%. A difference this small is common, because the clocks of recorders differ.
- *Agreement*: the changes must agree along this line.
- *Timing*: half-second windows of the same recording deviate from the line by less than 5 ms. The notes of another
  performance are earlier or later, even if a machine or a metronome dictates the tempo.
- *Pitch*: the changes of a transposed song are shifted along the frequency axis, unless drums dominate them. Its
  harmony is rotated.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from musicsim._arrays import Float32Array, Float64Array, FloatingArray
from musicsim.audio import HOP, SAMPLE_RATE
from musicsim.audio.features import N_MELS, N_MFCC, mel_corners
from musicsim.audio.harmony import N_CLASSES

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
_MIN_ROUGH_AGREEMENT = 0.4
# Cache sizes: an excerpt takes 35 kB, and all changes of a four-minute song take 830 kB.
_KEPT_EXCERPTS, _KEPT_SONGS = 4096, 64
MAX_OFFSET = round(5.0 * SAMPLE_RATE / HOP)  # Largest shift between the two songs, in frames
MIN_AGREEMENT = 0.82  # Minimum agreement between the changes of two songs
_SEGMENT = round(5.0 * SAMPLE_RATE / HOP)  # Frames whose offset is determined on their own
_MIN_SEGMENTS = 4
_MIN_SEGMENT_AGREEMENT = 0.6  # The offset of a segment with less, such as one of silence, is not used
_MAX_DRIFT = 0.002
_MAX_DRIFT_FRAMES = 1.0  # Always allowed in total: the offsets of segments of a very short song are less exact
_SHIFT_REACH, _SHIFT_MARGIN = 0.0025, 4  # Segments are searched this share of the song, plus frames, to both sides
_WINDOW = round(0.5 * SAMPLE_RATE / HOP)  # Frames of the windows whose timing is compared
_MAX_SPREAD = 0.43  # frames; at most 0.25 in duplicates, and 0.55 or more in performances (experiments.duplicates)
_MAX_SEMITONES = 0.35  # at most 0.24 in duplicates, and 0.49 or more if a song is a semitone higher or lower
# Two harmonies are transposed if they correlate at least this much after a rotation, and this much less without it.
# Transposed songs have at least 0.95 and 1.2; duplicates have a difference below 0.25.
_MIN_HARMONY, _MIN_HARMONY_GAIN = 0.8, 0.4


@dataclass(frozen=True, slots=True)
class Match:
    """Two aligned songs."""

    agreement: float  # correlation of the changes, at most 1
    offset: int  # in frames: frame t of the first song is frame t + offset of the second
    drift: float = 0.0  # change of the offset per frame; 0.01 if the second song is 1% slower
    spread: float = 0.0  # standard deviation of the offsets of windows from their neighbors, in frames
    semitones: float = 0.0  # estimated pitch of the second song relative to the first
    is_transposed: bool = False  # True if the harmonies show a transposition

    @property
    def is_same_recording(self) -> bool:
        has_same_timing = abs(self.drift) <= _MAX_DRIFT and self.spread <= _MAX_SPREAD
        has_same_pitch = abs(self.semitones) <= _MAX_SEMITONES and not self.is_transposed
        return self.agreement >= MIN_AGREEMENT and has_same_timing and has_same_pitch


RowArray = Callable[[int], FloatingArray | None]
"""Returns an array of a row, or None if it is missing."""


class Comparison:
    """Comparison of two rows, first by excerpts, then by whole songs unless the excerpts exclude the pair.

    `frames_of` returns the MFCCs of a row, (n_frames, 13 or more). `harmony_of` returns its
    :func:`musicsim.audio.harmony`.
    """

    def __init__(self, frames_of: RowArray, harmony_of: RowArray | None = None) -> None:
        self._frames_of, self._harmony_of = frames_of, harmony_of
        self._excerpt = lru_cache(maxsize=_KEPT_EXCERPTS)(self._read_excerpt)
        self._whole = lru_cache(maxsize=_KEPT_SONGS)(self._read_whole)

    def match(self, first: int, second: int) -> Match | None:
        """Return the best alignment of two rows, or None if frames are missing."""
        a, b = self._excerpt(first), self._excerpt(second)
        if a is None or b is None:
            return None
        # short excerpts could miss the true offset, and comparing such short songs completely is cheap
        if min(len(a), len(b)) >= 3 * MAX_OFFSET // _STRIDE:
            agreement, offset = _coarse(a, b, min(len(a), len(b)) / 2)
            if 0.0 < agreement < _MIN_ROUGH_AGREEMENT:  # an agreement of 0 means that the excerpt is constant
                return Match(agreement, offset * _STRIDE)
        agreement, offset = _align(self._whole(first), self._whole(second))
        if agreement < _MIN_ROUGH_AGREEMENT:
            return Match(agreement, offset)
        return self._examine(first, second, offset)

    def _examine(self, first: int, second: int, offset: int) -> Match:
        """Return the match of two songs at a known offset, with their differences in speed and pitch."""
        x, y = _overlap(self._whole(first), self._whole(second), offset)
        drift = _estimate_drift(x, y)
        if abs(drift) * len(x) <= _MAX_DRIFT_FRAMES:
            drift = 0.0
        places = np.arange(len(x)) + drift * (np.arange(len(x)) - len(x) / 2)
        y = _interpolate(y, places)
        agreement = _agreement_of(x[::_STRIDE], y[::_STRIDE])
        if agreement < MIN_AGREEMENT or abs(drift) > _MAX_DRIFT:
            return Match(agreement, offset, drift)
        effects = (self._changes_of(row, _shifts_of_a_semitone()) for row in (first, second))
        shifted_x, shifted_y = _overlap(*effects, offset)
        semitones = _estimate_factor(x, y, (shifted_x + _interpolate(shifted_y, places)) / 2)
        return Match(agreement, offset, drift, _timing_spread(x, y), semitones, self._is_transposed(first, second))

    def _is_transposed(self, first: int, second: int) -> bool:
        if self._harmony_of is None:
            return False
        a, b = self._harmony_of(first), self._harmony_of(second)
        return a is not None and b is not None and is_transposed(a, b)

    def _read_excerpt(self, row: int) -> Float32Array | None:
        frames = self._frames_of(row)
        return None if frames is None else _changes(frames[_EXCERPT], _low_bands())[::_STRIDE].copy()

    def _read_whole(self, row: int) -> Float32Array:
        return self._changes_of(row, _low_bands())

    def _changes_of(self, row: int, contours: Float32Array) -> Float32Array:
        frames = self._frames_of(row)
        return _changes(frames, contours) if frames is not None else np.empty((0, _N_CONTOURS), np.float32)


def is_transposed(a: FloatingArray, b: FloatingArray) -> bool:
    """Return whether two harmonies, (156,), are equal except for a transposition; False if there are no clear pitches.

    A song tuned a quarter tone away from A = 440 Hz can seem transposed, because its pitch classes are ambiguous.
    """
    a, b = (harmony[:N_CLASSES] - np.mean(harmony[:N_CLASSES]) for harmony in (a, b))
    products = np.array([a @ np.roll(b, -steps) for steps in range(N_CLASSES)])
    correlations = products / max(float(np.sqrt((a @ a) * (b @ b))), 1e-12)
    best = float(correlations.max())
    return best >= _MIN_HARMONY and best - float(correlations[0]) >= _MIN_HARMONY_GAIN


# --- changes ------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _bands() -> tuple[Float64Array, Float64Array]:
    """Return the matrix (13, 40) from MFCCs to band levels, and the one (40, 10) to cosine coefficients 1 to 10.

    The second one uses only the lower bands.
    """
    from scipy.fft import dct

    levels = dct(np.eye(N_MELS), axis=1, norm="ortho")[:, :N_MFCC].T
    contours = np.zeros((N_MELS, _N_CONTOURS))
    contours[:_N_LOW_BANDS] = dct(np.eye(_N_LOW_BANDS), axis=1, norm="ortho")[:, 1 : _N_CONTOURS + 1]
    return levels, contours


@lru_cache(maxsize=1)
def _low_bands() -> Float32Array:
    """Return the matrix (13, 10) that maps MFCCs to cosine coefficients 1 to 10 of the lower bands."""
    levels, contours = _bands()
    return np.ascontiguousarray(levels @ contours, dtype=np.float32)


@lru_cache(maxsize=1)
def _shifts_of_a_semitone() -> Float32Array:
    """Return the matrix (13, 10) like :func:`_low_bands`, but of the effect of raising all pitches by a semitone."""
    levels, contours = _bands()
    centers = mel_corners(SAMPLE_RATE)[1:-1]
    bands_per_semitone = 1.0 / (12 * np.gradient(np.log2(centers)))
    return np.ascontiguousarray((-np.gradient(levels, axis=1) * bands_per_semitone) @ contours, dtype=np.float32)


def _changes(frames: FloatingArray, contours: Float32Array) -> Float32Array:
    """Return, for each frame, the mean of eight frames minus the mean of the eight before, (n_frames - 15, 10).

    The matrix `contours`, (13, 10), is applied to the MFCCs first.

    The difference removes a constant gain or filter, which adds a constant to the MFCCs.
    """
    if frames.ndim != 2 or frames.shape[1] < N_MFCC:
        raise ValueError(f"frames_of returned shape {frames.shape}; it must be (n_frames, {N_MFCC} or more).")
    if len(frames) < 2 * _CHANGE:
        return np.empty((0, _N_CONTOURS), np.float32)
    means = frames[:, :N_MFCC].astype(np.float32) @ (contours / np.float32(_CHANGE))
    for step in (1, 2, 4):  # sums of 2, 4 and 8 frames
        means = means[step:] + means[:-step]
    return means[_CHANGE:] - means[:-_CHANGE]


# --- alignment ----------------------------------------------------------------------------------


def _overlap(a: Float32Array, b: Float32Array, offset: int) -> tuple[Float32Array, Float32Array]:
    """Return the common rows of two songs at an offset."""
    x, y = a[max(0, -offset) :], b[max(0, offset) :]
    n = min(len(x), len(y))
    return x[:n], y[:n]


def _agreement_of(x: Float32Array, y: Float32Array) -> float:
    products = np.einsum("ij,ij->j", x, y)
    powers = np.einsum("ij,ij->j", x, x) * np.einsum("ij,ij->j", y, y)
    return min(float(_agreement(products, powers)), 1.0)  # because of rounding, the agreement may exceed 1


def _align(a: Float32Array, b: Float32Array) -> tuple[float, int]:
    """Return the best agreement and its offset in frames: b[t + offset] matches a[t]; (-1, 0) without overlap."""
    least = max(_MIN_OVERLAP * min(len(a), len(b)), _MIN_OVERLAP_S * SAMPLE_RATE / HOP - 2 * _CHANGE)
    agreement, coarse = _coarse(a[::_STRIDE], b[::_STRIDE], least / _STRIDE)
    if agreement == -1.0:
        return -1.0, 0
    low, high = max((coarse - 1) * _STRIDE, -MAX_OFFSET), min((coarse + 1) * _STRIDE, MAX_OFFSET)

    def agreement_at(offset: int) -> float:
        x, y = _overlap(a, b, offset)
        return _agreement_of(x[::_STRIDE], y[::_STRIDE])

    return max(((agreement_at(offset), offset) for offset in range(low, high + 1)), key=lambda found: found[0])


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


# --- speed and pitch ----------------------------------------------------------------------------


def _estimate_drift(x: Float32Array, y: Float32Array) -> float:
    """Return the slope of the offsets of segments: the median slope between all pairs, which ignores outliers."""
    n_segments = max(_MIN_SEGMENTS, len(x) // _SEGMENT)
    reach = int(_SHIFT_REACH * len(x)) + _SHIFT_MARGIN
    borders = np.linspace(0, len(x), n_segments + 1).astype(np.int64)
    centers, offsets = [], []
    for start, end in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
        offset = _segment_offset(x, y, start, end, reach)
        if offset is not None:
            centers.append((start + end) / 2)
            offsets.append(offset)
    i, j = np.triu_indices(len(centers), 1)
    if not len(i):
        return 0.0
    times, places = np.array(centers), np.array(offsets)
    return float(np.median((places[j] - places[i]) / (times[j] - times[i])))


def _segment_offset(x: Float32Array, y: Float32Array, start: int, end: int, reach: int) -> float | None:
    """Return the offset of a segment in fractions of a frame; None if no offset agrees, or only the largest one."""
    agreements = []
    for offset in range(-reach, reach + 1):
        first, last = max(start, -offset), min(end, len(y) - offset)
        agreements.append(_agreement_of(x[first:last], y[first + offset : last + offset]) if first < last else -1.0)
    best = int(np.argmax(agreements))
    if agreements[best] < _MIN_SEGMENT_AGREEMENT:
        return None
    if best in (0, 2 * reach):
        return float(best - reach)
    before, peak, after = agreements[best - 1 : best + 2]
    # vertex of the parabola through the three best agreements
    return best - reach + 0.5 * (before - after) / min(before - 2 * peak + after, -1e-9)


def _interpolate(y: Float32Array, places: Float64Array) -> Float32Array:
    """Return the rows of `y` at fractional places."""
    if not len(y):
        return y
    places = places.clip(0, len(y) - 1)
    before = places.astype(np.int64)
    share = (places - before).astype(np.float32)[:, None]
    return y[before] * (1 - share) + y[np.minimum(before + 1, len(y) - 1)] * share


def _scale(x: Float32Array, y: Float32Array) -> Float32Array:
    """Return factors that give all columns of aligned changes the same power."""
    powers = np.einsum("ij,ij->j", x, x) * np.einsum("ij,ij->j", y, y)
    return np.maximum(powers, _MIN_POWER) ** -0.25


def _timing_spread(x: Float32Array, y: Float32Array) -> float:
    """Return the standard deviation of the delay of `y` in each window, in frames, without slow variation.

    The delay explains the difference of the changes best if it is multiplied by their slope. Differences between
    adjacent windows remove slow variation, such as that of a tape. Each counts by its certainty.
    """
    n_windows = len(x) // _WINDOW
    if n_windows < 2:
        return 0.0
    scale = _scale(x, y)
    slope = np.gradient((x + y) * (scale / 2), axis=0)
    products = np.einsum("ij,ij->i", (x - y) * scale, slope)[: n_windows * _WINDOW].reshape(n_windows, _WINDOW)
    powers = np.einsum("ij,ij->i", slope, slope)[: n_windows * _WINDOW].reshape(n_windows, _WINDOW).sum(axis=1)
    if not powers.any():
        return 0.0
    delays = products.sum(axis=1) / np.maximum(powers, 1e-12)
    weights = np.minimum(powers[1:], powers[:-1]) + 1e-12
    return float(np.sqrt(np.average(np.square(np.diff(delays)), weights=weights) / 2))


def _estimate_factor(x: Float32Array, y: Float32Array, effect: Float32Array) -> float:
    """Return the factor of an effect on `x` that explains `y` best, by least squares."""
    scale = _scale(x, y)
    effect = effect * scale
    return float(np.sum((y - x) * scale * effect) / max(float(np.sum(np.square(effect))), 1e-12))
