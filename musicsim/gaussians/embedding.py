"""Represent Gaussians as vectors whose Euclidean distances are the log-Euclidean distances between the Gaussians.

A Gaussian corresponds to a positive definite matrix, [[S + m m', m], [m', 1]] (Calvo and Oller, Journal of Multivariate
Analysis 1990). The matrix logarithm maps the cone of these matrices to a vector space (log-Euclidean metric: Arsigny,
Fillard, Pennec and Ayache, SIAM J. Matrix Anal. Appl. 2007).
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from musicsim._arrays import Float32Array, Float64Array, FloatingArray
from musicsim._checks import check_type
from musicsim.gaussians.songs import SongGaussians, embedding_size

_MIN_EIGENVALUE = 1e-8
_BLOCK = 64  # songs per eigendecomposition: 0.8 MB of 40 x 40 matrices


@dataclass(frozen=True)
class Population:
    """Mean and covariance of the frames of many songs.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.gaussians import Population
    >>> covariances = np.stack([np.eye(2), np.eye(2)])
    >>> population = Population.from_songs(np.array([[0.0, 0.0], [4.0, 0.0]]), covariances)
    >>> population.mean, population.covariance  # the variance of the first column is within and between songs
    (array([2., 0.]), array([[5., 0.],
           [0., 1.]]))
    >>> population.join(population).n_songs
    4
    """

    n_songs: float  # weight when this population is combined with another one
    mean: Float64Array  # (d,): mean of the songs' means
    covariance: Float64Array  # (d, d): mean of the songs' covariances, plus the covariance of their means

    @classmethod
    def from_songs(cls, means: Float64Array, covariances: Float64Array) -> Self:
        """Compute the population of equally weighted songs from their means (n, d) and covariances (n, d, d)."""
        mean = means.mean(axis=0)
        centered = means - mean
        return cls(len(means), mean, covariances.mean(axis=0) + centered.T @ centered / len(means))

    def join(self, other: "Population") -> "Population":
        """Combine two populations, each weighted by its number of songs."""
        n = self.n_songs + other.n_songs
        share = other.n_songs / n
        shift = other.mean - self.mean
        covariance = (1 - share) * self.covariance + share * other.covariance
        return Population(n, self.mean + share * shift, covariance + share * (1 - share) * np.outer(shift, shift))


class GaussianEmbedding(TransformerMixin, BaseEstimator):
    """Describe the timbre of songs as vectors whose distances compare their Gaussians.

    Logarithms of Gaussians relative to the average song.

    Parameters
    ----------
    ridge : float > 0, units of the frames squared; added to every variance, so that constant frames are possible
    level : int or None, default 0
        Column whose mean is ignored, because only this mean depends on the gain. Its variance is used.
    prior : Population, optional; joined with the population of the songs, which may be few

    Attributes
    ----------
    population_ : Population
    whitening_ : ndarray of shape (d, d), float64
        Inverse square root of the population's covariance. The root is symmetric, so each dimension of a vector still
        belongs to two columns of the frames.

    See Also
    --------
    musicsim.codebook.Codebook : Histograms instead of Gaussians.
    musicsim.mixtures.MixtureSpace : Several Gaussians per song.

    Notes
    -----
    Let m and S be the mean and covariance of a song after whitening. The song's vector is the upper triangle of
    log [[S + m m', m], [m', 1]], with off-diagonal entries multiplied by the square root of 2. Euclidean distances are
    then the Frobenius distances between the logarithms. 39 columns give 820 numbers, which takes 0.2 ms per song. Once
    the population is known, a song's vector does not depend on other songs.

    References
    ----------
    - V. Arsigny, P. Fillard, X. Pennec and N. Ayache, Log-Euclidean metrics for fast and simple calculus on diffusion
      tensors, Magnetic Resonance in Medicine 56, 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.gaussians import GaussianEmbedding, SongGaussians, fit_parts
    >>> rng = np.random.default_rng(0)
    >>> songs = SongGaussians.concatenate([fit_parts(rng.normal(0, width, (500, 3))) for width in (1, 1, 3)])
    >>> X = GaussianEmbedding().fit(songs).transform(songs)
    >>> X.shape
    (3, 10)
    >>> bool(np.linalg.norm(X[0] - X[1]) < 0.2 * np.linalg.norm(X[0] - X[2]))  # the third varies more than the others
    True
    """

    def __init__(self, ridge: float = 0.1, level: int | None = 0, prior: Population | None = None) -> None:
        self.ridge, self.level, self.prior = ridge, level, prior

    def fit(self, gaussians: SongGaussians, y: object = None) -> Self:
        """Compute the population's mean and whitening. At least one song is required, unless there is a prior."""
        if not self.ridge > 0:
            raise ValueError(f"ridge={self.ridge} must be above 0.")
        check_type("gaussians", gaussians, SongGaussians, "fit_parts computes from frames")
        if not len(gaussians) and self.prior is None:
            raise ValueError("gaussians is empty: pass at least one song, or set `prior`.")
        population = self.prior
        if len(gaussians):
            population = Population.from_songs(*self._prepare(gaussians))
            population = population if self.prior is None else population.join(self.prior)
        assert population is not None
        return self.use_population(population)

    def use_population(self, population: Population) -> Self:
        """Compute the whitening from a known population, without calling :meth:`fit`."""
        self.population_ = population
        values, vectors = np.linalg.eigh(population.covariance)
        self.whitening_ = (vectors / np.sqrt(np.maximum(values, _MIN_EIGENVALUE))) @ vectors.T
        return self

    def transform(self, gaussians: SongGaussians) -> Float32Array:
        """Return the vectors of songs with d columns, float32 (n_songs, (d + 1) (d + 2) / 2)."""
        check_is_fitted(self, "whitening_")
        check_type("gaussians", gaussians, SongGaussians, "fit_parts computes from frames")
        d = len(self.whitening_)
        if gaussians.means.shape[1] != d:
            raise ValueError(f"gaussians has {gaussians.means.shape[1]} columns, but the population has {d}.")
        result = np.empty((len(gaussians), embedding_size(d)), dtype=np.float32)
        for start in range(0, len(gaussians), _BLOCK):
            block = slice(start, start + _BLOCK)
            result[block] = upper_triangle(self._logarithms(gaussians[block]))
        return result

    def _prepare(self, gaussians: SongGaussians) -> tuple[Float64Array, Float64Array]:
        """Return the means with the level set to 0, and the covariances plus the ridge, in float64."""
        means = gaussians.means.astype(np.float64)
        if self.level is not None:
            means[:, self.level] = 0.0
        return means, gaussians.covariances + self.ridge * np.eye(means.shape[1])

    def _logarithms(self, gaussians: SongGaussians) -> Float64Array:
        """Return the matrix logarithms, (n, d + 1, d + 1)."""
        means, covariances = self._prepare(gaussians)
        A, d = self.whitening_, means.shape[1]
        m = (means - self.population_.mean) @ A
        G = np.ones((len(m), d + 1, d + 1))
        G[:, :d, :d] = A @ covariances @ A + m[:, :, None] * m[:, None, :]
        G[:, :d, d] = G[:, d, :d] = m
        values, vectors = np.linalg.eigh(G)
        logs = np.log(np.maximum(values, _MIN_EIGENVALUE))
        return (vectors * logs[:, None, :]) @ vectors.swapaxes(1, 2)


def upper_triangle(matrices: FloatingArray) -> FloatingArray:
    """Return the upper triangles of symmetric matrices (n, d, d), row by row, as vectors with the same norms."""
    rows, columns = np.triu_indices(matrices.shape[1])
    return matrices[:, rows, columns] * np.where(rows == columns, 1.0, np.sqrt(2.0))
