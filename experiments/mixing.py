"""Fades on the beat: do the beats of two songs coincide more often in a mix than with plain crossfades?

- drum loops: kick, snare and hat of the demo collection's kits, with random tempos and starts. The second tempo is
  within 7 % of the first one, or of its half or double.
- demo: composed songs with a beat. Their beats are known, and off-beats, swing and pauses make them hard to find. Pairs
  are those whose true tempos are within 7 %, or within 7 % of half or double.

A fade coincides if the median distance between true beats is at most 35 ms. Each beat of the slower song is compared
with the nearest beat of the faster one, during the fade and at its tempo. With a plain crossfade, this
happens by chance. *On the beat* is the share of fades for which both grids of beats were found; the others are
crossfades, too.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import soxr

from benchmarks.support.columns import SHARE_2, Column, KeptRow, Table, list_columns
from benchmarks.support.report import Claim, Progress, Settings, at_least, main
from experiments.audible import WITHOUT_BEAT
from musicsim._arrays import Float32Array, Float64Array
from musicsim.audio import SAMPLE_RATE, estimate_tempo, rhythm
from musicsim.demo import SAMPLE_RATE as RATE
from musicsim.demo import plan_collection, render
from musicsim.demo.drums import KITS, play_drum
from musicsim.demo.styles import STYLES
from musicsim.extensions.mixtape.excerpts import Excerpt
from musicsim.extensions.mixtape.fades import Fade, Mixer

NEAR = 1.07
COINCIDE_S = 0.035
N_LOOPS, N_SONG_PAIRS = 60, 100
WAYS = {"plain crossfade, 4 s": None, "on the beat, 8 beats": 8, "on the beat, 16 beats": 16}
PATTERNS = {"kick": (0, 8), "snare": (4, 12), "hat": tuple(range(0, 16, 2))}  # sixteenth notes of a bar


@dataclass(frozen=True)
class Material:
    """A sound (2, n) with its true beats at ``first_s + k * 60 / tempo``."""

    samples: Float32Array
    tempo: float
    first_s: float = 0.0

    def excerpt(self) -> Excerpt:
        """Return the whole sound, with the tempo that a library would store for it."""
        mono = soxr.resample(self.samples.mean(axis=0), RATE, SAMPLE_RATE)
        return Excerpt(self.samples, 0.0, estimate_tempo(rhythm(mono)))


def drum_loop(tempo: float, rng: np.random.Generator, seconds: float = 24.0) -> Material:
    """Return bars of kick, snare and hat that start at a random time."""
    kit = KITS[str(rng.choice(list(KITS)))]
    first_s = float(rng.uniform(0.05, 1.0))
    y = np.zeros(round((seconds + 1) * RATE), np.float32)
    for drum, steps in PATTERNS.items():
        hit = play_drum(kit, drum, seed=int(rng.integers(1000)))
        for bar in range(int((seconds - first_s) * tempo / 240) + 1):
            for step in steps:
                start = round((first_s + (16 * bar + step) * 15 / tempo) * RATE)
                if start < seconds * RATE:
                    y[start : start + len(hit)] += hit[: len(y) - start]
    y = 0.3 * y[: round(seconds * RATE)]
    return Material(np.stack([y, y]), tempo, first_s)


def fold(ratio: float) -> float:
    """Return a ratio of tempos, multiplied by the power of two that makes it most similar to 1."""
    return float(ratio * 2.0 ** -round(np.log2(ratio)))


def is_near(tempo: float, other: float) -> bool:
    """Return whether two tempos are similar, up to octaves."""
    return 1 / NEAR <= fold(other / tempo) <= NEAR


def beats_during(material: Material, part: tuple[float, float], fade: Fade) -> Float64Array:
    """Return the true beats in a part of a song, in seconds of the mix."""
    period = 60 / material.tempo
    k = np.arange(np.ceil((part[0] - material.first_s) / period), (part[1] - material.first_s) / period)
    share = (material.first_s + k * period - part[0]) / (part[1] - part[0])
    return np.asarray(fade.start_s + share * fade.duration_s, np.float64)


def measure(first: Material, second: Material, n_beats: int | None) -> tuple[Fade, float]:
    """Mix two sounds; return the fade and the median distance of its beats in seconds."""
    mixer = Mixer(lambda samples: None, RATE, 4 * RATE, n_beats)
    for material in (first, second):
        mixer.add(material.excerpt())
    (fade,) = mixer.fades
    beats = [beats_during(m, part, fade) for m, part in ((first, fade.out_s), (second, fade.in_s))]
    slow, fast = sorted(beats, key=len)
    return fade, float(np.median(np.abs(slow[:, None] - fast).min(axis=1)))


def _loops(settings: Settings, rng: np.random.Generator) -> Iterator[tuple[Material, Material]]:
    for _ in range(N_LOOPS):
        tempo = float(np.exp(rng.uniform(np.log(85), np.log(150))))
        other = tempo * NEAR ** rng.uniform(-1, 1) * float(rng.choice([0.5, 1.0, 1.0, 2.0]))
        yield drum_loop(tempo, rng), drum_loop(other, rng)


def _songs(settings: Settings, rng: np.random.Generator) -> Iterator[tuple[Material, Material]]:
    styles = [style.name for style in STYLES if style.name not in WITHOUT_BEAT]
    plans = plan_collection(n_artists_per_style=4, n_songs_per_artist=1, styles=styles, seed=settings.seed)
    songs = [Material(np.ascontiguousarray(render(plan).T), plan.tempo) for plan in plans]
    pairs = [(a, b) for a in songs for b in songs if a is not b and is_near(a.tempo, b.tempo)]
    for i in rng.permutation(len(pairs))[:N_SONG_PAIRS]:
        yield pairs[i]


def run(settings: Settings, progress: Progress) -> tuple[list[dict[str, Any]], list[Claim]]:
    """Mix all pairs in every way."""
    rows: list[dict[str, Any]] = []
    for name, pairs in (("drum loops", _loops), ("demo, with a beat", _songs)):
        made = list(pairs(settings, np.random.default_rng(settings.seed)))
        for way, n_beats in WAYS.items():
            found = [measure(*pair, n_beats) for pair in made]
            errors = np.array([error for _, error in found])
            is_on = np.array([fade.n_beats > 0 for fade, _ in found])
            rows.append({
                "material": name, "way": way, "fades": len(found), "on the beat": float(is_on.mean()),
                "coincide": float((errors <= COINCIDE_S).mean()),
                "coincide, on the beat": float((errors[is_on] <= COINCIDE_S).mean()) if is_on.any() else None,
                "median distance, ms": float(1000 * np.median(errors)),
                "median distance on the beat, ms": float(1000 * np.median(errors[is_on])) if is_on.any() else None,
            })  # fmt: skip
            progress(f"{name}, {way}")
    return rows, list(_claims(rows))


def _claims(rows: list[dict[str, Any]]) -> Iterator[Claim]:
    plain = {row["material"]: row["coincide"] for row in rows if not row["on the beat"]}
    for row in rows:
        name = f"{row['material']}, {row['way']}"
        if row["coincide, on the beat"] is not None:
            goal = 0.9 if row["material"] == "drum loops" else 0.6
            yield at_least(f"share of the fades on the beat that coincide, {name}", row["coincide, on the beat"], goal)
        if row["on the beat"] and row["material"] == "drum loops":
            yield at_least(f"share of fades that coincide, {name}", row["coincide"], 0.9)
        elif row["on the beat"]:
            gain = round(row["coincide"] - plain[row["material"]], 9)  # shares of 100 fades, without rounding errors
            yield at_least(f"share of fades that coincide, minus that of plain crossfades, {name}", gain, 0.25)


# --- tables of the documents --------------------------------------------------------------------------------


def _describe_distance(row: KeptRow) -> str:
    of_all, on_beat = row["median distance, ms"], row["median distance on the beat, ms"]
    return f"{of_all:.0f}" if on_beat is None else f"{of_all:.0f}; on the beat {on_beat:.0f}"


TABLES: dict[str, Table] = {
    "mixing": list_columns(
        Column("material", "material"),
        Column("fade", "way"),
        Column("fades", "fades"),
        Column("share on the beat", "on the beat", SHARE_2),
        Column("share that coincides", "coincide", SHARE_2),
        Column("the same, of those on the beat", "coincide, on the beat", SHARE_2),
        Column("median distance (ms)", _describe_distance),
    )
}


if __name__ == "__main__":
    main("mixing", __doc__.splitlines()[0], run, rivals=("librosa",))
