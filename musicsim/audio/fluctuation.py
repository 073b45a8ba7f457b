"""Fluctuation of a song: how strongly each part of the spectrum rises and falls, slowly and fast.

Conventions: magnitudes of spectra of 93 ms, 43 a second, are summed in 33 bands of a quarter octave from 53 Hz to
10.5 kHz, and their levels taken in dB. A block is 12 s of levels; the next begins 6 s later. In a block levels 60 dB
below its highest are raised to that, and the means of each frame and of each band are taken off, so that neither
loudness nor timbre is left. The spectrum of each band is weighted by how much people hear of a fluctuation, most at
4 Hz (Fastl 1982), and summed in 18 bands of modulation from .2 to 10 Hz; then neighbours of both kinds are averaged.
Where nothing changes all numbers are 0; a gain changes none. What is kept is one pattern a block. A change of any
number here needs a new `musicsim.audio.FEATURE_VERSION`.

After the log-fluctuation patterns of Pohle, Schnitzer, Schedl, Knees and Widmer (ISMIR 2009).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from musicsim._arrays import Float16Array, Float32Array, Float64Array, FloatingArray
from musicsim.audio.features import SAMPLE_RATE, BlockBuffer, check_rate, checked_samples

N_BANDS, N_MODULATIONS = 33, 18
FLUCTUATION_SIZE = N_BANDS * N_MODULATIONS
PATTERN_S = (1 << 17) / SAMPLE_RATE
"""Seconds from one pattern to the next."""

_SPECTRUM_S = 0.0929
_OVERLAP = 4  # spectra begin a quarter of their length apart
_MIN_HZ, _MAX_HZ = 53.43, 10_500.0
_MIN_MODULATION, _MAX_MODULATION, _HEARD_BEST = 0.2, 10.0, 4.0  # Hz
_DEPTH = 60.0  # dB
_TINY = np.float32(1e-12)
_SPECTRA = 64  # at once: 2 MB are at work


def fluctuation(y: FloatingArray, sr: float = SAMPLE_RATE) -> Float16Array:
    """Describe how mono samples fluctuate.

    Parameters
    ----------
    y : ndarray of shape (n_samples,), floating, finite
    sr : float >= 8000
        Samples per second.

    Returns
    -------
    ndarray of shape (n_patterns, 594), float16, dB
        A row every 5.9 s, of 33 bands of the spectrum times 18 of modulation; at least one, whatever is left of 12 s.

    Raises
    ------
    ValueError
        If `y` is empty, not 1-D, not floating or not finite, or `sr` is too low.
    """
    y = checked_samples(y, sr)
    stream = FluctuationStream(sr)
    stream.add(y)
    return stream.finish()


class FluctuationStream(BlockBuffer):
    """Turn samples that come block by block into the patterns of a song; see :func:`fluctuation`.

    `sr`, the samples per second, is 8000 at least; else ValueError is raised. Memory: 1.2 kB for each 6 s, and 2 MB.
    """

    def __init__(self, sr: float) -> None:
        check_rate(sr)
        size = 1 << round(np.log2(_SPECTRUM_S * sr))
        self._hop = size // _OVERLAP
        self._window = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)).astype(np.float32)
        self._bands = _bands(sr, size)
        self._samples = np.zeros(size + (_SPECTRA - 1) * self._hop, np.float32)
        self._frames = sliding_window_view(self._samples, size)[:: self._hop]
        self._length = 1 << round(np.log2(2 * PATTERN_S * sr / self._hop))
        self._modulation = _modulation(self._length, sr / self._hop)
        self._levels = np.empty((self._length, N_BANDS), np.float32)
        self._n_levels = 0
        self._patterns: list[Float16Array] = []

    def _take_full(self) -> None:
        self._take_spectra(_SPECTRA)
        self._n_samples -= _SPECTRA * self._hop
        self._samples[: self._n_samples] = self._samples[-self._n_samples :]

    def finish(self) -> Float16Array:
        """Return the patterns of all samples."""
        self._samples[self._n_samples :] = 0
        reach = self._n_samples - len(self._window)
        # those that are full; of a sound shorter than one, that with silence behind it
        if reach >= 0 or not (self._patterns or self._n_levels):
            self._take_spectra(1 + max(reach, 0) // self._hop)
        if not self._patterns:
            self._levels[self._n_levels :] = np.resize(
                self._levels[: self._n_levels], (self._length - self._n_levels, N_BANDS)
            )
            self._take_pattern()
        return np.array(self._patterns)

    def _take_spectra(self, n_spectra: int) -> None:
        from scipy.fft import rfft  # four times as fast as numpy's on rows of float32

        bins = np.abs(rfft(self._frames[:n_spectra] * self._window))
        levels = bins[:, : len(self._bands)] @ self._bands
        np.log10(np.maximum(levels, _TINY, out=levels), out=levels)
        levels *= np.float32(20.0)
        at = 0
        while at < n_spectra:
            part = levels[at : at + self._length - self._n_levels]
            self._levels[self._n_levels : self._n_levels + len(part)] = part
            self._n_levels += len(part)
            at += len(part)
            if self._n_levels == self._length:
                self._take_pattern()
                self._n_levels = self._length // 2
                self._levels[: self._n_levels] = self._levels[self._n_levels :]

    def _take_pattern(self) -> None:
        from scipy.fft import rfft

        levels = np.maximum(self._levels, self._levels.max() - np.float32(_DEPTH))
        levels -= levels.mean(axis=1, keepdims=True)
        levels -= levels.mean(axis=0)
        pattern = np.abs(rfft(levels, axis=0)).T @ self._modulation
        self._patterns.append(_smoothed(pattern).ravel().astype(np.float16))


def _smoothed(pattern: Float32Array) -> Float32Array:
    """Means over three bands times three modulations; those at the edges count twice."""
    return sliding_window_view(np.pad(pattern, 1, mode="edge"), (3, 3)).mean(axis=(2, 3))


@lru_cache(maxsize=4)
def _bands(sr: float, size: int) -> Float32Array:
    """From the magnitudes of a spectrum's first bins to bands: (n_bins, 33)."""
    hz = np.arange(size // 2 + 1) * sr / size
    triangles = _triangles(hz, np.geomspace(_MIN_HZ, min(_MAX_HZ, 0.47 * sr), N_BANDS))
    return triangles[: int(np.flatnonzero(triangles.any(axis=1))[-1]) + 1].astype(np.float32)


@lru_cache(maxsize=4)
def _modulation(length: int, rate: float) -> Float32Array:
    """From the magnitudes of a block's spectrum to weighted bands of modulation: (length // 2 + 1, 18)."""
    hz = np.arange(length // 2 + 1) * rate / length
    triangles = _triangles(hz, np.geomspace(_MIN_MODULATION, _MAX_MODULATION, N_MODULATIONS))
    heard = hz * _HEARD_BEST / (hz**2 + _HEARD_BEST**2)
    return (heard[:, None] * triangles / length).astype(np.float32)


def _triangles(hz: Float64Array, centres: Float64Array) -> Float64Array:
    """Weights of bins in bands, columns of the sum 1, as wide as a step of the bands and no less than one of bins."""
    widths = np.maximum(centres * (centres[1] / centres[0] - 1), hz[1])
    heights = np.maximum(0, 1 - np.abs(hz[:, None] - centres) / widths)
    return heights / heights.sum(axis=0)
