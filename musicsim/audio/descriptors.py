"""Descriptors of a song: tempo, key and mode, loudness, brightness, energy, steadiness.

Descriptors are computed from stored features, not from the sound: MFCC frames, harmony and rhythm. The transposed DCT
reconstructs the 40 mel levels from the MFCCs. The levels are smoothed, because only 13 of 40 coefficients are stored.
Loudness, brightness and energy use the frames that pass the gate of ITU-R BS.1770-4. It passes blocks of 0.4 s that are
above -70 dB and at most 10 dB below the mean of all such blocks. If any value changes, increase `DESCRIPTOR_VERSION`.
"""

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from musicsim._arrays import BoolArray, Float32Array, Float64Array, FloatingArray
from musicsim.audio.features import FRAME, HOP, N_MFCC, SAMPLE_RATE, dct_basis, mel_corners
from musicsim.audio.harmony import HARMONY_SIZE, N_CLASSES
from musicsim.audio.names import KEYS, MODES, Descriptors
from musicsim.audio.rhythm import RHYTHM_SIZE, TEMPOS

DESCRIPTOR_VERSION = 2

_BLOCK = 2048  # frames
_GATE_FRAMES = 35  # frames of a gated block: 0.41 s
_GATE, _RELATIVE_GATE = -70.0, 10.0  # dB
# Sum of a frame's power spectrum, divided by the frame's mean square: half its length times sum(window ** 2).
_FULL_SCALE = FRAME / 2 * FRAME * 3 / 8
_LUFS = -0.691  # offset in BS.1770: a full-scale sine of 997 Hz has a loudness of -3.01

# Frequency of each pitch class in a key, starting at the tonic. Source: Albrecht and Shanahan 2013, "The use of large
# corpora to train a new type of key-finding algorithm", Music Perception 31(1). Krumhansl and Kessler's ratings (1982)
# fit worse, because the histogram contains only the strongest classes of each chord; see `experiments.audible`.
_PROFILES = (
    (0.238, 0.006, 0.111, 0.006, 0.137, 0.094, 0.016, 0.214, 0.009, 0.080, 0.008, 0.081),
    (0.220, 0.006, 0.104, 0.123, 0.019, 0.103, 0.012, 0.214, 0.062, 0.022, 0.061, 0.052),
)
_MIN_CORRELATION = 0.5  # below this correlation, the key is None
# log-normal prior around the preferred tapping tempo (Parncutt 1994; van Noorden and Moelants 1999)
_PREFERRED, _SPREAD = 105.0, 0.9  # beats per minute; octaves
_OCTAVE = 12  # bins
_OCTAVE_WEIGHT = 0.6  # weight of half the tempo and twice the tempo
_MIN_BEAT = 0.3  # minimum share of the histogram for a tempo and its octaves; below it, the tempo is None
_TINY = 1e-12


def describe(
    mfcc: FloatingArray, harmony: Float32Array | None = None, rhythm: Float32Array | None = None
) -> Descriptors:
    """Compute the descriptors of a song from its :func:`musicsim.audio.mfcc` at 22,050 Hz.

    `mfcc` may be a memory map, which is read block by block. Without :func:`musicsim.audio.harmony`, the key is None.
    Without :func:`musicsim.audio.rhythm`, the tempo and the steadiness are None.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.audio import describe, mfcc, rhythm
    >>> clicks = np.zeros(22050 * 12, np.float32)
    >>> clicks[::11025] = 1.0  # 120 beats per minute
    >>> descriptors = describe(mfcc(clicks), rhythm=rhythm(clicks))
    >>> round(descriptors.tempo), descriptors.key  # the key needs harmony
    (120, None)
    """
    if mfcc.ndim != 2 or mfcc.shape[1] != N_MFCC:
        raise ValueError(f"mfcc must have shape (n_frames, {N_MFCC}), not {mfcc.shape}.")
    tempo, steadiness = (None, None) if rhythm is None else _describe_beat(rhythm)
    key, mode = (None, None) if harmony is None else estimate_key(harmony)
    return Descriptors(tempo, key, mode, *_describe_levels(mfcc), steadiness)


def estimate_tempo(rhythm: FloatingArray) -> float | None:
    """Return the tempo of a song in beats per minute, given its :func:`musicsim.audio.rhythm`, (240,).

    The score of a tempo t is ``p(t) (h(t) + 0.6 h(t / 2) + 0.6 h(2 t))``, where h is the histogram and p a log-normal
    prior. The result is the vertex of the parabola through the logarithms of h at the best bin and its neighbors. It is
    None if :func:`measure_steadiness` is below 30.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.audio import estimate_tempo, rhythm
    >>> clicks = np.zeros(22050 * 12, np.float32)
    >>> clicks[::11025] = 1.0  # 120 beats per minute
    >>> round(estimate_tempo(rhythm(clicks)))
    120
    """
    return _describe_beat(rhythm)[0]


def measure_steadiness(rhythm: FloatingArray) -> float:
    """Return the percentage of the tempo histogram at the best tempo, its half and its double, and next to them.

    A regular beat at one tempo gives almost 100. Sound that repeats at no tempo gives 19, the share of nine bins.
    `rhythm` is :func:`musicsim.audio.rhythm`, (240,).
    """
    return _describe_beat(rhythm)[1]


def _describe_beat(rhythm: FloatingArray) -> tuple[float | None, float]:
    """Return the tempo and the steadiness."""
    if rhythm.shape != (RHYTHM_SIZE,):
        raise ValueError(f"rhythm must have shape ({RHYTHM_SIZE},), not {rhythm.shape}.")
    h = rhythm[: len(TEMPOS)].astype(np.float64)
    near = np.pad(h, _OCTAVE + 1)  # an octave and one bin on both sides
    padded = near[1:-1]
    slower, faster = padded[: len(h)], padded[2 * _OCTAVE :]
    prior = np.exp(-0.5 * np.square(np.log2(TEMPOS / _PREFERRED) / _SPREAD))
    best = int(np.argmax(prior * (h + _OCTAVE_WEIGHT * (slower + faster))))
    centers = best + 1 + _OCTAVE * np.arange(3)
    share = sum(float(near[center - 1 : center + 2].sum()) for center in centers.tolist())
    if share < _MIN_BEAT:
        return None, 100 * share
    below, peak, above = np.log(np.maximum(padded[best + _OCTAVE - 1 : best + _OCTAVE + 2], _TINY))
    curvature = below - 2 * peak + above
    shift = 0.5 * (below - above) / curvature if curvature < 0 else 0.0
    return float(TEMPOS[best] * 2.0 ** (np.clip(shift, -0.5, 0.5) / _OCTAVE)), 100 * share


def estimate_key(harmony: FloatingArray) -> tuple[str, str] | tuple[None, None]:
    """Return the key and mode of a song, given its :func:`musicsim.audio.harmony`, (156,).

    The profiles of 24 keys (Albrecht and Shanahan 2013) are correlated with the histogram of pitch classes, and the
    highest correlation wins (Krumhansl 1990, chapter 4). Key and mode are None if this correlation is below 0.5.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.audio import estimate_key, harmony
    >>> t = np.arange(22050 * 4) / 22050
    >>> estimate_key(harmony(sum(np.sin(2 * np.pi * f * t) for f in (261.6, 329.6, 392.0)) / 3))  # a C major chord
    ('C', 'major')
    >>> estimate_key(np.full(156, 1 / 12))  # all pitch classes are equally frequent
    (None, None)
    """
    if harmony.shape != (HARMONY_SIZE,):
        raise ValueError(f"harmony must have shape ({HARMONY_SIZE},), not {harmony.shape}.")
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


def _describe_levels(mfcc: FloatingArray) -> tuple[float | None, float | None, float | None]:
    parts = [_frame_sums(levels, before) for levels, before in _levels(mfcc)]
    if not parts:
        return None, None, None
    sums = np.concatenate(parts, axis=1)
    passes = _gate(sums[0])
    if not passes.any():
        return None, None, None
    power, magnitude, moment, rise = sums[:, passes].mean(axis=1).tolist()
    return _LUFS + 10 * math.log10(power), moment / magnitude, rise * SAMPLE_RATE / HOP


def _levels(mfcc: FloatingArray) -> Iterator[tuple[Float32Array, Float32Array]]:
    """Yield the mel levels of each block of frames, (n, 40) in dB, and the levels of the preceding frames."""
    last = None
    for start in range(0, len(mfcc), _BLOCK):
        levels = mfcc[start : start + _BLOCK].astype(np.float32) @ dct_basis().T
        first = levels[:1] if last is None else last
        yield levels, np.concatenate([first, levels[:-1]])
        last = levels[-1:]


def _frame_sums(levels: Float32Array, before: Float32Array) -> Float64Array:
    """Return (4, n): weighted power (full scale 1.0), magnitude, magnitude times Hz, and mean rise in dB per frame."""
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


def _gate(power: Float64Array) -> BoolArray:
    """Return a mask of the frames in blocks that pass the gate (BS.1770-4, without overlap)."""
    starts = np.arange(0, len(power), _GATE_FRAMES)
    blocks = np.add.reduceat(power, starts) / np.diff(starts, append=len(power))
    gate = 10 ** ((_GATE - _LUFS) / 10)
    loud = blocks > gate
    if loud.any():
        loud &= blocks > blocks[loud].mean() * 10 ** (-_RELATIVE_GATE / 10)
    return np.repeat(loud, _GATE_FRAMES)[: len(power)]


@lru_cache(maxsize=1)
def _key_profiles() -> Float64Array:
    """Return the profiles of the 24 keys, (24, 12), major first, with mean 0 and norm 1."""
    profiles = np.array([np.roll(profile, tonic) for profile in _PROFILES for tonic in range(N_CLASSES)])
    profiles -= profiles.mean(axis=1, keepdims=True)
    return profiles / np.linalg.norm(profiles, axis=1, keepdims=True)


@lru_cache(maxsize=1)
def _bands() -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return the center (Hz), the effective width and the K-weighting (power gain) of each mel band."""
    corners = mel_corners(SAMPLE_RATE)
    # triangles of these widths and height 1 sum to 1; the filters are scaled to an area of 1 Hz
    widths = (corners[2:] - corners[:-2]) / 2
    hz = corners[1:-1]
    return hz, widths, k_weighting(hz)


def k_weighting(hz: Float64Array) -> Float64Array:
    """Return the power gain of the two filters of BS.1770-4 (tables 1 and 2, at 48 kHz)."""
    z = np.exp(-2j * np.pi * hz / 48000)
    shelf = (1.53512485958697 - 2.69169618940638 * z + 1.19839281085285 * z**2) / (
        1 - 1.69065929318241 * z + 0.73248077421585 * z**2
    )
    high_pass = (1 - z) ** 2 / (1 - 1.99004745483398 * z + 0.99007225036621 * z**2)
    return np.square(np.abs(shelf * high_pass))
