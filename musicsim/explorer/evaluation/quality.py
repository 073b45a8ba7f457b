"""How good is "similar" in a library: rankings against what listeners say, lists by genre, and hubs.

Conventions. *Scores* rank all songs by plain distance, each song a query that is left out itself, songs of its own
artist left out too. *Lists* are the ten nearest of every song, in plain order and in the order of the app with hub
reduction: mutual proximity of the 500 nearest. A song is a *hub* when it stands in many lists, and an *orphan* when it
stands in none. Genres are judged on lists without the query's own artist: a recording studio is not a genre.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from musicsim import evaluation, relevance, search
from musicsim._arrays import Float32Array, Float64Array, Int64Array
from musicsim.errors import ModelError
from musicsim.explorer.evaluation.fixed_splits import split_rows
from musicsim.explorer.learning.supervision import Supervision
from musicsim.explorer.learning.verdict import RANKED, Lead
from musicsim.explorer.models.artifacts import load_report
from musicsim.explorer.query_blocks import QUERIES_AT_ONCE, of_blocks
from musicsim.explorer.snapshot.neighbours import Neighbours
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Library
from musicsim.library.stores.models import ModelRecord
from musicsim.progress import Progress, no_progress
from musicsim.relevance import Relevance

K = 10
_CANDIDATES = 500  # as a search of the app reorders
_MAX_QUERIES = 2_000
_MAX_SONGS = 10_000
_MAX_RANKED = 100_000
_RESAMPLES = 2_000
_MIN_OF_GENRE = 5  # of fewer songs, a share says little
_UNKNOWN = "no genre"
_OTHERS = "other genres"


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean over queries, and the interval that holds 95 % of its resampled values: nan of fewer than two artists."""

    mean: float
    low: float = float("nan")
    high: float = float("nan")


@dataclass(frozen=True, slots=True)
class GenreScores:
    """The queries of one genre: how many, their average precision and precision at 10, means."""

    genre: str
    n_queries: int
    map: float
    precision: float


@dataclass(frozen=True, slots=True)
class Scores:
    """How well a model ranks what a kind of supervision calls similar."""

    kind: str  # one of KINDS
    figures: dict[str, Figure]  # by measure: auc, map, mrr, precision (at 10); in 0..1
    # songs in the means, and songs without anything relevant to them
    n_queries: int
    n_skipped: int
    n_left_out: int  # songs that could have been asked but were not drawn
    n_ranked: int  # songs that each query ranks: all, or a sample of very many
    by_genre: list[GenreScores]  # the best average precision first


@dataclass(frozen=True, slots=True)
class Mixed:
    """Two genres that stand in each other's lists: `share` of the songs nearest to one are of the other."""

    genre: str
    other: str
    share: float

    @property
    def words(self) -> str:
        """The share in a sentence."""
        return f"{100 * self.share:.0f} % of the songs nearest to {self.genre} are {self.other}"


@dataclass(frozen=True, slots=True)
class Confusion:
    """Which genres the nearest songs of other artists have."""

    genres: list[str]  # those of five songs or more, the largest first
    n_songs: Int64Array  # (n_genres,)
    # the genres; "other genres" when a neighbour has a smaller one, and "no genre" when one has none
    columns: list[str]
    shares: Float64Array  # (n_genres, n_columns): rows sum to 1; nan where no song of a genre has a neighbour

    def largest(self, n: int = 30) -> Confusion:
        """The `n` largest genres; what the others have is summed up in a column of its own."""
        if len(self.genres) <= n:
            return self
        rest = [i for i, name in enumerate(self.columns) if i >= n and name != _UNKNOWN]
        kept = [i for i in range(len(self.columns)) if i not in set(rest)]
        shares = np.column_stack([self.shares[:n, kept], self.shares[:n, rest].sum(axis=1)])
        return Confusion(self.genres[:n], self.n_songs[:n], [*(self.columns[i] for i in kept), _OTHERS], shares)

    def pairs(self, n: int = 10) -> list[Mixed]:
        """The `n` largest shares of another genre."""
        found = [
            Mixed(genre, other, float(self.shares[i, j]))
            for i, genre in enumerate(self.genres)
            for j, other in enumerate(self.genres)
            if i != j and self.shares[i, j] > 0
        ]
        return sorted(found, key=lambda m: (-m.share, m.genre, m.other))[:n]


@dataclass(frozen=True, slots=True)
class Hub:
    """A song that stands in many lists: how many, and of how many artists the lists are."""

    song_id: int
    n_lists: int
    n_artists: int


@dataclass(frozen=True, slots=True)
class Lists:
    """The ten nearest of every song, in one order."""

    hubness: float  # skew of how often songs stand in lists; above 1 a few are near everything
    coverage: float  # share of the songs that stand in some list
    hubs: list[Hub]  # all songs that stand in a list, the most frequent first
    orphans: list[int]  # ids of the songs that stand in none
    # share of the nearest songs of other artists that have the query's genre, of queries whose genre has five
    # songs or more; nan without such genres
    same_genre: float
    same_genre_of: dict[str, float]  # the same by genre of the query
    confusion: Confusion


@dataclass(frozen=True, slots=True)
class ListsOfBoth:
    """Lists without and with hub reduction, of `n_compared` of `n_songs` songs."""

    plain: Lists
    reduced: Lists
    n_songs: int
    n_compared: int


@dataclass(frozen=True, slots=True)
class HeldOut:
    """What a learned model showed on artists that it had not heard when it was judged."""

    kind: str  # what it was taught, and asked
    n_songs: int
    n_artists: int
    leads: dict[str, Lead]  # by measure; empty where too few artists were held out


@dataclass(frozen=True, slots=True)
class Quality:
    """All about a model: `scores`, `lists` (None of fewer than two songs), and `held_out` of a learned one."""

    model: str
    scores: Scores
    lists: ListsOfBoth | None
    held_out: HeldOut | None = None


def evaluate(snapshot: Snapshot, kind: str, progress: Progress = no_progress, *, split: str | None = None) -> Quality:
    """Everything of one model; arguments and errors of :func:`measure_scores`."""
    scores = measure_scores(snapshot, kind, split=split, progress=progress)
    record = snapshot.record
    return Quality(
        record.name if record else "",
        scores,
        measure_lists(snapshot, progress=progress),
        held_out(snapshot.library, record) if record else None,
    )


def held_out(library: Library, record: ModelRecord) -> HeldOut | None:
    """The report of a learned model on artists that were held out; None for any other model."""
    report = load_report(library.models.path(record.id))
    if "split" not in report:  # answers are held out, not artists
        return None
    leads = {name: Lead(**lead) for name, lead in report["leads"].items()}
    asked = report["split"]["test"]
    return HeldOut(report["settings"]["supervision"], asked["songs"], asked["artists"], leads)


def measure_scores(
    snapshot: Snapshot,
    kind: str,
    *,
    split: str | None = None,
    most_queries: int = _MAX_QUERIES,
    random_state: int = 0,
    progress: Progress = no_progress,
) -> Scores:
    """Rank all songs for each song by plain distance, and compare with what is relevant to it.

    Parameters
    ----------
    kind : str
        One of :data:`musicsim.explorer.learning.supervision.KINDS`.
    split : str, optional
        Name of a fixed split: only its test songs are asked, and only its training songs are ranked.
    most_queries : int
        Of more songs a seeded sample is asked; all of them are ranked.
    random_state : int
        Of the sample and of the intervals, which whole artists are drawn for.
    progress : Progress, optional
        Told what is being done, how much of it, and of how much.

    Raises
    ------
    ModelError
        If the library says nothing of this kind, the split has no test or no training songs, or a vector is none, as
        after damage to the disk.
    NotFoundError
        If there is no split of this name.

    Notes
    -----
    2 000 queries of 5 000 songs take a few seconds. Memory: 8 bytes times songs times dimensions, and what
    :func:`~musicsim.evaluation.query_scores` says: 260 MB for 100 000 songs of 139 dimensions.
    """
    progress("reading listener data", 0, 0)
    supervision = Supervision(snapshot, kind)
    genres = snapshot.columns.genre.texts()
    queries_of = database = np.arange(snapshot.n_indexed)
    if split is not None:
        queries_of, database = split_rows(snapshot, split)
    relevance = supervision.relevance(database)
    able = queries_of[relevance.n_relevant()[queries_of] > 0]
    asked = _sampled(able, most_queries, random_state)
    ranked = _sampled(database, _MAX_RANKED, random_state)
    progress("ranking similar songs", 0, len(asked))
    scores = {name: np.empty(len(asked)) for name in RANKED}
    blocks = _blocks(len(asked))
    queries, X = _vectors(snapshot, asked), _vectors(snapshot, ranked)
    ranking = partial(_ranked, queries, X, relevance.restrict(asked, ranked))
    for block, found in zip(blocks, of_blocks(snapshot.library, ranking, blocks, len(blocks)), strict=True):
        for name, values in scores.items():
            values[block] = found[name]
        progress("ranking similar songs", block[-1] + 1, len(asked))
    counted = np.isfinite(scores["auc"])
    artists = [supervision.groups[i] for i in asked[counted]]
    scores = {name: values[counted] for name, values in scores.items()}
    return Scores(
        kind,
        {name: figure_of(values, artists, random_state) for name, values in scores.items()},
        n_queries=int(counted.sum()),
        n_skipped=len(queries_of) - len(able) + int((~counted).sum()),
        n_left_out=len(able) - len(asked),
        n_ranked=len(ranked),
        by_genre=_by_genre([genres[i] for i in asked[counted]], scores),
    )


def _blocks(n: int) -> list[range]:
    return [range(start, min(start + QUERIES_AT_ONCE, n)) for start in range(0, n, QUERIES_AT_ONCE)]


def _vectors(snapshot: Snapshot, rows: Int64Array) -> Float32Array:
    X = snapshot.X[rows]
    if not np.isfinite(X).all():
        name = snapshot.record.name if snapshot.record else ""
        raise ModelError(
            f"the vectors of the model {name!r} are damaged: leave it out by --model, or run `musicsim doctor --fix`."
        )
    return X


def _ranked(queries: Float32Array, X: Float32Array, relevance: Relevance, block: range) -> dict[str, Float64Array]:
    """Scores of a block of queries; also runs in a pool."""
    return evaluation.query_scores(queries[block], X, relevance.restrict(block), K)


def _sampled(rows: Int64Array, most: int, random_state: int) -> Int64Array:
    if len(rows) <= most:
        return rows
    return np.sort(np.random.default_rng(random_state).permutation(rows)[:most])


def figure_of(values: Float64Array, artists: Sequence[str], random_state: int) -> Figure:
    """The mean of scores of queries by so many artists, and its interval."""
    if not len(values):
        return Figure(float("nan"))
    if len(set(artists)) < 2:
        return Figure(float(values.mean()))
    return Figure(*evaluation.paired_bootstrap(values, np.zeros(len(values)), artists, _RESAMPLES, random_state))


def _by_genre(genres: Sequence[str | None], scores: dict[str, Float64Array]) -> list[GenreScores]:
    rows_of: dict[str, list[int]] = {}
    for row, genre in enumerate(genres):
        if genre:
            rows_of.setdefault(genre, []).append(row)
    found = [
        GenreScores(genre, len(rows), float(scores["map"][rows].mean()), float(scores["precision"][rows].mean()))
        for genre, rows in rows_of.items()
        if len(rows) >= _MIN_OF_GENRE
    ]
    return sorted(found, key=lambda g: (-g.map, g.genre))


def measure_lists(
    snapshot: Snapshot, *, most_songs: int = _MAX_SONGS, random_state: int = 0, progress: Progress = no_progress
) -> ListsOfBoth | None:
    """The ten nearest of every song, without and with hub reduction.

    Parameters
    ----------
    most_songs : int
        Of a larger library a seeded sample is compared within itself.
    random_state : int
        Of the sample.
    progress : Progress, optional
        Told what is being done, how much of it, and of how much.

    Returns
    -------
    ListsOfBoth, None of fewer than two songs

    Notes
    -----
    As many candidates are reordered as leave ten songs of other artists, and at least 500. Memory: 3 kB and
    the songs of the largest artist times 12 bytes a query of a block of 256, and 320 bytes a song: 15 MB for
    10 000 songs. Mutual proximity: Schnitzer et al., JMLR 2012.
    """
    n = snapshot.n_indexed
    if n < 2:
        return None
    rows = _sampled(np.arange(n), most_songs, random_state)
    index: search.ExactIndex | Neighbours
    if len(rows) == n:
        index, proximity, X = snapshot.index, snapshot.proximity, snapshot.X
    else:
        X = snapshot.X[rows]
        index, proximity = snapshot.index_of(X), search.MutualProximity().fit(X)
    columns = snapshot.columns.take(rows)
    ids, artists = snapshot.row_ids[rows], columns.group.codes.astype(np.int64)
    near = _nearest(snapshot.library, X, index, proximity, artists, progress)
    plain, reduced = (_summary(*one, ids, artists, columns.genre.texts()) for one in near)
    return ListsOfBoth(plain, reduced, n, len(rows))


def _nearest(
    library: Library,
    X: Float32Array,
    index: search.ExactIndex | Neighbours,
    proximity: search.MutualProximity,
    artists: Int64Array,
    progress: Progress,
) -> list[tuple[Int64Array, Int64Array]]:
    """Plain and reduced order: rows of the ten nearest, of any artist and of others; -1 where there are fewer."""
    n = len(X)
    reach = min(n, max(_CANDIDATES, K + int(np.bincount(artists).max())) + 1)
    parts, blocks = [], _blocks(n)
    for block, near in zip(
        blocks,
        of_blocks(library, partial(_nearest_of, X, index, proximity, artists, reach), blocks, len(blocks)),
        strict=True,
    ):
        parts.append(near)
        progress("looking for hubs", block[-1] + 1, n)
    plain, reduced = np.concatenate(parts, axis=2)
    return [(plain[0], plain[1]), (reduced[0], reduced[1])]


def _nearest_of(
    X: Float32Array,
    index: search.ExactIndex | Neighbours,
    proximity: search.MutualProximity,
    artists: Int64Array,
    reach: int,
    block: range,
) -> Int64Array:
    """The same of some rows, (order, artists, n, K); also runs in a pool."""
    near = np.full((2, 2, len(block), K), -1, dtype=np.int64)
    distances, found = index.query(X[block], reach)
    for place, (q, d, rows) in enumerate(zip(block, distances, found, strict=True)):
        others = rows != q
        d, rows = d[others], rows[others]  # noqa: PLW2901  # without the song itself
        adjusted = proximity.rescore(d, rows, (proximity.mean_[q], proximity.std_[q]))
        for (any_artist, other_artists), order in zip(
            near, (rows, rows[np.argsort(adjusted, kind="stable")]), strict=True
        ):
            any_artist[place, : len(order[:K])] = order[:K]
            of_others = order[artists[order] != artists[q]][:K]
            other_artists[place, : len(of_others)] = of_others
    return near


def _summary(
    near: Int64Array, near_others: Int64Array, ids: Int64Array, artists: Int64Array, genres: Sequence[str | None]
) -> Lists:
    counts = evaluation.k_occurrence(near, len(ids))
    query, place = np.nonzero(near >= 0)
    pairs = np.unique(np.column_stack([near[query, place], artists[query]]), axis=0)
    n_artists = np.bincount(pairs[:, 0], minlength=len(ids))
    order = np.lexsort((ids, -counts))
    hubs = [Hub(int(ids[i]), int(counts[i]), int(n_artists[i])) for i in order if counts[i] > 0]
    sizes = Counter(genre for genre in genres if genre)
    large = [genre if genre and sizes[genre] >= _MIN_OF_GENRE else None for genre in genres]
    mean, shares = evaluation.share_of_same(near_others, relevance.label_codes(large))
    confusion = _confusion(near_others, genres, sizes)
    same_of = {}
    for genre in confusion.genres:
        own = shares[np.array([g == genre for g in genres])]
        if np.isfinite(own).any():
            same_of[genre] = float(np.nanmean(own))
    return Lists(
        evaluation.hubness(near, len(ids)),
        len(hubs) / len(ids),
        hubs,
        ids[counts == 0].tolist(),
        mean,
        same_of,
        confusion,
    )


def _confusion(near: Int64Array, genres: Sequence[str | None], sizes: Mapping[str, int]) -> Confusion:
    """Shares of each genre among the neighbours of each; songs of unknown or rare genres ask nothing."""
    names = sorted((g for g, n in sizes.items() if n >= _MIN_OF_GENRE), key=lambda g: (-sizes[g], g))
    n = len(names)
    place = {name: i for i, name in enumerate(names)}
    columns = np.array([place.get(g, n) if g else n + 1 for g in genres], dtype=np.int64)
    query, rank = np.nonzero((near >= 0) & (columns < n)[:, None])
    counts = np.zeros((n, n + 2))
    np.add.at(counts, (columns[query], columns[near[query, rank]]), 1.0)
    shown = [*range(n), *(i for i in (n, n + 1) if counts[:, i].any())]
    with np.errstate(invalid="ignore"):
        shares = counts[:, shown] / counts.sum(axis=1, keepdims=True)
    every = [*names, _OTHERS, _UNKNOWN]
    return Confusion(names, np.array([sizes[g] for g in names], np.int64), [every[i] for i in shown], shares)
