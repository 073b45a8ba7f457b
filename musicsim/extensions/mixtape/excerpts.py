"""The part of a song that a mix contains, at the loudness of all mixes: float32 (2, n)."""

import contextlib
import math
from dataclasses import dataclass

import numpy as np

from musicsim import audio
from musicsim._arrays import Float32Array
from musicsim.audio import SoundReader, open_source
from musicsim.errors import AudioDecodeError
from musicsim.explorer import find_sound
from musicsim.extensions.mixtape.request import MAX_WHOLE_S, MixRequest
from musicsim.library import Song

_RMS = 0.1  # target level of an excerpt, -20 dB, which leaves headroom for most music
# Maximum peak of an excerpt. In a crossfade, two peaks add up to at most 0.85 (sqrt(2) * 0.6); codecs may overshoot.
_PEAK = 0.6
_MAX_GAIN = 8.0  # maximum gain, 18 dB; an excerpt that needs more is noise or intentionally quiet


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Samples (2, n) of a song."""

    samples: Float32Array
    start_s: float  # position in the song
    tempo: float | None  # beats per minute of the song, None if unknown


def read_excerpt(song: Song, request: MixRequest, rate: int) -> Excerpt:
    """Read the requested part of a song. Raises AudioDecodeError if the file has no audio there."""
    if not request.whole:
        start_s = max(min(song.typical_s, song.duration_s - request.seconds), 0.0)
        return Excerpt(_normalize(_read(song, start_s, request.seconds, rate)), start_s, song.tempo)
    samples = _read(song, 0.0, min(song.duration_s + 1.0, MAX_WHOLE_S), rate)  # stated durations are not exact
    sounding = find_sound(samples, rate)
    return Excerpt(_normalize(samples[:, sounding]), sounding.start / rate, song.tempo)


def _read(song: Song, start_s: float, seconds: float, rate: int) -> Float32Array:
    source, label = open_source(song.path, None)
    out = np.zeros((2, round(seconds * rate)), np.float32)
    n = 0
    with contextlib.closing(SoundReader(source).blocks()) as blocks:
        part = audio.cut_blocks(blocks, start_s, start_s + seconds)
        for frame in audio.resample_blocks(part, "fltp", "stereo", rate):
            samples = frame.to_ndarray()[:, : out.shape[1] - n]
            out[:, n : n + samples.shape[1]] = samples
            n += samples.shape[1]
    if n == 0:
        raise AudioDecodeError(
            f"{label} has no audio at {start_s:.0f} s: the file is damaged, or has changed since it was added."
        )
    return out[:, :n]


def _normalize(excerpt: Float32Array) -> Float32Array:
    peak = float(max(excerpt.max(), -excerpt.min()))
    rms = math.sqrt(sum(float(np.square(channel, dtype=np.float64).mean()) for channel in excerpt) / 2)
    if rms > 0:
        excerpt *= np.float32(min(_RMS / rms, _PEAK / peak, _MAX_GAIN))
    return excerpt
