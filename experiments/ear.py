"""A learned ear combined with Sound: how quality depends on the ear's share and the number of patches; the cost.

The ear is MusiCNN: the mean and maximum over time of its pooled channels, averaged over patches of three seconds. "as
AudioMuse-AI" is the layer before the tags with plain cosine distances, as that program uses it. "Sound and ear, share
w" joins both in one space in which the ear has the share w of the mean squared distance. The measures are those of
experiments.real_music, with mutual proximity over the nearest third. Leads are differences to "Sound" in the same set,
with 95 % intervals over the composers.

Sound is fitted on the pieces of the set only. Costs are CPU seconds in one run: the analysis of a file without a
network, and with the network on one of `every` patches.

The first set is the 312 pieces of experiments.real_music. A folder of music (``--music``) is the second set. There, the
artist tag is the composer, and the first folder is the package. ``--cache`` keeps the pieces, libraries and vectors.
The weights are read from the package musicnn in the folder ``data/experiments/ear``, unless ``--cache`` names another.
``--full`` adds all patches.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support.report import Claim, Progress, Settings, Skipped, at_least, at_most, main
from experiments.support import game_music
from experiments.support.game_music import FetchError
from experiments.support.pieces import MEASURES, Pieces, Scores, euclidean, labelled, scores, tagged, with_proximity
from experiments.support.timbre import app_models, constants_of
from musicsim._arrays import Float64Array
from musicsim.audio import analyse_sound
from musicsim.evaluation import bootstrap_pairs
from musicsim.explorer.refresh.refresh import refresh
from musicsim.extensions.embeddings import musicnn
from musicsim.extensions.embeddings.ear import EAR, REPRESENTATIONS
from musicsim.extensions.embeddings.onnx_models import OnnxModel, VectorRows, add_digest, append_vectors
from musicsim.library import Library

CACHE = game_music.CACHE.parent / "ear"
PACKAGE = "musicnn-0.1.0-py3-none-any.whl"
DOWNLOAD = "pip download --no-deps musicnn==0.1.0"
EVERY = {False: (3, 6, 12), True: (1, 3, 6, 12)}  # short protocol, full protocol
SHARES = (0.15, 0.25, 0.35, 0.5)
USUAL_EVERY, USUAL_SHARE = 6, 0.5
THIRD = 1 / 3
N_TIMED, N_REPEATS = 12, 2
MAX_COST = 1.0  # of the network, relative to the analysis

Row = dict[str, Any]


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    cache = settings.cache or CACHE
    package = cache / PACKAGE
    if not package.is_file():
        raise Skipped(f"{package} is missing. Run in its folder: {DOWNLOAD}")
    network = cache / "musicnn.onnx"
    network.write_bytes(musicnn.convert(package))
    rows: list[Row] = []
    for name, music in _sets(settings, cache, progress):
        with _library(cache / f"library-{name}", music, progress) as library:
            pieces = labelled(library, game_music.LABELS) if name == "first" else tagged(library, music)
            settings.facts[name] = f"{len(pieces)} pieces, {len(pieces.queries)} queries"
            rows += _quality_rows(library, pieces, name, network, settings, cache, progress)
            if name == "first":
                rows += _cost_rows(pieces, network, settings, progress)
    return rows, list(_claims(rows))


def _sets(settings: Settings, cache: Path, progress: Progress) -> Iterator[tuple[str, Path]]:
    """Yield the name and folder of each set; a set that cannot be fetched is left out, with the reason as a fact."""
    first = game_music.CACHE / "music" if settings.cache is None else cache / "music"
    try:
        game_music.fetch(first, progress)
        yield "first", first
    except FetchError as error:
        settings.facts["data"] = str(error)
    if settings.music is not None:
        yield "second", settings.music


@contextmanager
def _library(folder: Path, music: Path, progress: Progress) -> Iterator[Library]:
    with Library.open(folder) as library:
        progress(f"analyzing {music}")
        library.add(music)
        with constants_of(library, ()):
            refresh(library, force=True)
        yield library


def _quality_rows(
    library: Library, pieces: Pieces, name: str, network: Path, settings: Settings, cache: Path, progress: Progress
) -> list[Row]:
    ((_, sound),) = [item for item in app_models(library, pieces, others=False) if item[0] == "Sound"]
    found = {"Sound": scores(with_proximity(euclidean(sound), THIRD), pieces)}
    usual = OnnxModel.on_patches(network, "musicnn", "penultimate", USUAL_EVERY)
    penultimate = _vectors(library, pieces, usual, cache, progress)
    cosine = penultimate / np.linalg.norm(penultimate, axis=1, keepdims=True)
    found["MusiCNN as AudioMuse-AI"] = scores(euclidean(cosine), pieces)
    for every in EVERY[settings.full]:
        model = OnnxModel.on_patches(network, "musicnn", musicnn.OUTPUT, every)
        pools = _vectors(library, pieces, model, cache, progress)[:, : 2 * musicnn.N_POOLED]
        ear = standardize(pools)
        found[f"ear, 1 of {every} patches"] = scores(with_proximity(euclidean(ear), THIRD), pieces)
        for share in SHARES if every == USUAL_EVERY else (USUAL_SHARE,):
            joined = join(sound, ear, share)
            label = f"Sound and ear, share {share:g}, 1 of {every} patches"
            found[label] = scores(with_proximity(euclidean(joined), THIRD), pieces)
        progress(f"{name}: 1 of {every} patches")
    return [
        {"part": "quality", "set": name} | _row(what, of, found["Sound"], pieces, settings)
        for what, of in found.items()
    ]


def _vectors(library: Library, pieces: Pieces, model: OnnxModel, cache: Path, progress: Progress) -> Float64Array:
    """Return the network's vectors of the pieces; vectors of earlier runs are in the cache."""
    model = add_digest(model)
    width = 200 if model.output == "penultimate" else 2 * musicnn.N_POOLED + len(musicnn.TAGS)
    rows = VectorRows(cache / f"{model.key}.rows", width)
    songs = {song.content_hash: song.path for song in pieces.songs}
    started = time.monotonic()

    def show(message: str, done: int = 0, total: int = 0, /, **_: object) -> None:
        if done and done % 50 == 0:
            progress(f"{message}: {done} of {total} after {time.monotonic() - started:.0f} s")

    failures = list(append_vectors(library, model, rows, songs, show))
    if failures:
        raise Skipped(failures[0][2])
    return rows.select(songs)[1].astype(np.float64)


def standardize(pools: Float64Array) -> Float64Array:
    """Map features as the app does: standardized columns, rows of unit length."""
    kind = REPRESENTATIONS[EAR]
    assert kind.weights is not None
    features = pools.astype(np.float32)
    return kind.map(features, kind.weights.fit(features)).astype(np.float64)


def join(one: Float64Array, other: Float64Array, share: float) -> Float64Array:
    """Join two spaces so that the second has the given share of the mean squared distance."""
    parts = [np.sqrt(weight / X.var(axis=0).sum()) * X for weight, X in ((1 - share, one), (share, other))]
    return np.hstack(parts)


def _row(what: str, of: Scores, reference: Scores, pieces: Pieces, settings: Settings) -> Row:
    row: Row = {"what": what} | {measure: of.mean(measure) for measure in MEASURES} | {"skew": of.skew}
    for measure in MEASURES if of is not reference else ():
        groups = pieces.packages if measure == "package" else pieces.composers
        a, b = of.by_query[measure], reference.by_query[measure]
        mean, low, high = bootstrap_pairs(a, b, groups.tolist(), random_state=settings.seed)
        row[f"lead {measure}"] = f"{mean:+.3f} ({low:+.3f} to {high:+.3f})"
    return row


def _cost_rows(pieces: Pieces, network: Path, settings: Settings, progress: Progress) -> list[Row]:
    """Time the analysis of some files without and with the network, in this process, alternating."""
    rng = np.random.default_rng(settings.seed)
    paths = [pieces.songs[i].path for i in sorted(rng.permutation(len(pieces))[:N_TIMED].tolist())]
    variants: dict[str, tuple[OnnxModel, ...]] = {"analysis": ()}
    for every in EVERY[settings.full]:
        model = add_digest(OnnxModel.on_patches(network, "musicnn", musicnn.OUTPUT, every))
        variants[f"analysis and ear, 1 of {every} patches"] = (model,)
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


def _claims(rows: list[Row]) -> Iterator[Claim]:
    of = {(row.get("set"), row["what"]): row for row in rows}
    usual = f"Sound and ear, share {USUAL_SHARE:g}, 1 of {USUAL_EVERY} patches"
    for name in ("first", "second"):
        for measure in ("P@1", "P@5"):
            sound, joined = of.get((name, "Sound")), of.get((name, usual))
            lead = None if sound is None or joined is None else joined[measure] - sound[measure]
            yield at_least(f"{name} set: lead of both over Sound, {measure}", lead, 0.0)
    cost = of.get((None, f"analysis and ear, 1 of {USUAL_EVERY} patches"), {}).get("cost of the ear / analysis")
    yield at_most("cost of the ear, relative to the analysis", cost, MAX_COST)


if __name__ == "__main__":
    main("ear", __doc__.splitlines()[0], run, rivals=("onnxruntime", "onnx"), takes_music=True)
