"""Pooled libraries: do the intervals of `musicsim pool` cover the truth, and can a file tell if a song is in it?

*Simulated*: libraries with a known mean of .04 and spread tau. Standard errors are between .005 and .04, and estimated
from 30 artists. *DerSimonian-Laird* is the usual interval, with a normal quantile, for comparison.

*Sets*: public sets are cut into "private" libraries of whole artists. Two fixed models of the descriptors are compared.
The first is Euclidean distance of the z-scored columns. The second is Euclidean distance in their principal axes with
95 % of the variance, all scaled to equal variance. In spotify_msd (800 random artists), songs by the same artist are
relevant. In gtzan, songs of the same genre are relevant, and each song counts as an artist, because artists are
unknown. In lastfm, each row is an artist, and the ten artists with the most listeners in common are relevant. Queries
search their own library, without hub reduction. Each library contributes rounded numbers, as in the file of
`musicsim evaluate --contribute`.

- parted: all artists are parted into 40 libraries, and all 40 are pooled
- drawn: each library draws its artists from all artists, so libraries are independent
- specialized: likewise, but 70 % of the artists are from one of eight clusters (k-means; in gtzan: one genre)

The truth is the mean difference over all libraries that were cut in the same way. *Mean* is how often the 95 % interval
of the mean covers it. *Next* is how often the prediction interval of all libraries except one covers the difference
that the last one measured; its own sampling error is added to the interval.

*One song*: one song is removed from a library, and the file is written again. *Same* is the share of
files with the same numbers, and *in step* the share in which no unrounded number moved by more than its rounding step.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import cache
from math import sqrt
from typing import Any

import numpy as np

from benchmarks.support.columns import SHARE_2, SHARE_3, Column, KeptRow, Table, list_columns
from benchmarks.support.parts import kept_parts
from benchmarks.support.report import Claim, Progress, Settings, at_least, load_found, main
from experiments.support.descriptors import Collection, load_gtzan, load_lastfm, load_spotify
from experiments.support.uci import one_core_each
from musicsim._arrays import BoolArray, Float64Array, Int64Array
from musicsim.explorer.learning.verdict import RANKING_MEASURES
from musicsim.extensions.pooling.disclosure import Estimate, bin_count, differences_of, step_of
from musicsim.extensions.pooling.measuring import round_difference
from musicsim.extensions.pooling.random_effects import Combined, combine_effects
from musicsim.relevance import Relevance

SETS: dict[str, Callable[..., Collection]] = {"gtzan": load_gtzan, "spotify_msd": load_spotify, "lastfm": load_lastfm}
N_LIBRARIES = 40
SIZES = (5, 10, 40)
TAUS = (0.0, 0.01, 0.03)
MEAN, MIN_ERROR, MAX_ERROR, N_ARTISTS = 0.04, 0.005, 0.04, 30
N_MEASURED = {False: 4_000, True: 20_000}
"""Libraries of each set and way to cut: 100 or 500 pools of 40. The standard error of a coverage is 2 or 1 points."""
N_SIMULATED = {False: 2000, True: 10_000}
N_REMOVED = {False: 100, True: 300}
SONGS = (50, 200, 1000)
"""Sizes of the libraries from which a song is removed."""
N_CLUSTERS, SHARE = 8, 0.7
MAX_ARTISTS = 800
COUNTED = ("auc", "map")
"""Measures of the rows about sets."""

Measured = dict[str, tuple[Estimate, list[Estimate]]]


@dataclass(frozen=True, slots=True)
class Cover:
    """Whether the intervals of one pool cover, the estimated tau, and the width of the interval of the mean."""

    mean: bool
    next: bool
    tau: float
    width: float


@dataclass(frozen=True, slots=True)
class Songs:
    """A set of songs in two fixed models."""

    collection: Collection
    models: tuple[Float64Array, Float64Array]
    names: list[str]  # of artists, by their number
    artists: Int64Array  # distinct artists
    clusters: Int64Array  # of these artists

    def measure(self, rows: Int64Array) -> Measured:
        """Compare the models in a library of these rows; empty if there are too few songs."""
        from scipy.spatial.distance import cdist

        labels = self.collection.labels
        relevance = self.collection.relevance(rows) if labels is None else Relevance.from_labels(labels[rows])
        is_relevant = relevance.judgments(np.arange(len(rows))) == 1
        scores = [score_all(cdist(X[rows], X[rows]), is_relevant) for X in self.models]
        has_score = np.isfinite(scores[0]["auc"])
        before, after = ({measure: one[measure][has_score] for measure in RANKING_MEASURES} for one in scores)
        return differences_of(before, after, [self.names[a] for a in self.collection.artists[rows[has_score]]])

    def rows_of(self, artists: Int64Array) -> Int64Array:
        """Return the rows of some artists."""
        return np.flatnonzero(np.isin(self.collection.artists, artists))


def score_all(D: Float64Array, is_relevant: BoolArray) -> dict[str, Float64Array]:
    """Score all songs of a library as queries; `D` and `is_relevant` are (n, n), and no two distances are equal.

    The scores are those of :func:`musicsim.evaluation.distance_scores`, which takes five times as long for few songs.
    """
    D = D.copy()
    np.fill_diagonal(D, np.inf)
    hits = np.take_along_axis(is_relevant, np.argsort(D, axis=1), axis=1)[:, :-1]
    found, n = hits.cumsum(axis=1), hits.sum(axis=1)
    n_others = hits.shape[1] - n
    with np.errstate(invalid="ignore"):  # queries without relevant songs have no scores
        auc = (found * ~hits).sum(axis=1) / (n * n_others)
        precision = (hits * found / np.arange(1, hits.shape[1] + 1)).sum(axis=1) / n
    return {"auc": auc, "map": precision, "mrr": 1 / (1 + hits.argmax(axis=1)), "precision": hits[:, :10].mean(axis=1)}


@cache
def load(name: str, seed: int) -> Songs:
    """Load a set, or the songs of a random sample of its artists, and fit both models and the clusters on all of it."""
    from sklearn.cluster import KMeans

    collection = SETS[name]()
    artists = np.random.default_rng(seed).permutation(np.unique(collection.artists))
    if len(artists) > MAX_ARTISTS and collection.labels is not None and name != "gtzan":
        rows = np.flatnonzero(np.isin(collection.artists, artists[:MAX_ARTISTS]))
        collection = replace(
            collection, X=collection.X[rows], labels=collection.labels[rows], artists=collection.artists[rows]
        )
    Z = (collection.X - collection.X.mean(axis=0)) / collection.X.std(axis=0)
    _, s, Vt = np.linalg.svd(Z, full_matrices=False)
    n_axes = int(np.searchsorted(np.cumsum(s**2) / (s @ s), 0.95)) + 1
    scaled = Z @ (Vt[:n_axes].T / s[:n_axes])
    artists = np.unique(collection.artists)
    if name == "gtzan":
        assert collection.labels is not None
        clusters = collection.labels[artists]
    else:
        means = np.array([Z[collection.artists == artist].mean(axis=0) for artist in artists])
        clusters = KMeans(N_CLUSTERS, n_init=4, random_state=seed).fit_predict(means).astype(np.int64)
    names = [f"artist {artist}" for artist in range(int(artists.max()) + 1)]
    return Songs(collection, (Z, scaled), names, artists, clusters)


def cut(songs: Songs, how: str, n: int, rng: np.random.Generator) -> Iterator[Int64Array]:
    """Yield the artists of `n` libraries, each with one fortieth of all artists."""
    size = len(songs.artists) // N_LIBRARIES
    if how == "parted":
        for _ in range(n // N_LIBRARIES):
            yield from np.array_split(rng.permutation(songs.artists), N_LIBRARIES)
        return
    for _ in range(n):
        favored = np.empty(0, dtype=np.int64)
        if how == "specialized":
            own = songs.artists[songs.clusters == rng.choice(songs.clusters)]
            favored = rng.permutation(own)[: round(SHARE * size)]
        others = rng.permutation(np.setdiff1d(songs.artists, favored))
        yield np.concatenate([favored, others[: size - len(favored)]])


def covers(effects: Float64Array, errors: Float64Array, truth: float) -> Cover:
    """Pool libraries, and predict the last from the others."""
    from scipy.stats import t

    found, others = combine_effects(effects, errors), combine_effects(effects[:-1], errors[:-1])
    half = others.predicted_high - others.mean
    half = sqrt(half**2 + (float(t.ppf(0.975, others.n - 2)) * errors[-1]) ** 2)
    is_next = abs(effects[-1] - others.mean) <= half
    return Cover(found.low <= truth <= found.high, bool(is_next), found.tau, found.high - found.low)


def dersimonian_laird(y: Float64Array, s: Float64Array) -> Combined:
    """Return the usual random-effects interval; tau by moments, a normal quantile, without the other fields."""
    w = 1 / s**2
    q = w @ (y - w @ y / w.sum()) ** 2
    tau2 = max(0.0, float((q - len(y) + 1) / (w.sum() - (w @ w) / w.sum())))
    w = 1 / (s**2 + tau2)
    mean, half = float(w @ y / w.sum()), 1.96 / sqrt(w.sum())
    return Combined(len(y), mean, mean - half, mean + half, sqrt(tau2), np.nan, np.nan, np.nan)


def summarize(pools: list[Cover]) -> dict[str, Any]:
    """Return coverage, and means over the pools."""
    return {
        "pools": len(pools),
        "mean covered": float(np.mean([one.mean for one in pools])),
        "next covered": float(np.mean([one.next for one in pools])),
        "tau": float(np.mean([one.tau for one in pools])),
        "width": float(np.mean([one.width for one in pools])),
    }


def simulate(n: int, tau: float, n_pools: int, seed: int) -> dict[str, Any]:
    """Pool simulated libraries with a known mean and spread."""
    rng = np.random.default_rng(seed)
    pools, usual = [], []
    for _ in range(n_pools):
        errors = np.exp(rng.uniform(np.log(MIN_ERROR), np.log(MAX_ERROR), n))
        effects = rng.normal(MEAN, np.sqrt(tau**2 + errors**2))
        estimated = errors * np.sqrt(rng.chisquare(N_ARTISTS - 1, n) / (N_ARTISTS - 1))
        pools.append(covers(effects, estimated, MEAN))
        found = dersimonian_laird(effects, estimated)
        usual.append(found.low <= MEAN <= found.high)
    covered = {"DerSimonian-Laird covered": float(np.mean(usual))}
    return {"part": "simulated", "libraries": n, "true tau": tau} | summarize(pools) | covered


def measure_set(name: str, how: str, n: int, seed: int) -> list[dict[str, Any]]:
    """Measure `n` libraries of a set, and pool them."""
    songs, rng = load(name, seed), np.random.default_rng(seed)
    measured = [songs.measure(songs.rows_of(artists)) for artists in cut(songs, how, n, rng)]
    rows = []
    for measure in COUNTED:
        exact = np.array([one[measure][0].mean for one in measured if one])
        rounded = [round_difference(*one[measure]) for one in measured if one]
        effects, errors = np.array([(one.mean, one.standard_error) for one in rounded]).T
        truth = float(exact.mean())
        for size in (N_LIBRARIES,) if how == "parted" else SIZES:
            groups = (slice(start, start + size) for start in range(0, len(effects) - size + 1, size))
            pools = [covers(effects[group], errors[group], truth) for group in groups]
            row = {"part": "sets", "set": name, "how": how, "measure": RANKING_MEASURES[measure], "libraries": size}
            rows.append(row | {"truth": truth, "left out": n - len(exact)} | summarize(pools))
    return rows


def remove_songs(name: str, n_songs: int, n: int, seed: int) -> list[dict[str, Any]]:
    """Remove one song from `n` libraries of about `n_songs` songs each, and compare the files."""
    songs, rng = load(name, seed), np.random.default_rng(seed)
    per_artist = len(songs.collection.X) / len(songs.artists)
    is_same: list[bool] = []
    is_in_step: list[bool] = []
    moves: list[float] = []
    for _ in range(n):
        rows = songs.rows_of(rng.permutation(songs.artists)[: round(n_songs / per_artist)])
        before, after = songs.measure(rows), songs.measure(np.delete(rows, rng.integers(len(rows))))
        if not before or not after:
            continue
        moved = [move for measure in RANKING_MEASURES for move in _moves(before[measure], after[measure])]
        same_bins = bin_count(len(rows)) == bin_count(len(rows) - 1)
        is_same.append(
            same_bins and all(round_difference(*before[m]) == round_difference(*after[m]) for m in RANKING_MEASURES)
        )
        is_in_step.append(max(moved) <= 1)
        moves += moved
    row = {
        "part": "one song", "set": name, "songs": n_songs, "removals": len(is_same), "same": float(np.mean(is_same)),
        "in step": float(np.mean(is_in_step)), "median move in steps": float(np.median(moves)),
        "largest move in steps, 95 %": float(np.quantile(moves, 0.95)),
    }  # fmt: skip
    return [row]


def _moves(before: tuple[Estimate, list[Estimate]], after: tuple[Estimate, list[Estimate]]) -> Iterator[float]:
    """Yield how far the mean and the ends of the folds' intervals moved, in rounding steps."""
    whole, other = before[0], after[0]
    yield abs(whole.mean - other.mean) / step_of(max(whole.error, other.error) / 2)[0]
    for a, b in zip(before[1], after[1], strict=False):
        step = step_of(max(a.error, b.error))[0]
        yield from (abs(a.mean + end * a.half - b.mean - end * b.half) / step for end in (-1, 0, 1))


def run(settings: Settings, progress: Progress) -> tuple[list[dict[str, Any]], list[Claim]]:
    """Simulate libraries, then cut the public sets; 100 pools of 40 libraries each, 500 with ``--full``."""
    kept, seed, is_full = kept_parts("pooling", settings), settings.seed, settings.full
    simulated, removed, measured = map(kept.cache, (simulate, remove_songs, measure_set))
    tasks: dict[str, Future[list[dict[str, Any]]]] = {}
    with one_core_each() as pool:
        simulations = [pool.submit(simulated, n, tau, N_SIMULATED[is_full], seed) for n in SIZES for tau in TAUS]
        n = N_MEASURED[is_full]
        settings.facts.update({"libraries of each set and way": n, "artists of spotify_msd, at most": MAX_ARTISTS})
        for name in load_found(SETS, settings, progress):
            for how in ("parted", "drawn", "specialized"):
                tasks[f"{name}, {how}"] = pool.submit(measured, name, how, n, seed)
            for n_songs in SONGS:
                tasks[f"{name}, {n_songs} songs: one removed"] = pool.submit(
                    removed, name, n_songs, N_REMOVED[is_full], seed
                )
        rows = [simulation.result() for simulation in simulations]
        progress("simulated libraries")
        for name, task in tasks.items():
            rows += task.result()
            progress(name)
    return rows, list(_claims(rows))


def _claims(rows: list[dict[str, Any]]) -> Iterator[Claim]:
    for row in rows:
        if row["part"] == "simulated":
            what = f"simulated, {row['libraries']} libraries, tau {row['true tau']:g}"
            yield at_least(f"{what}: coverage of the mean", row["mean covered"], 0.93)
        elif row["part"] == "sets":
            what = f"{row['set']}, {row['libraries']} {row['how']}, {row['measure']}"
            yield at_least(f"{what}: coverage of the mean", row["mean covered"], 0.93)
            yield at_least(f"{what}: coverage of the next library", row["next covered"], 0.93)
        elif row["songs"] >= SONGS[1]:
            yield at_least(f"{row['set']}, {row['songs']} songs: within the rounding", row["in step"], 0.5)


# --- tables of the documents --------------------------------------------------------------------------------


def _describe_libraries(row: KeptRow) -> str:
    if row["part"] == "simulated":
        return f"simulated, tau {SHARE_2(row.get('true tau'))}"
    return f"{row['set']}, {row['how']}"


TABLES: dict[str, Table] = {
    "pooling": list_columns(
        Column("libraries", _describe_libraries),
        Column("number", "libraries"),
        Column("measure", "measure"),
        Column("pools", "pools", "{:,}"),
        Column("mean tau", "tau", SHARE_3),
        Column("mean covered", "mean covered", SHARE_3),
        Column("next library covered", "next covered", SHARE_3),
        where=lambda row: row["part"] != "one song",
    ),
    "pooling: one song": list_columns(
        Column("set", "set"),
        Column("songs", "songs", "{:,}"),
        Column("same file", "same", SHARE_2),
        Column("all numbers within one step", "in step", SHARE_2),
        Column("median move of a number, in steps", "median move in steps", SHARE_2),
        where=lambda row: row["part"] == "one song",
    ),
}


if __name__ == "__main__":
    main(
        "pooling", __doc__.splitlines()[0], run, data=("gtzan", "hetrec2011-lastfm-2k", "spotify_msd"), has_parts=True,
        short="4,000 of 20,000 libraries of each set and way, 2,000 of 10,000 simulated pools, and 100 of 300 removed "
        "songs. The full form is worth running, because 100 pools of 40 libraries are too few to check a coverage",
    )  # fmt: skip
