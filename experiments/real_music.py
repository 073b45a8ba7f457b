"""Search in real music: how often the nearest pieces are by the same composer, for our models and others.

P@1 and P@5 are the shares of pieces by the same composer among the nearest and the five nearest, for composers with
five or more pieces. A third score is whether the nearest is from the same package, for all pieces. "Within" is for
composers that share a package with others: whether the nearest piece of the package is by the same composer. It is
independent of mastering, which a package may have in common. Skew is that of the 10-occurrence. Distances are adjusted
by mutual proximity over the nearest third; "all" is over all pieces, as in the app before it had Sound.

"Sound" is fitted on the pieces of a set only. The constants that ship with the program were learned from the 312
pieces, so the row with them is not an evaluation. Leads are paired. Intervals (95 %) are over the composers. There are
few composers, so intervals are wide, and two of them can decide a score.

- Peers, on every set: Sound, two earlier forms of it, Sound joined with MusiCNN in equal shares, and other programs.
  Leads are over Sound. "MusiCNN as AudioMuse-AI" is the mean of the layer before the tags, with plain cosine distances;
  "pooled channels" is the ear of the joint space alone. Both are of one of six patches. Musly describes whole files and
  adjusts its own distances. A program that is not installed is left out, by name.
- Models, on the first set: ablations of Sound, and rivals. Leads are over "Codewords, all", the app's earlier model.
- Nested choice, on the first set: the best model by the mean of P@1, P@5 and within is chosen on half of the
  composers. Its lead is measured on the other half, over many halves. This removes the bias of choosing the best of
  many on the same pieces.

Sets: folders of music (``--music``, once for each), or a library (``--library``, which is copied), or else 312 pieces
of Debian's game packages, which are fetched. Labels: ``--labels``, a CSV with the columns path, label (the composer)
and package. Those of the 312 pieces ship with the program; in other folders, the artist tag is the composer, and the
first folder is the package. ``--cache`` keeps the pieces and everything computed from their files, so that an
interrupted run resumes. MusiCNN's weights are read from its package in the same folder, ``data/experiments/real_music``
by default: ``pip download --no-deps musicnn==0.1.0``. ``--full`` adds models.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.support.columns import KeptRows, Lines, Table, drop_zeros, find_row, format_share, shorten_lead
from benchmarks.support.report import Claim, Progress, Settings, at_least, at_most, digest, main
from experiments.support.ear_vectors import PACKAGE
from experiments.support.game_music import CACHE, FetchError
from experiments.support.halves import nested_rows
from experiments.support.music_sets import MusicSet, music_sets
from experiments.support.parts import Rows
from experiments.support.peers import BOTH, SOUND, peer_scores
from experiments.support.pieces import Scores, euclidean, scores, with_proximity
from experiments.support.score_rows import list_scores, score_row
from experiments.support.sound_rivals import rival_distances
from experiments.support.timbre import ablations, app_models
from musicsim._arrays import Float64Array

ALL = 1.0
BEFORE = "Codewords, all"
GOALS = {"P@1": 0.72, "P@5": 0.59, "package": 0.62, "within": 0.80}
MAX_SKEW = 0.2


def run(settings: Settings, progress: Progress) -> tuple[Rows, list[Claim]]:
    """Measure every row; if the pieces are unavailable, one sentence says why."""
    cache = settings.cache or CACHE
    settings.inputs["musicnn"] = digest(cache / PACKAGE)
    rows: Rows = []
    claims: list[Claim] = []
    try:
        for number, music in enumerate(music_sets(settings, cache, progress)):
            if number == 0:
                models = _model_rows(music, settings, cache, progress)
                claims += _model_claims(models)
                rows += models
            found, missing = peer_scores(music, cache, progress)
            about = {"part": "peers", "set": music.name}
            rows += [
                about | score_row(name, of, found[SOUND], music.pieces, settings.seed) for name, of in found.items()
            ]
            rows += [about | {"what": said} for said in missing]
            claims += _peer_claims(music.name, found)
    except FetchError as error:
        settings.facts["data"] = str(error)
        return [], [at_least("Sound: P@1", None, GOALS["P@1"])]
    return rows, claims


def _model_rows(music: MusicSet, settings: Settings, cache: Path, progress: Progress) -> Rows:
    found: dict[str, Scores] = {}
    missing: Rows = []
    for name, D, said in _distances(music, settings, cache, progress):
        if D is None:
            missing.append({"part": "models", "what": f"{name}: {said}"})
            continue
        what = f"{name} ({said})" if said else name
        found[f"{what}, all"] = scores(with_proximity(D, ALL), music.pieces)
        found[what] = scores(with_proximity(D), music.pieces)
        progress(what)
    rows = [
        {"part": "models"} | score_row(name, of, found[BEFORE], music.pieces, settings.seed)
        for name, of in found.items()
    ]
    return [*rows, *missing, *nested_rows(found, BEFORE, music.pieces, settings)]


def _distances(
    music: MusicSet, settings: Settings, cache: Path, progress: Progress
) -> Iterator[tuple[str, Float64Array | None, str]]:
    for name, X in app_models(music.library, music.pieces, others=settings.full):
        yield name, euclidean(X), ""
    for name, X in ablations(music.library, music.pieces):
        yield name, euclidean(X), ""
    yield from rival_distances(music.library, music.pieces, cache / "rivals", progress)


def _model_claims(rows: Rows) -> Iterator[Claim]:
    sound = next(row for row in rows if row["what"] == "Sound")
    for measure, goal in GOALS.items():
        yield at_least(f"Sound: {measure}", sound[measure], goal)
    yield at_most("Sound: skew", sound["skew"], MAX_SKEW)


def _peer_claims(name: str, found: dict[str, Scores]) -> Iterator[Claim]:
    """Claim that both together find more pieces of the same composer than Sound alone and every other program."""
    for measure in ("P@1", "P@5"):
        best = max(of.mean(measure) for what, of in found.items() if what != BOTH)
        lead = found[BOTH].mean(measure) - best if BOTH in found else None
        yield at_least(f"{name}: lead of {BOTH} over the best other, {measure}", lead, 0.0)


# --- tables of the documents --------------------------------------------------------------------------------


def _tabulate_leads(rows: KeptRows) -> Lines:
    measures = {"P@1": "nearest song", "P@5": "five nearest songs", "within": "nearest song, within the package"}
    yield "lead of Sound over codewords", *measures.values()
    for said, row in {
        "settings chosen on all recordings": find_row(rows, part="models", what="Sound"),
        "settings chosen on the other half of the composers": find_row(rows, part="nested choice"),
    }.items():
        yield said, *(shorten_lead(row[f"lead {measure}"]) for measure in measures)


_PIECES = {
    "Codewords, all": "Codewords with moments of all songs (an earlier built-in model)",
    "Codewords": "Codewords",
    "MFCC statistics": "MFCC statistics",
    "one Gaussian, symmetrised KL": "one Gaussian, symmetrized Kullback-Leibler",
    "one Gaussian, Jensen-Shannon (Musly)": "one Gaussian, Jensen-Shannon (Musly)",
    "block-level features": "block-level features (Seyerlehner)",
    "bliss": "bliss",
    "timbre alone, no slopes, no curvatures": "timbre without slopes and curvatures",
    "Sound, timbre alone, all": "timbre with moments of all songs",
    "Sound, timbre alone": "timbre",
    "Sound, fluctuation alone": "fluctuation",
    "Sound, spectral shape alone": "spectral shape",
    "Sound of feature version 3": "*Sound* before version 4 of the audio features",
    "Sound without spectral shape": "timbre and fluctuation",
    "Sound, vectors of any length": "*Sound* without unit lengths",
    "Sound, no whitening within songs": "*Sound*, not whitened within songs",
    "Sound": "*Sound*: timbre, fluctuation and spectral shape",
    "Sound, with the program's constants, which know these pieces": "*Sound* with its built-in constants",
}


def _tabulate(rows: KeptRows) -> Lines:
    measures = {"P@1": "P@1", "P@5": "P@5", "package": "same package at rank 1", "within": "within"}
    yield "", *measures.values(), "skewness of the ten-occurrence", "lead in P@1 over the first row"
    for name, said in _PIECES.items():
        row, remark = find_row(rows, part="models", what=name), ""
        if not row:  # the name ends with the number of files that were read
            row = next(row for row in rows if re.fullmatch(rf"{name} \(.* read\)", row["what"]))
            remark = row["what"].removeprefix(name)
        yield (
            said + remark,
            *(format_share(row[m]) for m in measures),
            format_share(row["skew"]),
            drop_zeros(row.get("lead P@1", "")),
        )


def _tabulate_peers(rows: KeptRows) -> Lines:
    yield from list_scores([row for row in rows if row["part"] == "peers" and "P@1" in row])


TABLES: dict[str, Table] = {
    "real_music: leads": _tabulate_leads,
    "real_music": _tabulate,
    "real_music: peers": _tabulate_peers,
}


if __name__ == "__main__":
    main(
        "real_music", __doc__.splitlines()[0], run,
        rivals=("bliss-audio", "pymusly", "onnx", "onnxruntime"), takes_library=True, takes_sets=True,
        short="without the representations histogram, TF-IDF, Gaussian mixtures, harmony and rhythm. This is "
        "final, because the claims are not about them",
    )  # fmt: skip
