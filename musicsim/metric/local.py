"""Query by example with local geometric mean metrics (Su, King, Lyu, SIGIR 2017, 4.4)."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from musicsim._arrays import Float64Array, Int64Array
from musicsim._checks import check_number, check_whole
from musicsim.metric._geometric import check_mean_parameters, geometric_mean_metric, prior_metric, regularize
from musicsim.metric._learner import as_relevance
from musicsim.metric.feedback import Feedback, adapt_weights, feedback_metric
from musicsim.metric.linear import LinearMetric, factor
from musicsim.metric.local_metrics import QUANTILE, compute_squared_lengths
from musicsim.metric.scatter import Scatter, relevance_scatters, require_pairs

_SONGS_PER_METRIC = 10


class LGMMLByExample(LinearMetric, BaseEstimator):
    """Learn what similar means where it depends on the song, as loudness may matter for one style only.

    A metric that depends on the query: songs near it are compared by the features that matter there. The songs are
    clustered. M_r is the geometric mean metric of pairs that consist of a song in cluster r and a song that is relevant
    or irrelevant to it. The anchor p_r of M_r is the cluster center. For a query x, songs are ranked by ``M(x) = sum_r
    w_r(x) M_r``. The weights are proportional to exp(-rho/2 t_r), where t_r is the squared distance from x to p_r in
    M_r (equations 3 and 11). Here, the weights are scaled to sum to 1.

    Parameters
    ----------
    n_metrics : int >= 1
        Number of local metrics, m, limited to one per ten songs; 1 is a single metric, as in :class:`GMML`.
    rho : float >= 0
        Locality: with 0, M(x) is the mean of all metrics everywhere; with hundreds, the metric of the nearest anchor.
    t, prior, reg : as in :class:`GMML`
        `reg` applies to local metrics and to the metric of all pairs, which is their prior if `prior` is None.
    random_state : int, Generator or None
        Seed for clustering.

    Attributes
    ----------
    metrics_ : float64 ndarray of shape (m, d, d)
        Scaled so that 95% of the training songs have t_r <= 1.
    anchors_ : float64 ndarray of shape (m, d)
    mean_metric_, components_ : float64 ndarrays of shape (d, d) and (r, d)
        The mean of M(x) over the training songs, and its factor, for maps and indexes, which need a single metric.

    See Also
    --------
    GMML : One metric for all songs; needs fewer examples.
    LGMML : The paper's method, for queries without vectors.

    Notes
    -----
    Queries have different metrics, so distances are not symmetric. A cluster without similar and dissimilar pairs gets
    the metric of all pairs. Time: O(n^2 d) for the pairs, O(m d^3) for the metrics; see also :meth:`distances`.
    Memory: 16 m d^2 bytes, and 16 MB for blocks of pairs.

    References
    ----------
    - Y. Su, I. King and M. Lyu, Learning to rank using localized geometric mean metrics, SIGIR 2017, section 3.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.metric import LGMMLByExample
    >>> rng = np.random.default_rng(0)
    >>> X, style, y = rng.normal(size=(400, 3)), np.repeat([0, 1], 200), np.arange(400) % 2
    >>> X[:, 0] += 20 * style  # two styles far apart
    >>> X[np.arange(400), 1 + style] += 4 * y  # each style has its own column that matters
    >>> model = LGMMLByExample(n_metrics=2, random_state=0).fit(X, 2 * style + y)
    >>> first, second = model.metric_at([0, 2, 2]), model.metric_at([20, 2, 2])
    >>> bool(first[1, 1] > first[2, 2]), bool(second[2, 2] > second[1, 1])
    (True, True)
    >>> model.rank(X[:1], X, k=5).shape
    (1, 5)
    """

    def __init__(
        self,
        n_metrics: int = 20,
        rho: float = 64.0,
        t: float = 0.25,
        prior: Any = None,
        reg: float = 0.01,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.n_metrics, self.rho, self.t = n_metrics, rho, t
        self.prior, self.reg, self.random_state = prior, reg, random_state

    def fit(self, X: npt.ArrayLike, y: Any) -> Self:
        """Learn metrics and anchors.

        Parameters
        ----------
        X, y : as in :meth:`GMML.fit`

        Raises
        ------
        ValueError
            As in :meth:`GMML.fit`; also raised if all pairs of a cluster consist of equal rows.
        """
        from sklearn.cluster import KMeans

        self._check_parameters()
        songs: Float64Array = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        relevance = as_relevance(y, len(songs))
        m = min(int(self.n_metrics), max(1, len(songs) // _SONGS_PER_METRIC), len(np.unique(songs, axis=0)))
        # scikit-learn does not accept a Generator as a seed
        seed = int(np.random.default_rng(self.random_state).integers(2**31))
        clusters = KMeans(m, n_init=1, random_state=seed).fit(songs)
        pairs = [relevance_scatters(songs, relevance, np.flatnonzero(clusters.labels_ == r)) for r in range(m)]
        similar, dissimilar = (
            Scatter(np.sum([p[kind].total for p in pairs], axis=0), sum(p[kind].n_pairs for p in pairs))
            for kind in (0, 1)
        )
        require_pairs(similar)
        prior = prior_metric(self.prior, songs)
        overall = self._mean(similar, dissimilar, prior)
        local_prior = overall if self.prior is None else prior
        metrics = [self._mean(*p, local_prior) if p[0].n_pairs else overall for p in pairs]
        self.anchors_ = clusters.cluster_centers_
        scales = [
            np.quantile(compute_squared_lengths(M, songs, p), QUANTILE)
            for M, p in zip(metrics, self.anchors_, strict=True)
        ]
        self.metrics_ = np.stack([M / s if s > 0 else M for M, s in zip(metrics, scales, strict=True)])
        self.mean_metric_ = np.tensordot(self._weights(songs).mean(axis=0), self.metrics_, 1)
        self.components_ = factor(self.mean_metric_)
        return self

    def weights_at(self, X: npt.ArrayLike) -> Float64Array:
        """Return the weights w_r of equation 11 at the given points, (n_points, m); they sum to 1."""
        check_is_fitted(self)
        return self._weights(validate_data(self, X, dtype=np.float64, reset=False))

    def metric_at(self, x: npt.ArrayLike) -> Float64Array:
        """Return the metric M(x) of equation 3 at one point, (d, d)."""
        weights = self.weights_at(np.asarray(x, dtype=np.float64)[None])[0]
        metric: Float64Array = np.tensordot(weights, self.metrics_, 1)
        return metric

    def distances(self, Q: npt.ArrayLike, X: npt.ArrayLike) -> Float64Array:
        """Return the distances (not squared) from queries to songs; each query has its own metric.

        Parameters
        ----------
        Q : array-like of shape (n_queries, d)
        X : array-like of shape (n_songs, d)

        Returns
        -------
        float64 ndarray of shape (n_queries, n_songs)

        Notes
        -----
        With up to m queries, each metric is applied: O(n_queries n_songs d^2). With more queries, the lengths of all
        songs in all metrics are computed once, in O(m n_songs d^2) with 8 m n_songs bytes. The matrix products then
        take O(n_queries n_songs (m + d)) and three times the memory of the result. In this case, squares are
        differences of lengths, accurate to about 1e-15 of the longest length. So the distance from a song to itself may
        be 1e-8 of that length, and the order of songs at smaller distances is not reliable. To avoid this, use few
        queries at a time.
        """
        check_is_fitted(self)
        queries: Float64Array = validate_data(self, Q, dtype=np.float64, reset=False)
        songs: Float64Array = validate_data(self, X, dtype=np.float64, reset=False)
        weights = self._weights(queries)
        if len(queries) <= len(self.metrics_):
            squares = np.empty((len(queries), len(songs)))
            for q, (x, w) in enumerate(zip(queries, weights, strict=True)):
                squares[q] = compute_squared_lengths(np.tensordot(w, self.metrics_, 1), songs, x)
            return np.sqrt(squares)
        # center the songs, to reduce cancellation
        center = songs.mean(axis=0)
        songs, queries = songs - center, queries - center
        lengths = np.stack([compute_squared_lengths(M, songs) for M in self.metrics_])
        products = np.zeros_like(queries)
        for w, M in zip(weights.T, self.metrics_, strict=True):
            products += w[:, None] * (queries @ M)
        own = np.einsum("qi,qi->q", products, queries)
        squares = weights @ lengths - 2.0 * products @ songs.T + own[:, None]
        return np.sqrt(np.maximum(squares, 0.0))

    def rank(self, Q: npt.ArrayLike, X: npt.ArrayLike, k: int | None = None) -> Int64Array:
        """Return the rows of X by distance to each query, nearest first, (n_queries, k); the lower row wins ties."""
        return np.argsort(self.distances(Q, X), axis=1, kind="stable")[:, :k]

    def feedback(self, x: npt.ArrayLike, up: npt.ArrayLike, down: npt.ArrayLike, **how: float) -> Feedback:
        """Return the metric and the ideal song for a query, given songs marked up and down.

        The weights of the local metrics are adapted first, then the metric that they yield.

        Parameters
        ----------
        x, up, down : as in :func:`feedback_metric`
        **how : `strength` and `move` of :func:`feedback_metric`
        """
        check_is_fitted(self)
        query = np.asarray(x, dtype=np.float64)
        weights = adapt_weights(query, up, down, self.metrics_, self.weights_at(query[None])[0])
        return feedback_metric(query, up, down, np.tensordot(weights, self.metrics_, 1), weights=weights, **how)

    def _check_parameters(self) -> None:
        check_mean_parameters(self.t, self.reg)
        check_whole("n_metrics", self.n_metrics, 1)
        check_number("rho", self.rho, 0)

    def _mean(self, similar: Scatter, dissimilar: Scatter, prior: Float64Array) -> Float64Array:
        S, D = regularize(similar.mean(), dissimilar.mean(), prior, float(self.reg))
        return geometric_mean_metric(S, D, float(self.t))

    def _weights(self, places: Float64Array) -> Float64Array:
        t = np.stack(
            [compute_squared_lengths(M, places, p) for M, p in zip(self.metrics_, self.anchors_, strict=True)], axis=1
        )
        # before scaling, the nearest anchor has weight 1, so even distant points have nonzero weights
        weights = np.exp(-0.5 * float(self.rho) * (t - t.min(axis=1, keepdims=True)))
        return weights / weights.sum(axis=1, keepdims=True)
