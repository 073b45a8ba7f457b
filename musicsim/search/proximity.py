"""Mutual proximity: adjusted distances with less hubness.

In many dimensions, a few songs (hubs) are close to very many others. Schnitzer, Flexer, Schedl and Widmer (JMLR 2012,
section 3.2, independent Gaussian form) model the distances from a song as a normal variable. The score of a pair is the
probability ``p = P(X > d) P(Y > d)`` that a random song is farther from both songs than they are from each other. Here,
p is converted back to a distance: the distance between two average songs that have the same p.

The *moments* of a song are the mean and standard deviation of its distances to other songs. Only the nearest third is
used, because distant songs say little about neighbors. On 311 recordings, this did not change the quality of results,
but lowered the skewness of the ten-occurrence from 0.31 to 0.10. Because p is computed as a logarithm, it does not
round to 0 or 1 within 30 standard deviations.
"""

from typing import Self

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float64Array, FloatingArray
from musicsim._checks import check_dense
from musicsim.search.estimator import Estimator

Moments = tuple[npt.ArrayLike, npt.ArrayLike]
PairMoments = tuple[tuple[Float64Array, Float64Array], tuple[Float64Array, Float64Array]]

BLOCK_ENTRIES = 1 << 18  # Number of distances in memory at a time: 2 MB
# Minimum and maximum number of songs used for moments. With 25, the deviation is too uncertain (skewness 0.8 on 311
# recordings). From a sample of 1,000, using more than 200 does not help (20,000 random songs).
_MIN_NEAREST, _MAX_NEAREST = 50, 200

_COPY = 1e-12  # Squared distances below this share of the squared norms are rounding errors: the rows are equal
_KNEE = 0.1  # Below this share of the mean distance, adjusted distances are compressed so that they stay positive


class MutualProximity(Estimator):
    """Keep hubs, songs that are close to everything, from filling the lists of similar songs.

    Moments of every song's distances, estimated on a sample, and distances adjusted by these moments.

    Parameters
    ----------
    n_sample : int >= 1
        Number of random songs that all songs are compared with; all songs if there are fewer.
    nearest : float in (0, 1]
        Share of the sample, nearest to each song, from which moments are computed; at least 50 and at most 200 songs.
    random_state : int, numpy.random.Generator or None

    Attributes
    ----------
    sample_ : float64 ndarray of shape (min(n_sample, n), n_features)
    mean_, std_ : float64 ndarrays of shape (n,)
        Mean and standard deviation of the distances from each row to the nearest rows of the sample. Sampled rows at
        distance 0 (the song and its duplicates) are ignored. 0 if no other row remains.

    See Also
    --------
    musicsim.evaluation.hubness : Measures hubs.

    Notes
    -----
    With fewer than 3 rows, or only equal rows, distances are not changed.

    References
    ----------
    - D. Schnitzer, A. Flexer, M. Schedl and G. Widmer, Local and global scaling reduce hubs in space, JMLR 13, 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.evaluation import hubness
    >>> from musicsim.search import MutualProximity
    >>> X = np.random.default_rng(0).normal(size=(300, 50))
    >>> X[:10] *= 0.1  # ten songs in the center are hubs
    >>> distances = np.linalg.norm(X[:, None] - X, axis=2)
    >>> scale = MutualProximity().fit(X)
    >>> moments = scale.moments(X)
    >>> adjusted = [scale.rescore(d, np.arange(300), (moments[0][q], moments[1][q])) for q, d in enumerate(distances)]
    >>> bool(hubness(np.argsort(adjusted)[:, 1:11]) < 0.5 * hubness(np.argsort(distances)[:, 1:11]))
    True
    """

    def __init__(
        self, n_sample: int = 1000, nearest: float = 1 / 3, random_state: int | np.random.Generator | None = 0
    ) -> None:
        self.n_sample, self.nearest, self.random_state = n_sample, nearest, random_state

    def fit(self, X: npt.ArrayLike, y: object = None) -> Self:
        """Draw the sample and estimate the moments of every row.

        Parameters
        ----------
        X : array-like of shape (n, n_features); a float32 memory map is read block by block
        """
        if self.n_sample < 1 or not 0 < self.nearest <= 1:
            raise ValueError(f"n_sample={self.n_sample} must be at least 1, and nearest={self.nearest} in (0, 1].")
        rows = _rows(X, "X")
        order = np.random.default_rng(self.random_state).permutation(len(rows))
        self.sample_ = np.asarray(rows[np.sort(order[: self.n_sample])], dtype=np.float64)
        self.n_features_in_ = rows.shape[1]
        self.mean_, self.std_ = self.moments(rows)
        return self

    def moments(self, Q: npt.ArrayLike) -> tuple[Float64Array, Float64Array]:
        """Return mean and standard deviation of the distances from each query to the sample, both (n_queries,).

        Parameters
        ----------
        Q : array-like of shape (n_queries, n_features)
            A query that equals a fitted row gets the moments of that row.
        """
        self._check_is_fitted("sample_")
        queries = _rows(Q, "Q")
        if queries.shape[1] != self.n_features_in_:
            raise ValueError(f"Q has {queries.shape[1]} columns, but the fit had {self.n_features_in_}.")
        mean, std = np.zeros(len(queries)), np.zeros(len(queries))
        if len(self.sample_) == 0:
            return mean, std
        center = self.sample_.mean(axis=0)  # reduces cancellation
        sample = self.sample_ - center
        norms = np.einsum("ij,ij->i", sample, sample)
        k = min(len(sample), max(_MIN_NEAREST, min(_MAX_NEAREST, round(self.nearest * len(sample)))))
        size = max(1, BLOCK_ENTRIES // len(sample))
        for start in range(0, len(queries), size):
            block = slice(start, start + size)
            part = queries[block] - center
            if not np.isfinite(part).all():
                raise ValueError("X or Q contains NaN or infinite values.")
            mean[block], std[block] = _block_moments(part, sample, norms, k)
        return mean, std

    def rescore(self, distances: npt.ArrayLike, rows: npt.ArrayLike, query_moments: Moments) -> Float64Array:
        """Return adjusted distances from a query to candidates; a larger mutual proximity gives a smaller distance.

        Parameters
        ----------
        distances : array of shape (k,), >= 0, from the query to the candidates
        rows : int array of shape (k,), the candidates' row numbers
        query_moments : mean and standard deviation of the query, from :meth:`moments`

        Returns
        -------
        float64 ndarray of shape (k,), >= 0, in the unit of `distances`
            The distance at which two average songs have the same mutual proximity. Below a tenth of an average song's
            mean distance, adjusted distances are compressed, so that they stay positive without changing their order.
        """
        self._check_is_fitted("mean_")
        d, chosen = np.asarray(distances, dtype=np.float64), np.asarray(rows)
        if d.ndim != 1 or chosen.shape != d.shape:
            raise ValueError(f"distances has shape {d.shape} and rows has shape {chosen.shape}; both must be (k,).")
        if len(chosen) and not (chosen.min() >= 0 and chosen.max() < len(self.mean_)):
            raise ValueError(f"rows must be numbers of fitted rows, from 0 to {len(self.mean_) - 1}.")
        chosen = chosen.astype(np.int64)
        return self.rescore_others(d, (self.mean_[chosen], self.std_[chosen]), query_moments)

    def rescore_others(self, distances: npt.ArrayLike, moments: Moments, query_moments: Moments) -> Float64Array:
        """Adjust distances as :meth:`rescore` does, for candidates outside the fit with the given moments."""
        self._check_is_fitted("mean_")
        d = np.asarray(distances, dtype=np.float64)
        mean, std = (np.asarray(part, dtype=np.float64) for part in moments)
        if d.ndim != 1 or mean.shape != d.shape or std.shape != d.shape:
            raise ValueError(
                f"distances and moments have shapes {d.shape}, {mean.shape} and {std.shape}; all must be (k,)."
            )
        own_mean, own_std = (np.asarray(part, dtype=np.float64).ravel() for part in query_moments)
        if len(own_mean) != 1 or len(own_std) != 1:
            raise ValueError("query_moments must be the mean and the standard deviation of one query.")
        return _adjust(d, ((own_mean, own_std), (mean, std)), _average_song(self.mean_, self.std_))


def _rows(X: npt.ArrayLike, name: str) -> FloatingArray:
    """Return two-dimensional floating-point rows; memory maps are not copied."""
    check_dense(name, X)
    rows = np.asarray(X)
    if rows.dtype not in (np.float32, np.float64):
        rows = rows.astype(np.float64)
    if rows.ndim != 2:
        raise ValueError(f"{name} has shape {rows.shape}; it must be two-dimensional, with one song per row.")
    return rows


def _block_moments(
    part: Float64Array, sample: Float64Array, norms: Float64Array, k: int
) -> tuple[Float64Array, Float64Array]:
    """Return the moments of the distances from rows to the `k` nearest rows of the sample, ignoring duplicates."""
    own = np.einsum("ij,ij->i", part, part)
    squares = part @ sample.T
    squares *= -2.0
    squares += own[:, None]
    squares += norms
    if squares.min() <= _COPY * (own.max() + norms.max()):  # checking every entry costs as much as the product
        squares[squares <= _COPY * (own[:, None] + norms)] = np.inf
    if k < len(sample):
        squares.partition(k - 1, axis=1)
    distances = np.sqrt(squares[:, :k])
    counts = np.isfinite(distances)
    n = np.maximum(np.count_nonzero(counts, axis=1), 1)
    mean = np.sum(distances, axis=1, where=counts) / n
    distances -= mean[:, None]
    std = np.sqrt(np.sum(np.square(distances), axis=1, where=counts) / n)
    # the deviation of equal distances is only a rounding error
    return mean, np.where(std > 1e-9 * mean, std, 0.0)


def _average_song(mean: Float64Array, std: Float64Array) -> tuple[float, float] | None:
    """Return the average mean and deviation of songs with a deviation; None with fewer than 3 songs or no deviation."""
    is_known = std > 0.0
    if len(mean) < 3 or not is_known.any():
        return None
    return float(mean[is_known].mean()), float(std[is_known].mean())


def _log_survival(d: Float64Array, moments: PairMoments, average: tuple[float, float]) -> Float64Array:
    """Return the logarithm of P(X > d) P(Y > d); a song without a deviation is treated as an average song."""
    from scipy.special import log_ndtr

    total = np.zeros(d.shape)
    for mean, std in moments:
        is_known = std > 0.0
        total += log_ndtr((np.where(is_known, mean, average[0]) - d) / np.where(is_known, std, average[1]))
    return total


def _adjust(d: Float64Array, moments: PairMoments, average: tuple[float, float] | None) -> Float64Array:
    """Return, for each pair, the distance between two average songs with the same mutual proximity."""
    from scipy.special import ndtri_exp

    if average is None:
        return d.copy()
    mean, std = average
    # each song contributes sqrt(p); -ndtri_exp inverts the logarithm of the survival function
    adjusted = mean - std * ndtri_exp(0.5 * _log_survival(d, moments, average))
    knee = _KNEE * mean
    return np.where(adjusted > knee, adjusted, knee * np.exp(np.minimum(adjusted - knee, 0.0) / knee))
