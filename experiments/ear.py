"""A learned ear combined with Sound: how quality depends on the ear's share and the number of patches; the cost.

The ear is MusiCNN: the mean and maximum over time of its pooled channels, averaged over patches of three seconds.
"Sound and ear, share w" joins both in one space in which the ear has the share w of the mean squared distance. The
measures, sets, options and cache are those of experiments.real_music, which compares the usual share with other
programs. Leads are differences to "Sound" in the same set, with 95 % intervals over the composers. Whitening within
folders (WCCN) is learned without the folders of half of the composers, and judged on these.

Costs are CPU seconds in one run, on the first set: the analysis of a file without a network, and with the network on
one of `every` patches. Other programs analyze the same files. Musly's wheel has no decoder, so our decoder's time is
part of its cost. ``--full`` adds all patches.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.extraction import Bliss, start_analyzer
from benchmarks.support.columns import Column, KeptRows, Lines, Table, format_number, list_columns
from benchmarks.support.report import Claim, Progress, Settings, Skipped, at_least, at_most, main, race
from benchmarks.support.rival import RivalProcess
from experiments.support.ear_vectors import (
    USUAL_EVERY,
    USUAL_SHARE,
    join,
    patch_model,
    pooled_vectors,
    prepare_network,
    standardize,
)
from experiments.support.game_music import CACHE, FetchError
from experiments.support.halves import N_SPLITS, Gains, gain_row, halves, learned_gains, whiten
from experiments.support.music_sets import MusicSet, music_sets
from experiments.support.parts import Rows
from experiments.support.pieces import Pieces, Scores, euclidean, scores, with_proximity
from experiments.support.score_rows import list_scores, score_row
from experiments.support.sound_rivals import Musly
from experiments.support.timbre import sound_vectors
from musicsim._arrays import Float32Array, Float64Array
from musicsim.audio import SAMPLE_RATE, analyze_sound, load
from musicsim.audio.features import mel_levels
from musicsim.audio.spectral_shape import shape_rows
from musicsim.extensions.embeddings.musicnn import N_POOLED

EVERY = {False: (3, 6, 12), True: (1, 3, 6, 12)}  # short protocol, full protocol
SHARES = (0.15, 0.25, 0.35, 0.5)
N_TIMED, N_REPEATS = 20, 2
WHITENED_BY = 0.8  # shrinkage
ANALYSIS = "analysis"
MAX_COST = 0.6  # of the network, relative to the analysis


def run(settings: Settings, progress: Progress) -> tuple[Rows, list[Claim]]:
    cache = settings.cache or CACHE
    network = prepare_network(cache)
    rows: Rows = []
    names: list[str] = []
    try:
        for music in music_sets(settings, cache, progress):
            rows += _quality_rows(music, network, settings, cache, progress)
            if not names:
                rows += _cost_rows(music.pieces, network, settings, progress)
            names.append(music.name)
    except FetchError as error:
        raise Skipped(str(error)) from error
    return rows, list(_claims(rows, names))


def _quality_rows(music: MusicSet, network: Path, settings: Settings, cache: Path, progress: Progress) -> Rows:
    library, pieces = music.library, music.pieces
    sound = sound_vectors(library, pieces)
    spaces = {"Sound": sound}
    for every in EVERY[settings.full]:
        pools = pooled_vectors(library, pieces, network, every, cache, progress)
        ear = standardize(pools)
        spaces[f"ear, 1 of {every} patches"] = ear
        for share in SHARES if every == USUAL_EVERY else (USUAL_SHARE,):
            spaces[_joined_name(share, every)] = join(sound, ear, share)
        if every == USUAL_EVERY:
            spaces["Sound and the means of the ear's channels"] = join(
                sound, standardize(pools[:, :N_POOLED]), USUAL_SHARE
            )
        progress(f"{music.name}: 1 of {every} patches")
    found = {what: scores(with_proximity(euclidean(X)), pieces) for what, X in spaces.items()}
    rows = [
        {"part": "quality", "set": music.name} | score_row(what, of, found["Sound"], pieces, settings.seed)
        for what, of in found.items()
    ]
    usual = _joined_name(USUAL_SHARE, USUAL_EVERY)
    for name in ("Sound", usual):
        if gains := _gains_of_whitening(spaces[name], found[name], pieces, settings):
            row = gain_row("whitening", f"{name}, whitened within folders", gains, pieces, settings.seed)
            rows.append({"set": music.name} | row)
    return rows


def _gains_of_whitening(X: Float64Array, before: Scores, pieces: Pieces, settings: Settings) -> list[Gains]:
    """Return the gains for the composers of one half from whitening within folders without songs by them."""
    folders = np.array([f"{song.path.parent}" for song in pieces.songs])
    fit = partial(whiten, shrinkage=WHITENED_BY)
    splits = halves(pieces, N_SPLITS, settings.seed)
    known = (is_out for is_out in splits if (~np.isin(folders, folders[is_out])).any())
    return [learned_gains(X, before, folders, is_out, fit, pieces) for is_out in known]


def _joined_name(share: float, every: int) -> str:
    return f"Sound and ear, share {share:g}, 1 of {every} patches"


def _cost_rows(pieces: Pieces, network: Path, settings: Settings, progress: Progress) -> Rows:
    """Time the analysis of some files without and with the network, its spectral shape alone, and other programs."""
    rng = np.random.default_rng(settings.seed)
    paths = [pieces.songs[i].path for i in sorted(rng.permutation(len(pieces))[:N_TIMED].tolist())]
    ears = {_timed_name(every): (patch_model(network, every),) for every in EVERY[settings.full]}
    seconds: dict[str, float] = {}
    n_minutes = 0.0
    with ExitStack() as held:
        rivals: dict[str, RivalProcess] = {}
        for name, make, package in (("bliss", Bliss, "bliss-audio"), ("Musly", Musly, "pymusly")):
            rival, reason = start_analyzer(make, package, paths[0], held)
            if rival is None:
                progress(f"{name} is left out: {reason}")
            else:
                rivals[name] = rival
        for path in paths:
            samples = load(path)
            levels, _ = mel_levels(samples, SAMPLE_RATE)
            variants: dict[str, Callable[[], object]] = {
                ANALYSIS: partial(analyze_sound, path),
                "spectral shape, as part of it": partial(shape_rows, levels),
            }
            variants |= {what: partial(analyze_sound, path, networks=networks) for what, networks in ears.items()}
            variants["librosa's MFCC"] = partial(_mfcc_by_librosa, path)
            variants |= {name: partial(rival.call, "analyze", str(path)) for name, rival in rivals.items()}
            for what, value in race(variants, N_REPEATS).items():
                seconds[what] = seconds.get(what, 0.0) + value
            n_minutes += len(samples) / SAMPLE_RATE / 60
            progress(f"timed {path.name}")
    return [
        {
            "part": "cost", "what": what, "CPU s per minute": value / n_minutes,
            "relative to the analysis": value / seconds[ANALYSIS],
        }
        for what, value in seconds.items()
    ]  # fmt: skip


def _timed_name(every: int) -> str:
    return f"{ANALYSIS} and ear, 1 of {every} patches"


def _mfcc_by_librosa(path: Path) -> Float32Array:
    import librosa

    y, sr = librosa.load(path, sr=SAMPLE_RATE, mono=True)
    mfcc: Float32Array = librosa.feature.mfcc(y=y, sr=sr)
    return mfcc


def _claims(rows: Rows, names: list[str]) -> Iterator[Claim]:
    of = {(row.get("set"), row["what"]): row for row in rows}
    for name in names:
        for measure in ("P@1", "P@5"):
            lead = of[name, _joined_name(USUAL_SHARE, USUAL_EVERY)][measure] - of[name, "Sound"][measure]
            yield at_least(f"{name}: lead of both over Sound, {measure}", lead, 0.0)
    cost = of[None, _timed_name(USUAL_EVERY)]["relative to the analysis"] - 1
    yield at_most("cost of the ear, relative to the analysis", cost, MAX_COST)


# --- tables of the documents --------------------------------------------------------------------------------


def _tabulate(rows: KeptRows) -> Lines:
    yield from list_scores([row for row in rows if row["part"] == "quality"])


TABLES: dict[str, Table] = {
    "ear": _tabulate,
    "ear: cost": list_columns(
        Column("", "what"),
        Column("CPU seconds per minute of music", "CPU s per minute", partial(format_number, digits=2)),
        Column("relative to the analysis", "relative to the analysis", partial(format_number, digits=2)),
        where=lambda row: row["part"] == "cost",
    ),
}


if __name__ == "__main__":
    main(
        "ear", __doc__.splitlines()[0], run,
        rivals=("onnxruntime", "onnx", "librosa", "bliss-audio", "pymusly"), takes_library=True, takes_sets=True,
        short="without the ear on all patches. This is final, because the app uses one of six patches",
    )  # fmt: skip
