"""Changes of MFCCs, and the offset at which the changes of two songs agree best.

A change is the mean of eight frames minus the mean of the eight before, as ten cosine coefficients of the lower mel
bands. The difference removes a constant gain or filter, which adds a constant to the MFCCs.
"""

from functools import lru_cache

import numpy as np

from musicsim._arrays import Float32Array, Float64Array, FloatingArray
from musicsim.audio import HOP, SAMPLE_RATE
from musicsim.audio.features import N_MELS, N_MFCC, mel_corners

# A codec at 64 kbit/s switches bands above 5 kHz on and off, so only the 32 bands below 5 kHz are used. Their first
# cosine coefficient, the level, is omitted.
_N_LOW_BANDS, N_CONTOURS = 32, 10
# Number of frames in each of the two means, 93 ms. With fewer frames, codec noise matters; with more, a song played 1%
# faster would still match.
CHANGE = 8
STRIDE = 4  # Only every fourth change is used, because adjacent changes share most of their frames
_MIN_OVERLAP = 0.75  # Minimum share of the shorter song that must overlap the other song
_MIN_OVERLAP_S = 1.0
MIN_POWER = 1e-6  # Two columns of changes are constant if the product of their summed squares is below this (dB^4)
MAX_OFFSET = round(5.0 * SAMPLE_RATE / HOP)  # Largest shift between the two songs, in frames


@lru_cache(maxsize=1)
def _bands() -> tuple[Float64Array, Float64Array]:
    """Return the matrix (13, 40) from MFCCs to band levels, and the one (40, 10) to cosine coefficients 1 to 10.

    The second one uses only the lower bands.
    """
    from scipy.fft import dct

    levels = dct(np.eye(N_MELS), axis=1, norm="ortho")[:, :N_MFCC].T
    contours = np.zeros((N_MELS, N_CONTOURS))
    contours[:_N_LOW_BANDS] = dct(np.eye(_N_LOW_BANDS), axis=1, norm="ortho")[:, 1 : N_CONTOURS + 1]
    return levels, contours


@lru_cache(maxsize=1)
def low_bands() -> Float32Array:
    """Return the matrix (13, 10) that maps MFCCs to cosine coefficients 1 to 10 of the lower bands."""
    levels, contours = _bands()
    return np.ascontiguousarray(levels @ contours, dtype=np.float32)


@lru_cache(maxsize=1)
def semitone_effects() -> Float32Array:
    """Return the matrix (13, 10) like :func:`low_bands`, but of the effect of raising all pitches by a semitone."""
    levels, contours = _bands()
    centers = mel_corners(SAMPLE_RATE)[1:-1]
    bands_per_semitone = 1.0 / (12 * np.gradient(np.log2(centers)))
    return np.ascontiguousarray((-np.gradient(levels, axis=1) * bands_per_semitone) @ contours, dtype=np.float32)


def changes(frames: FloatingArray, contours: Float32Array) -> Float32Array:
    """Return the changes of frames, (n_frames - 15, 10); the matrix `contours`, (13, 10), is applied to the MFCCs."""
    if frames.ndim != 2 or frames.shape[1] < N_MFCC:
        raise ValueError(f"frames_of returned shape {frames.shape}; it must be (n_frames, {N_MFCC} or more).")
    if len(frames) < 2 * CHANGE:
        return np.empty((0, N_CONTOURS), np.float32)
    means = frames[:, :N_MFCC].astype(np.float32) @ (contours / np.float32(CHANGE))
    for step in (1, 2, 4):  # sums of 2, 4 and 8 frames
        means = means[step:] + means[:-step]
    return means[CHANGE:] - means[:-CHANGE]


# --- alignment ----------------------------------------------------------------------------------


def overlap(a: Float32Array, b: Float32Array, offset: int) -> tuple[Float32Array, Float32Array]:
    """Return the common rows of two songs at an offset."""
    x, y = a[max(0, -offset) :], b[max(0, offset) :]
    n = min(len(x), len(y))
    return x[:n], y[:n]


def agreement_of(x: Float32Array, y: Float32Array) -> float:
    products = np.einsum("ij,ij->j", x, y)
    powers = np.einsum("ij,ij->j", x, x) * np.einsum("ij,ij->j", y, y)
    return min(float(mean_correlation(products, powers)), 1.0)  # because of rounding, the agreement may exceed 1


def align(a: Float32Array, b: Float32Array) -> tuple[float, int]:
    """Return the best agreement and its offset in frames: b[t + offset] matches a[t]; (-1, 0) without overlap."""
    least = max(_MIN_OVERLAP * min(len(a), len(b)), _MIN_OVERLAP_S * SAMPLE_RATE / HOP - 2 * CHANGE)
    agreement, coarse = align_coarsely(a[::STRIDE], b[::STRIDE], least / STRIDE)
    if agreement == -1.0:
        return -1.0, 0
    low, high = max((coarse - 1) * STRIDE, -MAX_OFFSET), min((coarse + 1) * STRIDE, MAX_OFFSET)

    def agreement_at(offset: int) -> float:
        x, y = overlap(a, b, offset)
        return agreement_of(x[::STRIDE], y[::STRIDE])

    return max(((agreement_at(offset), offset) for offset in range(low, high + 1)), key=lambda found: found[0])


def align_coarsely(a: Float32Array, b: Float32Array, least: float) -> tuple[float, int]:
    """Return the highest mean correlation over at least `least` common rows, and its offset in strides, or (-1, 0)."""
    from scipy.fft import irfft, next_fast_len, rfft

    max_offset = MAX_OFFSET // STRIDE
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
    agreements = mean_correlation(products, powers)
    best = int(np.argmax(agreements))
    return float(agreements[best]), int(offsets[best])


def mean_correlation(products: FloatingArray, powers: FloatingArray) -> FloatingArray:
    """Return the mean correlation over the last axis; constant columns have correlation 0."""
    return np.mean(products / np.sqrt(np.maximum(powers, MIN_POWER)), axis=-1)
