"""Ways to continue a list, the walk among them: each scores every song by those that a list begins with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import sparse

from musicsim import playlist
from musicsim._arrays import Float64Array, FloatingArray, IntegerArray
from musicsim._blas import one_blas_thread

Lists = Sequence[Sequence[int]]
Score = Callable[[int, Sequence[int]], Float64Array]
"""By the number of a judged list and its first songs: a score of every song, (n_songs,)."""
Ways = dict[str, Callable[[], Score]]
"""What fits each way, by name."""

POPULARITY, ARTIST, SOUND, ITEM_KNN, ALS, BPR, WALK = (
    "popularity", "same artist", "nearest in sound", "item-kNN", "ALS (implicit)", "BPR (implicit)", "walk",
)  # fmt: skip
N_NEIGHBOURS = 200
N_FACTORS, ALS_STEPS, BPR_STEPS = 64, 20, 100
ALS_REGULARIZATION, ALS_ALPHA = 0.1, 10.0
BPR_REGULARIZATION, BPR_LEARNING_RATE = 0.002, 0.05
_BLOCK = 65_536  # songs whose distances are worked out at once
_TIES = 1e-6  # popularity beside cosines: it orders songs that have the same


@dataclass(frozen=True, slots=True)
class Task:
    """Lists of song rows to learn from, and the first songs of those that are to be continued."""

    n_songs: int
    train: Lists
    begun: Lists
    fit_walk: Callable[[Lists], playlist.PlaylistModel]
    artists: IntegerArray | None = None  # (n_songs,), -1 where nobody knows; None where they are not known at all
    vectors: FloatingArray | None = None  # (n_songs, n_dimensions) of the sound, where there is one
    random_state: int = 0

    def matrix(self, lists: Lists) -> sparse.csr_matrix:
        """Which songs are in which lists, float32 (n_lists, n_songs) of 0 and 1; implicit wants a matrix."""
        rows = np.repeat(np.arange(len(lists)), [len(songs) for songs in lists])
        songs = np.concatenate([np.empty(0, np.int64), *(np.asarray(songs, np.int64) for songs in lists)])
        shape = (len(lists), self.n_songs)
        found = sparse.csr_matrix((np.ones(len(songs), np.float32), (rows, songs)), shape)
        found.data[:] = 1
        return found


def ways(task: Task) -> Ways:
    """Every way that the task has what it takes for."""
    plays = np.asarray(task.matrix(task.train).sum(axis=0)).ravel().astype(np.float64)
    often = plays / (1 + plays.max())  # below 1, so that it breaks ties of counts and nothing else
    found: Ways = {POPULARITY: lambda: lambda _, songs: often}
    if task.artists is not None:
        found[ARTIST] = partial(_same_artist, task.artists, often)
    if task.vectors is not None:
        found[SOUND] = partial(_nearest, task.vectors)
    found[ITEM_KNN] = partial(_item_knn, task, often)
    found[ALS] = partial(_als, task)
    found[BPR] = partial(_bpr, task)
    found[WALK] = lambda: by_walk(task.fit_walk(task.train))
    return found


def by_walk(model: playlist.PlaylistModel) -> Score:
    """The mean over the first songs of the chance to come next, as the list need not go on from its last song.

    For all of them at once, which is so of all other songs: what it says of the first songs themselves means nothing.
    """
    graph = model.hypergraph

    def score(_: int, songs: Sequence[int]) -> Float64Array:
        share = np.zeros(graph.n_edges)
        for song in songs:
            edges, probabilities = model.edge_probabilities(song)
            share[edges] += probabilities / (graph.mass[edges] - graph.song_weight[song])
        return graph.song_weight * (graph.incidence @ share) / len(songs)

    return score


def _same_artist(codes: IntegerArray, often: Float64Array) -> Score:
    """How many of the first songs are by the artist; the most popular first."""

    def score(_: int, songs: Sequence[int]) -> Float64Array:
        # one place more than there are artists: that of nobody, which counts for nothing
        n_of = np.bincount(codes[list(songs)] + 1, minlength=codes.max(initial=-1) + 2)
        n_of[0] = 0
        return n_of[codes + 1] + often

    return score


def _nearest(vectors: FloatingArray) -> Score:
    """The distance to the nearest of the first songs."""
    from scipy.spatial.distance import cdist

    def score(_: int, songs: Sequence[int]) -> Float64Array:
        own = vectors[list(songs)]
        blocks = (vectors[start : start + _BLOCK] for start in range(0, len(vectors), _BLOCK))
        return np.concatenate([-cdist(block, own, "sqeuclidean").min(axis=1) for block in blocks])

    return score


def _item_knn(task: Task, often: Float64Array) -> Score:
    """The sum of cosines, by lists, with the first songs, over each one's 200 nearest."""
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
        return np.asarray(cosine[list(songs)].sum(axis=0)).ravel() + _TIES * often

    return score


def _als(task: Task) -> Score:
    """Alternating least squares (Hu, Koren, Volinsky 2008); a list's factors are solved for from its first songs."""
    from implicit.cpu.als import AlternatingLeastSquares

    fitted = AlternatingLeastSquares(
        N_FACTORS, regularization=ALS_REGULARIZATION, alpha=ALS_ALPHA, iterations=ALS_STEPS, num_threads=1,
        random_state=task.random_state,
    )  # fmt: skip
    with one_blas_thread():  # implicit warns of its slowness otherwise
        fitted.fit(task.matrix(task.train), show_progress=False)
    begun = task.matrix(task.begun)

    def score(at: int, _: Sequence[int]) -> Float64Array:
        return np.asarray(fitted.item_factors @ fitted.recalculate_user(0, begun[at]), dtype=np.float64)

    return score


def _bpr(task: Task) -> Score:
    """Bayesian personalised ranking (Rendle et al. 2009); as it cannot take new lists, it learns from the first songs
    of all judged ones, too."""
    from implicit.cpu.bpr import BayesianPersonalizedRanking

    fitted = BayesianPersonalizedRanking(
        N_FACTORS, learning_rate=BPR_LEARNING_RATE, regularization=BPR_REGULARIZATION, iterations=BPR_STEPS,
        num_threads=1, random_state=task.random_state,
    )  # fmt: skip
    with one_blas_thread():
        fitted.fit(task.matrix([*task.train, *task.begun]), show_progress=False)

    def score(at: int, _: Sequence[int]) -> Float64Array:
        return np.asarray(fitted.item_factors @ fitted.user_factors[len(task.train) + at], dtype=np.float64)

    return score
