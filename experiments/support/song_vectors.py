"""Synthetic vectors like those of the thesis's searches (6.4.1): histograms of codewords, transformed by a metric.

The vectors of the Million Song Dataset are not available. Songs are drawn from a topic model and transformed as in the
thesis:

- A topic is a distribution over the 512 codewords, Dirichlet with concentration 0.1 (few codewords per topic). The
  popularity of the 50 topics is the inverse of their rank (Zipf), so that the spectrum decays.
- An artist mixes topics, Dirichlet with total concentration 5 around their popularity: a handful each. A song mixes
  them around its artist's mixture, Dirichlet with total concentration 50. An artist has 22 songs on average (1,000,000
  songs by 44,745 artists in that set).
- A song counts the codewords of its frames, a Poisson number with mean 850 (8.5 million frames of 10,000 songs). This
  is the sampling noise of every song. Square roots of the shares follow (PPK).
- The metric is constructed, not learned. Its eigenvectors are the directions in which artists differ most, in
  descending order: a metric learned from similar artists weights these most. Its eigenvalues decay geometrically, so
  that 222 of them have 95 % of the spectral mass, as printed. Tempo, loudness and key confidence are omitted.

These numbers were chosen before any tree was built on such vectors, never by search results.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from scipy.optimize import brentq
from threadpoolctl import threadpool_limits

from musicsim._arrays import Float32Array, Float64Array, FloatingArray, Int64Array
from musicsim.kernels import ppk_map

__all__ = ["N_TOPICS", "intrinsic_dimension", "metric_spectrum", "song_vectors", "spectrum"]

N_CODEWORDS = 512
N_DIMENSIONS = 222
N_TOPICS = 50
_MASS = 0.95
_CODEWORDS_OF_TOPIC = 0.1
_TOPICS_OF_ARTIST = 5.0
_TOPICS_OF_SONG = 50.0
_SONGS_AN_ARTIST = 22
_FRAMES = 850
TRAINING_SONGS = 20_000
_BLOCK = 8_192
_SPECTRUM_ROWS = 50_000


@dataclass(frozen=True, slots=True)
class _Topics:
    """Codewords of each topic, (n_topics, n_codewords), and the topics' popularity."""

    codewords: Float64Array
    popularity: Float64Array

    def songs(self, n: int, rng: np.random.Generator) -> tuple[Float32Array, Int64Array]:
        """Return square roots of the histograms of n songs, and their artists."""
        alpha = _TOPICS_OF_ARTIST * self.popularity
        of_artist = _shares(rng.standard_gamma(alpha, (max(1, n // _SONGS_AN_ARTIST), len(alpha))))
        artist = rng.integers(len(of_artist), size=n)
        of_song = _shares(rng.standard_gamma(_TOPICS_OF_SONG * of_artist[artist]))
        return ppk_map(_shares(rng.poisson(_FRAMES * (of_song @ self.codewords)))), artist


def _shares(amounts: npt.NDArray[np.float64 | np.int64]) -> Float64Array:
    return amounts / amounts.sum(axis=1, keepdims=True)


def _topics(n: int, rng: np.random.Generator) -> _Topics:
    popularity = 1.0 / np.arange(1, n + 1)
    return _Topics(rng.dirichlet(np.full(N_CODEWORDS, _CODEWORDS_OF_TOPIC), n), popularity / popularity.sum())


def metric_spectrum(n_kept: int, n: int, mass: float) -> Float64Array:
    """Return eigenvalues 1, r, r^2, ...; the first `n_kept` of `n` have the share `mass` of the sum.

    Parameters
    ----------
    n_kept, n : int, n_kept < n
    mass : float, n_kept / n < mass < 1

    Returns
    -------
    ndarray of shape (n_kept,)
    """

    def surplus(r: float) -> float:
        return (1 - r**n_kept) / (1 - r**n) - mass

    ratio = brentq(surplus, 1e-6, 1 - 1e-9)
    return ratio ** np.arange(n_kept)


def _metric(topics: _Topics, rng: np.random.Generator) -> Float32Array:
    """Return L of shape (N_DIMENSIONS, N_CODEWORDS), from separate songs."""
    songs, artist = topics.songs(TRAINING_SONGS, rng)
    order = np.argsort(artist, kind="stable")
    starts = np.flatnonzero(np.diff(artist[order], prepend=-1))
    sizes = np.diff(starts, append=len(order))
    means = np.add.reduceat(songs[order].astype(np.float64), starts) / sizes[:, None]
    between = np.cov(means, rowvar=False, fweights=sizes)
    directions = np.linalg.eigh(between)[1][:, ::-1][:, :N_DIMENSIONS]
    weights = metric_spectrum(N_DIMENSIONS, N_CODEWORDS, _MASS)
    return (directions * np.sqrt(weights)).T.astype(np.float32)


def song_vectors(
    n_rows: int, n_queries: int, *, n_topics: int = N_TOPICS, seed: int = 0
) -> tuple[Float32Array, Float32Array]:
    """Draw songs to search in, and held-out songs by the same artists.

    Parameters
    ----------
    n_topics : int
        Number of topics that songs mix.
    seed : int
        The vectors do not depend on the number of cores.

    Returns
    -------
    X : float32 ndarray of shape (n_rows, 222)
    Q : float32 ndarray of shape (n_queries, 222)

    Notes
    -----
    Needs another 130 MB per core for a block of songs.
    """
    rng = np.random.default_rng([seed, 0])
    topics = _topics(n_topics, rng)
    with threadpool_limits(1):
        L = _metric(topics, rng)
        n = n_rows + n_queries
        is_query = np.zeros(n, dtype=bool)
        is_query[rng.choice(n, n_queries, replace=False)] = True
        X, Q = (np.empty((size, N_DIMENSIONS), np.float32) for size in (n_rows, n_queries))

        def draw(block: tuple[int, slice]) -> None:
            number, rows = block
            asked = is_query[rows]
            vectors = topics.songs(len(asked), np.random.default_rng([seed, 1, number]))[0] @ L.T
            before = int(is_query[: rows.start].sum())
            n_asked = int(asked.sum())
            Q[before : before + n_asked] = vectors[asked]
            start = rows.start - before
            X[start : start + len(asked) - n_asked] = vectors[~asked]

        with ThreadPoolExecutor(effective_n_jobs(-1)) as pool:
            list(pool.map(draw, _blocks(n)))
    return X, Q


def _blocks(n: int) -> Iterator[tuple[int, slice]]:
    for number, start in enumerate(range(0, n, _BLOCK)):
        yield number, slice(start, min(start + _BLOCK, n))


def spectrum(X: Float32Array) -> Float64Array:
    """Return eigenvalues of the covariance, largest first, estimated from rows spread over X."""
    chosen = X[:: -(-len(X) // _SPECTRUM_ROWS)].astype(np.float64)
    return np.linalg.eigvalsh(np.cov(chosen, rowvar=False))[::-1]


def intrinsic_dimension(distances: FloatingArray) -> float:
    """Return the dimension that matches the growth of neighbor counts with distance (Levina and Bickel, 2004).

    Parameters
    ----------
    distances : array of shape (n_queries, k), k > 2
        Of each query to its nearest rows, ascending. Queries at distance 0 from a row are skipped.

    Notes
    -----
    The inverses are averaged over the queries, as MacKay and Ghahramani propose.
    """
    apart = distances[distances[:, 0] > 0].astype(np.float64)
    logs = np.log(apart[:, -1:] / apart[:, :-1])
    return float((distances.shape[1] - 1) / logs.sum(axis=1).mean())
