"""Ways to continue a list, for experiments.continuation: each scores every song by those that a list begins with."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from experiments._playlists import Collection, Lists
from musicsim._arrays import Float64Array
from musicsim.playlist import (
    Hypergraph,
    PlaylistModel,
    build_edges,
    cooccurrence_clusters,
    cooccurrence_neighbours,
)

Score = Callable[[int, Sequence[int]], Float64Array]
"""By the number of a judged list and its first songs: a score of every song, (n_songs,)."""

POPULARITY, ARTIST, SOUND, ITEM_KNN, ALS, BPR, WALK = (
    "popularity", "same artist", "nearest in sound", "item-kNN", "ALS (implicit)", "BPR (implicit)", "walk",
)  # fmt: skip
_FACTORS, _ALS_STEPS, _BPR_STEPS = 64, 20, 100
_N_NEIGHBOURS = 200


@dataclass(frozen=True, slots=True)
class Asked:
    """Lists to learn from, and judged lists by their first songs."""

    collection: Collection
    train: Lists
    begun: Lists
    seed: int
    vectors: Float64Array | None = None  # (n_songs, n_dimensions) of the sound, where there is one
    graph: Hypergraph | None = None  # of the app, where there is one

    @property
    def n_songs(self) -> int:
        return self.collection.n_songs

    def matrix(self, lists: Lists) -> sp.csr_matrix:
        """Which songs are in which lists, (n_lists, n_songs) of 0 and 1."""
        rows = np.repeat(np.arange(len(lists)), [len(songs) for songs in lists])
        songs = np.concatenate([np.asarray(songs, dtype=np.int64) for songs in lists])
        found = sp.csr_matrix((np.ones(len(songs), np.float32), (rows, songs)), (len(lists), self.n_songs))
        found.data[:] = 1
        return found


def models(asked: Asked) -> Iterator[tuple[str, Score]]:
    """Every way, fitted one after the other."""
    plays = np.asarray(asked.matrix(asked.train).sum(axis=0)).ravel().astype(np.float64)
    often = plays / (1 + plays.max())  # below 1: breaks ties and nothing else
    yield POPULARITY, lambda _, songs: often
    artists = asked.collection.known.get("artists")
    if artists is not None:
        yield ARTIST, _same_artist(np.unique(artists, return_inverse=True)[1], often)
    if asked.vectors is not None:
        yield SOUND, _nearest(asked.vectors)
    yield ITEM_KNN, _item_knn(asked, often)
    yield ALS, _als(asked)
    yield BPR, _bpr(asked)
    yield WALK, _walk(asked)


def _same_artist(codes: np.ndarray, often: Float64Array) -> Score:
    """How many of the first songs are by the artist; the most popular first."""

    def score(_: int, songs: Sequence[int]) -> Float64Array:
        return np.bincount(codes[list(songs)], minlength=codes.max() + 1)[codes] + often

    return score


def _nearest(vectors: Float64Array) -> Score:
    """The distance to the nearest of the first songs."""

    def score(_: int, songs: Sequence[int]) -> Float64Array:
        apart = ((vectors[list(songs)][:, None, :] - vectors[None, :, :]) ** 2).sum(axis=2)
        nearest: Float64Array = -apart.min(axis=0)
        return nearest

    return score


def _item_knn(asked: Asked, often: Float64Array) -> Score:
    """The sum of cosines, by lists, with the first songs, over each song's 200 nearest."""
    lists = asked.matrix(asked.train)
    together = (lists.T @ lists).tocsr()
    n_of = together.diagonal()
    scale = sp.diags(1 / np.sqrt(np.maximum(n_of, 1)))
    cosine = (scale @ together @ scale).tocsr()
    cosine.setdiag(0)
    for row in range(cosine.shape[0]):
        part = cosine.data[cosine.indptr[row] : cosine.indptr[row + 1]]
        if len(part) > _N_NEIGHBOURS:
            part[part < np.partition(part, -_N_NEIGHBOURS)[-_N_NEIGHBOURS]] = 0

    def score(_: int, songs: Sequence[int]) -> Float64Array:
        return np.asarray(cosine[list(songs)].sum(axis=0), dtype=np.float64).ravel() + 1e-6 * often

    return score


def _als(asked: Asked) -> Score:
    """Alternating least squares; a list's factors are solved for from its first songs."""
    from implicit.als import AlternatingLeastSquares

    fitted = AlternatingLeastSquares(
        _FACTORS, regularization=0.1, alpha=10.0, iterations=_ALS_STEPS, num_threads=1, random_state=asked.seed,
        use_gpu=False,
    )  # fmt: skip
    fitted.fit(asked.matrix(asked.train), show_progress=False)
    begun = asked.matrix(asked.begun)

    def score(at: int, _: Sequence[int]) -> Float64Array:
        return np.asarray(
            fitted.item_factors @ fitted.recalculate_user(0, begun[at]), dtype=np.float64
        ).ravel()

    return score


def _bpr(asked: Asked) -> Score:
    """Bayesian personalised ranking; it cannot take new lists, so that it learns from the first songs of all, too."""
    from implicit.bpr import BayesianPersonalizedRanking

    fitted = BayesianPersonalizedRanking(
        _FACTORS, learning_rate=0.05, regularization=0.002, iterations=_BPR_STEPS, num_threads=1,
        random_state=asked.seed, use_gpu=False,
    )  # fmt: skip
    fitted.fit(asked.matrix([*asked.train, *asked.begun]), show_progress=False)

    def score(at: int, _: Sequence[int]) -> Float64Array:
        return np.asarray(fitted.item_factors @ fitted.user_factors[len(asked.train) + at], dtype=np.float64)

    return score


def _walk(asked: Asked) -> Score:
    """The mean over the first songs of the chance to come next; on the app's edges, or on labels and company."""
    n, train = asked.n_songs, asked.train
    graph = asked.graph
    if graph is None:
        groups = cooccurrence_clusters(train, n, random_state=asked.seed)
        near = cooccurrence_neighbours(train, n, random_state=asked.seed)
        graph = build_edges(
            n, **asked.collection.known, cooccurrence_clusters=groups, cooccurrence_neighbours=near
        )
    fitted = PlaylistModel(graph).fit(train)

    def score(_: int, songs: Sequence[int]) -> Float64Array:
        chances: Float64Array = np.mean([fitted.transition_probabilities(song) for song in songs], axis=0)
        return chances

    return score
