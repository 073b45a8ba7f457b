"""What can be heard of a song, in words and numbers: tempo, key and mode, loudness, brightness, energy.

All of it is taken from what is kept of a song anyway, without its sound: MFCC frames, harmony and rhythm. The 40 mel
levels that MFCC were taken from are given back by the transposed DCT, smoothed, since 13 of 40 coefficients are
kept. Loudness, brightness and energy are of the frames that count: those of blocks of 0.4 s that are gated as ITU-R
BS.1770-4 has it, above -70 dB and no more than 10 dB below the mean of these. A change of any number
here needs a new `DESCRIPTOR_VERSION`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from musicsim._arrays import BoolArray, Float32Array, Float64Array, FloatingArray
from musicsim.audio.features import FRAME, HOP, N_MFCC, SAMPLE_RATE, dct_basis, mel_corners
from musicsim.audio.harmony import HARMONY_SIZE, N_CLASSES
from musicsim.audio.names import KEYS, MODES
from musicsim.audio.rhythm import RHYTHM_SIZE, TEMPOS

DESCRIPTOR_VERSION = 1

_BLOCK = 2048  # frames at once
_GATED = 35  # frames of a gated block: 0.41 s
_GATE, _RELATIVE_GATE = -70.0, 10.0  # dB
# a frame's power spectrum sums to 512 / 2 times the sum of the squared Hann window, 512 * 3 / 8, times the mean square
_FULL_SCALE = FRAME / 2 * FRAME * 3 / 8
_LUFS = -0.691  # BS.1770: a sine of 997 Hz and full scale has -3.01

# How often each class sounds in a key, from its tonic on: Albrecht and Shanahan 2013, "The use of large corpora to
# train a new type of key-finding algorithm", Music Perception 31(1). Krumhansl and Kessler's ratings (1982) suit the
# histogram less, which has only the strongest classes of each chord: `experiments.audible` measures both.
_PROFILES = (
    (0.238, 0.006, 0.111, 0.006, 0.137, 0.094, 0.016, 0.214, 0.009, 0.080, 0.008, 0.081),
    (0.220, 0.006, 0.104, 0.123, 0.019, 0.103, 0.012, 0.214, 0.062, 0.022, 0.061, 0.052),
)
_MIN_CORRELATION = 0.5  # below: no key
# log-normal, about the tempo that people tap most easily (Parncutt 1994; van Noorden and Moelants 1999)
_TAPPED, _SPREAD = 105.0, 0.9  # beats a minute; octaves
_OCTAVE = 12  # bins
_OF_OCTAVES = 0.6  # what stands at half and twice the tempo counts for it
_MIN_BEAT = 0.3  # share of a tempo and its octaves; below nothing beats
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Descriptors:
    """What can be heard of a song; None where nothing can be said."""

    # Beats a minute, 42 to 240 for most songs. Which of a tempo, its half and its double people tap is a
    # guess.
    tempo: float | None = None
    key: str | None = None  # the tonic, one of `KEYS`
    mode: str | None = None  # one of `MODES`
    # Gated loudness of the mono mix, LUFS. The smoothed levels make it some dB less than meters show.
    loudness: float | None = None
    brightness: float | None = None  # centroid of the mean magnitude spectrum, Hz
    # How much rises: the sum of all rises of the level within a second, dB, mean of the mel bands. Many hard
    # attacks make it high, held tones low; how loud a song is makes no difference.
    energy: float | None = None


def describe(
    mfcc: FloatingArray, harmony: Float32Array | None = None, rhythm: Float32Array | None = None
) -> Descriptors:
    """Say what can be heard of a song.

    Parameters
    ----------
    mfcc : ndarray of shape (n_frames, 13), floating
        Of :func:`musicsim.audio.mfcc` at 22,050 Hz; a memory map is read block by block.
    harmony : ndarray of shape (156,), optional
        Of :func:`musicsim.audio.harmony`; without it there is no key.
    rhythm : ndarray of shape (240,), optional
        Of :func:`musicsim.audio.rhythm`; without it there is no tempo.

    Returns
    -------
    Descriptors

    Raises
    ------
    ValueError
        If an array has another shape.
    """
    if mfcc.ndim != 2 or mfcc.shape[1] != N_MFCC:
        raise ValueError(f"mfcc must be of shape (n_frames, {N_MFCC}), not {mfcc.shape}.")
    tempo = None if rhythm is None else tempo_of(rhythm)
    key, mode = (None, None) if harmony is None else key_of(harmony)
    return Descriptors(tempo, key, mode, *_of_levels(mfcc))


def tempo_of(rhythm: FloatingArray) -> float | None:
    """The tempo of a song in beats a minute, from the histogram of tempos.

    Parameters
    ----------
    rhythm : ndarray of shape (240,)
        Of :func:`musicsim.audio.rhythm`.

    Returns
    -------
    float or None
        None where less than 0.3 of the histogram lies at a tempo, its half and its double.

    Notes
    -----
    A tempo t scores ``p(t) (h(t) + 0.6 h(t / 2) + 0.6 h(2 t))``, with the histogram h and a log-normal prior p. The
    peak is that of the parabola through the logarithms of h at the best bin and its neighbours.
    """
    if rhythm.shape != (RHYTHM_SIZE,):
        raise ValueError(f"rhythm must be of shape ({RHYTHM_SIZE},), not {rhythm.shape}.")
    h = rhythm[: len(TEMPOS)].astype(np.float64)
    near = np.pad(h, _OCTAVE + 1)  # an octave and a bin on both sides
    padded = near[1:-1]
    slower, faster = padded[: len(h)], padded[2 * _OCTAVE :]
    best = int(np.argmax(_prior() * (h + _OF_OCTAVES * (slower + faster))))
    places = best + 1 + _OCTAVE * np.arange(3)
    if sum(float(near[place - 1 : place + 2].sum()) for place in places.tolist()) < _MIN_BEAT:
        return None
    below, peak, above = np.log(np.maximum(padded[best + _OCTAVE - 1 : best + _OCTAVE + 2], _TINY))
    curvature = below - 2 * peak + above
    shift = 0.5 * (below - above) / curvature if curvature < 0 else 0.0
    return float(TEMPOS[best] * 2.0 ** (np.clip(shift, -0.5, 0.5) / _OCTAVE))


def key_of(harmony: FloatingArray) -> tuple[str, str] | tuple[None, None]:
    """Key and mode of a song, from its histogram of pitch classes.

    Parameters
    ----------
    harmony : ndarray of shape (156,)
        Of :func:`musicsim.audio.harmony`.

    Returns
    -------
    (key, mode)
        Of 24 keys the one whose profile has the highest correlation with the histogram (Krumhansl 1990, chapter 4; the
        profiles are those of Albrecht and Shanahan 2013); both None where that is below 0.5.
    """
    if harmony.shape != (HARMONY_SIZE,):
        raise ValueError(f"harmony must be of shape ({HARMONY_SIZE},), not {harmony.shape}.")
    classes = harmony[:N_CLASSES].astype(np.float64)
    classes -= classes.mean()
    length = float(np.linalg.norm(classes))
    if length < _TINY:
        return None, None
    correlations = _key_profiles() @ classes / length
    best = int(np.argmax(correlations))
    if correlations[best] < _MIN_CORRELATION:
        return None, None
    mode, tonic = divmod(best, N_CLASSES)
    return KEYS[tonic], MODES[mode]


def _of_levels(mfcc: FloatingArray) -> tuple[float | None, float | None, float | None]:
    """Loudness, brightness and energy."""
    parts = [_frame_sums(levels, before) for levels, before in _levels(mfcc)]
    if not parts:
        return None, None, None
    sums = np.concatenate(parts, axis=1)
    counts = _gated(sums[0])
    if not counts.any():
        return None, None, None
    power, magnitude, moment, rise = sums[:, counts].mean(axis=1).tolist()
    return _LUFS + 10 * math.log10(power), moment / magnitude, rise * SAMPLE_RATE / HOP


def _levels(mfcc: FloatingArray) -> Iterator[tuple[Float32Array, Float32Array]]:
    """Levels of the mel bands, (n, 40), dB, and those of the frames before them."""
    last = None
    for start in range(0, len(mfcc), _BLOCK):
        levels = mfcc[start : start + _BLOCK].astype(np.float32) @ dct_basis().T
        first = levels[:1] if last is None else last
        yield levels, np.concatenate([first, levels[:-1]])
        last = levels[-1:]


def _frame_sums(levels: Float32Array, before: Float32Array) -> Float64Array:
    """Of each frame weighted power (1.0: full scale), magnitude, its sum times Hz, mean rise in dB: (4, n)."""
    hz, widths, weights = _bands()
    magnitude = np.exp(levels * np.float32(np.log(10) / 20)).astype(np.float64)
    return np.stack(
        [
            np.square(magnitude) @ (widths * weights) / _FULL_SCALE,
            magnitude @ widths,
            magnitude @ (widths * hz),
            np.maximum(levels - before, 0).mean(axis=1, dtype=np.float64),
        ]
    )


def _gated(power: Float64Array) -> BoolArray:
    """Which frames lie in blocks that are loud enough (BS.1770-4, without overlap)."""
    starts = np.arange(0, len(power), _GATED)
    blocks = np.add.reduceat(power, starts) / np.diff(starts, append=len(power))
    gate = 10 ** ((_GATE - _LUFS) / 10)
    loud = blocks > gate
    if loud.any():
        loud &= blocks > blocks[loud].mean() * 10 ** (-_RELATIVE_GATE / 10)
    return np.repeat(loud, _GATED)[: len(power)]


@lru_cache(maxsize=1)
def _prior() -> Float64Array:
    return np.exp(-0.5 * np.square(np.log2(TEMPOS / _TAPPED) / _SPREAD))


@lru_cache(maxsize=1)
def _key_profiles() -> Float64Array:
    """Profiles of the 24 keys, (24, 12), major ones first, of mean 0 and length 1."""
    profiles = np.array([np.roll(profile, tonic) for profile in _PROFILES for tonic in range(N_CLASSES)])
    profiles -= profiles.mean(axis=1, keepdims=True)
    return profiles / np.linalg.norm(profiles, axis=1, keepdims=True)


@lru_cache(maxsize=1)
def _bands() -> tuple[Float64Array, Float64Array, Float64Array]:
    """Middle of each mel band in Hz; what its level times adds to the power of a spectrum; K-weighting as a power."""
    corners = mel_corners(SAMPLE_RATE)
    # triangles of these widths and height 1 sum to 1; the filters are as high as their area in Hz is 1
    widths = (corners[2:] - corners[:-2]) / 2
    hz = corners[1:-1]
    return hz, widths, _k_weighting(hz)


def _k_weighting(hz: Float64Array) -> Float64Array:
    """Power gain of the two filters of BS.1770-4 (tables 1 and 2, at 48 kHz) at some frequencies."""
    z = np.exp(-2j * np.pi * hz / 48000)
    shelf = (1.53512485958697 - 2.69169618940638 * z + 1.19839281085285 * z**2) / (
        1 - 1.69065929318241 * z + 0.73248077421585 * z**2
    )
    high_pass = (1 - z) ** 2 / (1 - 1.99004745483398 * z + 0.99007225036621 * z**2)
    return np.square(np.abs(shelf * high_pass))
