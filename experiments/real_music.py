"""Search in real music: how often the nearest pieces are by the same composer, for our models and others.

P@1 and P@5 are the shares of pieces by the same composer among the nearest and the five nearest, for composers with
five or more pieces. A third score is whether the nearest is from the same package, for all pieces. "Within" is for
composers that share a package with others: whether the nearest piece of the package is by the same composer. It is
independent of mastering, which a package may have in common. Skew is that of the 10-occurrence. Distances are adjusted
by mutual proximity over the nearest third; "all" is over all pieces, as in the app before it had Sound.

"Sound" is fitted on these pieces only. The constants that ship with the program were learned from the same pieces, so
the row with them is not an evaluation. Leads are differences to "Codewords, all", the app's earlier model, with 95 %
intervals over the composers. There are few composers, so intervals are wide, and two of them can decide a score.

- Nested choice: the best row by the mean of P@1, P@5 and within is chosen on half of the composers. Its lead is
  measured on the other half, over many halves. This removes the bias of choosing the best of many on the same pieces.
- Learning: from the composers of one half, or from folders of other packages, evaluated on the other half against the
  same vectors before. "automatic" is the app's method, which chooses among the learners on the composers it may see.
- Small libraries: some packages, with folders only, artists only or neither. Half of the labels are hidden, and the
  app's automatic learning is evaluated on those. The constants are then learned from the other pieces.
- Descriptors: learning on published collections, as in experiments.descriptors.

Pieces: a library (``--library``, which is copied), a folder of music (``--music``), or else 312 pieces of Debian's game
packages, which are fetched. Labels: ``--labels``, a CSV with the columns path, label (the composer) and package; those
of the 312 pieces ship with the program. ``--cache`` keeps the pieces, everything computed from them and the finished
parts, so that an interrupted run resumes. ``--full`` adds models, splits and settings.
"""

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.support.report import Claim, Progress, Settings, at_least, at_most, digest, main
from experiments import descriptors
from experiments.support.game_music import CACHE, LABELS, FetchError, fetch
from experiments.support.halves import Gains, gain_row, halves, learned_rows, nested_rows
from experiments.support.parts import KeptParts, Rows
from experiments.support.pieces import MEASURES, Pieces, Scores, euclidean, labelled, scores, with_proximity
from experiments.support.small_libraries import ARTISTS, KNOWN, SIZES, automatic_gains, small_claims, small_rows
from experiments.support.sound_rivals import rival_distances
from experiments.support.timbre import ablations, app_models, constants_of
from musicsim._arrays import BoolArray, Float64Array
from musicsim.evaluation import bootstrap_pairs
from musicsim.explorer.refresh.refresh import refresh
from musicsim.library import Library

THIRD, ALL = 1 / 3, 1.0
BEFORE = "Codewords, all"
GOALS = {"P@1": 0.72, "P@5": 0.59, "package": 0.62, "within": 0.80}
MAX_SKEW = 0.2
AUTOMATIC_SPLITS = {False: 4, True: 20}  # short protocol, full protocol


def run(settings: Settings, progress: Progress) -> tuple[Rows, list[Claim]]:
    """Measure every row; if the pieces are unavailable, one sentence says why."""
    cache = settings.cache or CACHE
    try:
        with _opened(settings, cache, progress) as library:
            return _measured(library, settings, cache, progress)
    except FetchError as error:
        settings.facts["data"] = str(error)
        return [], [at_least("Sound: P@1", None, GOALS["P@1"])]


@contextmanager
def _opened(settings: Settings, cache: Path, progress: Progress) -> Iterator[Library]:
    """Open a copy of the library, or a new one of the pieces, with models fitted only on these."""
    source = settings.library
    if source is None:
        music = settings.music
        if music is None:
            music = cache / "music"
            fetch(music, progress)
        settings.inputs["pieces"] = digest(music)
        source = cache / "library"
        with Library.open(source) as made:
            progress(f"analysing {music}")
            made.add(music)
    with TemporaryDirectory() as scratch:
        folder = Path(scratch) / "library"
        shutil.copytree(source, folder)
        with Library.open(folder) as opened:
            progress("fitting the models")
            with constants_of(opened, ()):
                refresh(opened, force=True)
            yield opened


def _measured(library: Library, settings: Settings, cache: Path, progress: Progress) -> tuple[Rows, list[Claim]]:
    pieces = labelled(library, settings.labels or LABELS)
    composers = np.unique(pieces.composers[pieces.queries])
    settings.facts.update(pieces=len(pieces), composers=len(composers), queries=len(pieces.queries))
    spaces = dict(app_models(library, pieces, others=False))
    kept = KeptParts(cache / "parts" / _digest(pieces, spaces, settings))
    rows = kept.rows("models", lambda: _model_rows(library, pieces, settings, cache, progress))
    claims = list(_claims({row["what"]: row for row in rows}))
    rows += kept.rows("learning", lambda: learned_rows(spaces, pieces, settings, progress))
    rows.append(_automatic_row(library, pieces, settings, kept, progress))
    small: Rows = []
    for size in SIZES:
        for known in KNOWN:
            small += kept.rows(
                f"{size} pieces, {known}",
                lambda size=size, known=known: small_rows(library, pieces, size, known, settings),  # type: ignore[misc]
            )
            progress(f"{size} pieces, {known}: {small[-1]['kept']}")
    rows += small
    rows += kept.rows("descriptors", lambda: _descriptor_rows(settings, progress))
    return rows, [*claims, *small_claims(small)]


def _digest(pieces: Pieces, spaces: dict[str, Float64Array], settings: Settings) -> str:
    """Return a digest of everything that rows depend on, except the program."""
    of = hashlib.sha256(f"{settings.seed} {settings.full}".encode())
    for values in (pieces.composers, pieces.packages):
        of.update("\n".join(values.tolist()).encode())
    for X in spaces.values():
        of.update(np.round(X, 3).tobytes())
    return of.hexdigest()[:16]


def _model_rows(library: Library, pieces: Pieces, settings: Settings, cache: Path, progress: Progress) -> Rows:
    found: dict[str, Scores] = {}
    missing: Rows = []
    for name, D, said in _distances(library, pieces, settings, cache, progress):
        if D is None:
            missing.append({"part": "models", "what": f"{name}: {said}"})
            continue
        what = f"{name} ({said})" if said else name
        found[f"{what}, all"] = scores(with_proximity(D, ALL), pieces)
        found[what] = scores(with_proximity(D, THIRD), pieces)
        progress(what)
    rows = [_row(name, of, found[BEFORE], pieces, settings.seed) for name, of in found.items()]
    return [*rows, *missing, *nested_rows(found, BEFORE, pieces, settings)]


def _distances(
    library: Library, pieces: Pieces, settings: Settings, cache: Path, progress: Progress
) -> Iterator[tuple[str, Float64Array | None, str]]:
    for name, X in app_models(library, pieces, others=settings.full):
        yield name, euclidean(X), ""
    for name, X in ablations(library, pieces):
        yield name, euclidean(X), ""
    yield from rival_distances(library, pieces, cache / "rivals", progress)


def _row(name: str, of: Scores, reference: Scores, pieces: Pieces, seed: int) -> dict[str, Any]:
    row: dict[str, Any] = {"part": "models", "what": name}
    row |= {measure: of.mean(measure) for measure in MEASURES} | {"skew": of.skew}
    if of is not reference:
        for measure in MEASURES:
            a, b = of.by_query[measure], reference.by_query[measure]
            groups = pieces.packages if measure == "package" else pieces.composers
            mean, low, high = bootstrap_pairs(a, b, groups.tolist(), random_state=seed)
            row[f"lead {measure}"] = f"{mean:+.3f} ({low:+.3f} to {high:+.3f})"
    return row


def _automatic_row(
    library: Library, pieces: Pieces, settings: Settings, kept: KeptParts, progress: Progress
) -> dict[str, Any]:
    gains, said = [], []
    for number, is_out in enumerate(halves(pieces, AUTOMATIC_SPLITS[settings.full], settings.seed), start=1):

        def measured(is_out: BoolArray = is_out) -> Rows:
            of, what = automatic_gains(library, pieces, is_out, ARTISTS)
            by_query = {measure: values.tolist() for measure, values in of.by_query.items()}
            return [{"kept": what, "skew": of.skew, "gains": by_query}]

        row = kept.rows(f"automatic, split {number}", measured)[0]
        by_query = {measure: np.array(values) for measure, values in row["gains"].items()}
        gains.append(Gains(by_query, row["skew"]))
        said.append(row["kept"])
        progress(f"automatic, split {number}: {said[-1]}")
    row = gain_row("learning", "Sound, automatic, composers", gains, pieces, settings.seed)
    return row | {"kept": "; ".join(said)}


def _descriptor_rows(settings: Settings, progress: Progress) -> Rows:
    own = Settings(settings.seed, settings.full)
    rows, _ = descriptors.run(own, progress)
    if not rows:
        return [{"part": "descriptors", "what": f"skipped: {own.facts['data']}"}]
    return [{"part": "descriptors", "what": f"{row['set']}, {row['method']}"} | row for row in rows]


def _claims(rows: dict[str, dict[str, Any]]) -> Iterator[Claim]:
    for measure, goal in GOALS.items():
        yield at_least(f"Sound: {measure}", rows["Sound"][measure], goal)
    yield at_most("Sound: skew", rows["Sound"]["skew"], MAX_SKEW)


if __name__ == "__main__":
    main(
        "real_music", __doc__.splitlines()[0], run,
        data=("cal500", "fma_ntds", "gtzan", "hetrec2011-lastfm-2k", "spotify_msd"),
        rivals=("bliss-audio",), takes_library=True, takes_music=True,
    )  # fmt: skip
