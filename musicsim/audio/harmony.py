"""Harmony of a song as two histograms: its pitch classes, and its pairs of successive pitch classes.

Pitch class 0 is C; 9 is A. The tuning of a song is determined in steps of 20 cents, within half a semitone of
A = 440 Hz. The sound is resampled to a quarter of its rate, because only partials up to 2 kHz are used. Peaks are
found in spectra of 0.37 s without overlap. Two spectra make one chord: the excess of the four strongest classes over
the fifth strongest, scaled to sum to 1. The histograms are the mean chord (12 values) and the mean outer product of
each chord with the next one (12 x 12). Each histogram sums to 1. In a silent song, all values are equal. If any value
changes, increase `musicsim.audio.ASPECT_VERSION`. Memory use does not grow with the song's length.
"""

from functools import lru_cache

import numpy as np

from musicsim._arrays import Float32Array, Float64Array, FloatingArray
from musicsim.audio.features import SAMPLE_RATE, BlockBuffer, check_rate, check_samples, join_histograms

N_CLASSES = 12
HARMONY_SIZE = N_CLASSES + N_CLASSES**2

_RATE = 5512.5  # Hz; spectra are computed at this rate or at a slightly higher one
_SPECTRUM_S = 0.3715
# starts a quarter tone below C2, because spectra do not resolve lower semitones
_MIN_HZ, _MAX_HZ = 63.5, 2000.0
_TAPS = 12  # length of the low-pass filter in samples at the lower rate: aliases are attenuated by 50 dB
_OUTPUTS = 16  # filtered samples per step: a matrix product replaces the convolution
_PRODUCTS = 32  # matrix products per block; larger ones wake BLAS threads, which cost more time than they save
_BLOCK_SPECTRA = 16  # spectra per block, which contains whole chords and needs 2 MB
_CHORD_SPECTRA = 2
_STRONGEST = 4
_FINE = 5  # steps of 20 cents per semitone
_TUNINGS = (0, 1, -1, 2, -2)  # steps; the first one wins a tie
# Power relative to a full-scale sine. Peaks below -90 dB are dither; peaks 50 dB below the loudest partial of their
# spectrum are side lobes, or inaudible.
_MIN_POWER, _MIN_SHARE = 1e-9, 1e-5
# Minimum power of a peak relative to the mean of its group of bins; noise seldom exceeds it.
_TONAL, _GROUP = 5.0, 32
_TINY = 1e-30
_C0_HZ = 440.0 * 2.0 ** (-4.75)


def harmony(y: FloatingArray, sr: float = SAMPLE_RATE) -> Float32Array:
    """Compute the harmony of finite mono samples (n_samples,), full scale 1.0, at a rate of at least 8000 Hz.

    The result is float32 (156,): a histogram of the 12 pitch classes, then one of the 12 x 12 pairs of successive
    classes (from, to), row by row. Each sums to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.audio import KEYS, harmony
    >>> t = np.arange(22050 * 4) / 22050
    >>> chord = sum(np.sin(2 * np.pi * f * t) for f in (261.6, 329.6, 392.0)) / 3  # C, E and G
    >>> classes = harmony(chord)[:12]
    >>> sorted(KEYS[n] for n in np.argsort(classes)[-3:])
    ['C', 'E', 'G']
    """
    check_samples(y, sr)
    stream = HarmonyStream(sr)
    stream.add(y)
    return stream.finish()


class HarmonyStream:
    """Compute the :func:`harmony` of a song from samples that arrive in blocks."""

    def __init__(self, sr: float) -> None:
        check_rate(sr)
        self._step = max(1, int(sr / _RATE))
        self._filter = _low_pass(self._step)
        rate = sr / self._step
        self._size = 1 << round(np.log2(_SPECTRUM_S * rate))
        self._spectra = _Spectra(self._size, rate)
        # the buffer begins with the earlier samples that the filter needs; initially, they are zeros
        self._history = len(self._filter) - _OUTPUTS * self._step
        n_samples = self._history + _BLOCK_SPECTRA * self._size * self._step
        self._samples = BlockBuffer(np.zeros(n_samples, np.float32), self._history)
        windows = np.lib.stride_tricks.sliding_window_view(self._samples.rows, len(self._filter))
        self._windows = windows[:: _OUTPUTS * self._step]
        # a copy, because BLAS does not accept overlapping rows
        self._rows = np.empty((_PRODUCTS, len(self._windows) // _PRODUCTS, len(self._filter)), np.float32)
        self._slow = np.empty((_BLOCK_SPECTRA, self._size), np.float32)
        self._chords = _Chords()

    def add(self, samples: FloatingArray) -> None:
        """Add floating-point samples, (n,)."""
        for _ in self._samples.fill(samples):
            self._add_spectra(_BLOCK_SPECTRA)
            self._samples.keep(self._history)

    def finish(self) -> Float32Array:
        """Return the harmony of all samples: (156,), float32."""
        n_new = self._samples.n_filled - self._history
        self._samples.rows[self._samples.n_filled :] = 0
        # rounded up, so that the samples of an incomplete spectrum are included
        if n_spectra := -(-n_new // (self._size * self._step)):
            self._add_spectra(n_spectra)
        return self._chords.finish()

    def _add_spectra(self, n_spectra: int) -> None:
        np.copyto(self._rows, self._windows.reshape(self._rows.shape))
        np.matmul(self._rows, self._filter, out=self._slow.reshape(_PRODUCTS, -1, _OUTPUTS))
        self._chords.add(self._spectra.compute_classes(self._slow[:n_spectra]))


class _Spectra:
    """Spectral peaks, folded into fine pitch classes, which are 20 cents wide."""

    def __init__(self, size: int, rate: float) -> None:
        self._window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)
        self._window *= 4.0 / size  # a full-scale sine has a peak of 1
        self._windowed = np.empty((_BLOCK_SPECTRA, size))
        self._spectrum = np.empty((_BLOCK_SPECTRA, size // 2 + 1), np.complex128)
        self._first = int(_MIN_HZ * size / rate)
        self._n_groups = round((_MAX_HZ - _MIN_HZ) * size / rate / _GROUP)
        self._hz = rate / size

    def compute_classes(self, frames: Float32Array) -> Float64Array:
        """Return the strength of the 60 fine pitch classes in each frame, (n_frames, 60)."""
        windowed, spectrum = self._windowed[: len(frames)], self._spectrum[: len(frames)]
        np.multiply(frames, self._window, out=windowed)
        # float64, because NumPy's rfft is slower in float32
        np.fft.rfft(windowed, out=spectrum)
        n_bins = self._n_groups * _GROUP  # one more bin on each side is read, to recognize peaks at the borders
        bins = spectrum[:, self._first - 1 : self._first + n_bins + 1].astype(np.complex64)
        power = np.square(bins.real) + np.square(bins.imag)
        middle = power[:, 1:-1].reshape(len(frames), self._n_groups, _GROUP)
        floor = middle.mean(axis=2) * np.float32(_TONAL)
        loudest = middle.max(axis=(1, 2))[:, None]
        np.maximum(floor, np.maximum(_MIN_SHARE * loudest, _MIN_POWER), out=floor)
        # only the few bins above the floor are compared with their neighbors
        frame, k = np.divmod(np.flatnonzero(middle > floor[:, :, None]), n_bins)
        at = frame * (n_bins + 2) + k + 1
        power = power.ravel()
        highest = (power[at] > power[at - 1]) & (power[at] >= power[at + 1])
        frame, k, at = frame[highest], k[highest], at[highest]
        peak = power[at].astype(np.float64)
        below, above = (np.log(np.maximum(power[at + side], _TINY) / peak) for side in (-1, 1))
        # vertex of the parabola through the logarithms
        top = k + 0.5 * (below - above) / np.minimum(below + above, -_TINY)
        hz = (self._first + top) * self._hz
        steps = np.round(np.log2(hz / _C0_HZ) * (N_CLASSES * _FINE)).astype(np.int64)
        n_fine = N_CLASSES * _FINE
        # the fourth root of power, so that soft notes of a chord also count
        strength = np.sqrt(np.sqrt(peak))
        sums = np.bincount(frame * n_fine + steps % n_fine, weights=strength, minlength=len(frames) * n_fine)
        return sums.astype(np.float64, copy=False).reshape(len(frames), n_fine)


class _Chords:
    """Sums of chords and of chord pairs for every tuning; the best tuning is chosen at the end."""

    def __init__(self) -> None:
        self._classes = np.zeros((len(_TUNINGS), N_CLASSES))
        self._pairs = np.zeros((len(_TUNINGS), N_CLASSES, N_CLASSES))
        self._in_tune = np.zeros(len(_TUNINGS))
        self._last = np.zeros((1, len(_TUNINGS), N_CLASSES))

    def add(self, fine: Float64Array) -> None:
        """Add the fine classes of spectra; each call starts a new chord."""
        sums = np.add.reduceat(fine, np.arange(0, len(fine), _CHORD_SPECTRA))
        to_classes, to_tunings = _folding()
        folded = (sums @ to_classes).reshape(-1, len(_TUNINGS), N_CLASSES)
        self._in_tune += (sums @ to_tunings / np.maximum(sums.sum(axis=1, keepdims=True), _TINY)).sum(axis=0)
        # Subtract the fifth strongest class, so that a near tie for fourth place makes little difference.
        fifth = np.partition(folded, N_CLASSES - 1 - _STRONGEST, axis=2)[:, :, N_CLASSES - 1 - _STRONGEST, None]
        chords = np.maximum(folded - fifth, 0)
        chords /= np.maximum(chords.sum(axis=2, keepdims=True), _TINY)
        self._classes += chords.sum(axis=0)
        before = np.concatenate([self._last, chords[:-1]])
        self._pairs += before.transpose(1, 2, 0) @ chords.transpose(1, 0, 2)
        self._last = chords[-1:]

    def finish(self) -> Float32Array:
        """Return the histograms in the best tuning as one row."""
        best = int(np.argmax(self._in_tune))
        return join_histograms(self._classes[best], self._pairs[best])


@lru_cache(maxsize=4)
def _low_pass(step: int) -> Float32Array:
    """Return a windowed sinc (n_inputs, 16) for every `step`-th sample; at 5.5 kHz, aliases are below -50 dB."""
    n_taps = _TAPS * step if step > 1 else 1
    t = (np.arange(n_taps) - (n_taps - 1) / 2) / step
    taps = np.sinc(t) * np.kaiser(n_taps, 5.0)
    taps /= taps.sum()
    matrix = np.zeros((n_taps + (_OUTPUTS - 1) * step, _OUTPUTS), np.float32)
    for column in range(_OUTPUTS):
        matrix[column * step : column * step + n_taps, column] = taps
    return matrix


@lru_cache(maxsize=1)
def _folding() -> tuple[Float64Array, Float64Array]:
    """Return matrices from fine classes to classes in each tuning, (60, 5 * 12), and to each tuning's fit, (60, 5)."""
    fine = np.arange(N_CLASSES * _FINE)
    to_classes = np.zeros((len(fine), len(_TUNINGS), N_CLASSES))
    to_tunings = np.zeros((len(fine), len(_TUNINGS)))
    for t, tuning in enumerate(_TUNINGS):
        nearest = np.round((fine - tuning) / _FINE).astype(int)
        away = np.abs(fine - tuning - _FINE * nearest)
        # a fine class halfway between two classes is weak evidence for either
        to_classes[fine, t, nearest % N_CLASSES] = np.where(away < 2, 1.0, 0.5)
        to_tunings[:, t] = np.cos(np.pi * away / _FINE) ** 2
    return to_classes.reshape(len(fine), -1), to_tunings
