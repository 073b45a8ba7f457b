"""Within-class covariance normalization (Hatch, Kajarekar, Stolcke, 2006)."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from musicsim import gaussians
from musicsim._arrays import Float64Array
from musicsim._checks import check_number
from musicsim.metric._learner import as_relevance
from musicsim.metric.linear import LinearMetric
from musicsim.metric.scatter import relevance_scatters, require_pairs
from musicsim.relevance import Relevance, label_codes

_MIN_EIGENVALUE = 1e-10  # Smaller eigenvalues of the covariance are rounding errors; its trace is d


class WCCN(LinearMetric, BaseEstimator):
    """Make distances ignore how songs of the same class differ, without any optimization.

    Whitening within classes: directions in which songs of the same class differ get a lower weight. Differences between
    classes are not used. Let W be the within-class covariance, scaled to trace d, and g the shrinkage. Then ``S = (1 -
    g) W + g I`` and ``L = S^-1/2``.

    Parameters
    ----------
    shrinkage : float in [0, 1]
        g: with 1, nothing is learned; with 0, the classes become spheres.

    Attributes
    ----------
    covariance_, components_ : float64 ndarrays of shape (d, d)
        S and L. L is symmetric, so songs move as little as whitening allows.

    See Also
    --------
    GMML : Also uses how songs of different classes differ.

    Notes
    -----
    The unit of X does not matter. Time: O(n d^2 + d^3). Memory: 32 d^2 bytes and a copy of X. A shrinkage of about 0.3
    is good if there are many more songs than dimensions, and 0.8 or 0.9 if there are a few hundred songs.

    References
    ----------
    - A. Hatch, S. Kajarekar and A. Stolcke, Within-class covariance normalization for SVM-based speaker recognition,
      Interspeech 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.evaluation import ranking_scores
    >>> from musicsim.metric import WCCN
    >>> from musicsim.relevance import Relevance
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(60) % 3
    >>> X = np.c_[y + 0.2 * rng.normal(size=60), 5 * rng.normal(size=(60, 2))]  # only the first column depends on y
    >>> Z = WCCN(0.1).fit(X, y).transform(X)
    >>> round(ranking_scores(X, X, Relevance.from_labels(y))["auc"], 1)
    0.5
    >>> round(ranking_scores(Z, Z, Relevance.from_labels(y))["auc"], 1)
    0.6
    """

    def __init__(self, shrinkage: float = 0.5) -> None:
        self.shrinkage = shrinkage

    def fit(self, X: npt.ArrayLike, y: Any) -> Self:
        """Learn the whitening from classes or a Relevance.

        Parameters
        ----------
        X : array-like of shape (n_songs, d)
        y : as in :func:`compute_within_covariance`

        Raises
        ------
        ValueError
            If no class has two songs, or the covariance is singular and the shrinkage is 0.
        """
        songs: Float64Array = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        return self.fit_covariances([compute_within_covariance(songs, y)])

    def fit_covariances(self, covariances: Iterable[npt.ArrayLike]) -> Self:
        """Learn the whitening from several within-class covariances, with equal weights.

        Parameters
        ----------
        covariances : iterable of array-likes of shape (d, d)
            From :func:`compute_within_covariance`, for the same or different songs (such as parts of songs).

        Raises
        ------
        ValueError
            If a covariance is 0 or not finite, or S is singular.
        """
        check_number("shrinkage", self.shrinkage, 0, 1)
        matrices = [np.asarray(W, dtype=np.float64) for W in covariances]
        if not matrices:
            raise ValueError("covariances is empty; give at least one covariance.")
        d = len(matrices[0])
        for W in matrices:
            if W.shape != (d, d):
                raise ValueError(f"covariances contains a matrix of shape {W.shape}; all must have shape {(d, d)}.")
            if not np.isfinite(W).all() or not np.trace(W) > 0:
                raise ValueError("covariances contains a matrix that is 0 or not finite; songs of a class must differ.")
        within = np.mean([W * (d / np.trace(W)) for W in matrices], axis=0)
        self.covariance_ = gaussians.shrink((within + within.T) / 2.0, float(self.shrinkage))
        if not np.linalg.eigvalsh(self.covariance_)[0] > _MIN_EIGENVALUE:
            raise ValueError(f"the within-class covariance is singular; use a shrinkage above {self.shrinkage!r}.")
        self.components_ = gaussians.inverse_root(self.covariance_)
        self.n_features_in_ = d
        return self


def compute_within_covariance(X: npt.ArrayLike, y: Any) -> Float64Array:
    """Return the covariance of songs around the mean of their class, pooled over classes.

    Parameters
    ----------
    X : array-like of shape (n_songs, d)
    y : array-like of shape (n_songs,) or Relevance
        Class labels (None is unknown); a class of n songs has the weight n - 1. For a Relevance, the result is half the
        mean outer product of the differences of similar pairs, which is the same for classes of equal size.

    Returns
    -------
    float64 ndarray of shape (d, d)

    Raises
    ------
    ValueError
        If no class has two songs.

    Examples
    --------
    >>> from musicsim.metric import compute_within_covariance
    >>> X = [[0.0, 1.0], [0.0, 3.0], [9.0, 1.0], [9.0, 3.0]]
    >>> compute_within_covariance(X, ["calm", "calm", "loud", "loud"])  # the first column only varies between classes
    array([[0., 0.],
           [0., 2.]])
    """
    songs = np.asarray(X, dtype=np.float64)
    if songs.ndim != 2:
        raise ValueError(f"X has shape {songs.shape}; it must be (n_songs, d).")
    if isinstance(y, Relevance):
        similar, _ = relevance_scatters(songs, as_relevance(y, len(songs)))
        require_pairs(similar)
        return similar.mean() / 2.0
    codes = label_codes(y, "y")
    if len(codes) != len(songs):
        raise ValueError(f"y has {len(codes)} labels, but X has {len(songs)} rows; give one label per row.")
    is_known = codes >= 0
    if not (np.bincount(codes[is_known]) > 1).any():
        raise ValueError("y: no class has two songs; there is nothing to learn from.")
    return gaussians.pool_covariance(songs[is_known] - songs[is_known].mean(axis=0), codes[is_known])
