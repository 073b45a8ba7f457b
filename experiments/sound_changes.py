"""Changes of Sound without a network: settings chosen on one set of music, and judged on the other.

Each change has a few settings. The one with the best sum of P@1, P@5 and within on the other sets is judged. Leads are
paired differences to Sound, with 95 % intervals over the composers, and all distances are adjusted by mutual proximity.
A change would be worth making if its lead excludes 0 on both sets. Every setting is in a row of its own, too.

- gate: frames this many dB below the loud passages of their song (95 % quantile) are left out of the timbre.
- unit length: vectors of fluctuation, or of all parts together, are centered and scaled to equal length, as those of
  timbre and of spectral shape are in Sound.
- axes: a signed power of the coordinates, or their normal scores.
- fluctuation: a power of the patterns.
- whitening: the shrinkage of timbre's variation within songs.
- spectral shape: its share of the mean squared distance, and the share of its variance that axes keep.
- constants: those of the other sets, in place of the shipped ones, counting as so many songs.
- earlier Sound: timbre vectors of any length and shrinkage .9, without spectral shape. It has a single setting.
- hub share: the share of nearest songs whose distances give the moments of hub reduction (a third in the app).

The settings of Sound are among those of whitening and of spectral shape, so the choice can confirm them.

Sets, options and cache are those of experiments.real_music; name two or more folders. Only stored features are read.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.support.columns import SHARE_2, Column, Table, drop_zeros, list_columns
from benchmarks.support.report import Claim, Progress, Settings, Skipped, main
from experiments.sound_prior import learn_prior
from experiments.support.game_music import CACHE
from experiments.support.music_sets import MusicSet, music_sets
from experiments.support.parts import Rows
from experiments.support.pieces import HUB_SHARE, Pieces, Scores, euclidean, scores, with_proximity
from experiments.support.score_rows import paired_interval, score_row
from experiments.support.timbre import join_parts, place_songs, scale_lengths
from musicsim import gaussians
from musicsim._arrays import Float64Array
from musicsim.audio import SongFrames
from musicsim.audio.features import N_MELS
from musicsim.explorer.models.representations import TIMBRE_SHRINKAGE
from musicsim.explorer.refresh.fitting import SongParts, parts_of
from musicsim.gaussians.prior import whole_songs
from musicsim.library.stores.song_gaussians import part_length

GATES = (30, 40, 50)
_CHOSEN_BY = ("P@1", "P@5", "within")
_MIN_FRAMES = 200  # of a part after the gate: 2.3 s


@dataclass(frozen=True, slots=True)
class Described:
    """Statistics of the pieces of a set: parts of each piece, by gate (0 for none), and whole fluctuation patterns."""

    name: str
    pieces: Pieces
    parts: list[SongParts]
    timbre: dict[int, list[gaussians.SongGaussians]]
    patterns: Float64Array


Setting = Callable[[Described, Sequence[Described]], Float64Array]
"""Distances of a set's pieces after hub reduction; the other sets are those to learn from."""


def fit_gated(frames: SongFrames, gate: float) -> gaussians.SongGaussians:
    """Return Gaussians of a song's parts without frames that are `gate` dB below its loud passages; short parts go."""
    level = np.asarray(frames.mfcc[:, 0], dtype=np.float64) / np.sqrt(N_MELS)
    is_loud = level >= np.quantile(level, 0.95) - gate
    rows, length = np.concatenate(list(frames.blocks())), part_length(len(frames))
    parts = [(rows[i : i + length], is_loud[i : i + length]) for i in range(0, len(rows), length)]
    loud = [part[chosen] for part, chosen in parts if np.count_nonzero(chosen) >= _MIN_FRAMES] or [rows[is_loud]]
    return gaussians.SongGaussians.concatenate([gaussians.fit_parts(part) for part in loud])


def take_power(X: Float64Array, power: float) -> Float64Array:
    """Return a signed power of the coordinates, with the deviation that each had."""
    Y = np.sign(X) * np.abs(X) ** power
    return Y * (X.std(axis=0) / Y.std(axis=0))


def normal_scores(X: Float64Array) -> Float64Array:
    """Return the normal scores of the coordinates, with the deviation that each had."""
    from scipy.special import ndtri

    ranks = X.argsort(axis=0, kind="stable").argsort(axis=0, kind="stable")
    result: Float64Array = ndtri((ranks + 0.5) / len(X)) * X.std(axis=0)
    return result


def _timbre(
    of: Described, gate: int = 0, prior: gaussians.Prior | None = None, shrinkage: float = TIMBRE_SHRINKAGE
) -> Float64Array:
    return scale_lengths(_any_timbre(of, gate, prior, shrinkage))


def _any_timbre(of: Described, gate: int, prior: gaussians.Prior | None, shrinkage: float) -> Float64Array:
    """Return timbre vectors of any length."""
    songs = of.timbre[gate]
    embedding, within = gaussians.fit_embedding(songs, prior and prior.frames)
    return place_songs(embedding.transform(whole_songs(songs)), within, prior and prior.timbre, shrinkage=shrinkage)


def _fluctuation(of: Described, power: float = 1.0, prior: gaussians.Prior | None = None) -> Float64Array:
    parts = [np.sign(part.fluctuation) * np.abs(part.fluctuation) ** power for part in of.parts]
    song_of = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    within = gaussians.pool_covariance(np.concatenate(parts), song_of)
    patterns = np.sign(of.patterns) * np.abs(of.patterns) ** power
    return place_songs(patterns, within, prior and prior.fluctuation)


def _shape(of: Described, prior: gaussians.Prior | None = None, variance: float = 0.95) -> Float64Array:
    shapes = gaussians.SongGaussians.concatenate([part.shape for part in of.parts])
    embedding = gaussians.GaussianEmbedding(prior=prior and prior.spectra).fit(shapes)
    return scale_lengths(place_songs(embedding.transform(shapes), None, prior and prior.shape, variance=variance))


def _adjusted(X: Float64Array, share: float = HUB_SHARE) -> Float64Array:
    return with_proximity(euclidean(X), share)


def of_sound(of: Described, _others: Sequence[Described], share: float = HUB_SHARE) -> Float64Array:
    """Return the distances of Sound; `share` is that of the hub reduction."""
    return _adjusted(join_parts(_timbre(of), _fluctuation(of), _shape(of)), share)


def _gated(of: Described, _others: Sequence[Described], gate: int) -> Float64Array:
    return _adjusted(join_parts(_timbre(of, gate), _fluctuation(of), _shape(of)))


def _unit(of: Described, _others: Sequence[Described], which: str) -> Float64Array:
    fluctuation = _fluctuation(of)
    if which == "fluctuation":
        fluctuation = scale_lengths(fluctuation)
    X = join_parts(_timbre(of), fluctuation, _shape(of))
    return _adjusted(scale_lengths(X - X.mean(axis=0)) if which == "all together" else X)


def _axes(of: Described, _others: Sequence[Described], change: Callable[[Float64Array], Float64Array]) -> Float64Array:
    return _adjusted(join_parts(*(change(part(of)) for part in (_timbre, _fluctuation, _shape))))


def _pattern_power(of: Described, _others: Sequence[Described], power: float) -> Float64Array:
    return _adjusted(join_parts(_timbre(of), _fluctuation(of, power), _shape(of)))


def _whitened(of: Described, _others: Sequence[Described], shrinkage: float) -> Float64Array:
    return _adjusted(join_parts(_timbre(of, shrinkage=shrinkage), _fluctuation(of), _shape(of)))


def _shape_share(of: Described, _others: Sequence[Described], share: float) -> Float64Array:
    return _adjusted(join_parts(_timbre(of), _fluctuation(of), _shape(of), share=share))


def _shape_axes(of: Described, _others: Sequence[Described], variance: float) -> Float64Array:
    return _adjusted(join_parts(_timbre(of), _fluctuation(of), _shape(of, variance=variance)))


def _earlier(of: Described, _others: Sequence[Described]) -> Float64Array:
    return _adjusted(join_parts(_any_timbre(of, 0, None, 0.9), _fluctuation(of)))


def _constants(of: Described, others: Sequence[Described], n_songs: float) -> Float64Array:
    prior = learn_prior([song for other in others for song in other.parts], n_songs)
    return _adjusted(join_parts(*(part(of, prior=prior) for part in (_timbre, _fluctuation, _shape))))


CHANGES: dict[str, dict[str, Setting]] = {
    "gate": {f"{gate} dB": partial(_gated, gate=gate) for gate in GATES},
    "unit length": {which: partial(_unit, which=which) for which in ("fluctuation", "all together")},
    "axes": {
        **{f"power {power}": partial(_axes, change=partial(take_power, power=power)) for power in (0.5, 0.7)},
        "normal scores": partial(_axes, change=normal_scores),
    },
    "fluctuation": {f"power {power}": partial(_pattern_power, power=power) for power in (0.5, 0.7)},
    "whitening": {f"shrinkage {by}": partial(_whitened, shrinkage=by) for by in (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)},
    "spectral shape": {f"share {share}": partial(_shape_share, share=share) for share in (0.0, 0.2, 0.35, 0.5)},
    "axes of spectral shape": {f"{of}": partial(_shape_axes, variance=of) for of in (0.7, 0.8, 0.9, 0.95)},
    "constants": {f"{n} songs": partial(_constants, n_songs=float(n)) for n in (60, 300, 1_000_000)},
    "earlier Sound": {"version 3 of the audio features": _earlier},
    "hub share": {f"{share}": partial(of_sound, share=share) for share in (0.1, 0.15, 0.2, 0.25, 0.5)},
}


def choose(found: Sequence[dict[str, Scores]]) -> str:
    """Return the setting with the best sum of measures over some sets."""
    return max(found[0], key=lambda setting: sum(of[setting].mean(m) for of in found for m in _CHOSEN_BY))


def run(settings: Settings, progress: Progress) -> tuple[Rows, list[Claim]]:
    if len(settings.sets) < 2:
        raise Skipped("Name two or more folders by --music: one to choose settings on, and another to judge them.")
    sets = [describe(music, progress) for music in music_sets(settings, settings.cache or CACHE, progress)]
    others = [[other for other in sets if other is not of] for of in sets]
    before = [scores(of_sound(of, ()), of.pieces) for of in sets]
    rows: Rows = [
        {"set": of.name} | score_row("Sound", found, found, of.pieces, settings.seed)
        for of, found in zip(sets, before, strict=True)
    ]
    claims: list[Claim] = []
    for change, ways in CHANGES.items():
        found = [
            {name: scores(setting(of, rest), of.pieces) for name, setting in ways.items()}
            for of, rest in zip(sets, others, strict=True)
        ]
        leads: list[float] = []
        for i, of in enumerate(sets):
            chosen = choose([known for j, known in enumerate(found) if j != i])
            for name, score in found[i].items():
                row = {"set": of.name, "change": change, "setting": name, "is chosen": name == chosen}
                rows.append(row | score_row(f"{change}: {name}", score, before[i], of.pieces, settings.seed))
            ours, sound = found[i][chosen].by_query["P@1"], before[i].by_query["P@1"]
            interval = paired_interval(ours, sound, of.pieces, "P@1", settings.seed)
            leads.append(interval[1] if interval else float("nan"))
        least = min(leads)
        claims.append(Claim(f"{change}: low end of the lead in P@1, worst set", least, "above 0", least > 0))
        progress(change)
    return rows, claims


def describe(music: MusicSet, progress: Progress) -> Described:
    """Read the stored features of a set; the models of its library are not used."""
    library, pieces = music.library, music.pieces
    timbre: dict[int, list[gaussians.SongGaussians]] = {gate: [] for gate in (0, *GATES)}
    parts, patterns = [], []
    for song in pieces.songs:
        frames = library.frame_files.frames(song.content_hash)
        parts.append(parts_of(frames))
        timbre[0].append(parts[-1].timbre)
        for gate in GATES:
            timbre[gate].append(fit_gated(frames, gate))
        patterns.append(frames.mean_fluctuation.astype(np.float64))
    progress(f"{music.name}: read {len(pieces)} pieces")
    return Described(music.name, pieces, parts, timbre, np.array(patterns))


# --- tables of the documents --------------------------------------------------------------------------------


TABLES: dict[str, Table] = {
    "sound_changes": list_columns(
        Column("set", lambda row: row["set"].removeprefix("set ")),
        Column("", "what", drop_zeros),
        *(Column(measure, measure, SHARE_2) for measure in _CHOSEN_BY),
        Column("skewness", "skew", SHARE_2),
        *(Column(f"lead in {measure} over *Sound*", f"lead {measure}", drop_zeros) for measure in _CHOSEN_BY[:2]),
        where=lambda row: bool(row.get("is chosen", True)),  # Sound itself is not a change
    )
}


if __name__ == "__main__":
    main("sound_changes", __doc__.splitlines()[0], run, takes_sets=True)
