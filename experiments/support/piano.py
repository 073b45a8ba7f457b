"""Solo piano for experiments.duplicates: short studies, their performances, and their sound on several pianos.

Studies in one key share their left hand, so their chords, register and rhythm are equal. A performance differs from
another by tempo, timing and velocity. The program ``fluidsynth`` and soundfonts, such as those of Debian, play it.
"""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import soundfile

from musicsim._arrays import Float32Array

__all__ = ["N_STUDIES", "PIANO_RATE", "Performance", "find_pianos", "play"]

PIANO_RATE = 44100
N_STUDIES = 9  # three keys, and three right hands in each
_N_BARS = 12
_TICKS = 480  # per quarter note
_TICKS_PER_S = 2 * _TICKS  # at MIDI's 120 quarter notes per minute
_FOLDERS = ("/usr/share/sounds/sf2", "/usr/share/soundfonts")
_PIANOS = ("TimGM6mb.sf2", "FluidR3_GM.sf2")
_SCALES = ((0, 2, 4, 5, 7, 9, 11), (0, 2, 3, 5, 7, 8, 10))  # major, minor
_CHORDS = (0, 5, 3, 4, 0, 3, 1, 4)  # scale degree of the root in each bar
_FIGURES = ((0, 4, 2, 4), (0, 2, 4, 2), (0, 4, 7, 9))  # of the left hand, one per key


class Performance(NamedTuple):
    """How a study is played; each `take` has its own timing and velocities, and take 0 is exact."""

    semitones: int = 0
    tempo: float = 1.0  # relative to the study's tempo
    take: int = 0
    rubato: float = 0.0  # standard deviation of the tempo, as a share; it changes every two beats


class _Note(NamedTuple):
    start: float  # in beats, as is `length`
    length: float
    pitch: int
    velocity: int


def find_pianos() -> list[Path]:
    """Return the known soundfonts on this machine; none if fluidsynth is not installed."""
    if not shutil.which("fluidsynth"):
        return []
    return [path for name in _PIANOS for folder in _FOLDERS if (path := Path(folder) / name).exists()]


def play(study: int, performance: Performance, piano: Path) -> Float32Array:
    """Return the sound of a study, (2, n_samples)."""
    with TemporaryDirectory() as folder:
        midi, sound = Path(folder) / "study.mid", Path(folder) / "study.wav"
        midi.write_bytes(_midi(_perform(_compose(study), study, performance)))
        command = [
            "fluidsynth",
            "-ni",
            "-q",
            "-g",
            "0.6",
            "-r",
            str(PIANO_RATE),
            "-F",
            str(sound),
            str(piano),
            str(midi),
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        samples, _ = soundfile.read(sound, dtype="float32")
    return np.ascontiguousarray(samples.T)


def _compose(study: int) -> list[_Note]:
    """Write a study: the left hand depends on the key only, the right hand on the study."""
    key = study % len(_FIGURES)
    scale, tonic = _SCALES[key % 2], 48 + 5 * key % 12

    def pitch(degree: int, octaves: int) -> int:
        octave, step = divmod(degree, 7)
        return tonic + scale[step] + 12 * (octave + octaves)

    rng = np.random.default_rng([17, study])
    notes, degree = [], 7
    for bar in range(_N_BARS):
        root = _CHORDS[bar % len(_CHORDS)]
        for eighth in range(8):
            low = pitch(root + _FIGURES[key][eighth % 4], -1)
            notes.append(_Note(4 * bar + eighth / 2, 0.5, low, 52 + 10 * (eighth == 0)))
        beat = 0.0
        while beat < 4.0:
            length = float(rng.choice([0.5, 0.5, 1.0, 1.5]))
            length = min(length, 4.0 - beat)
            degree = int(np.clip(degree + rng.integers(-2, 3), 4, 16))
            tone = root + 2 * int(rng.integers(3)) + 7 if beat == 0.0 else degree
            notes.append(_Note(4 * bar + beat, length, pitch(tone, 0), int(rng.integers(68, 88))))
            beat += length
    return notes


def _perform(notes: Sequence[_Note], study: int, performance: Performance) -> list[_Note]:
    """Return notes with starts and lengths in seconds."""
    rng = np.random.default_rng([29, study, performance.take])
    beat_s = 60.0 / ((92 + 7 * (study // len(_FIGURES))) * performance.tempo)
    paces = 1.0 + performance.rubato * rng.standard_normal(2 * _N_BARS + 4)
    seconds = np.concatenate([[0.0], np.cumsum(np.repeat(paces, 2) * beat_s)])
    is_exact = performance.take == 0
    played = []
    for note in notes:
        start, end = np.interp([note.start, note.start + note.length], np.arange(len(seconds)), seconds)
        late = 0.0 if is_exact else 0.012 * rng.standard_normal()
        velocity = note.velocity + (0 if is_exact else round(8 * rng.standard_normal()))
        pitch = note.pitch + performance.semitones
        played.append(_Note(max(0.0, start + late), end - start, pitch, int(np.clip(velocity, 20, 120))))
    return played


def _midi(notes: Sequence[_Note]) -> bytes:
    """Return a MIDI file of notes in seconds."""
    events = [(note.start, 0x90, note.pitch, note.velocity) for note in notes]
    events += [(note.start + 0.98 * note.length, 0x80, note.pitch, 0) for note in notes]
    track, now = b"", 0
    for seconds, *message in sorted(events):
        ticks = round(seconds * _TICKS_PER_S)
        track += _variable(ticks - now) + bytes(message)
        now = ticks
    track += b"\x00\xff\x2f\x00"
    return b"MThd" + bytes([0, 0, 0, 6, 0, 0, 0, 1, _TICKS >> 8, _TICKS & 255]) + _chunk(b"MTrk", track)


def _chunk(name: bytes, data: bytes) -> bytes:
    return name + len(data).to_bytes(4, "big") + data


def _variable(value: int) -> bytes:
    """Return a number in MIDI's groups of seven bits."""
    groups = [value & 127]
    while value := value >> 7:
        groups.append(value & 127 | 128)
    return bytes(reversed(groups))
