"""Seeded tasks of metric learning to rank: songs, and the relevant songs of each.

Both tasks mix columns that determine relevance with columns that do not, so that a metric has something to learn.
"""

from dataclasses import dataclass

import numpy as np

from musicsim._arrays import Float64Array, Int64Array
from musicsim.relevance import Relevance

__all__ = ["ClassTask", "Task", "cal10k_like", "nearly_separable"]


@dataclass(frozen=True, slots=True)
class Task:
    """X of shape (n_songs, d), and the relevant and irrelevant rows of each song."""

    X: Float64Array
    relevance: Relevance


@dataclass(frozen=True, slots=True)
class ClassTask(Task):
    """A task by classes, with held-out songs of the same classes as queries.

    y and query_y are the classes, of shape (n_songs,) and (n_held_out,), and `queries` is of shape (n_held_out, d). The
    database of `query_relevance` consists of the rows of X.
    """

    y: Int64Array
    queries: Float64Array
    query_y: Int64Array
    query_relevance: Relevance


def cal10k_like(
    seed: int = 0, n_songs: int = 2122, d: int = 253, n_relevant: float = 37.0, n_tastes: int = 20, noise: float = 0.5
) -> Task:
    """Draw songs with a falling spectrum, similar by taste: of the shape of CAL10K in the thesis (4.4.2).

    Parameters
    ----------
    n_relevant : float
        Mean of a Poisson distribution; each song has at least one relevant song.
    n_tastes : int
        Dimensions of the hidden space, a random map of the songs; the nearest songs in it are relevant.
    noise : float
        Standard deviation of the noise added in that space, for columns with a mean deviation of 1.

    Notes
    -----
    Each query misjudges each of its squared distances by a factor of exp(0.3 N(0, 1)), so that relevance is neither
    symmetric nor transitive. Memory besides the task: 24 bytes times n_songs.
    """
    rng = np.random.default_rng(seed)
    deviations = np.exp(-np.arange(d) / 60.0)
    X = rng.standard_normal((n_songs, d)) * deviations
    taste = rng.standard_normal((d, n_tastes)) / (np.sqrt(d) * deviations.mean())
    places = X @ taste + noise * rng.standard_normal((n_songs, n_tastes))
    counts = np.clip(rng.poisson(n_relevant, n_songs), 1, n_songs - 1)
    lists = []
    for query, count in enumerate(counts):
        distances = ((places - places[query]) ** 2).sum(axis=1) * np.exp(0.3 * rng.standard_normal(n_songs))
        distances[query] = np.inf
        lists.append(np.argpartition(distances, count - 1)[:count])
    return Task(X, Relevance.from_lists(lists))


def nearly_separable(
    seed: int = 0,
    n_songs: int = 1000,
    d: int = 100,
    n_relevant: int = 37,
    n_hidden: int = 8,
    within: float = 0.3,
    n_held_out: int = 500,
) -> ClassTask:
    """Draw classes that are separated in a few dimensions, rotated among noise; a metric can reach almost zero loss.

    Parameters
    ----------
    n_relevant : int
        Classes have this many songs plus one, or a few more if that does not divide `n_songs`.
    n_hidden : int, at most d
        Number of dimensions in which class means differ, as N(0, 1); all others are N(0, 1) for every song.
    within : float
        Standard deviation of a class in these dimensions.
    n_held_out : int
        Number of queries; the first `n_songs` do not depend on it.
    """
    rng = np.random.default_rng(seed)
    n_classes = n_songs // (n_relevant + 1)
    y = rng.permutation(np.arange(n_songs) % n_classes)
    means = rng.standard_normal((n_classes, n_hidden))

    def draw(classes: Int64Array) -> Float64Array:
        hidden = means[classes] + within * rng.standard_normal((len(classes), n_hidden))
        return np.concatenate([hidden, rng.standard_normal((len(classes), d - n_hidden))], axis=1)

    X = draw(y)
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    query_y = rng.permutation(np.arange(n_held_out) % n_classes)
    queries = draw(query_y)
    everyone = Relevance.from_labels(np.concatenate([y, query_y]))
    return ClassTask(
        X=X @ rotation,
        relevance=Relevance.from_labels(y),
        y=y,
        queries=queries @ rotation,
        query_y=query_y,
        query_relevance=everyone.restrict(n_songs + np.arange(n_held_out), np.arange(n_songs)),
    )
