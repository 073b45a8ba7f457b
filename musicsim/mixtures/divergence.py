"""Divergence of the mixtures of songs: Monte-Carlo Kullback-Leibler divergence (thesis 5.9, 5.10).

The draws behind the samples (a uniform number and a normal vector each) are made once from
`random_state` and used for every query, so that a query's row depends on nothing but itself, and
differences between queries carry less noise. Within a row they are independent draws, as in the thesis.
"""

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float64Array, IntpArray
from musicsim._checks import check_whole
from musicsim.mixtures._kernels import mean_log_sums
from musicsim.mixtures.songs import SongMixtures, fixed_seed, quadratic_form

_BLOCK_ENTRIES = 1 << 18
"""Log-densities held at once, 1 MB of float32: they stay in the cache while they are summed up."""


def draw_samples(
    mixtures: SongMixtures, n_samples: int, random_state: int | np.random.Generator | None = None
) -> Float64Array:
    """Independent samples of each mixture.

    Returns
    -------
    ndarray of shape (n_songs, n_samples, n_features), float64
        8 n_songs n_samples n_features bytes: 640 kB a song for 2048 samples of 39 features.
    """
    uniform, normal = _draws(n_samples, mixtures.means.shape[2], random_state)
    if len(mixtures) == 0:
        return np.empty((0, *normal.shape))
    return np.stack([_samples(mixtures, i, uniform, normal) for i in range(len(mixtures))])


def cross_entropy(samples: npt.ArrayLike, mixtures: SongMixtures) -> Float64Array:
    """Cross-entropy of the distribution that `samples` come from, relative to each mixture.

    Parameters
    ----------
    samples : array of shape (n_samples, n_features), drawn from the query's mixture (or its frames)
    mixtures : SongMixtures of n songs

    Returns
    -------
    ndarray of shape (n,), float64, in nats: the mean of -log p_x(z)

    Raises
    ------
    ValueError
        If `samples` have another number of features than the mixtures, or there is none.

    Notes
    -----
    Equation 5.10. The density is a quadratic form in z, so that all songs take one matrix product, in
    float32 around the mean of the samples (on delta-MFCC of 144 songs within 3e-5 nats, 5e-7 of the value,
    of float64). Memory in addition to the result: about 4 MB whatever n is.
    """
    z = np.asarray(samples, dtype=np.float64)
    d = mixtures.means.shape[2]
    if z.ndim != 2 or z.shape[1] != d or len(z) == 0:
        raise ValueError(f"samples of shape {z.shape} should be (n_samples, {d}), n_samples >= 1.")
    n, c = mixtures.weights.shape
    centre = z.mean(axis=0)
    z = z - centre
    moments = np.concatenate([z * z, z], axis=1).astype(np.float32).T
    songs_at_once = max(1, _BLOCK_ENTRIES // (c * len(z)))
    result = np.empty(n)
    for start in range(0, n, songs_at_once):
        block = slice(start, start + songs_at_once)
        form, offset = quadratic_form(
            mixtures.weights[block].astype(np.float64),
            mixtures.means[block] - centre,
            mixtures.variances[block].astype(np.float64),
        )
        products = form.reshape(-1, 2 * d).astype(np.float32) @ moments
        mean_log_sums(products.reshape(-1, c, len(z)), offset.astype(np.float32), result[block])
    return -result


def kl_divergences(
    queries: SongMixtures,
    database: SongMixtures,
    n_samples: int = 2048,
    random_state: int | np.random.Generator | None = None,
) -> Float64Array:
    """Kullback-Leibler divergence of each song of the database from each query.

    Parameters
    ----------
    queries, database : SongMixtures of n_queries and n songs with equal numbers of features
    n_samples : int >= 1
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    ndarray of shape (n_queries, n), float64, in nats
        An estimate: not symmetric, and may fall a little below 0 where two songs are nearly the same. Exactly 0
        where they are the same mixture.

    Raises
    ------
    ValueError
        If the numbers of features differ or `n_samples` is below 1.

    Notes
    -----
    Equation 5.9: the samples of a query are the same for all songs of the database. Memory in addition to the
    result (8 n_queries n bytes): some megabytes whatever n is, and 25 n_samples n_features bytes.
    """
    if queries.means.shape[2] != database.means.shape[2]:
        raise ValueError(
            f"queries have {queries.means.shape[2]} features and database {database.means.shape[2]}; "
            f"fit both to the same kind of frames."
        )
    uniform, normal = _draws(n_samples, database.means.shape[2], random_state)
    result = np.empty((len(queries), len(database)))
    for i in range(len(queries)):
        samples = _samples(queries, i, uniform, normal)
        result[i] = cross_entropy(samples, database) - cross_entropy(samples, queries[i])
        # the two terms may round differently, as the matrix product of one song and of many may
        result[i, _equal_rows(queries, i, database)] = 0.0
    return result


def _equal_rows(queries: SongMixtures, i: int, database: SongMixtures) -> IntpArray:
    """Rows of the database that are the mixture i of the queries, number by number."""
    if queries.weights.shape[1] != database.weights.shape[1]:
        return np.empty(0, dtype=np.intp)
    rows = np.flatnonzero((database.weights == queries.weights[i]).all(axis=1))
    for ours, theirs in ((queries.means, database.means), (queries.variances, database.variances)):
        rows = rows[(theirs[rows] == ours[i]).all(axis=(1, 2))]
    return rows


def _draws(
    n_samples: int, n_features: int, random_state: int | np.random.Generator | None
) -> tuple[Float64Array, Float64Array]:
    """A uniform number and a normal vector a sample."""
    check_whole("n_samples", n_samples, 1)
    rng = np.random.default_rng(fixed_seed(random_state))
    return rng.random(n_samples), rng.normal(size=(n_samples, n_features))


def _samples(mixtures: SongMixtures, i: int, uniform: Float64Array, normal: Float64Array) -> Float64Array:
    """Samples of one mixture: the uniform number chooses the component, the vector the place in it."""
    reach = np.cumsum(mixtures.weights[i], dtype=np.float64)
    component = np.searchsorted(reach, uniform * reach[-1], side="right")
    component = np.minimum(component, len(reach) - 1)
    return mixtures.means[i][component] + np.sqrt(mixtures.variances[i][component]) * normal
