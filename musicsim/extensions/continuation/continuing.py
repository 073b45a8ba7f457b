"""Methods to continue a list: each scores every song, given the first songs of the list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import sparse

from musicsim import playlist
from musicsim._arrays import Float64Array, FloatingArray, IntegerArray
from musicsim.blas import one_blas_thread

Lists = Sequence[Sequence[int]]
Score = Callable[[int, Sequence[int]], Float64Array]
"""Takes the number of a judged list and its first songs; returns the scores of all songs, (n_songs,)."""
Ways = dict[str, Callable[[], Score]]  # functions that fit the methods, by name

POPULARITY, ARTIST, SOUND, ITEM_KNN, ALS, BPR, WALK = (
    "popularity", "same artist", "nearest in sound", "item-kNN", "ALS (implicit)", "BPR (implicit)", "walk",
)  # fmt: skip
N_NEIGHBOURS = 200
N_FACTORS, ALS_STEPS, BPR_STEPS = 64, 20, 100
ALS_REGULARIZATION, ALS_ALPHA = 0.1, 10.0
BPR_REGULARIZATION, BPR_LEARNING_RATE = 0.002, 0.05
_BLOCK = 65_536  # songs per block of distances
_TIES = 1e-6  # weight of popularity next to cosines, to break ties


@dataclass(frozen=True, slots=True)
class Task:
    """Lists of song rows to learn from, and the first songs of lists to continue."""

    n_songs: int
    train: Lists
    begun: Lists
    fit_walk: Callable[[Lists], playlist.PlaylistModel]
    artists: IntegerArray | None = None  # (n_songs,), -1 if unknown; None without artists
    vectors: FloatingArray | None = None  # (n_songs, n_dimensions) of the sound; None without a model
    random_state: int = 0

    def matrix(self, lists: Lists) -> sparse.csr_matrix:
        """Return an indicator matrix, float32 (n_lists, n_songs); implicit needs csr_matrix, not csr_array."""
        rows = np.repeat(np.arange(len(lists)), [len(songs) for songs in lists])
        songs = np.concatenate([np.empty(0, np.int64), *(np.asarray(songs, np.int64) for songs in lists)])
        shape = (len(lists), self.n_songs)
        matrix = sparse.csr_matrix((np.ones(len(songs), np.float32), (rows, songs)), shape)
        matrix.data[:] = 1
        return matrix


def ways(task: Task) -> Ways:
    """Return every method that the task has data for."""
    plays = np.asarray(task.matrix(task.train).sum(axis=0)).ravel().astype(np.float64)
    popularity = plays / (1 + plays.max())  # below 1, so that it only breaks ties of counts
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
    """Score songs by the mean probability that they follow one of the first songs, whose own scores are meaningless."""
    graph = model.hypergraph

    def score(_: int, songs: Sequence[int]) -> Float64Array:
        share = np.zeros(graph.n_edges)
        for song in songs:
            edges, probabilities = model.edge_probabilities(song)
            share[edges] += probabilities / (graph.mass[edges] - graph.song_weight[song])
        return graph.song_weight * (graph.incidence @ share) / len(songs)

    return score


def _same_artist(codes: IntegerArray, popularity: Float64Array) -> Score:
    """Score songs by the number of first songs by their artist, then by popularity."""

    def score(_: int, songs: Sequence[int]) -> Float64Array:
        # index 0 is the unknown artist, which does not count
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


def _item_knn(task: Task, popularity: Float64Array) -> Score:
    """Score songs by the sum of their cosines with the first songs, by lists; each has 200 nearest songs."""
    lists = task.matrix(task.train).astype(np.float64)
    together = sparse.csr_array(lists.T @ lists)
    scale = sparse.diags_array(1 / np.sqrt(np.maximum(together.diagonal(), 1)))
    cosine = sparse.csr_array(scale @ together @ scale)
    cosine.setdiag(0)
    for row in range(task.n_songs):
        part = cosine.data[cosine.indptr[row] : cosine.indptr[row + 1]]
        if len(part) > N_NEIGHBOURS:
            part[part < np.partition(part, -N_NEIGHBOURS)[-N_NEIGHBOURS]] = 0

    def score(_: int, songs: Sequence[int]) -> Float64Array:
        return np.asarray(cosine[list(songs)].sum(axis=0)).ravel() + _TIES * popularity

    return score


def _als(task: Task) -> Score:
    """Alternating least squares (Hu, Koren, Volinsky 2008); a list's factors are solved for from its first songs."""
    from implicit.cpu.als import AlternatingLeastSquares

    model = AlternatingLeastSquares(
        N_FACTORS, regularization=ALS_REGULARIZATION, alpha=ALS_ALPHA, iterations=ALS_STEPS, num_threads=1,
        random_state=task.random_state,
    )  # fmt: skip
    with one_blas_thread():  # otherwise implicit warns that it is slow
        model.fit(task.matrix(task.train), show_progress=False)
    begun = task.matrix(task.begun)

    def score(at: int, _: Sequence[int]) -> Float64Array:
        return np.asarray(model.item_factors @ model.recalculate_user(0, begun[at]), dtype=np.float64)

    return score


def _bpr(task: Task) -> Score:
    """Bayesian personalized ranking (Rendle et al. 2009); it cannot add lists later, so it learns the first songs."""
    from implicit.cpu.bpr import BayesianPersonalizedRanking

    model = BayesianPersonalizedRanking(
        N_FACTORS, learning_rate=BPR_LEARNING_RATE, regularization=BPR_REGULARIZATION, iterations=BPR_STEPS,
        num_threads=1, random_state=task.random_state,
    )  # fmt: skip
    with one_blas_thread():
        model.fit(task.matrix([*task.train, *task.begun]), show_progress=False)

    def score(at: int, _: Sequence[int]) -> Float64Array:
        return np.asarray(model.item_factors @ model.user_factors[len(task.train) + at], dtype=np.float64)

    return score
