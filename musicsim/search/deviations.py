"""Differences between two aligned songs: speed, timing and pitch.

Aligned changes (:mod:`musicsim.search.frame_changes`) are arrays of equal shape, (n_frames, 10), as are their effects.
"""

import numpy as np

from musicsim._arrays import Float32Array, Float64Array, FloatingArray
from musicsim.audio import HOP, SAMPLE_RATE
from musicsim.audio.harmony import N_CLASSES
from musicsim.search.frame_changes import MIN_POWER, STRIDE, mean_correlation

_SEGMENT = round(5.0 * SAMPLE_RATE / HOP)  # Frames whose offset is determined on their own
_MIN_SEGMENTS = 4
_MIN_SEGMENT_AGREEMENT = 0.6  # The offset of a segment with less, such as one of silence, is not used
_SHIFT_REACH, _SHIFT_MARGIN = 0.0025, 4  # Segments are searched this share of the song, plus frames, to both sides
_WINDOW = round(0.5 * SAMPLE_RATE / HOP)  # Frames of the windows whose timing is compared
# Two harmonies are transposed if they correlate at least this much after a rotation, and this much less without it.
# Transposed songs have at least 0.95 and 1.2; duplicates have a difference below 0.25.
_MIN_HARMONY, _MIN_HARMONY_GAIN = 0.8, 0.4


def estimate_drift(x: Float32Array, y: Float32Array) -> float:
    """Return the slope of the offsets of segments: the median slope between all pairs, which ignores outliers."""
    n_segments = max(_MIN_SEGMENTS, len(x) // _SEGMENT)
    reach = int(_SHIFT_REACH * len(x)) + _SHIFT_MARGIN
    padded = np.pad(y, ((reach, reach), (0, 0)))
    borders = np.linspace(0, len(x), n_segments + 1).astype(np.int64)
    centers, offsets = [], []
    for start, end in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
        offset = _find_offset(x[start:end], padded[start : end + 2 * reach], reach)
        if offset is not None:
            centers.append((start + end) / 2)
            offsets.append(offset)
    i, j = np.triu_indices(len(centers), 1)
    if not len(i):
        return 0.0
    times, places = np.array(centers), np.array(offsets)
    return float(np.median((places[j] - places[i]) / (times[j] - times[i])))


def _find_offset(x: Float32Array, y: Float32Array, reach: int) -> float | None:
    """Return the offset of a segment in fractions of a frame, or None if no offset agrees.

    `y` has `reach` more frames than `x` at both ends.
    """
    windows = np.lib.stride_tricks.sliding_window_view(y, len(x), axis=0)[:, :, ::STRIDE]
    x = x[::STRIDE]
    products = np.einsum("ij,wji->wj", x, windows)
    powers = np.einsum("ij,ij->j", x, x) * np.einsum("wji,wji->wj", windows, windows)
    agreements = mean_correlation(products, powers)
    best = int(np.argmax(agreements))
    if agreements[best] < _MIN_SEGMENT_AGREEMENT:
        return None
    if best in (0, 2 * reach):
        return float(best - reach)
    # vertex of the parabola through the best agreement and its neighbors
    before, peak, after = agreements[best - 1 : best + 2].tolist()
    return best - reach + 0.5 * (before - after) / min(before - 2 * peak + after, -1e-9)


def interpolate(y: Float32Array, places: Float64Array) -> Float32Array:
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
    return np.maximum(powers, MIN_POWER) ** -0.25


def measure_spread(x: Float32Array, y: Float32Array) -> float:
    """Return the standard deviation of the delay of `y` in each window, in frames, without slow variation.

    The delay explains the difference of the changes best if it is multiplied by their slope. Differences between
    adjacent windows remove slow variation, such as that of a tape. Each counts by its certainty.
    """
    n_windows = len(x) // _WINDOW
    if n_windows < 2:
        return 0.0
    scale = _scale(x, y)
    slope = np.gradient((x + y) * (scale / 2), axis=0)

    def sum_windows(u: FloatingArray, v: FloatingArray) -> FloatingArray:
        return np.einsum("ij,ij->i", u, v)[: n_windows * _WINDOW].reshape(n_windows, _WINDOW).sum(axis=1)

    powers = sum_windows(slope, slope)
    delays = sum_windows((x - y) * scale, slope) / np.maximum(powers, 1e-12)
    weights = np.minimum(powers[1:], powers[:-1]) + 1e-12
    return float(np.sqrt(np.average(np.square(np.diff(delays)), weights=weights) / 2))


def estimate_factor(x: Float32Array, y: Float32Array, effect: Float32Array) -> float:
    """Return the factor of an effect on `x` that explains `y` best, by least squares."""
    scale = _scale(x, y)
    effect = effect * scale
    return float(np.sum((y - x) * scale * effect) / max(float(np.sum(np.square(effect))), 1e-12))


def is_transposed(a: FloatingArray, b: FloatingArray) -> bool:
    """Return whether two harmonies, (156,), are equal except for a transposition; False if there are no clear pitches.

    A song tuned a quarter tone away from A = 440 Hz can seem transposed, because its pitch classes are ambiguous.
    """
    a, b = (harmony[:N_CLASSES] - np.mean(harmony[:N_CLASSES]) for harmony in (a, b))
    products = np.array([a @ np.roll(b, -steps) for steps in range(N_CLASSES)])
    correlations = products / max(float(np.sqrt((a @ a) * (b @ b))), 1e-12)
    best = float(correlations.max())
    return best >= _MIN_HARMONY and best - float(correlations[0]) >= _MIN_HARMONY_GAIN
