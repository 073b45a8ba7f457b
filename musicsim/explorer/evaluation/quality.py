"""Evaluation of a model: rankings compared with a ground truth, genres of the nearest songs, hubs and orphans.

For *scores*, all songs are ranked by plain distance from each query, excluding the query and other songs by its artist.
*Lists* contain the ten songs nearest to each song, in plain order and with hub reduction (mutual proximity among the
500 nearest), as in the app. A *hub* is in many lists; an *orphan* is in none. Genres are evaluated on lists without the
query's own artist, because songs by one artist often share a studio sound.
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
from musicsim.explorer.learning.search_ranking import QueryHubReduction
from musicsim.explorer.learning.supervision import Supervision
from musicsim.explorer.learning.verdict import RANKING_MEASURES, Lead
from musicsim.explorer.models.artifacts import load_report
from musicsim.explorer.query_blocks import QUERIES_AT_ONCE, map_blocks
from musicsim.explorer.snapshot.neighbors import Neighbors
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.hooks import ListFaults
from musicsim.library import Library, ModelRecord
from musicsim.progress import Progress, no_progress
from musicsim.registry import load_hooks
from musicsim.relevance import Relevance

PRECISION_K = 10
_CANDIDATES = 500  # number of songs that a search in the app re-ranks
_MAX_QUERIES = 2_000
_MAX_SONGS = 10_000  # maximum number of songs for which lists are computed
_MAX_RANKED = 100_000
_RESAMPLES = 2_000
_SEED = 0
_MIN_OF_GENRE = 5  # minimum number of songs per genre; shares of smaller genres are too uncertain
_OTHERS = "other genres"


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean over queries, and its 95% bootstrap interval, which is nan for fewer than two artists."""

    mean: float
    low: float = float("nan")
    high: float = float("nan")


@dataclass(frozen=True, slots=True)
class GenreScores:
    """Mean average precision and precision at 10 for the queries of one genre."""

    genre: str
    n_queries: int
    map: float
    precision: float


@dataclass(frozen=True, slots=True)
class KindScores:
    """Scores of a model for one kind of ground truth."""

    kind: str  # one of KINDS
    figures: dict[str, Figure]  # scores from 0 to 1, keyed by measure (auc, map, mrr, precision at 10)
    n_queries: int
    n_skipped: int  # number of query songs without relevant songs
    n_left_out: int  # number of possible queries that were not sampled
    n_ranked: int  # number of songs ranked per query: all songs, or a sample of a large library
    by_genre: list[GenreScores]  # sorted by descending average precision


@dataclass(frozen=True, slots=True)
class Mixed:
    """A confusion of genres: the share of the songs nearest to `genre` songs that have the genre `other`."""

    genre: str
    other: str
    share: float

    @property
    def words(self) -> str:
        """The share, as a sentence."""
        return f"{self.share:.0%} of the songs nearest to {self.genre} are {self.other}"


@dataclass(frozen=True, slots=True)
class Confusion:
    """Genres of the nearest songs by other artists."""

    genres: list[str]  # genres with at least five songs, largest first
    n_songs: Int64Array  # (n_genres,)
    columns: list[str]  # `genres`, then "other genres" for smaller ones, if these occur
    shares: Float64Array  # (n_genres, n_columns): rows sum to 1; a row is nan if no neighbor of its songs has a genre

    def largest(self, n: int = 30) -> Confusion:
        """Return the `n` largest genres, with all others combined in one column."""
        if len(self.genres) <= n:
            return self
        shares = np.column_stack([self.shares[:n, :n], self.shares[:n, n:].sum(axis=1)])
        return Confusion(self.genres[:n], self.n_songs[:n], [*self.columns[:n], _OTHERS], shares)

    def of_size(self, n_songs: int) -> Confusion:
        """Return only the genres with at least `n_songs` songs, with all others combined in one column."""
        n = int((self.n_songs >= n_songs).sum())
        return self.largest(n)

    def pairs(self, n: int = 10) -> list[Mixed]:
        """Return the `n` largest confusions of two different genres."""
        pairs = [
            Mixed(genre, other, float(self.shares[i, j]))
            for i, genre in enumerate(self.genres)
            for j, other in enumerate(self.genres)
            if i != j and self.shares[i, j] > 0
        ]
        return sorted(pairs, key=lambda m: (-m.share, m.genre, m.other))[:n]


@dataclass(frozen=True, slots=True)
class Hub:
    """A song, the number of lists that contain it, and the number of artists whose lists contain it."""

    song_id: int
    n_lists: int
    n_artists: int


@dataclass(frozen=True, slots=True)
class ListStatistics:
    """Statistics of all songs' lists, either in plain order or with hub reduction."""

    hubness: float  # skewness of the number of lists per song; a value above 1 means strong hubs
    coverage: float  # share of songs that are in a list
    hubs: list[Hub]  # all songs that are in a list, by descending frequency
    orphans: list[int]  # ids of songs that are not in any list
    same_genre: float  # share of neighbors by other artists that have the query's genre; nan without large genres
    same_genre_of: dict[str, float]  # the same share, for the queries of each genre separately
    confusion: Confusion


@dataclass(frozen=True, slots=True)
class ListsOfBoth:
    """Lists without and with hub reduction, for `n_compared` of `n_songs` songs."""

    plain: ListStatistics
    reduced: ListStatistics
    n_songs: int
    n_compared: int


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Scores of a learned model on held-out artists."""

    kind: str  # ground truth for both training and scores
    n_songs: int
    n_artists: int
    leads: dict[str, Lead]  # keyed by measure; empty if too few artists were held out


@dataclass(frozen=True, slots=True)
class Quality:
    """Evaluation of a model. `lists` is None for fewer than two songs; `held_out` is None without held-out artists."""

    model: str
    scores: KindScores
    lists: ListsOfBoth | None
    held_out: HeldOut | None = None


def evaluate(snapshot: Snapshot, kind: str, progress: Progress = no_progress, *, split: str | None = None) -> Quality:
    """Evaluate a model, with the same arguments and errors as :func:`measure_scores`."""
    scores = measure_scores(snapshot, kind, split=split, progress=progress)
    record = snapshot.record
    lists = measure_lists(snapshot, progress=progress)
    held_out = load_held_out(snapshot.library, record) if record else None
    return Quality(record.name if record else "", scores, lists, held_out)


def load_held_out(library: Library, record: ModelRecord) -> HeldOut | None:
    """Return the stored scores of a learned model on held-out artists; None for any other model."""
    report = load_report(library.models.path(record.id))
    if "split" not in report:  # trained on answers, so no artists were held out
        return None
    leads = {name: Lead(**lead) for name, lead in report["leads"].items()}
    test = report["split"]["test"]
    return HeldOut(report["settings"]["supervision"], test["songs"], test["artists"], leads)


def measure_scores(
    snapshot: Snapshot, kind: str, *, split: str | None = None, progress: Progress = no_progress
) -> KindScores:
    """Rank all songs for each query, in the order of search, and score each ranking against the ground truth.

    `kind` is one of :data:`musicsim.explorer.requests.training.TRAINING_KINDS`. If `split` names a fixed split, its
    test songs are the queries, and its training songs are ranked. At most 2,000 queries are sampled with a fixed seed.
    Raises ModelError if a vector is damaged, or if the ground truth or the split's songs are missing. Raises
    NotFoundError for an unknown split.

    2,000 queries on 5,000 songs take a few seconds. Memory: 8 bytes times songs times dimensions, plus the memory of
    :func:`~musicsim.evaluation.query_scores`. The total is 260 MB for 100,000 songs with 139 dimensions.
    """
    progress("reading listener data", 0, 0)
    supervision = Supervision(snapshot, kind)
    genres = snapshot.columns.genre.texts()
    candidates = database = np.arange(snapshot.n_indexed)
    if split is not None:
        candidates, database = split_rows(snapshot, split)
    relevance = supervision.relevance(database)
    answerable = candidates[relevance.n_relevant()[candidates] > 0]
    query_rows, ranked = _sample(answerable, _MAX_QUERIES), _sample(database, _MAX_RANKED)
    progress("ranking similar songs", 0, len(query_rows))
    scores = {name: np.empty(len(query_rows)) for name in RANKING_MEASURES}
    blocks = _blocks(len(query_rows))
    queries, X = _vectors(snapshot, query_rows), _vectors(snapshot, ranked)
    adjust = None
    if snapshot.library.settings["hub_reduction"]:
        adjust = QueryHubReduction(_vectors(snapshot, _sample(np.arange(snapshot.n_indexed), _MAX_RANKED)), X)
    ranking = partial(_score_block, queries, X, adjust, relevance.restrict(query_rows, ranked))
    for block, block_scores in zip(blocks, map_blocks(snapshot.library, ranking, blocks, len(blocks)), strict=True):
        for name, values in scores.items():
            values[block] = block_scores[name]
        progress("ranking similar songs", block[-1] + 1, len(query_rows))
    has_score = np.isfinite(scores["auc"])
    artists = [supervision.groups[i] for i in query_rows[has_score]]
    scores = {name: values[has_score] for name, values in scores.items()}
    return KindScores(
        kind,
        {name: figure_of(values, artists) for name, values in scores.items()},
        n_queries=int(has_score.sum()),
        n_skipped=len(candidates) - len(answerable) + int((~has_score).sum()),
        n_left_out=len(answerable) - len(query_rows),
        n_ranked=len(ranked),
        by_genre=_score_genres([genres[i] for i in query_rows[has_score]], scores),
    )


def _blocks(n: int) -> list[range]:
    return [range(start, min(start + QUERIES_AT_ONCE, n)) for start in range(0, n, QUERIES_AT_ONCE)]


def _vectors(snapshot: Snapshot, rows: Int64Array) -> Float32Array:
    X = snapshot.X[rows]
    if not np.isfinite(X).all():
        name = snapshot.record.name if snapshot.record else ""
        raise ModelError(
            f"the vectors of the model {name!r} are damaged: use a different --model, or run `musicsim doctor --fix`."
        )
    return X


def _score_block(
    queries: Float32Array, X: Float32Array, adjust: QueryHubReduction | None, relevance: Relevance, block: range
) -> dict[str, Float64Array]:
    """Score a block of queries; may run in a worker process."""
    from scipy.spatial.distance import cdist

    D = cdist(queries[block], X)
    if adjust is not None:
        D = adjust(D, queries[block])
    return evaluation.distance_scores(D, relevance.restrict(block), PRECISION_K)


def _sample(rows: Int64Array, most: int) -> Int64Array:
    return rows if len(rows) <= most else np.sort(np.random.default_rng(_SEED).permutation(rows)[:most])


def figure_of(values: Float64Array, artists: Sequence[str]) -> Figure:
    """Return the mean of the queries' scores, and its interval from resampling the artists."""
    if not len(values):
        return Figure(float("nan"))
    if len(set(artists)) < 2:
        return Figure(float(values.mean()))
    return Figure(*evaluation.bootstrap_pairs(values, np.zeros(len(values)), artists, _RESAMPLES, _SEED))


def _score_genres(genres: Sequence[str | None], scores: dict[str, Float64Array]) -> list[GenreScores]:
    rows_of: dict[str, list[int]] = {}
    for row, genre in enumerate(genres):
        if genre:
            rows_of.setdefault(genre, []).append(row)
    genre_scores = [
        GenreScores(genre, len(rows), float(scores["map"][rows].mean()), float(scores["precision"][rows].mean()))
        for genre, rows in rows_of.items()
        if len(rows) >= _MIN_OF_GENRE
    ]
    return sorted(genre_scores, key=lambda g: (-g.map, g.genre))


def measure_lists(snapshot: Snapshot, *, progress: Progress = no_progress) -> ListsOfBoth | None:
    """Find the ten songs nearest to each song, without and with hub reduction; None for fewer than two songs.

    In a larger library, only a sample of 10,000 songs is compared. At least 500 candidates are re-ranked; there are
    always enough to include ten songs by other artists. For mutual proximity, see Schnitzer et al., JMLR 2012. Memory:
    320 bytes per song. Each of the 256 queries in a block takes 3 kB plus 12 bytes per song by the artist with the most
    songs. The total is 15 MB for 10,000 songs.
    """
    n = snapshot.n_indexed
    if n < 2:
        return None
    rows = _sample(np.arange(n), _MAX_SONGS)
    index: search.ExactIndex | Neighbors
    if len(rows) == n:
        index, proximity, X = snapshot.index, snapshot.proximity, snapshot.X
    else:
        X = snapshot.X[rows]
        index, proximity = snapshot.index_of(X), search.MutualProximity().fit(X)
    columns = snapshot.columns.take(rows)
    ids, artists = snapshot.row_ids[rows], columns.group.codes.astype(np.int64)
    near = _nearest(snapshot.library, X, index, proximity, artists, progress)
    plain, reduced = (_summarize(one[0], one[1], ids, artists, columns.genre.texts()) for one in near)
    return ListsOfBoth(plain, reduced, n, len(rows))


def _nearest(
    library: Library,
    X: Float32Array,
    index: search.ExactIndex | Neighbors,
    proximity: search.MutualProximity,
    artists: Int64Array,
    progress: Progress,
) -> Int64Array:
    """Return the rows nearest to each song, int64 (order, artists, n, K); -1 if missing.

    The orders are plain and hub-reduced. Each order is given for songs by any artist, and for songs by other artists.
    """
    n = len(X)
    reach = min(n, max(_CANDIDATES, PRECISION_K + int(np.bincount(artists).max())) + 1)
    parts, blocks = [], _blocks(n)
    nearest = map_blocks(library, partial(_find_nearest, X, index, proximity, artists, reach), blocks, len(blocks))
    for block, near in zip(blocks, nearest, strict=True):
        parts.append(near)
        progress("looking for hubs", block[-1] + 1, n)
    return np.concatenate(parts, axis=2)


def _find_nearest(
    X: Float32Array,
    index: search.ExactIndex | Neighbors,
    proximity: search.MutualProximity,
    artists: Int64Array,
    reach: int,
    block: range,
) -> Int64Array:
    """Do the same as :func:`_nearest` for one block; may run in a worker process."""
    near = np.full((2, 2, len(block), PRECISION_K), -1, dtype=np.int64)
    distances, neighbors = index.query(X[block], reach)
    for place, (q, d, rows) in enumerate(zip(block, distances, neighbors, strict=True)):
        others = rows != q
        d, rows = d[others], rows[others]  # noqa: PLW2901  # leave out the song itself
        adjusted = proximity.rescore(d, rows, (proximity.mean_[q], proximity.std_[q]))
        for (any_artist, other_artists), order in zip(
            near, (rows, rows[np.argsort(adjusted, kind="stable")]), strict=True
        ):
            any_artist[place, : len(order[:PRECISION_K])] = order[:PRECISION_K]
            of_others = order[artists[order] != artists[q]][:PRECISION_K]
            other_artists[place, : len(of_others)] = of_others
    return near


def _summarize(
    near: Int64Array, near_others: Int64Array, ids: Int64Array, artists: Int64Array, genres: Sequence[str | None]
) -> ListStatistics:
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
    orphans = ids[counts == 0].tolist()
    return ListStatistics(
        evaluation.hubness(near, len(ids)), len(hubs) / len(ids), hubs, orphans, mean, same_of, confusion
    )


def _confusion(near: Int64Array, genres: Sequence[str | None], sizes: Mapping[str, int]) -> Confusion:
    """Return the shares of genres among each genre's neighbors with a genre; unknown and rare genres have no row."""
    names = sorted((g for g, n in sizes.items() if n >= _MIN_OF_GENRE), key=lambda g: (-sizes[g], g))
    n = len(names)
    place = {name: i for i, name in enumerate(names)}
    columns = np.array([place.get(g, n) if g else n + 1 for g in genres], dtype=np.int64)
    query, rank = np.nonzero((near >= 0) & (columns < n)[:, None])
    counts = np.zeros((n, n + 2))
    np.add.at(counts, (columns[query], columns[near[query, rank]]), 1.0)
    counts = counts[:, : n + bool(counts[:, n].any())]  # without songs that have no genre
    with np.errstate(invalid="ignore"):
        shares = counts / counts.sum(axis=1, keepdims=True)
    shown = [*names, _OTHERS][: counts.shape[1]]
    return Confusion(names, np.array([sizes[g] for g in names], np.int64), shown, shares)


def split_rows(snapshot: Snapshot, name: str) -> tuple[Int64Array, Int64Array]:
    """Return the rows of a split's test and training songs, ascending; test songs never duplicate training songs."""
    parts = snapshot.library.splits.get(name)
    train, test = (snapshot.rows_of([i for i, own in parts.items() if own == part]) for part in ("train", "test"))
    train, test = np.unique(train[train >= 0]), np.setdiff1d(test[test >= 0], train)
    if not len(test) or not len(train):
        raise ModelError(f"the split {name!r} has no test songs or no training songs: their files are missing.")
    return test, train


def list_known_faults(library: Library) -> list[str]:
    """Return known faults in the songs' labels, which extensions report."""
    return [fault for hook in load_hooks(ListFaults) for fault in hook(library)]
