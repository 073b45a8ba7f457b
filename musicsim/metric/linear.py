"""Metrics as linear maps of songs."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from musicsim._arrays import Float64Array


class LinearMetric(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Mixin for estimators that learn a factor `components_`, (r, d), of a metric W = L^T L."""

    components_: Float64Array

    def transform(self, X: npt.ArrayLike) -> Float64Array:
        """Map songs so that Euclidean distance is the learned distance.

        Parameters
        ----------
        X : array-like or SciPy sparse matrix of shape (n_songs, d)

        Returns
        -------
        float64 ndarray of shape (n_songs, r)
        """
        check_is_fitted(self)
        songs: Any = validate_data(self, X, dtype=np.float64, accept_sparse="csr", reset=False)
        return np.asarray(songs @ self.components_.T)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)


def factor(metric: npt.ArrayLike, spectral_mass: float = 1.0) -> Float64Array:
    """Return L with W = L^T L, or the L of lowest rank that keeps a given share of the spectrum.

    Parameters
    ----------
    metric : array-like of shape (d, d), symmetric positive semidefinite
    spectral_mass : float in (0, 1]
        Share of the trace to keep; 0.95 gives the thesis's effective rank (4.4.1).

    Returns
    -------
    float64 ndarray of shape (r, d)
        Rows are sorted by descending weight. For a metric of 0, there is one row of zeros.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.metric import factor
    >>> np.abs(factor(np.diag([4.0, 100.0, 1.0])))
    array([[ 0., 10.,  0.],
           [ 2.,  0.,  0.],
           [ 0.,  0.,  1.]])
    >>> factor(np.diag([4.0, 100.0, 1.0]), spectral_mass=0.95).shape
    (1, 3)
    """
    if not 0 < spectral_mass <= 1:
        raise ValueError(f"spectral_mass={spectral_mass} must be above 0 and at most 1.")
    values, vectors = np.linalg.eigh(np.asarray(metric, dtype=np.float64))
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    # eigenvalues below this share of the largest are rounding errors
    is_kept = values > 1e-13 * values[0]
    if spectral_mass < 1:
        before = np.concatenate([[0.0], np.cumsum(values)[:-1]])
        is_kept &= before < spectral_mass * values.sum()
    is_kept[0] = is_kept[0] or not is_kept.any()
    # the sign of an eigenvector is arbitrary, so its largest entry is made positive
    rows = (vectors[:, is_kept] * np.sqrt(values[is_kept])).T
    largest = rows[np.arange(len(rows)), np.abs(rows).argmax(axis=1)]
    return rows * np.where(largest < 0, -1.0, 1.0)[:, None]
