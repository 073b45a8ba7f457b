"""Block-level features, a rival that describes rhythm and spectrum in blocks of frames: for experiments.real_music.

Source: Seyerlehner, Widmer and Pohle, Fusing block-level features for music similarity estimation, DAFx 2010. It
computes six patterns from a spectrogram with semitone bands, each summarized over the blocks of a song by a quantile.
Each pattern is compared by Manhattan distance. The distances are normalized by their mean and deviation over both
songs, and then added.
"""

from functools import cache

import numpy as np

from musicsim._arrays import Float32Array, Float64Array
from musicsim.audio import SAMPLE_RATE

__all__ = ["block_features", "joined_distances"]

_FRAME, _HOP = 2048, 512
_LOWEST, _HIGHEST, _N_BANDS = 53.43, 10_500.0, 98
_FLOOR_DB = 80.0
_DELTA = 3  # frames
_FLUCTUATION_FRAMES, _SLOWEST, _FASTEST, _N_RATES = 512, 0.2, 10.0, 37
_N_RANGES = 14  # groups of bands; contrast is measured between peaks and valleys of a group
# Spectrum, its rises, their variance, fluctuation, correlation of pairs of bands, contrast
_SIZES = (10 * _N_BANDS, 25 * _N_BANDS, _N_BANDS, _N_RATES * _N_BANDS, 49 * 50 // 2, 40 * _N_RANGES)


def block_features(samples: Float32Array) -> Float32Array:
    """Return the six patterns of a song, concatenated, float32 (8,939,).

    Parameters
    ----------
    samples : ndarray of shape (n_samples,), mono, at the program's sample rate
    """
    S = _spectrogram(samples)
    rise = np.maximum(S[_DELTA:] - S[:-_DELTA], 0.0)
    pairs = np.tril_indices(_N_BANDS // 2)
    found = (
        _quantile(np.sort(_blocks(S, 10, 5), axis=1), 0.9),
        _quantile(np.sort(_blocks(rise, 25, 5), axis=1), 0.9),
        _quantile(_blocks(rise, 25, 5).var(axis=1), 0.9),
        _quantile(_fluctuations(_blocks(S, _FLUCTUATION_FRAMES, 256)), 0.6),
        _quantile(_correlations(_blocks(S[:, 0::2] + S[:, 1::2], 256, 128))[:, pairs[0], pairs[1]], 0.5),
        _quantile(np.sort(_contrasts(_blocks(S, 40, 20)), axis=1), 0.1),
    )
    return np.concatenate([np.asarray(pattern, dtype=np.float32).ravel() for pattern in found])


def joined_distances(features: Float32Array) -> Float64Array:
    """Return the distances of all pairs of songs, (n, n): the sum of the normalized distances of the patterns."""
    from scipy.spatial.distance import cdist

    n = len(features)
    total = np.zeros((n, n))
    others = ~np.eye(n, dtype=np.bool_)
    for X in np.split(features.astype(np.float64), np.cumsum(_SIZES)[:-1], axis=1):
        D = cdist(X, X, "cityblock")
        of_others = D[others].reshape(n, n - 1)
        mean, deviation = of_others.mean(axis=1), of_others.std(axis=1)
        mean, deviation = (mean[:, None] + mean) / 2.0, (deviation[:, None] + deviation) / 2.0
        total += (D - mean) / np.maximum(deviation, 1e-12)
    return np.where(others, total - total[others].min(), 0.0)


def _spectrogram(samples: Float32Array) -> Float32Array:
    """Return levels of 98 bands in dB, at most 80 below the loudest, float32 (n_frames, 98)."""
    from scipy.signal import get_window

    padded = np.pad(samples, (0, max(0, _FRAME - len(samples))))
    frames = np.lib.stride_tricks.sliding_window_view(padded, _FRAME)[::_HOP]
    window = get_window("hann", _FRAME).astype(np.float32)
    bands = _bands()
    rows = [  # blocks of frames that fit in the CPU cache
        np.abs(np.fft.rfft(frames[start : start + 256] * window)) @ bands.T for start in range(0, len(frames), 256)
    ]
    levels = 20.0 * np.log10(np.concatenate(rows) + 1e-7)
    return np.maximum(levels, levels.max() - _FLOOR_DB).astype(np.float32)


@cache
def _bands() -> Float64Array:
    """Return triangular filters (98, n_lines), one semitone wide but at least one spectral line."""
    line = SAMPLE_RATE / _FRAME
    centres = np.geomspace(_LOWEST, _HIGHEST, _N_BANDS)
    return _triangles(np.arange(_FRAME // 2 + 1) * line, centres, np.maximum(centres * (2 ** (1 / 12) - 1), line))


def _triangles(at: Float64Array, centres: Float64Array, widths: Float64Array) -> Float64Array:
    weights: Float64Array = np.maximum(1.0 - np.abs(at - centres[:, None]) / widths[:, None], 0.0)
    return weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-12)


def _blocks(frames: Float32Array, size: int, hop: int) -> Float32Array:
    """Return blocks of frames, (n_blocks, size, n_bands); a song shorter than one block is repeated."""
    if len(frames) < size:
        frames = np.resize(frames, (size, frames.shape[1]))
    return np.lib.stride_tricks.sliding_window_view(frames, size, axis=0)[::hop].swapaxes(1, 2)


def _quantile(blocks: Float32Array, q: float) -> Float32Array:
    place = round(q * (len(blocks) - 1))
    return np.partition(blocks, place, axis=0)[place]


def _fluctuations(blocks: Float32Array) -> Float64Array:
    """Return the smoothed strength of each band's modulation by rate, slow to fast, (n, 98, 37)."""
    from scipy.ndimage import uniform_filter

    rates = np.arange(1, _FLUCTUATION_FRAMES // 2 + 1) * SAMPLE_RATE / _HOP / _FLUCTUATION_FRAMES
    centres = np.geomspace(_SLOWEST, _FASTEST, _N_RATES)
    widths = np.maximum(np.gradient(centres), rates[0])
    weighed = _triangles(rates, centres, widths) / (rates / 4.0 + 4.0 / rates)
    strengths = [np.abs(np.fft.rfft(block - block.mean(axis=0), axis=0))[1:].T @ weighed.T for block in blocks]
    return uniform_filter(np.array(strengths), size=(1, 3, 3), mode="nearest")


def _correlations(blocks: Float32Array) -> Float64Array:
    """Return correlations of band levels, (n, n_bands, n_bands)."""
    centred = blocks - blocks.mean(axis=1, keepdims=True)
    centred = centred / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-9)
    return np.asarray(centred.swapaxes(1, 2) @ centred, dtype=np.float64)


def _contrasts(blocks: Float32Array) -> Float32Array:
    """Return the height of peaks above valleys in each of 14 groups of seven bands, (n, n_frames, 14)."""
    ranges = blocks.reshape(*blocks.shape[:2], _N_RANGES, -1)
    return ranges.max(axis=3) - ranges.min(axis=3)
