"""MLR on real music, from few songs: the regularizer, C and the number of songs, on composers that it has not seen.

The composers of each set are divided into halves. MLR learns from songs of one half (vectors of "Sound", composers as
labels), and songs of the other half are the queries. They are compared with all songs. Leads are those over the plain
distance, with 95 % intervals over the composers. "Shuffled" is the same with the composers of the training songs
permuted: what a metric from meaningless labels does. Distances are Euclidean, without hub reduction.

Sets are those of experiments.real_music: ``--music``, once for each. ``--full`` adds divisions and values of C.
"""

import warnings
from contextlib import closing
from itertools import product
from typing import Any

import numpy as np

from benchmarks.support.columns import KeptRows, Lines, Table, find_row, shorten_lead
from benchmarks.support.report import Claim, Progress, Settings, Skipped, format_lead, main
from experiments.support.game_music import CACHE, FetchError
from experiments.support.halves import halves
from experiments.support.music_sets import MusicSet, music_sets
from experiments.support.parts import Rows
from experiments.support.pieces import Pieces
from experiments.support.timbre import app_models
from musicsim._arrays import BoolArray, Float64Array, Int64Array
from musicsim.evaluation import bootstrap_pairs, query_scores
from musicsim.metric import MLR
from musicsim.relevance import Relevance

DIVISIONS = {False: 5, True: 20}  # short protocol, full protocol
SIZES = (25, 50, 100)
"""Numbers of training songs."""
CS = {
    False: {"trace": (1.0, 10.0), "plain": (10.0, 100.0, 1e3)},
    True: {"trace": (0.1, 1.0, 10.0, 100.0), "plain": (1.0, 10.0, 100.0, 1e3, 1e4)},
}
MAX_CUTS = 60
Scores = dict[str, Float64Array]


def run(settings: Settings, progress: Progress) -> tuple[Rows, list[Claim]]:
    """Measure every row."""
    rows: Rows = []
    with closing(music_sets(settings, settings.cache or CACHE, progress)) as sets:
        try:
            for music in sets:
                rows += _measure(music, settings, progress)
        except FetchError as error:
            raise Skipped(str(error)) from error
    return rows, []


def _measure(music: MusicSet, settings: Settings, progress: Progress) -> Rows:
    pieces = music.pieces
    X = dict(app_models(music.library, pieces, others=False))["Sound"]
    divisions = list(halves(pieces, DIVISIONS[settings.full], settings.seed))
    rows = []
    for size, (regularizer, Cs) in product(SIZES, CS[settings.full].items()):
        for C in Cs:
            mlr = MLR(C=C, regularizer=regularizer, tol=1e-2, max_cuts=MAX_CUTS)
            row: dict[str, Any] = {"set": music.name, "songs": size, "regularizer": regularizer, "C": C}
            for labels in ("", "shuffled "):
                found = [
                    compare(mlr, X, pieces, is_out, size, is_shuffled=labels != "", seed=settings.seed + number)
                    for number, is_out in enumerate(divisions)
                ]
                row |= {f"{labels}{name}": lead for name, lead in _leads(found, pieces, settings.seed).items()}
            rows.append(row)
            progress(f"{music.name}, {size} songs, {regularizer}, C = {C:g}: P@1 {row['P@1']}")
    return rows


def compare(
    mlr: MLR, X: Float64Array, pieces: Pieces, is_out: BoolArray, size: int, *, is_shuffled: bool, seed: int
) -> tuple[Scores, Scores]:
    """Learn from `size` songs of known composers, and return scores of the others before and after; nan elsewhere."""
    rng = np.random.default_rng(seed)
    train = _draw_songs(pieces, is_out, size, rng)
    composers = pieces.composers[train]
    labels = rng.permutation(composers) if is_shuffled else composers
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # gaps that are still open after all cuts, and metrics that are 0
        L = mlr.fit(X[train], labels.tolist()).components_
    queries = pieces.queries[is_out[pieces.queries]]
    return _score(X, pieces, queries), _score(X @ L.T, pieces, queries)


def _draw_songs(pieces: Pieces, is_out: BoolArray, size: int, rng: np.random.Generator) -> Int64Array:
    """Draw whole composers of the half that may be known, until there are `size` songs."""
    known = np.flatnonzero(~is_out & (pieces.composers != ""))
    drawn = [known[pieces.composers[known] == name] for name in rng.permutation(np.unique(pieces.composers[known]))]
    several = [songs for songs in drawn if len(songs) > 1]
    return np.concatenate(several)[:size]


def _score(X: Float64Array, pieces: Pieces, queries: Int64Array) -> Scores:
    relevance = Relevance.from_labels(pieces.composers.tolist()).restrict(queries, np.arange(len(pieces)))
    nearest, all_ranks = (query_scores(X[queries], X, relevance, k=k) for k in (1, 10))
    scores = {name: np.full(len(pieces), np.nan) for name in ("P@1", "AUC")}
    scores["P@1"][queries], scores["AUC"][queries] = nearest["precision"], all_ranks["auc"]
    return scores


def _leads(found: list[tuple[Scores, Scores]], pieces: Pieces, seed: int) -> dict[str, str]:
    """Return the mean gain of each measure over the divisions that held a song out, with an interval."""
    leads = {}
    for name in ("P@1", "AUC"):
        sides = [np.array([scores[name] for scores in side]) for side in zip(*found, strict=True)]
        asked = np.isfinite(sides[0]).any(axis=0)
        before, after = (np.nanmean(side[:, asked], axis=0) for side in sides)
        leads[name] = format_lead(*bootstrap_pairs(after, before, pieces.composers[asked].tolist(), random_state=seed))
    return leads


# --- tables of the documents --------------------------------------------------------------------------------


def _tabulate(rows: KeptRows) -> Lines:
    settings = list(dict.fromkeys((row["regularizer"], row["C"]) for row in rows))
    ends = (SIZES[0], SIZES[-1])
    sizes = list(dict.fromkeys((row["set"], row["songs"]) for row in rows if row["songs"] in ends))
    yield "P@1, learned minus plain distance", *(f"{name}, {songs} songs" for name, songs in sizes)
    for kind in ("", "shuffled "):
        for regularizer, C in settings:
            of = [find_row(rows, set=name, songs=n, regularizer=regularizer, C=C) for name, n in sizes]
            cells = (shorten_lead(row[f"{kind}P@1"]) if row else "" for row in of)
            yield f"{regularizer}, C = {C:g}" + (", shuffled composers" if kind else ""), *cells


TABLES: dict[str, Table] = {"small_mlr": _tabulate}


if __name__ == "__main__":
    main(
        "small_mlr", __doc__.splitlines()[0], run, takes_sets=True,
        short="5 of 20 divisions of the composers, and two or three values of C. This is final, because the leads of "
        "the two regularizers are far apart",
    )  # fmt: skip
