"""Geometric mean metric learning: a metric in closed form (Su, King, Lyu, SIGIR 2017, algorithm 1)."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from musicsim._arrays import Float64Array
from musicsim._checks import check_whole
from musicsim.metric._geometric import check_mean_parameters, geometric_mean_metric, prior_metric, regularize
from musicsim.metric._learner import as_relevance
from musicsim.metric.linear import LinearMetric, factor
from musicsim.metric.scatter import (
    Scatter,
    label_scatters,
    pair_scatter,
    relevance_scatters,
    require_pairs,
    sample_pairs,
)
from musicsim.relevance import Relevance, label_codes

_MAX_COLUMNS = 10_000  # 6.4 GB of (d, d) matrices


class GMML(LinearMetric, BaseEstimator):
    """Learn in milliseconds what similar means, from labels or pairs of similar and dissimilar songs.

    A Mahalanobis metric in closed form: the geometric mean of two scatters. Let S and D be the mean outer products of
    the differences of similar and of dissimilar pairs. Let P be the prior, and s and e the mean eigenvalues of S P and
    D P^-1. The metric is ``M = (S + reg s P^-1)^-1 #_t (D + reg e P)``. At t = 1/2, it minimizes ``tr(M S) + tr(M^-1
    D)`` (equation 6).

    Parameters
    ----------
    t : float in [0, 1]
        Position on the geodesic from S^-1, which only brings similar songs together, to D.
    prior : None, "covariance" or array-like of shape (d, d)
        Euclidean distance, the inverse covariance of X, or any positive definite matrix.
    reg : float >= 0
        Share of the scatter that is added; as it grows, the metric approaches a multiple of the prior.
    n_pairs : int, optional
        Number of similar pairs, and of dissimilar pairs, to draw; by default all pairs are used.
    random_state : int, Generator or None
        Seed for drawing pairs.

    Attributes
    ----------
    metric_, components_ : float64 ndarrays of shape (d, d) and (r, d)
        M = L^T L, and L with rows sorted by descending weight.
    similar_, dissimilar_ : float64 ndarrays of shape (d, d)
        Regularized scatters: at t = 1/2, M similar_ M = dissimilar_.

    See Also
    --------
    MLR : Ranks better with enough examples; takes seconds to minutes.
    LGMMLByExample : A different metric for each region of the songs.
    WCCN : Uses only the labels' classes, without dissimilar pairs.

    Notes
    -----
    Algorithm 1 adds lambda I to sums over pairs. Here, a share of the mean is added, which changes only the scale of M.
    Time for all pairs of labels: O(n d^2 + d^3). Time for a Relevance: O(n^2 d + d^3) in blocks of 16 MB; use `n_pairs`
    for more than about 20,000 songs. Memory: 64 d^2 bytes, and a few copies of X.

    References
    ----------
    - P. Zadeh, R. Hosseini and S. Sra, Geometric mean metric learning, ICML 2016.
    - Y. Su, I. King and M. Lyu, Learning to rank using localized geometric mean metrics, SIGIR 2017, section 3
      (equation 6).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from musicsim.metric import GMML
    >>> X, y = load_wine(return_X_y=True)
    >>> knn = KNeighborsClassifier(3)
    >>> plain = cross_val_score(make_pipeline(StandardScaler(), knn), X, y)
    >>> learned = cross_val_score(make_pipeline(StandardScaler(), GMML(), knn), X, y)
    >>> round(float(plain.mean()), 2), round(float(learned.mean()), 2)
    (0.94, 0.97)
    """

    def __init__(
        self,
        t: float = 0.5,
        prior: Any = None,
        reg: float = 0.01,
        n_pairs: int | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.t, self.prior, self.reg = t, prior, reg
        self.n_pairs, self.random_state = n_pairs, random_state

    def fit(self, X: npt.ArrayLike, y: Any) -> Self:
        """Learn the metric from labels or a Relevance.

        Parameters
        ----------
        X : array-like or SciPy sparse matrix of shape (n_songs, d)
            With at most 10,000 columns; the fit makes sparse rows dense, but :meth:`transform` does not.
        y : array-like of shape (n_songs,) or Relevance
            Class labels, or the relevance of the rows of X to each other. Each pair of a query and a relevant (or
            irrelevant) song has the same weight. Queries without relevant or without irrelevant songs are ignored.

        Raises
        ------
        ValueError
            If there are no pairs, all pairs consist of equal rows, or a scatter is singular and `reg` is 0.
        """
        self._check_parameters()
        songs = self._check_songs(X)
        if self.n_pairs is not None:
            rng = np.random.default_rng(self.random_state)
            drawn = sample_pairs(as_relevance(y, len(songs)), int(self.n_pairs), rng)
            similar, dissimilar = (pair_scatter(songs, pairs) for pairs in drawn)
        elif isinstance(y, Relevance):
            similar, dissimilar = relevance_scatters(songs, as_relevance(y, len(songs)))
        else:
            codes = label_codes(y, "y")
            if len(codes) != len(songs):
                raise ValueError(f"y has {len(codes)} labels, but X has {len(songs)} rows; give one label per row.")
            similar, dissimilar = label_scatters(songs, codes)
        require_pairs(similar)
        return self._learn(songs, similar, dissimilar)

    def fit_pairs(self, X: npt.ArrayLike, similar: npt.ArrayLike, dissimilar: npt.ArrayLike) -> Self:
        """Learn the metric from pairs of songs.

        Parameters
        ----------
        X : array-like or SciPy sparse matrix of shape (n_songs, d), as in :meth:`fit`
        similar, dissimilar : int array-likes of shape (m, 2), m >= 1; row numbers of X
        """
        self._check_parameters()
        songs = self._check_songs(X)
        scatters = []
        for name, pairs in (("similar", np.asarray(similar)), ("dissimilar", np.asarray(dissimilar))):
            if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
                raise ValueError(f"{name} has shape {pairs.shape}; it must be (m, 2), m >= 1, with row numbers of X.")
            if pairs.dtype.kind not in "iu":
                raise ValueError(f"{name} has type {pairs.dtype}; row numbers of X must be integers.")
            if pairs.min() < 0 or pairs.max() >= len(songs):
                raise ValueError(
                    f"{name} contains row {pairs.max() if pairs.min() >= 0 else pairs.min()}, "
                    f"but X has {len(songs)} rows."
                )
            scatters.append(pair_scatter(songs, pairs.astype(np.int64)))
        return self._learn(songs, *scatters)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_songs(self, X: npt.ArrayLike) -> Float64Array:
        """Return dense rows; raise ValueError if the metric would be too large."""
        rows: Any = validate_data(self, X, dtype=np.float64, accept_sparse="csr", ensure_min_samples=2)
        d = rows.shape[1]
        if d > _MAX_COLUMNS:
            raise ValueError(
                f"X has {d} columns, but GMML computes (d, d) matrices and accepts at most {_MAX_COLUMNS} columns; "
                "reduce X first, for example with scikit-learn's TruncatedSVD."
            )
        return np.asarray(rows.toarray() if sparse.issparse(rows) else rows)

    def _check_parameters(self) -> None:
        check_mean_parameters(self.t, self.reg)
        if self.n_pairs is not None:
            check_whole("n_pairs", self.n_pairs, 1)

    def _learn(self, songs: Float64Array, similar: Scatter, dissimilar: Scatter) -> Self:
        prior = prior_metric(self.prior, songs)
        self.similar_, self.dissimilar_ = regularize(similar.mean(), dissimilar.mean(), prior, float(self.reg))
        self.metric_ = geometric_mean_metric(self.similar_, self.dissimilar_, float(self.t))
        self.components_ = factor(self.metric_)
        return self
