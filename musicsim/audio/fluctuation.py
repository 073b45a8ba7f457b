"""Fluctuation of a song: how strongly each part of the spectrum rises and falls at each rate.

1. Spectra of 93 ms windows, 43 per second, are summed in 33 quarter-octave bands from 53 Hz to 10.5 kHz, in dB.
2. A block is 12 s of these levels; a new block begins every 6 s. Levels are raised to at least 60 dB below the highest
   one in the block. Then the means of each frame and of each band are subtracted, which removes loudness and timbre.
3. The modulation spectrum of each band is summed in 18 modulation bands from 0.2 to 10 Hz. It is weighted by how
   clearly people hear a fluctuation (most clearly at 4 Hz, Fastl 1982).
4. Neighboring bands of both kinds are averaged. The result is one pattern per block.

For a constant sound, all values are 0; changing the gain has no effect. If any value changes, increase
`musicsim.audio.FEATURE_VERSION`. The method follows the log-fluctuation patterns of Pohle, Schnitzer, Schedl, Knees and
Widmer (ISMIR 2009).
"""

from functools import lru_cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from musicsim._arrays import Float16Array, Float32Array, Float64Array, FloatingArray
from musicsim.audio.features import SAMPLE_RATE, BlockBuffer, check_rate, check_samples

N_BANDS, N_MODULATIONS = 33, 18
FLUCTUATION_SIZE = N_BANDS * N_MODULATIONS
PATTERN_S = (1 << 17) / SAMPLE_RATE
"""Time from one pattern to the next in seconds."""

_SPECTRUM_S = 0.0929
_OVERLAP = 4  # a new spectrum begins after a quarter of its length
_MIN_HZ, _MAX_HZ = 53.43, 10_500.0
_MIN_MODULATION, _MAX_MODULATION, _BEST_HEARD = 0.2, 10.0, 4.0  # Hz
_DEPTH = 60.0  # dB
_TINY = np.float32(1e-12)
_SPECTRA = 64  # spectra per step; a step needs 2 MB


def fluctuation(y: FloatingArray, sr: float = SAMPLE_RATE) -> Float16Array:
    """Compute the fluctuation of finite mono samples (n_samples,) at a rate of at least 8000 Hz.

    The result is float16 (n_patterns, 594), in dB. There is one row per 5.9 s, with 18 modulation bands for each of 33
    bands of the spectrum. A sound shorter than 12 s has one row.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.audio import fluctuation
    >>> fluctuation(np.random.default_rng(0).normal(0, 0.1, 22050 * 20)).shape  # two patterns
    (2, 594)
    """
    check_samples(y, sr)
    stream = FluctuationStream(sr)
    stream.add(y)
    return stream.finish()


class FluctuationStream:
    """Compute the :func:`fluctuation` of a song from samples that arrive in blocks.

    This needs 2 MB of memory, plus 1.2 kB per 6 s of sound.
    """

    def __init__(self, sr: float) -> None:
        check_rate(sr)
        size = 1 << round(np.log2(_SPECTRUM_S * sr))
        self._hop = size // _OVERLAP
        self._window = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)).astype(np.float32)
        self._bands = _bands(sr, size)
        self._samples = BlockBuffer(np.zeros(size + (_SPECTRA - 1) * self._hop, np.float32))
        self._frames = sliding_window_view(self._samples.rows, size)[:: self._hop]
        length = 1 << round(np.log2(2 * PATTERN_S * sr / self._hop))
        self._modulation = _modulation(length, sr / self._hop)
        self._levels = BlockBuffer(np.empty((length, N_BANDS), np.float32))
        self._patterns: list[Float16Array] = []

    def add(self, samples: FloatingArray) -> None:
        """Add floating-point samples, (n,)."""
        for _ in self._samples.fill(samples):
            self._add_spectra(_SPECTRA)
            self._samples.keep(len(self._samples.rows) - _SPECTRA * self._hop)

    def finish(self) -> Float16Array:
        """Return the patterns of all samples."""
        n_samples, n_levels = self._samples.n_filled, self._levels.n_filled
        self._samples.rows[n_samples:] = 0
        n_left = n_samples - len(self._window)
        # incomplete spectra are dropped, but a sound that is shorter than one spectrum is padded with silence
        if n_left >= 0 or not (self._patterns or n_levels):
            self._add_spectra(1 + max(n_left, 0) // self._hop)
        if not self._patterns:
            levels, n_levels = self._levels.rows, self._levels.n_filled
            levels[n_levels:] = np.resize(levels[:n_levels], (len(levels) - n_levels, N_BANDS))
            self._add_pattern()
        return np.array(self._patterns)

    def _add_spectra(self, n_spectra: int) -> None:
        from scipy.fft import rfft  # four times as fast as NumPy's rfft for float32 rows

        bins = np.abs(rfft(self._frames[:n_spectra] * self._window))
        levels = bins[:, : len(self._bands)] @ self._bands
        np.log10(np.maximum(levels, _TINY, out=levels), out=levels)
        levels *= np.float32(20.0)
        for _ in self._levels.fill(levels):
            self._add_pattern()
            self._levels.keep(len(self._levels.rows) // 2)

    def _add_pattern(self) -> None:
        from scipy.fft import rfft

        levels = np.maximum(self._levels.rows, self._levels.rows.max() - np.float32(_DEPTH))
        levels -= levels.mean(axis=1, keepdims=True)
        levels -= levels.mean(axis=0)
        pattern = np.abs(rfft(levels, axis=0)).T @ self._modulation
        # means over 3 x 3 neighboring bands and modulation bands; values at the edges count twice
        smooth = sliding_window_view(np.pad(pattern, 1, mode="edge"), (3, 3)).mean(axis=(2, 3))
        self._patterns.append(smooth.ravel().astype(np.float16))


@lru_cache(maxsize=4)
def _bands(sr: float, size: int) -> Float32Array:
    """Return the matrix (n_bins, 33) that maps the magnitudes of a spectrum's first bins to bands."""
    hz = np.arange(size // 2 + 1) * sr / size
    triangles = _triangles(hz, np.geomspace(_MIN_HZ, min(_MAX_HZ, 0.47 * sr), N_BANDS))
    return triangles[: int(np.flatnonzero(triangles.any(axis=1))[-1]) + 1].astype(np.float32)


@lru_cache(maxsize=4)
def _modulation(length: int, rate: float) -> Float32Array:
    """Return the matrix (length // 2 + 1, 18) that maps magnitudes of a block's spectrum to weighted modulations."""
    hz = np.arange(length // 2 + 1) * rate / length
    triangles = _triangles(hz, np.geomspace(_MIN_MODULATION, _MAX_MODULATION, N_MODULATIONS))
    audibility = hz * _BEST_HEARD / (hz**2 + _BEST_HEARD**2)
    return (audibility[:, None] * triangles / length).astype(np.float32)


def _triangles(hz: Float64Array, centers: Float64Array) -> Float64Array:
    """Return the weight of each bin (row) in each band (column); columns sum to 1. Bands are at least one bin wide."""
    widths = np.maximum(centers * (centers[1] / centers[0] - 1), hz[1])
    heights = np.maximum(0, 1 - np.abs(hz[:, None] - centers) / widths)
    return heights / heights.sum(axis=0)
