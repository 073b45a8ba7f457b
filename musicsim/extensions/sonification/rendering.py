"""Write grains one after the other to a sound file."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import soundfile

from musicsim import audio
from musicsim._arrays import Float32Array
from musicsim.errors import AudioDecodeError, AudioError
from musicsim.extensions.sonification.grains import Grain
from musicsim.library import atomic_path
from musicsim.progress import Progress, no_progress

ENDINGS = (".wav", ".flac")
"""Supported file extensions."""
_LEVEL = 0.1  # RMS of each grain, -20 dB
_PEAK = 0.9
_MAX_FADE_S = 0.25
_FADES = 10  # a fade takes one tenth of a grain


def check_ending(target: Path) -> None:
    """Raise ValueError if the file extension is not supported."""
    if target.suffix.lower() not in ENDINGS:
        raise ValueError(f"{target.name!r} must end in {' or '.join(ENDINGS)}.")


def render_grains(grains: Sequence[Grain], target: Path, *, progress: Progress = no_progress) -> list[Grain]:
    """Write grains in a row, at equal level, mono and 22,050 Hz; return those that could be read.

    Raises ValueError for an unknown file extension, and AudioDecodeError if no grain can be read.
    """
    check_ending(target)
    read: list[tuple[Grain, Float32Array]] = []
    reason = ""
    for done, grain in enumerate(grains):
        progress("reading songs", done, len(grains))
        try:
            read.append((grain, _read_grain(grain)))
        except (AudioError, OSError) as error:
            reason = str(error)
    if not read:
        raise AudioDecodeError(f"none of the {len(grains)} songs can be read. {reason}".strip())
    samples = np.concatenate([one for _, one in read])
    with atomic_path(target) as temporary:
        soundfile.write(temporary, samples, audio.SAMPLE_RATE, format=target.suffix[1:].upper())
    return [grain for grain, _ in read]


def _read_grain(grain: Grain) -> Float32Array:
    samples = audio.decode(grain.song.path, offset=grain.start_s, duration=grain.seconds).samples
    level = float(np.sqrt(np.mean(np.square(samples, dtype=np.float64))))
    if level > 0:
        samples = samples * min(_LEVEL / level, _PEAK / float(np.abs(samples).max()))
    n = round(min(_MAX_FADE_S, grain.seconds / _FADES) * audio.SAMPLE_RATE)
    ramp = np.minimum(1.0, (np.arange(len(samples)) + 0.5) / n)
    faded: Float32Array = (samples * np.minimum(ramp, ramp[::-1])).astype(np.float32)
    return faded
