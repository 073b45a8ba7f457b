"""Rhythm of a song as two histograms: its tempo, and the pulses of each part of the spectrum.

Onsets are rises in the levels of the 40 mel bands, averaged in four groups of ten bands. Windows of 12 s, one every
9 s, are searched for repetition at 48 tempos from 30 to 450 beats per minute, 12 per octave. A remainder of less than
9 s is ignored. If nothing repeats, all values are equal. Memory use does not grow with the song's length. If any value
changes, increase `musicsim.audio.ASPECT_VERSION`.

A pattern that repeats every beat also repeats every two beats, and has overtones at two and three times its tempo. The
tempo histogram multiplies autocorrelation and spectrum, so an even pulse peaks at its own tempo. If every second beat
is stronger, there is also a peak at half the tempo; the histogram does not show which of the two tempos people would
tap. Pulses use spectra alone, with all overtones, and show how beats are divided.
"""

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float32Array, Float64Array, FloatingArray
from musicsim.audio.features import (
    HOP,
    N_MELS,
    SAMPLE_RATE,
    BlockBuffer,
    LevelStream,
    check_rate,
    check_samples,
    join_histograms,
    raise_to_floor,
)

N_BANDS = 4
_TEMPOS_PER_OCTAVE = 12
_N_TEMPOS = 4 * _TEMPOS_PER_OCTAVE
TEMPOS = 30.0 * 2.0 ** (np.arange(_N_TEMPOS) / _TEMPOS_PER_OCTAVE)
"""Tempo in beats per minute at the center of each bin."""
RHYTHM_SIZE = _N_TEMPOS * (1 + N_BANDS)

_GROUPS = np.repeat(np.eye(N_BANDS, dtype=np.float32) * N_BANDS / N_MELS, N_MELS // N_BANDS, axis=0)
_PRODUCT_FRAMES = 1024  # larger products wake BLAS threads, which cost more time than they save
_WINDOW_S = 11.9
_POINTS = 3  # points evaluated per bin; the highest value counts
# RMS in dB per frame. Smaller rises come from held tones, not from onsets. Noise has an RMS of 1.7, music 1.5 to 3.
_MIN_RISE = 0.3
_TINY = 1e-30


def rhythm(y: FloatingArray, sr: float = SAMPLE_RATE) -> Float32Array:
    """Compute the rhythm of finite mono samples (n_samples,), full scale 1.0, at a rate of at least 8000 Hz.

    The result is float32 (240,): a histogram of tempos (48, see `TEMPOS`), then one of pulses in four groups of bands
    (4 x 48, low bands first). Each sums to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.audio import TEMPOS, rhythm
    >>> clicks = np.zeros(22050 * 12, np.float32)
    >>> clicks[::11025] = 1.0  # 120 beats per minute
    >>> shares = rhythm(clicks)
    >>> shares.shape, round(float(shares[:48].sum()), 3)
    ((240,), 1.0)
    >>> round(float(TEMPOS[np.argmax(shares[:48])]), -1)  # of 48 tempos, the most frequent
    120.0
    """
    check_samples(y, sr)
    stream, levels = RhythmStream(sr), LevelStream(sr)
    blocks = [block.copy() for part in (levels.add(y), levels.finish()) for block in part]
    for block in blocks:
        raise_to_floor(block, levels.loudest)
        stream.add(block)
    return stream.finish()


class RhythmStream:
    """Compute the :func:`rhythm` of a song from levels that arrive in blocks."""

    def __init__(self, sr: float) -> None:
        check_rate(sr)
        rate = sr / HOP
        self._size = 1 << round(np.log2(_WINDOW_S * rate))
        self._onsets = np.zeros((N_BANDS, self._size))
        self._buffer = BlockBuffer(self._onsets.T)
        self._is_first = True
        self._last_levels: Float32Array | None = None
        self._periodicity = _Periodicity(self._size, rate)
        self._tempos = np.zeros(_N_TEMPOS)
        self._pulses = np.zeros((N_BANDS, _N_TEMPOS))

    def add(self, levels: Float32Array) -> None:
        """Add the levels of the next frames, (n, 40) in dB, after :func:`musicsim.audio.features.raise_to_floor`."""
        for start in range(0, len(levels), _PRODUCT_FRAMES):
            part = levels[start : start + _PRODUCT_FRAMES]
            rises = np.empty_like(part)
            np.subtract(part[0], part[0] if self._last_levels is None else self._last_levels, out=rises[0])
            np.subtract(part[1:], part[:-1], out=rises[1:])
            self._last_levels = part[-1].copy()
            np.maximum(rises, 0, out=rises)
            for _ in self._buffer.fill(rises @ _GROUPS):
                self._add_window()
                self._is_first = False
                self._buffer.keep(self._size // 4)

    def finish(self) -> Float32Array:
        """Return the rhythm of all levels: (240,), float32."""
        n_onsets = self._buffer.n_filled
        if self._is_first and n_onsets:
            self._onsets[:, n_onsets:] = self._onsets[:, :n_onsets].mean(axis=1, keepdims=True)
            self._add_window()
        return join_histograms(self._tempos, self._pulses)

    def _add_window(self) -> None:
        tempos, pulses = self._periodicity.compute(self._onsets)
        self._tempos += tempos
        self._pulses += pulses


class _Periodicity:
    """Periodicity of a window of onsets at each tempo."""

    def __init__(self, size: int, rate: float) -> None:
        self._size = size
        offsets = (np.arange(_POINTS) + 0.5) / _POINTS - 0.5
        hz = np.outer(2.0 ** (offsets / _TEMPOS_PER_OCTAVE), TEMPOS / 60)
        self._lags = rate / hz
        self._bins = hz * 2 * size / rate
        self._window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)
        # a long lag has fewer products than a short one; this factor makes them comparable
        overlap = _autocorrelation(np.fft.rfft(self._window, 2 * size))[:size]
        self._unbiased = overlap[0] / np.maximum(overlap, 1e-3 * overlap[0])

    def compute(self, onsets: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return the tempos (48,) and the pulses of each group (4, 48) in onsets (4, size); all are >= 0."""
        curves = onsets - onsets.mean(axis=1, keepdims=True)
        if np.vdot(curves, curves) < _MIN_RISE**2 * self._size:
            return np.zeros(_N_TEMPOS), np.zeros((N_BANDS, _N_TEMPOS))
        curves *= self._window
        spectra = np.fft.rfft(curves, 2 * self._size)
        pulses = _interpolate(np.abs(spectra), self._bins).max(axis=1)
        total = spectra.sum(axis=0)
        beats = _interpolate(np.abs(total), self._bins)
        repetition = _autocorrelation(total)[: self._size]
        repetition *= self._unbiased / max(repetition[0], _TINY)
        # windows with clearer repetition have larger values, so they have more weight
        tempos = (np.maximum(_interpolate(repetition, self._lags), 0) * beats).max(axis=0) / max(beats.sum(), _TINY)
        return tempos, pulses / max(pulses.sum(), _TINY)


def _interpolate(values: Float64Array, positions: Float64Array) -> Float64Array:
    """Interpolate linearly along the last axis, at fractional indices of any shape."""
    index = np.floor(positions).astype(np.int64)
    below, above = values.take(index, axis=-1), values.take(index + 1, axis=-1)
    return below + (above - below) * (positions - index)


def _autocorrelation(spectrum: npt.NDArray[np.complex128]) -> Float64Array:
    return np.fft.irfft(np.square(spectrum.real) + np.square(spectrum.imag))
