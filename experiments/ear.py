"""A learned ear combined with Sound: how quality depends on the ear's share and the number of patches; the cost.

The ear is MusiCNN: the mean and maximum over time of its pooled channels, averaged over patches of three seconds.
"Sound and ear, share w" joins both in one space in which the ear has the share w of the mean squared distance. The
measures, sets, options and cache are those of experiments.real_music, which compares the usual share with other
programs. Leads are differences to "Sound" in the same set, with 95 % intervals over the composers.

Costs are CPU seconds in one run, on the first set: the analysis of a file without a network, and with the network on
one of `every` patches. ``--full`` adds all patches.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.support.report import Claim, Progress, Settings, Skipped, at_least, at_most, main
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
from experiments.support.music_sets import MusicSet, music_sets
from experiments.support.parts import Rows
from experiments.support.pieces import Pieces, euclidean, scores, with_proximity
from experiments.support.score_rows import score_row
from experiments.support.timbre import sound_vectors
from musicsim.audio import analyse_sound
from musicsim.extensions.embeddings.onnx_models import OnnxModel

EVERY = {False: (3, 6, 12), True: (1, 3, 6, 12)}  # short protocol, full protocol
SHARES = (0.15, 0.25, 0.35, 0.5)
N_TIMED, N_REPEATS = 12, 2
MAX_COST = 1.0  # of the network, relative to the analysis


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
        ear = standardize(pooled_vectors(library, pieces, network, every, cache, progress))
        spaces[f"ear, 1 of {every} patches"] = ear
        for share in SHARES if every == USUAL_EVERY else (USUAL_SHARE,):
            spaces[_joined_name(share, every)] = join(sound, ear, share)
        progress(f"{music.name}: 1 of {every} patches")
    found = {what: scores(with_proximity(euclidean(X)), pieces) for what, X in spaces.items()}
    return [
        {"part": "quality", "set": music.name} | score_row(what, of, found["Sound"], pieces, settings.seed)
        for what, of in found.items()
    ]


def _joined_name(share: float, every: int) -> str:
    return f"Sound and ear, share {share:g}, 1 of {every} patches"


def _cost_rows(pieces: Pieces, network: Path, settings: Settings, progress: Progress) -> Rows:
    """Time the analysis of some files without and with the network, in this process, alternating."""
    rng = np.random.default_rng(settings.seed)
    paths = [pieces.songs[i].path for i in sorted(rng.permutation(len(pieces))[:N_TIMED].tolist())]
    variants: dict[str, tuple[OnnxModel, ...]] = {"analysis": ()}
    for every in EVERY[settings.full]:
        variants[f"analysis and ear, 1 of {every} patches"] = (patch_model(network, every),)
    seconds = dict.fromkeys(variants, 0.0)
    n_minutes = 0.0
    for path in paths:
        best = dict.fromkeys(variants, np.inf)
        for _ in range(1 + N_REPEATS):
            for what, networks in variants.items():
                started = time.process_time()
                sound = analyse_sound(path, networks=networks)
                best[what] = min(best[what], time.process_time() - started)
        n_minutes += sound.duration_s / 60
        for what, value in best.items():
            seconds[what] += value
        progress(f"timed {path.name}")
    return [
        {
            "part": "cost", "what": what, "CPU s per minute": value / n_minutes,
            "cost of the ear / analysis": value / seconds["analysis"] - 1,
        }
        for what, value in seconds.items()
    ]  # fmt: skip


def _claims(rows: Rows, names: list[str]) -> Iterator[Claim]:
    of = {(row.get("set"), row["what"]): row for row in rows}
    for name in names:
        for measure in ("P@1", "P@5"):
            lead = of[name, _joined_name(USUAL_SHARE, USUAL_EVERY)][measure] - of[name, "Sound"][measure]
            yield at_least(f"{name}: lead of both over Sound, {measure}", lead, 0.0)
    cost = of[None, f"analysis and ear, 1 of {USUAL_EVERY} patches"]["cost of the ear / analysis"]
    yield at_most("cost of the ear, relative to the analysis", cost, MAX_COST)


if __name__ == "__main__":
    main(
        "ear", __doc__.splitlines()[0], run, rivals=("onnxruntime", "onnx"), takes_library=True, takes_sets=True,
        short="without the ear on all patches. This is final, because the app uses one of six patches",
    )  # fmt: skip
