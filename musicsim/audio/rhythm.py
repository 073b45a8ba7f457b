"""Rhythm of a song: how fast it beats, and how fast each part of the spectrum pulses, as two histograms.

Conventions: onsets are rises of the levels of the 40 mel bands, those that the MFCC are taken from, summed in four
groups of ten bands. Windows of 12 s, one every 9 s, are looked through for repetition at 48 tempos from 30 to
450 beats a minute, 12 an octave; less than 9 s at the end are left out. Where nothing repeats, all numbers
are equal. Everything is summed as the levels come: memory does not grow with the song's length. A change
of any number here needs a new `musicsim.audio.ASPECT_VERSION`.

Octaves: what repeats every beat repeats every two beats, and has overtones at two and three in a beat. The
tempo histogram multiplies both views, autocorrelation and spectrum, so that an even pulse stands at its own
tempo; where every second beat is stronger, half the tempo stands beside it. Which of the two people would tap
it does not say. Pulses are spectra alone, with all overtones: they tell how beats are divided.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float32Array, Float64Array, FloatingArray
from musicsim.audio.features import (
    HOP,
    N_MELS,
    SAMPLE_RATE,
    LevelStream,
    check_rate,
    checked_samples,
    joined_histograms,
    raise_to_floor,
)

N_BANDS = 4
_TEMPOS_AN_OCTAVE = 12
_N_TEMPOS = 4 * _TEMPOS_AN_OCTAVE
TEMPOS = 30.0 * 2.0 ** (np.arange(_N_TEMPOS) / _TEMPOS_AN_OCTAVE)
"""Beats a minute in the middle of each bin."""
RHYTHM_SIZE = _N_TEMPOS * (1 + N_BANDS)

_GROUPS = np.repeat(np.eye(N_BANDS, dtype=np.float32) * N_BANDS / N_MELS, N_MELS // N_BANDS, axis=0)
_AT_ONCE = 1024  # frames: products of more wake threads of BLAS, which cost more than they bring
_WINDOW_S = 11.9
_POINTS = 3  # at which a bin is looked at; its highest counts
# dB a frame, root of the mean square: less is no onset, but what a held tone leaves in soft bands; noise has 1.7,
# music 1.5 to 3
_MIN_RISE = 0.3
_TINY = 1e-30


def rhythm(y: FloatingArray, sr: float = SAMPLE_RATE) -> Float32Array:
    """Describe the rhythm of mono samples.

    Parameters
    ----------
    y : ndarray of shape (n_samples,), floating, finite, full scale 1.0
    sr : float >= 8000
        Samples per second.

    Returns
    -------
    ndarray of shape (240,), float32
        The histogram of tempos (48, see `TEMPOS`), and that of pulses in four groups of bands (4 times 48, low bands
        first); each sums to 1.

    Raises
    ------
    ValueError
        If `y` is empty, not 1-D, not floating or not finite, or `sr` is too low.
    """
    y = checked_samples(y, sr)
    stream, levels = RhythmStream(sr), LevelStream(sr)
    blocks = [block.copy() for part in (levels.add(y), levels.finish()) for block in part]
    for block in blocks:
        raise_to_floor(block, levels.loudest)
        stream.add(block)
    return stream.finish()


class RhythmStream:
    """Turn levels that come block by block into the rhythm of a song; see :func:`rhythm`.

    `sr`, the samples of the sound per second, is 8000 at least; else ValueError is raised.
    """

    def __init__(self, sr: float) -> None:
        check_rate(sr)
        rate = sr / HOP
        self._size = 1 << round(np.log2(_WINDOW_S * rate))
        self._onsets = np.zeros((N_BANDS, self._size))
        self._n_onsets = 0
        self._is_first = True
        self._before: Float32Array | None = None
        self._periodicity = _Periodicity(self._size, rate)
        self._tempos = np.zeros(_N_TEMPOS)
        self._pulses = np.zeros((N_BANDS, _N_TEMPOS))

    def add(self, levels: Float32Array) -> None:
        """Take the levels of the next frames, (n, 40), dB, raised to the song's floor."""
        for start in range(0, len(levels), _AT_ONCE):
            self._add(levels[start : start + _AT_ONCE])

    def _add(self, levels: Float32Array) -> None:
        rises = np.empty_like(levels)
        np.subtract(levels[0], levels[0] if self._before is None else self._before, out=rises[0])
        np.subtract(levels[1:], levels[:-1], out=rises[1:])
        self._before = levels[-1].copy()
        np.maximum(rises, 0, out=rises)
        groups = (rises @ _GROUPS).T
        at = 0
        while at < len(levels):
            part = groups[:, at : at + self._size - self._n_onsets]
            self._onsets[:, self._n_onsets : self._n_onsets + part.shape[1]] = part
            self._n_onsets += part.shape[1]
            at += part.shape[1]
            if self._n_onsets == self._size:
                self._take_window()
                self._is_first = False
                self._n_onsets = self._size // 4
                self._onsets[:, : self._n_onsets] = self._onsets[:, -self._n_onsets :]

    def finish(self) -> Float32Array:
        """Return the rhythm of all levels: (240,), float32."""
        if self._is_first and self._n_onsets:
            self._onsets[:, self._n_onsets :] = self._onsets[:, : self._n_onsets].mean(axis=1, keepdims=True)
            self._take_window()
        return joined_histograms(self._tempos, self._pulses)

    def _take_window(self) -> None:
        tempos, pulses = self._periodicity(self._onsets)
        self._tempos += tempos
        self._pulses += pulses


class _Periodicity:
    """Periodicity of a window of onsets at each tempo."""

    def __init__(self, size: int, rate: float) -> None:
        self._size = size
        within = (np.arange(_POINTS) + 0.5) / _POINTS - 0.5
        hz = np.outer(2.0 ** (within / _TEMPOS_AN_OCTAVE), TEMPOS / 60)
        self._lags = _Interpolation(rate / hz)
        self._bins = _Interpolation(hz * 2 * size / rate)
        self._window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)
        # so that the few products of a long lag weigh as much as the many of a short one
        overlap = _correlation(np.fft.rfft(self._window, 2 * size))[:size]
        self._unbiased = overlap[0] / np.maximum(overlap, 1e-3 * overlap[0])

    def __call__(self, onsets: Float64Array) -> tuple[Float64Array, Float64Array]:
        """The tempos (48,) and the pulses of each group (4, 48), none negative."""
        curves = onsets - onsets.mean(axis=1, keepdims=True)
        if np.vdot(curves, curves) < _MIN_RISE**2 * self._size:
            return np.zeros(_N_TEMPOS), np.zeros((N_BANDS, _N_TEMPOS))
        curves *= self._window
        spectra = np.fft.rfft(curves, 2 * self._size)
        pulses = self._bins(np.abs(spectra)).max(axis=1)
        total = spectra.sum(axis=0)
        beats = self._bins(np.abs(total))
        repetition = _correlation(total)[: self._size]
        repetition *= self._unbiased / max(repetition[0], _TINY)
        # the share of a window is how clearly it repeats
        tempos = (np.maximum(self._lags(repetition), 0) * beats).max(axis=0) / max(beats.sum(), _TINY)
        return tempos, pulses / max(pulses.sum(), _TINY)


class _Interpolation:
    """Values between those of a regular grid, along the last axis, at places of any shape."""

    def __init__(self, places: Float64Array) -> None:
        self._below = np.floor(places).astype(np.int64)
        self._share = places - self._below

    def __call__(self, values: Float64Array) -> Float64Array:
        below, above = (values.take(self._below + side, axis=-1) for side in (0, 1))
        return below + (above - below) * self._share


def _correlation(spectrum: npt.NDArray[np.complex128]) -> Float64Array:
    return np.fft.irfft(np.square(spectrum.real) + np.square(spectrum.imag))
