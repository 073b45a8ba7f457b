"""Evaluation of playlists: the walk and other methods continue held-out lists of a library.

A method sees the first half of a list of six or more songs. Its 500 recommendations should include the second half.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from musicsim import evaluation, playlist
from musicsim._arrays import Float64Array, FloatingArray, Int64Array, IntegerArray
from musicsim.errors import ModelError
from musicsim.explorer import (
    Snapshot,
    TrainingPlaylists,
    build_hypergraph,
    collect_playlists,
    fit_dialects,
    load_sources,
    replace_company,
    take_snapshot,
)
from musicsim.library import Library
from musicsim.progress import Progress, add_prefix, no_progress

LISTS = ("playlists", "sittings")
"""Kinds of lists: playlists (except those that musicsim generated), and listening sessions (songs played in a row)."""
MIN_SONGS = 6  # minimum number of songs in an evaluated list
MIN_LISTS = 10  # minimum number of lists of this length for a useful interval
MEASURES = {"ndcg": "NDCG", "r_precision": "R-precision", "clicks": "Clicks", "hit@10": "Hit rate at 10"}
"""Measures with their names; methods are sorted by the first measure."""
MAX_JUDGED = 500  # maximum number of lists evaluated in a fold
_N_PARTS = 5
_ENOUGH = 200  # number of evaluated lists after which no further fold is evaluated
_N_RECOMMENDED = 500
_SEED = 0

Interval = tuple[float, float, float]  # a mean over lists, and the lower and upper end of its 95% interval
Lists = Sequence[Sequence[int]]
Score = Callable[[int, Sequence[int]], Float64Array]
"""Takes the number of an evaluated list and its first songs; returns the scores of all songs, (n_songs,)."""
Ways = dict[str, Callable[[], Score]]  # maps the name of each method to the function that fits it

POPULARITY, ARTIST, SOUND, ITEM_KNN, ALS, BPR, WALK = (
    "popularity", "same artist", "nearest in sound", "item-kNN", "ALS", "BPR", "walk",
)  # fmt: skip
N_NEIGHBORS = 200
N_FACTORS, ALS_STEPS, BPR_STEPS = 64, 20, 100
ALS_PENALTY, ALS_ALPHA = 0.1, 10.0
BPR_PENALTY, BPR_LEARNING_RATE = 0.002, 0.05
_BLOCK = 65_536  # number of songs per block of distances
_TIES = 1e-6  # weight of popularity relative to cosines, so small that it only breaks ties


@dataclass(frozen=True, slots=True)
class ContinuationTask:
    """Training lists and the first halves of the lists to continue; lists contain song rows."""

    n_songs: int
    train: Lists
    begun: Lists
    fit_walk: Callable[[Lists], playlist.PlaylistModel]
    artists: IntegerArray | None = None  # artist code of each song, (n_songs,), -1 if unknown
    vectors: FloatingArray | None = None  # Sound vectors, (n_songs, n_dimensions); None without a model
    random_state: int = 0

    def matrix(self, lists: Lists) -> sparse.csr_matrix:
        """Return an indicator matrix, float32 (n_lists, n_songs)."""
        rows = np.repeat(np.arange(len(lists)), [len(songs) for songs in lists])
        songs = np.concatenate([np.empty(0, np.int64), *(np.asarray(songs, np.int64) for songs in lists)])
        shape = (len(lists), self.n_songs)
        matrix = sparse.csr_matrix((np.ones(len(songs), np.float32), (rows, songs)), shape)
        matrix.data[:] = 1
        return matrix


def ways(task: ContinuationTask) -> Ways:
    """Return all methods for which the task has data."""
    plays = np.asarray(task.matrix(task.train).sum(axis=0)).ravel().astype(np.float64)
    popularity = plays / (1 + plays.max())  # below 1, so that it only breaks ties between counts
    result: Ways = {POPULARITY: lambda: lambda _, songs: popularity}
    if task.artists is not None:
        result[ARTIST] = partial(_same_artist, task.artists, popularity)
    if task.vectors is not None:
        result[SOUND] = partial(_nearest, task.vectors)
    return result | {
        ITEM_KNN: partial(_item_knn, task, popularity),
        ALS: partial(_als, task),
        BPR: partial(_bpr, task),
        WALK: lambda: score_by_walk(task.fit_walk(task.train)),
    }


def score_by_walk(model: playlist.PlaylistModel) -> Score:
    """Score songs by the mean probability of following a first song; the first songs' own scores are meaningless."""
    graph = model.hypergraph

    def score(_: int, songs: Sequence[int]) -> Float64Array:
        share = np.zeros(graph.n_edges)
        for song in songs:
            edges, probabilities = model.edge_probabilities(song)
            share[edges] += probabilities / (graph.mass[edges] - graph.song_weight[song])
        return graph.song_weight * (graph.incidence @ share) / len(songs)

    return score


def _same_artist(codes: IntegerArray, popularity: Float64Array) -> Score:
    """Score songs by how many of the list's first songs are by the same artist, then by popularity."""

    def score(_: int, songs: Sequence[int]) -> Float64Array:
        # index 0 counts songs by unknown artists, which are ignored
        n_of = np.bincount(codes[list(songs)] + 1, minlength=codes.max(initial=-1) + 2)
        n_of[0] = 0
        return n_of[codes + 1] + popularity

    return score


def _nearest(vectors: FloatingArray) -> Score:
    from scipy.spatial.distance import cdist

    def score(_: int, songs: Sequence[int]) -> Float64Array:
        own = vectors[list(songs)]
        blocks = (vectors[start : start + _BLOCK] for start in range(0, len(vectors), _BLOCK))
        return np.concatenate([-cdist(block, own, "sqeuclidean").min(axis=1) for block in blocks])

    return score


def _item_knn(task: ContinuationTask, popularity: Float64Array) -> Score:
    """Score songs by how often they share lists with the first songs (cosines summed over their 200 neighbors)."""
    lists = task.matrix(task.train).astype(np.float64)
    together = sparse.csr_array(lists.T @ lists)
    scale = sparse.diags_array(1 / np.sqrt(np.maximum(together.diagonal(), 1)))
    cosine = sparse.csr_array(scale @ together @ scale)
    cosine.setdiag(0)
    for row in range(task.n_songs):
        part = cosine.data[cosine.indptr[row] : cosine.indptr[row + 1]]
        if len(part) > N_NEIGHBORS:
            part[part < np.partition(part, -N_NEIGHBORS)[-N_NEIGHBORS]] = 0

    def score(_: int, songs: Sequence[int]) -> Float64Array:
        return np.asarray(cosine[list(songs)].sum(axis=0)).ravel() + _TIES * popularity

    return score


def _als(task: ContinuationTask) -> Score:
    """Alternating least squares (Hu, Koren, Volinsky 2008); a list's factors are computed from its first songs."""
    _, songs = playlist.als_factors(
        task.matrix(task.train), N_FACTORS, penalty=ALS_PENALTY, alpha=ALS_ALPHA, n_passes=ALS_STEPS,
        random_state=task.random_state,
    )  # fmt: skip
    lists = playlist.solve_als(task.matrix(task.begun), songs, penalty=ALS_PENALTY, alpha=ALS_ALPHA)
    return lambda at, _: songs @ lists[at]


def _bpr(task: ContinuationTask) -> Score:
    """Bayesian personalized ranking (Rendle et al. 2009), also fitted to first songs: lists cannot be added later."""
    lists, songs, bias = playlist.bpr_factors(
        task.matrix([*task.train, *task.begun]), N_FACTORS, learning_rate=BPR_LEARNING_RATE, penalty=BPR_PENALTY,
        n_passes=BPR_STEPS, random_state=task.random_state,
    )  # fmt: skip
    return lambda at, _: songs @ lists[len(task.train) + at] + bias


@dataclass(frozen=True, slots=True)
class Continued:
    """Scores of the methods that continued the lists of a library, as JSON values."""

    kind: str  # one of LISTS
    n_lists: int  # number of lists that are long enough
    n_judged: int
    n_parts: int
    n_songs: int  # number of songs that can be recommended
    scores: Mapping[str, Mapping[str, Interval]]  # maps each method and measure to a score; best NDCG first
    leads: Mapping[str, Interval]  # maps each other method to the walk's NDCG minus its own

    @property
    def summary(self) -> str:
        """A sentence about the best method and its lead."""
        best = next(iter(self.scores))
        second = next(way for way in self.scores if way != WALK)
        mean, low, high = self.leads[second]
        if low <= 0 <= high:
            numbers = f"{mean:+.3f} (95% interval {low:+.3f} to {high:+.3f})"
            return f"No significant difference in NDCG between the {WALK} and {second}: {numbers}."
        low, high = sorted((abs(low), abs(high)))
        lead = f"by {abs(mean):.3f} (95% interval {low:.3f} to {high:.3f})"
        if best == WALK:
            return f"The walk has the best NDCG, ahead of {second} {lead}."
        return f"The method with the best NDCG is {best}; the walk is behind {lead}."

    @property
    def method(self) -> str:
        folds = "one fold" if self.n_parts == 1 else f"{self.n_parts} folds"
        return (
            f"Evaluated on {self.n_judged:,} of {self.n_lists:,} {self.kind} with at least {MIN_SONGS} songs, in "
            f"{folds}. Methods choose from {self.n_songs:,} songs and are trained on the lists in all other folds."
        )


def parts_of(lists: Lists, random_state: int) -> list[Int64Array]:
    """Split the lists that are long enough into five random folds; return the list numbers in each fold."""
    long = np.array([at for at, songs in enumerate(lists) if len(set(songs)) >= MIN_SONGS], dtype=np.int64)
    return np.array_split(np.random.default_rng(random_state).permutation(long), _N_PARTS)


def split(lists: Lists, judged: Int64Array) -> tuple[Lists, Lists, Lists]:
    """Return the training lists, and the first and second halves of the evaluated lists, without repeated songs."""
    held_out = set(judged.tolist())
    whole = [list(dict.fromkeys(lists[at])) for at in judged.tolist()]
    return (
        [songs for at, songs in enumerate(lists) if at not in held_out],
        [songs[: (len(songs) + 1) // 2] for songs in whole],
        [songs[(len(songs) + 1) // 2 :] for songs in whole],
    )


def lists_of(snapshot: Snapshot, kind: str) -> Lists:
    """Return the lists of one kind (see :data:`LISTS`) as song rows."""
    if kind == "playlists":
        return collect_playlists(snapshot).rows
    number, song_id = snapshot.library.listening.sittings().T
    rows = snapshot.rows_of(song_id)
    number, rows = number[rows >= 0], rows[rows >= 0]
    sittings = np.split(rows, np.flatnonzero(np.diff(number)) + 1)
    distinct = (list(dict.fromkeys(sitting.tolist())) for sitting in sittings)  # duplicates share a row
    return [songs for songs in distinct if len(songs) > 1]


def n_long_lists(snapshot: Snapshot) -> dict[str, int]:
    return {kind: sum(map(len, parts_of(lists_of(snapshot, kind), _SEED))) for kind in LISTS}


def recommend(scores: Float64Array, begun: Sequence[int]) -> Int64Array:
    """Return the 500 best-scored songs that are not among the first songs; ties are in row order."""
    new_scores = scores.copy()
    new_scores[list(begun)] = -np.inf
    n = min(_N_RECOMMENDED, len(scores) - len(begun))
    if not n:
        return np.empty(0, dtype=np.int64)
    best = np.flatnonzero(new_scores >= np.partition(new_scores, -n)[-n])
    return best[np.argsort(-new_scores[best], kind="stable")[:n]]


def measure(
    task: ContinuationTask, rest: Lists, by: Ways, progress: Progress = no_progress
) -> dict[str, dict[str, Float64Array]]:
    """Return the scores per method in `by`, measure and list; `rest` contains the second halves of the lists."""
    scores = {}
    for number, (name, fit) in enumerate(by.items()):
        n_done, total = number * len(rest), len(by) * len(rest)
        progress(f"fitting: {name}", n_done, total)
        score, best = fit(), []
        for at, songs in enumerate(task.begun):
            progress(f"continuing lists: {name}", n_done + at, total)
            best.append(recommend(score(at, songs), songs))
        scores[name] = evaluation.continuation_scores(best, rest, (10,))
    return scores


def task_of(
    snapshot: Snapshot, kind: str, train: Lists, begun: Lists, progress: Progress = no_progress, random_state: int = 0
) -> ContinuationTask:
    """Return a task with the app's data, but with co-occurrence edges from the training lists only."""
    sources = load_sources(snapshot)
    if kind == "sittings":
        sources = replace(sources, listeners={})  # drop listeners' groups, which contain the evaluated sessions

    def graph_of(lists: TrainingPlaylists) -> playlist.Hypergraph:
        return build_hypergraph(snapshot, replace_company(sources, lists.rows, progress), own=False)

    def fit_walk(lists: Lists) -> playlist.PlaylistModel:
        rows = [list(songs) for songs in lists]
        return fit_dialects(TrainingPlaylists(rows, [None] * len(rows)), graph_of).model()

    artists = snapshot.columns.artist.codes
    return ContinuationTask(snapshot.n_indexed, train, begun, fit_walk, artists, snapshot.X, random_state)


def continue_lists(library: Library, kind: str, progress: Progress = no_progress) -> Continued:
    """Evaluate every method on about 200 lists; songs are compared by Sound, which does not learn from lists."""
    native = library.models.native()
    snapshot = take_snapshot(library, native.id if native else None)
    lists = lists_of(snapshot, kind)
    parts = parts_of(lists, _SEED)
    n_long = sum(map(len, parts))
    if n_long < MIN_LISTS:
        raise ModelError(too_few(n_long, kind))
    scores: list[dict[str, dict[str, Float64Array]]] = []
    n_judged = 0
    for number, part in enumerate(parts, start=1):
        part_progress = add_prefix(progress, f"part {number}: ")
        judged = part[:MAX_JUDGED]
        train, begun, rest = split(lists, judged)
        task = task_of(snapshot, kind, train, begun, part_progress)
        scores.append(measure(task, rest, ways(task), part_progress))
        n_judged += len(judged)
        if n_judged >= _ENOUGH:
            break
    by_way = {
        way: {name: np.concatenate([part[way][name] for part in scores]) for name in MEASURES} for way in scores[0]
    }
    order = sorted(by_way, key=lambda way: -by_way[way]["ndcg"].mean())

    def compare(way: str, name: str, minus: Float64Array) -> Interval:
        return evaluation.bootstrap_pairs(by_way[way][name], minus, random_state=_SEED)

    means = {way: {name: compare(way, name, np.zeros(n_judged)) for name in MEASURES} for way in order}
    leads = {way: compare(WALK, "ndcg", by_way[way]["ndcg"]) for way in order if way != WALK}
    return Continued(kind, n_long, n_judged, len(scores), snapshot.n_indexed, means, leads)


def run_job(library: Library, *, lists: str, progress: Any) -> bool:
    """Evaluate `lists`, one of LISTS, as a background job; the result is saved in the job's trace."""
    result = continue_lists(library, lists, progress)
    progress.trace(asdict(result))
    progress.outcome = result.summary
    return True


def too_few(n_long: int, kind: str) -> str:
    return (
        f"This library has {n_long:,} {kind} with at least {MIN_SONGS} songs; the evaluation needs {MIN_LISTS} or "
        "more. Import playlists or a listening history."
    )
