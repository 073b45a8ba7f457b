"""Learning on descriptors of real songs: ranking before and after learning, on five public collections.

Native is Euclidean distance of the columns, z-scored by the training songs. Learned is MLR on the same columns, with C
chosen by MAP on validation songs. WCCN is whitening within relevant songs, and GMML the geometric mean metric. The
shrinkage of WCCN, and t and reg of GMML, are chosen likewise. Automatic is whichever of native, MLR, WCCN and GMML is
best on the validation songs of a split. LDA is for comparison, if there are classes. Songs are split 40 : 30 : 30 into
training, validation and test.

- spotify_msd: 13 Spotify descriptors (without followers and popularity, which identify the artist). Songs by the same
  artist are relevant, for the 1659 artists with at least three songs. Artists are split, so none of the training songs
  is relevant to a test song. Test songs are therefore ranked among themselves, and so are validation songs.
- gtzan: 57 statistics of librosa's features, 10 genres. fma_ntds: 140 statistics of MFCC, Hip-Hop or Rock.
- cal500: 68 Marsyas descriptors; relevant are the ten songs whose tags (144, without negations) have the highest cosine
  with the query's.
- lastfm: artists, by the means of the Spotify descriptors of their songs. Relevant are the ten artists whose listeners
  (of 1,892, at least ten plays) have the highest cosine with the query's. Test artists are ranked among themselves.

In gtzan, fma_ntds and cal500 test songs query the training songs. Their files do not identify artists, so songs are
split individually and artists are shared. Their scores are therefore too high, for native and learned alike. GTZAN also
contains some recordings twice, which helps the first rank, MRR, most of all without learning. The lead is the mean
difference to native over the queries of all splits. Its 95 % interval is by resampling artists (songs, if artists are
unknown). The gap is the duality gap over the objective, median over the splits. Hubness is the skew of the
10-occurrence among the test songs.
"""

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from benchmarks.support.columns import NUMBER_3, SHARE_3, KeptRows, Lines, Table, drop_zeros, find_row
from benchmarks.support.parts import kept_parts
from benchmarks.support.report import Claim, Progress, Settings, at_least, main
from experiments.support.descriptors import LOADERS, Collection, split_rows
from experiments.support.uci import one_core_each
from musicsim._arrays import Float64Array, Int64Array
from musicsim.evaluation import bootstrap_pairs, hubness, nearest_neighbors, query_scores
from musicsim.metric import GMML, MLR, WCCN

NATIVE, WHITENED, MEAN, LDA, AUTOMATIC = "native", "WCCN", "GMML", "LDA", "automatic"
MLRS: dict[str, dict[str, Any]] = {
    "MLR": {},
    "MLR, L2,1": {"regularizer": "l21"},
    "MLR, diagonal": {"structure": "diagonal"},
}
METHODS = (NATIVE, *MLRS, WHITENED, MEAN, LDA)
CHOSEN_AMONG = (NATIVE, "MLR", WHITENED, MEAN)
SHRINKAGES = (0.1, 0.3, 0.5, 0.8, 0.9)
MEANS = tuple(product((0.0, 0.3, 0.5), (0.1, 1.0)))
"""t and reg of GMML."""
MEASURES = {"AUC": "auc", "MAP": "map", "MRR": "mrr", "P@10": "precision"}
LED = ("AUC", "MAP")
"""Measures of the claims."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """Splits, the grid, and the stopping rule."""

    splits: int
    Cs: tuple[float, ...]
    tol: float
    max_cuts: int


SHORT = Protocol(splits=4, Cs=(1.0, 10.0, 100.0), tol=1e-2, max_cuts=60)
FULL = Protocol(splits=10, Cs=(1.0, 10.0, 100.0, 1e3, 1e4), tol=1e-2, max_cuts=200)


@dataclass(frozen=True, slots=True)
class Part:
    """A split of a collection: z-scored songs, and the rows of training, validation and test."""

    name: str
    split: int
    songs: Collection
    X: Float64Array
    train: Int64Array
    validation: Int64Array
    test: Int64Array

    def scores(self, L: Float64Array, rows: Int64Array) -> dict[str, Float64Array]:
        """Return the scores of the queries `rows` after the linear map L."""
        database = None if self.songs.inside else self.train
        relevance = self.songs.relevance(rows, database)
        return query_scores(self.X[rows] @ L.T, self.X[rows if database is None else database] @ L.T, relevance)


@dataclass(frozen=True, slots=True)
class Result:
    """One method on one split: `scores` of each test query, `artists` of these queries, and validation MAP."""

    name: str
    method: str
    split: int
    scores: dict[str, Float64Array]
    artists: Int64Array
    hubness: float
    rank: int
    chosen: str
    gap: float
    validation: float


def make_part(name: str, songs: Collection, split: int, seed: int) -> Part:
    """Return a split of a collection, with columns z-scored by the training songs."""
    from sklearn.preprocessing import StandardScaler

    train, validation, test = split_rows(songs.artists, seed + split)
    X = StandardScaler().fit(songs.X[train]).transform(songs.X)
    return Part(name, split, songs, X, train, validation, test)


def _measure(part: Part, method: str, protocol: Protocol) -> Result:
    L, chosen, gap = learn_map(part, method, protocol)
    neighbors = nearest_neighbors(part.X[part.test] @ L.T, 10)
    return Result(
        part.name,
        method,
        part.split,
        part.scores(L, part.test),
        part.songs.artists[part.test],
        hubness(neighbors),
        len(L),
        chosen,
        gap,
        _validated(part, L),
    )


def _validated(part: Part, L: Float64Array) -> float:
    return float(np.nanmean(part.scores(L, part.validation)["map"]))


def choose_by_validation(results: list[list[Result]]) -> list[Result]:
    """Return the method that is best in validation for each split; ties go to the first."""
    best = (max(of_split, key=lambda result: result.validation) for of_split in zip(*results, strict=True))
    return [replace(result, method=AUTOMATIC, chosen=result.method) for result in best]


def learn_map(part: Part, method: str, protocol: Protocol) -> tuple[Float64Array, str, float]:
    """Return the linear map of a method, its chosen setting, and its gap (nan without one)."""
    X, d = part.X[part.train], part.X.shape[1]
    if method == NATIVE:
        return np.eye(d), "", np.nan
    if method == LDA:
        assert part.songs.labels is not None
        return discriminants(X, part.songs.labels[part.train]), "", np.nan
    relevance = part.songs.relevance(part.train)
    if method in (WHITENED, MEAN):
        tried: dict[str, Float64Array] = {}
        if method == WHITENED:
            tried = {f"g {g:g}": WCCN(g).fit(X, relevance).components_ for g in SHRINKAGES}
        else:
            tried = {f"t {t:g}, reg {r:g}": GMML(t, reg=r).fit(X, relevance).components_ for t, r in MEANS}
        chosen = max(tried, key=lambda name: _validated(part, tried[name]))
        return tried[chosen], chosen, np.nan
    mlr = MLR("auc", tol=protocol.tol, max_cuts=protocol.max_cuts, **MLRS[method])
    path = mlr.fit_path(X, relevance, protocol.Cs)
    # ties go to the smallest C
    best = max(path, key=lambda mlr: _validated(part, mlr.components_))
    return best.components_, f"C {best.C:g}", float(best.history_[-1]["gap"])


def discriminants(X: Float64Array, y: Int64Array) -> Float64Array:
    """Return the linear map of scikit-learn's LDA, of shape (r, d) with r less than the number of classes."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    lda = LinearDiscriminantAnalysis().fit(X, y)
    components: Float64Array = (lda.transform(np.eye(X.shape[1])) - lda.transform(np.zeros((1, X.shape[1])))).T
    return components


def _pooled(results: list[Result], measure: str) -> Float64Array:
    return np.concatenate([r.scores[MEASURES[measure]] for r in results])


def _lead(results: list[Result], native: list[Result], measure: str, seed: int) -> tuple[float, float, float]:
    """Return the mean lead over the queries of all splits; queries of one artist (or song) are resampled together."""
    artists = np.concatenate([r.artists for r in results])
    pairs = _pooled(results, measure), _pooled(native, measure)
    return bootstrap_pairs(*pairs, groups=artists, random_state=seed)


def _row(results: list[Result], native: list[Result], seed: int) -> dict[str, Any]:
    chosen = [r.chosen for r in results]
    row: dict[str, Any] = {"set": results[0].name, "method": results[0].method}
    for name, measure in MEASURES.items():
        means = np.array([np.nanmean(r.scores[measure]) for r in results])
        row |= {name: float(means.mean()), f"{name} sd": float(means.std(ddof=1))}
    row["hubness"] = float(np.mean([r.hubness for r in results]))
    row["rank"] = float(np.mean([r.rank for r in results]))
    if results is not native:
        for measure in LED:
            mean, low, high = _lead(results, native, measure, seed)
            row[f"lead {measure}"] = f"{mean:+.4f} ({low:+.4f} to {high:+.4f})"
    row |= {"chosen most often": max(chosen, key=chosen.count), "gap": float(np.median([r.gap for r in results]))}
    return row


def _claims(by: dict[tuple[str, str], list[Result]], seed: int) -> Iterator[Claim]:
    for name, measure in product(LOADERS, LED):
        low = _lead(by[name, "MLR"], by[name, NATIVE], measure, seed)[1]
        yield at_least(f"{name}: {measure} of MLR above native, lower end of the 95 % interval", low, 0.0)


def _collections(settings: Settings) -> dict[str, Collection]:
    found = {name: load() for name, load in LOADERS.items()}
    settings.facts["songs"] = {name: len(songs.X) for name, songs in found.items()}
    return found


def run(settings: Settings, progress: Progress) -> tuple[list[dict[str, Any]], list[Claim]]:
    """Measure every method on every split; 4 splits and few C, 10 and more of both with ``--full``."""
    protocol = FULL if settings.full else SHORT
    settings.facts.update(asdict(protocol))
    by: dict[tuple[str, str], list[Result]] = {}
    measure = kept_parts("descriptors", settings).cache(_measure)
    with one_core_each() as pool:
        futures = [
            pool.submit(measure, part, method, protocol)
            for name, songs in _collections(settings).items()
            for part in (make_part(name, songs, split, settings.seed) for split in range(protocol.splits))
            for method in METHODS
            if method != LDA or songs.labels is not None
        ]
        for future in futures:
            result = future.result()
            by.setdefault((result.name, result.method), []).append(result)
            if result.method == METHODS[-2]:
                progress(f"{result.name}, split {result.split + 1}")
    for name in LOADERS:
        by[name, AUTOMATIC] = choose_by_validation([by[name, method] for method in CHOSEN_AMONG])
    rows = [_row(results, by[name, NATIVE], settings.seed) for (name, _), results in by.items()]
    return rows, list(_claims(by, settings.seed))


# --- tables of the documents --------------------------------------------------------------------------------


def _tabulate(rows: KeptRows) -> Lines:
    sets = {
        "spotify_msd": "Spotify's descriptors, by artist", "gtzan": "GTZAN, by genre", "fma_ntds": "FMA, by genre",
        "cal500": "CAL500, by tags", "lastfm": "Last.fm 2k, by listeners",
    }  # fmt: skip
    yield "AUC", "not learned", "MLR", "gain of MLR (95% interval)", "LDA", "automatic choice"
    for name, said in sets.items():
        plain, mlr, lda, automatic = (find_row(rows, set=name, method=m) for m in ("native", "MLR", "LDA", "automatic"))
        gain = re.sub(r"\d+\.\d+", lambda number: NUMBER_3(float(number[0])), mlr["lead AUC"])
        figures = (SHARE_3(row["AUC"]) for row in (plain, mlr))
        choice = f"{SHARE_3(automatic['AUC'])} ({automatic['chosen most often']})"
        yield said, *figures, drop_zeros(gain), SHARE_3(lda.get("AUC")), choice


TABLES: dict[str, Table] = {"descriptors": _tabulate}


if __name__ == "__main__":
    main(
        "descriptors",
        __doc__.splitlines()[0],
        run,
        data=("cal500", "fma_ntds", "gtzan", "hetrec2011-lastfm-2k", "spotify_msd"),
        rivals=("scikit-learn",),
        has_parts=True,
        short="4 of 10 splits, three of five values of C, and at most 60 instead of 200 "
        "cuts. The full form is worth running, because MLR often takes the largest C",
    )
