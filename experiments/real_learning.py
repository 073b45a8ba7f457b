"""Learning on real music: metrics learned from composers or folders, and the app's automatic choice.

Measures, pieces and options are those of experiments.real_music. Leads have 95 % intervals over the composers. "Sound"
is fitted on these pieces only.

- Learning: from the composers of one half, or from folders of other packages, evaluated on the other half against the
  same vectors before. "automatic" is the app's method, which chooses among the learners on the composers it may see.
  "quick" and "ranking" are its other methods; they choose C on these composers only, and their models are always used.
- Small libraries: some packages, with folders only, artists only or neither. Half of the labels are hidden, and the
  app's automatic learning is evaluated on those. The constants are then learned from the other pieces.
- Descriptors: learning on published collections, as in experiments.descriptors.

``--cache`` also keeps the finished parts, so that an interrupted run resumes. ``--full`` adds splits and settings.
"""

import hashlib
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support.columns import KeptRows, Lines, Table, find_row, shorten_lead
from benchmarks.support.report import Claim, Progress, Settings, Skipped, main
from experiments import descriptors
from experiments.support.game_music import CACHE, FetchError
from experiments.support.halves import Gains, gain_row, halves, learned_rows
from experiments.support.music_sets import MusicSet, music_sets
from experiments.support.parts import KeptParts, Rows
from experiments.support.pieces import Pieces
from experiments.support.small_libraries import ARTISTS, KNOWN, SIZES, app_gains, small_claims, small_rows
from experiments.support.timbre import app_models
from musicsim._arrays import BoolArray, Float64Array
from musicsim.library import Library

AUTOMATIC_SPLITS = {False: 4, True: 20}  # short protocol, full protocol
METHODS: dict[str, dict[str, Any]] = {
    "automatic": {},
    "quick": {"quick": True},
    "mean": {"method": "mean"},
    "ranking": {"method": "ranking"},
    "ranking with the trace": {"method": "ranking", "regularizer": "trace"},
}


def run(settings: Settings, progress: Progress) -> tuple[Rows, list[Claim]]:
    """Measure every row."""
    cache = settings.cache or CACHE
    with closing(music_sets(settings, cache, progress)) as sets:
        try:
            music = next(sets)
        except FetchError as error:
            raise Skipped(str(error)) from error
        return _measured(music, settings, cache, progress)


def _measured(music: MusicSet, settings: Settings, cache: Path, progress: Progress) -> tuple[Rows, list[Claim]]:
    library, pieces = music.library, music.pieces
    spaces = dict(app_models(library, pieces, others=False))
    kept = KeptParts(cache / "parts" / _digest(pieces, spaces, settings))
    rows = kept.rows("learning", lambda: learned_rows(spaces, pieces, settings, progress))
    rows += [_app_row(library, pieces, settings, kept, progress, method) for method in METHODS]
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
    return rows, small_claims(small)


def _digest(pieces: Pieces, spaces: dict[str, Float64Array], settings: Settings) -> str:
    """Return a digest of everything that rows depend on, except the program."""
    of = hashlib.sha256(f"{settings.seed} {settings.full}".encode())
    for values in (pieces.composers, pieces.packages):
        of.update("\n".join(values.tolist()).encode())
    for X in spaces.values():
        of.update(np.round(X, 3).tobytes())
    return of.hexdigest()[:16]


def _app_row(
    library: Library, pieces: Pieces, settings: Settings, kept: KeptParts, progress: Progress, method: str
) -> dict[str, Any]:
    gains, said = [], []
    for number, is_out in enumerate(halves(pieces, AUTOMATIC_SPLITS[settings.full], settings.seed), start=1):

        def measured(is_out: BoolArray = is_out) -> Rows:
            of, what = app_gains(library, pieces, is_out, ARTISTS, **METHODS[method])
            by_query = {measure: values.tolist() for measure, values in of.by_query.items()}
            return [{"kept": what, "skew": of.skew, "gains": by_query}]

        row = kept.rows(f"{method}, split {number}", measured)[0]
        by_query = {measure: np.array(values) for measure, values in row["gains"].items()}
        gains.append(Gains(by_query, row["skew"]))
        said.append(row["kept"])
        progress(f"{method}, split {number}: {said[-1]}")
    row = gain_row("learning", f"Sound, {method}, composers", gains, pieces, settings.seed)
    return row | {"kept": "; ".join(said)}


def _descriptor_rows(settings: Settings, progress: Progress) -> Rows:
    own = Settings(settings.seed, settings.full)
    rows, _ = descriptors.run(own, progress)
    if not rows:
        return [{"part": "descriptors", "what": f"skipped: {own.facts['data']}"}]
    return [{"part": "descriptors", "what": f"{row['set']}, {row['method']}"} | row for row in rows]


# --- tables of the documents --------------------------------------------------------------------------------


def _tabulate_learned(rows: KeptRows) -> Lines:
    metrics = {
        "whitening (WCCN), g = .3": "WCCN, g = 0.3", "whitening (WCCN), g = .9": "WCCN, g = 0.9",
        "geometric mean metric (GMML)": "GMML, t = .3, reg = 1", "ranking (MLR, C = 10)": "MLR, C = 10",
        "ranking, in an equal mixture with the initial distance": "MLR, C = 10, half of it",
        "app: automatic choice": "automatic", "app: first result": "quick", "app: mean": "mean",
        "app: ranking near the plain metric": "ranking", "app: ranking with the trace": "ranking with the trace",
    }  # fmt: skip
    models = ("Codewords", "Sound")
    yield "change of the share of nearest songs by the same composer", *models
    for said, metric in metrics.items():
        of = [find_row(rows, part="learning", what=f"{model}, {metric}, composers") for model in models]
        yield said, *(shorten_lead(row["lead P@1"]) if row else "" for row in of)


def _tabulate_small(rows: KeptRows) -> Lines:
    labels = {"folders only": "with folders", "artists only": "with artists", "nothing": "with neither"}
    small = [row for row in rows if row["part"] == "small libraries"]
    yield "lead over codewords in MAP, by the labels of the library", *labels.values()
    for size in dict.fromkeys(row["what"].partition(",")[0] for row in small):
        of = [find_row(small, what=f"{size}, {name}") for name in labels]
        cells = (
            shorten_lead(row["MAP over codewords"]) + ("" if row["kept"].startswith("the sound alone") else ", learned")
            for row in of
        )
        yield size.replace("pieces", "recordings"), *cells


TABLES: dict[str, Table] = {"real_learning: learned": _tabulate_learned, "real_learning: small": _tabulate_small}


if __name__ == "__main__":
    main(
        "real_learning", __doc__.splitlines()[0], run,
        data=("cal500", "fma_ntds", "gtzan", "hetrec2011-lastfm-2k", "spotify_msd"),
        takes_library=True, takes_music=True,
        short="8 of 20 divisions of the composers (automatic: 4 of 20), one of two values of C, and the short "
        "form of experiments.descriptors. This is final, because all claims are about the small "
        "libraries, which are the same in both forms",
    )  # fmt: skip
