"""Robustness: how much do neighbors change if the query is compressed, noisy, louder, shifted, stretched or cut?

The middle minute of some songs is changed in every way and analyzed like an uploaded file. The app's ranking then
searches a library that contains the whole songs: the demo, and the sets of real music that ``--music`` names. Relevant
songs share the query's style (demo) or composer (real music). Measures of each model:

- found: share of the queries for which the song itself is the first result
- kept: share of the ten nearest other songs that are also nearest without the change
- P@1, P@5: share of relevant songs among the nearest other songs; the difference to the unchanged query is paired, with
  its 95 % interval over artists or composers

Models are the built-in ones, Sound and codeword histograms, fitted on the collection.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.libraries import demo_library
from benchmarks.support.report import Claim, Progress, Row, Settings, at_least, format_lead, main
from experiments.support.encoding import encode, encode_flac
from experiments.support.game_music import CACHE
from experiments.support.music_sets import fitted_copy, music_sets
from experiments.support.uci import one_core_each
from musicsim._arrays import Float32Array, Float64Array
from musicsim.audio import Sound, analyse_sound, load
from musicsim.evaluation import bootstrap_pairs
from musicsim.explorer.search.query import find_similar, make_example
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import Library, Song

RATE = 44100
QUERY_S, CUT_S = 60.0, 10.0
N_QUERIES = {False: 30, True: 300}
K = 10
UNCHANGED = "unchanged"


def add_noise(y: Float32Array, softer_db: float) -> Float32Array:
    """Add white noise that is this much softer than the sound."""
    noise = np.random.default_rng(0).standard_normal(len(y), np.float32)
    return y + np.float32(10 ** (-softer_db / 20) * np.sqrt(np.mean(y**2))) * noise


def shift_pitch(y: Float32Array, semitones: float) -> Float32Array:
    import librosa

    shifted: Float32Array = librosa.effects.pitch_shift(y, sr=RATE, n_steps=semitones)
    return shifted


def stretch(y: Float32Array, rate: float) -> Float32Array:
    import librosa

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
    "a semitone up": partial(shift_pitch, semitones=1),
    "two semitones down": partial(shift_pitch, semitones=-2),
    "5 % slower": partial(stretch, rate=0.95),
    "10 % faster": partial(stretch, rate=1.1),
    "10 s": partial(cut_middle, seconds=CUT_S),
}
KBPS = (128, 64, 32)


def changed_sounds(path: Path) -> dict[str, Sound]:
    """Analyze every changed version of the middle minute of a file."""
    y = cut_middle(load(path, sr=RATE), QUERY_S)
    files = {name: encode_flac(change(y)[np.newaxis], RATE) for name, change in CHANGES.items()}
    files |= {f"mp3 {kbps} kbit/s": encode(y[np.newaxis], RATE, "mp3", "libmp3lame", kbps) for kbps in KBPS}
    return {name: analyse_sound(data, name=name) for name, data in files.items()}


@dataclass(frozen=True, slots=True)
class Found:
    """The results of one query: whether the song itself is first, the nearest other songs, and which are relevant."""

    is_first: bool
    nearest: tuple[int, ...]
    is_relevant: tuple[bool, ...]


def search(library: Library, model_id: str, sound: Sound, song: Song, label_of: dict[int, str]) -> Found:
    """Search for changed sound of a song of the library."""
    snapshot = take_snapshot(library, model_id)
    example = make_example(snapshot, sound, "", song.title)
    ids = [hit.song.id for hit in find_similar(snapshot, example, K + 1, max_per_artist=None)]
    nearest = tuple(i for i in ids if i != song.id)[:K]
    # sound that equals that of the song is not searched for itself
    is_first = example.song_id == song.id or ids[0] == song.id
    return Found(is_first, nearest, tuple(label_of.get(i) == label_of[song.id] for i in nearest))


def table(name: str, model: str, found: dict[str, list[Found]], groups: Sequence[str], seed: int) -> list[Row]:
    """Return a row per change."""
    plain = found[UNCHANGED]
    rows: list[Row] = []
    for change, results in found.items():
        row: dict[str, Any] = {"set": name, "model": model, "change": change, "queries": len(results)}
        row["found"] = float(np.mean([one.is_first for one in results]))
        row["kept"] = float(
            np.mean([len(set(a.nearest) & set(b.nearest)) / K for a, b in zip(results, plain, strict=True)])
        )
        for n in (1, 5):
            ours, before = (_precision(some, n) for some in (results, plain))
            row[f"P@{n}"] = float(ours.mean())
            if change != UNCHANGED:
                mean, low, high = bootstrap_pairs(ours, before, groups, random_state=seed)
                row[f"difference P@{n}"] = format_lead(mean, low, high)
        rows.append(row)
    return rows


def _precision(found: Sequence[Found], n: int) -> Float64Array:
    return np.array([np.mean(one.is_relevant[:n]) for one in found])


def measure(
    name: str, library: Library, labels: dict[int, str], groups: dict[int, str], settings: Settings, progress: Progress
) -> list[Row]:
    """Measure every model of a library on queries whose label is shared by other songs."""
    counts = Counter(labels.values())
    candidates = [song for song in library.songs() if labels.get(song.id) and counts[labels[song.id]] > K // 2]
    chosen = np.random.default_rng(settings.seed).permutation(len(candidates))[: N_QUERIES[settings.full]]
    songs = [candidates[i] for i in sorted(chosen)]
    sounds: list[dict[str, Sound]] = []
    with one_core_each() as pool:
        for number, sound in enumerate(pool.map(changed_sounds, [song.path for song in songs]), start=1):
            sounds.append(sound)
            if number % 10 == 0:
                progress(f"{name}: {number} of {len(songs)} songs changed")
    rows: list[Row] = []
    for record in library.models.all():
        found = {
            change: [
                search(library, record.id, sound[change], song, labels)
                for song, sound in zip(songs, sounds, strict=True)
            ]
            for change in sounds[0]
        }
        rows += table(name, record.name, found, [groups[song.id] for song in songs], settings.seed)
    return rows


@contextmanager
def _demo_copy(seed: int, progress: Progress) -> Iterator[Library]:
    with demo_library(seed, progress) as library:
        folder = library.folder
    with fitted_copy(folder, progress) as library:
        yield library


def claims_of(rows: Sequence[Row]) -> list[Claim]:
    """Claim that usual files of a song find the song."""
    usual = ("mp3 128 kbit/s", "mp3 64 kbit/s", "gain -12 dB")
    return [
        at_least(f"{row['set']}, {row['model']}, {row['change']}: the song itself is first", row["found"], 0.95)
        for row in rows
        if row["change"] in usual
    ]


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Measure the demo and the sets that the command line names."""
    with _demo_copy(settings.seed, progress) as library:
        songs = library.songs()
        labels = {song.id: song.genre or "" for song in songs}
        artists = {song.id: song.artist or "" for song in songs}
        rows = measure("demo", library, labels, artists, settings, progress)
    for music in music_sets(settings, settings.cache or CACHE, progress) if settings.sets else ():
        composers = {song.id: str(name) for song, name in zip(music.pieces.songs, music.pieces.composers, strict=True)}
        rows += measure(music.name, music.library, composers, composers, settings, progress)
    return rows, claims_of(rows)


if __name__ == "__main__":
    main(
        "robustness", __doc__.splitlines()[0], run, takes_sets=True,
        short="30 of at most 300 queries per collection. The full form is worth running, because two misses "
        "among 30 queries already refute a claim",
    )  # fmt: skip
