"""Changes of sound that a listener still recognizes, similar to the deformations of mir_ref."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from musicsim._arrays import Float32Array
from musicsim.audio import AudioNetwork, Sound, analyze_sound, import_librosa, load
from musicsim.extensions.robustness.encoding import encode, encode_flac

RATE = 44100
QUERY_S = 60.0
"""Length of the part of a song that is changed, from its middle."""
_CUT_S = 10.0
UNCHANGED = "unchanged"


def add_noise(y: Float32Array, softer_db: float) -> Float32Array:
    """Add white noise that is this much softer than the sound."""
    noise = np.random.default_rng(0).standard_normal(len(y), np.float32)
    return y + np.float32(10 ** (-softer_db / 20) * np.sqrt(np.mean(y**2))) * noise


def _shift_pitch(y: Float32Array, semitones: float) -> Float32Array:
    librosa = import_librosa()

    shifted: Float32Array = librosa.effects.pitch_shift(y, sr=RATE, n_steps=semitones)
    return shifted


def _stretch(y: Float32Array, rate: float) -> Float32Array:
    librosa = import_librosa()

    stretched: Float32Array = librosa.effects.time_stretch(y, rate=rate)
    return stretched


def cut_middle(y: Float32Array, seconds: float) -> Float32Array:
    """Return this many seconds from the middle, or all of a shorter sound."""
    start = max(0, (len(y) - int(seconds * RATE)) // 2)
    return y[start : start + int(seconds * RATE)]


CHANGES: dict[str, Callable[[Float32Array], Float32Array]] = {
    UNCHANGED: lambda y: y,
    "noise, 20 dB softer": partial(add_noise, softer_db=20),
    "noise, 10 dB softer": partial(add_noise, softer_db=10),
    "gain -12 dB": lambda y: np.float32(10 ** (-12 / 20)) * y,
    "gain +6 dB, clipped": lambda y: np.clip(2 * y, -1, 1),
    "a semitone up": partial(_shift_pitch, semitones=1),
    "two semitones down": partial(_shift_pitch, semitones=-2),
    "5% slower": partial(_stretch, rate=0.95),
    "10% faster": partial(_stretch, rate=1.1),
    "10 s": partial(cut_middle, seconds=_CUT_S),
}
"""Changes of samples at :data:`RATE`, keyed by name."""
_KBPS = (128, 64, 32)


def analyze_changes(path: Path, networks: Sequence[AudioNetwork] = ()) -> dict[str, Sound]:
    """Analyze every changed version of the middle minute of a file, keyed by the change; may raise AudioError."""
    y = cut_middle(load(path, sr=RATE), QUERY_S)
    files = {name: encode_flac(change(y)[np.newaxis], RATE) for name, change in CHANGES.items()}
    files |= {f"mp3 {kbps} kbit/s": encode(y[np.newaxis], RATE, "mp3", "libmp3lame", kbps) for kbps in _KBPS}
    return {name: analyze_sound(data, name=name, networks=networks) for name, data in files.items()}
