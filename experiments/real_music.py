"""How good is the first list of answers on real music? The app's models, rivals, and learning, on labelled pieces.

For each piece of a composer with five or more: is the nearest piece of the same composer (P@1), how many of the five
nearest are (P@5)? Of all pieces: is the nearest of the same package? Of the composers that share a package with
others: is the nearest piece of the package theirs (within)? That figure is free of mastering, which a package may
have in common. Skew is that of how often pieces are among the ten nearest. Distances are adjusted by mutual proximity
over the nearest third; "all" is over all pieces, as until version 2 of the sound model.

Leads are differences to "Codewords, all" with 95 % intervals over the composers. There are few composers, so
intervals are wide, and two of them can decide a figure. Nested choice: the best row by the mean of P@1, P@5 and
within on half of the composers, its lead on the other half, over many halves: what is left when the best of many is
not taken on the same pieces. Learning: from the composers of one half, or from folders of other packages, judged on
the other half. Small libraries: some packages, with folders only, artists only or neither; half of the labels are
hidden, and what the app does by itself is judged on those.

Pieces: a library (``--library``, of which a copy is worked on) or a folder of music (``--music``, or
MUSICSIM_REAL_MUSIC). Labels: ``--labels``, or game_music.csv in the folder of public data sets: columns path, label
(the composer) and package. The short protocol uses what the library has stored; ``--full`` adds other models, bliss,
more halves and MLR.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._report import Claim, Progress, Settings, at_least, at_most, main, shared_data
from experiments._halves import learned_rows, nested_rows
from experiments._pieces import MEASURES, Pieces, Scores, euclidean, labelled, scores, with_proximity
from experiments._small_libraries import small_rows
from experiments._timbre import ablations, app_models, bliss_distances, gaussian_divergences, statistics
from musicsim._arrays import Float64Array
from musicsim.evaluation import paired_bootstrap
from musicsim.explorer.upkeep.refresh import refresh
from musicsim.library import Library

THIRD, ALL = 1 / 3, 1.0
GOALS = {"P@1": 0.72, "P@5": 0.59, "package": 0.62, "within": 0.80}
MAX_SKEW = 0.2
MUSIC = "MUSICSIM_REAL_MUSIC"


def run(settings: Settings, progress: Progress) -> tuple[list[dict[str, Any]], list[Claim]]:
    """Measure every row; without music or labels one sentence says what is missing."""
    shared = shared_data()
    table = settings.labels or (shared / "game_music.csv" if shared else None)
    music = settings.music or (Path(os.environ[MUSIC]) if os.environ.get(MUSIC) else None)
    missing = []
    if table is None or not table.is_file():
        missing.append("labels (--labels, or MUSICSIM_SHARED_DATA)")
    if settings.library is None and (music is None or not music.is_dir()):
        missing.append(f"music (--library, --music, or {MUSIC})")
    if missing:
        settings.facts["skipped"] = f"nothing was measured, as there are no {' and no '.join(missing)}"
        return [], [at_least("Sound: P@1", None, GOALS["P@1"])]
    assert table is not None
    with _opened(settings.library, music, progress) as library:
        pieces = labelled(library, table)
        composers = np.unique(pieces.composers[pieces.queries])
        settings.facts |= {"pieces": len(pieces), "composers": len(composers), "queries": len(pieces.queries)}
        found: dict[str, Scores] = {}
        for name, D in _distances(library, pieces, settings, progress):
            found[f"{name}, all"] = scores(with_proximity(D, ALL), pieces)
            found[name] = scores(with_proximity(D, THIRD), pieces)
            progress(name)
        reference = found["Codewords, all"]
        rows = [_row(name, of, reference, pieces, settings.seed) for name, of in found.items()]
        rows += nested_rows(found, "Codewords, all", pieces, settings)
        rows += learned_rows(dict(app_models(library, pieces, others=False)), pieces, settings, progress)
        small, claims = small_rows(library, pieces, settings, progress)
    return [*rows, *small], [*_claims(found), *claims]


@contextmanager
def _opened(library: Path | None, music: Path | None, progress: Progress) -> Iterator[Library]:
    """A copy of the library, brought up to date, or a new one of the folder."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "library"
        if library is not None:
            shutil.copytree(library, folder)
        with Library.open(folder) as opened:
            if library is None:
                assert music is not None
                progress(f"analysing {music}")
                opened.add(music)
            refresh(opened)
            yield opened


def _distances(
    library: Library, pieces: Pieces, settings: Settings, progress: Progress
) -> Iterator[tuple[str, Float64Array]]:
    for name, X in app_models(library, pieces, others=settings.full):
        yield name, euclidean(X)
    for name, X in ablations(library, pieces):
        yield name, euclidean(X)
    yield "MFCC statistics", euclidean(statistics(library, pieces))
    yield from gaussian_divergences(library, pieces).items()
    if settings.full:
        D, said = bliss_distances(pieces, progress)
        settings.facts["bliss"] = said
        if D is not None:
            yield "bliss", D


def _row(name: str, of: Scores, reference: Scores, pieces: Pieces, seed: int) -> dict[str, Any]:
    row: dict[str, Any] = {"part": "models", "what": name}
    row |= {measure: of.mean(measure) for measure in MEASURES} | {"skew": of.skew}
    if of is not reference:
        for measure in MEASURES:
            a, b = of.by_query[measure], reference.by_query[measure]
            groups = pieces.packages if measure == "package" else pieces.composers
            mean, low, high = paired_bootstrap(a, b, groups.tolist(), random_state=seed)
            row[f"lead {measure}"] = f"{mean:+.3f} ({low:+.3f} to {high:+.3f})"
    return row


def _claims(found: dict[str, Scores]) -> Iterator[Claim]:
    for measure, goal in GOALS.items():
        yield at_least(f"Sound: {measure}", found["Sound"].mean(measure), goal)
    yield at_most("Sound: skew", found["Sound"].skew, MAX_SKEW)


if __name__ == "__main__":
    main(
        "real_music", __doc__.splitlines()[0], run,
        rivals=("bliss-audio",), takes_library=True, takes_music=True,
    )  # fmt: skip
