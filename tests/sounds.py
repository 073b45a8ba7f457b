"""Small songs for tests: three kinds of sound that neither people nor features confuse."""

from pathlib import Path

import mutagen
import numpy as np
import soundfile

from musicsim.library import Library

SAMPLE_RATE = 22050
KINDS = ("tones", "noise", "clicks")


def sound(kind: str, seed: int, seconds: float = 4.0) -> np.ndarray:
    """Return mono samples: a few harmonic tones, filtered noise, or clicks; the seed varies them."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    if kind == "tones":
        pitches = 220 * 2 ** (rng.integers(0, 12, max(1, int(4 * seconds))) / 12)
        pitch = np.repeat(pitches, -(-len(t) // len(pitches)))[: len(t)]
        phase = 2 * np.pi * np.cumsum(pitch) / SAMPLE_RATE
        y = sum(np.sin(h * phase) / h for h in range(1, 5))
    elif kind == "noise":
        y = np.convolve(rng.standard_normal(len(t)), np.ones(8) / 8, mode="same")
        y *= 0.6 + 0.4 * np.sin(2 * np.pi * rng.uniform(0.5, 2) * t)
    else:
        y = np.zeros(len(t))
        y[:: int(SAMPLE_RATE / rng.uniform(6, 9))] = 1.0
        y = np.convolve(y, np.exp(-np.arange(300) / 60), mode="same") + 1e-3 * rng.standard_normal(len(t))
    return (0.5 * y / np.abs(y).max()).astype(np.float32)


def melody(
    seed: int,
    *,
    rate: float = 1.0,
    semitones: float = 0.0,
    jitter_s: float = 0.0,
    drums: float = 0.0,
    seconds: float = 30.0,
) -> np.ndarray:
    """Return four notes per second and drum hits. Sounds with one seed differ only in tempo, pitch and timing."""
    rng = np.random.default_rng(seed)
    n_notes = int(4 * seconds)
    pitches = 220 * 2 ** ((rng.integers(0, 20, n_notes) + semitones) / 12)
    levels, hits = rng.uniform(0.2, 1.0, n_notes), rng.random(n_notes) < 0.6
    noise = rng.standard_normal((n_notes, 2000)) * np.exp(-np.arange(2000) / 300)
    late = jitter_s * np.random.default_rng(seed + 1000).standard_normal(n_notes)
    t = np.arange(SAMPLE_RATE // 3) / SAMPLE_RATE
    y = np.zeros(int((seconds / rate + 1) * SAMPLE_RATE))
    for n, pitch in enumerate(pitches):
        start = int(max(0.0, n / 4 / rate + late[n]) * SAMPLE_RATE)
        tone = sum(np.sin(2 * np.pi * h * pitch * t) / h for h in range(1, 5))
        y[start : start + len(t)] += levels[n] * np.exp(-8 * t) * tone
        y[start : start + 2000] += drums * hits[n] * noise[n]
    return (0.3 * y / np.abs(y).max()).astype(np.float32)


def write_duplicates(folder: Path) -> Path:
    """Write six melodies; the first also at half the volume in Ogg, transposed, faster, and played again."""
    folder.mkdir(parents=True)
    for n in range(6):
        soundfile.write(folder / f"melody {n}.flac", melody(n), SAMPLE_RATE)
    soundfile.write(folder / "copy.ogg", 0.5 * melody(0), SAMPLE_RATE)
    for name, change in {"higher": {"semitones": 1}, "faster": {"rate": 1.02}, "again": {"jitter_s": 0.015}}.items():
        soundfile.write(folder / f"{name}.flac", melody(0, **change), SAMPLE_RATE)
    return folder


def write_song(path: Path, kind: str = "tones", seed: int = 0, seconds: float = 4.0, **tags: str) -> Path:
    """Write one song; the suffix selects the format; tags use mutagen's easy names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, sound(kind, seed, seconds), SAMPLE_RATE)
    if tags:
        audio = mutagen.File(path, easy=True)
        if audio.tags is None:
            audio.add_tags()
        for name, value in tags.items():
            audio[name] = value
        audio.save()
    return path


def open_library(folder: Path) -> Library:
    """Open a library that accepts songs of one second; by default songs need 20 s."""
    library = Library.open(folder)
    library.set_setting("shortest_s", 1.0)
    return library


def write_collection(folder: Path, n_songs: int = 4, seconds: float = 4.0) -> Path:
    """Write three artists, one per kind of sound, with full tags; `n_songs` each, in FLAC."""
    for a, kind in enumerate(KINDS):
        for s in range(n_songs):
            write_song(
                folder / f"Artist {kind}" / f"{s + 1:02d} Song {kind} {s}.flac",
                kind,
                seed=100 * a + s,
                seconds=seconds,
                title=f"Song {kind} {s}",
                artist=f"Artist {kind}",
                album=f"Album {kind}",
                tracknumber=str(s + 1),
                date=str(1970 + 10 * a + s),
                genre=f"Genre {kind}",
            )
    return folder


def stored_files(library):
    """Return all files of a library's folder, except the log and the locks of unpacking."""
    files = (path.relative_to(library.folder) for path in library.folder.rglob("*") if path.is_file())
    kept = (file for file in files if file.parts[0] != "logs")
    return sorted(file for file in kept if file.parts[0] != "scratch" or file.suffix != ".lock")
