"""Metric learning to rank (McFee and Lanckriet, ICML 2010; thesis, chapters 3 and 4)."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils.validation import validate_data

from musicsim._arrays import Float64Array
from musicsim._callbacks import StepCallback
from musicsim.metric._bundle import BundleState
from musicsim.metric._learner import RankingLearner, as_relevance, check_query_weights
from musicsim.metric.cone import Cone
from musicsim.metric.coordinates import Axes, Columns
from musicsim.metric.linear import LinearMetric, factor


class MLR(LinearMetric, RankingLearner):
    """Learn a metric from rankings: which songs should come first when one looks for songs like another.

    A Mahalanobis metric that ranks the relevant songs of each song before the irrelevant ones. Solves equation 4.1,
    ``min over W >= 0 of trace(W) + C * mean over queries of the structured hinge loss``. With ``regularizer="l21"``,
    the sum of the row norms of W replaces the trace. With ``regularizer="plain"``, it is the distance from the plain
    metric, ``1/2 ||W / c - I||^2``. There, c starts at the reciprocal of the mean squared distance of two songs, and is
    doubled as long as the mean loss of c I falls.

    Parameters
    ----------
    loss : "auc", "map", "mrr", "ndcg" or "precision"
        Loss of a ranking; see :mod:`musicsim.metric.oracles`. The parameter `k` applies to "ndcg" and "precision".
    C : float > 0
        Weight of the mean loss over the queries. :class:`MLRCV` chooses it.
    structure : "full" or "diagonal"
        Any positive semidefinite metric, or one weight per column (thesis 4.B).
    regularizer : "trace", "l21" or "plain"
        "l21" (robust MLR) excludes whole columns of noise. For a diagonal metric, it is the same as "trace". "plain"
        keeps Euclidean distance unless the examples contradict it, so it does less harm if there are few.
    solver : "bundle", "admm" or "subgradient"
        "bundle" is by far the fastest. "admm" is algorithm 4.2 with T = `admm_steps`; "subgradient" is the baseline.
        See ``docs/research/mlr.md``.
    tol : float > 0
        The fit ends when the relative gap between the objective and its lower bound is at most this.
    max_cuts : int >= 1
        Maximum number of oracle calls; a fit that reaches it reports the gap in a ConvergenceWarning.
    n_queries : int, optional
        Use at most this many random queries per cut, except in the last cut. This is for data with which a full cut
        takes too long. All `max_cuts` are used. `objective_` is still exact, but `dual_bound_` is weak.
    random_state : int, Generator or None
        Seed for drawing queries.

    Attributes
    ----------
    metric_ : float64 ndarray of shape (d, d)
        W; a diagonal matrix if the structure is diagonal.
    components_ : float64 ndarray of shape (r, d)
        L with W = L^T L; rows are sorted by descending weight.
    objective_, dual_bound_ : float
        The exact objective of `metric_`, and a lower bound on the optimum.
    n_cuts_, n_projections_, n_queries_ : int
        Number of oracle calls, of eigendecompositions, and of queries that have both relevant and irrelevant songs.
    history_ : list of dict
        Per cut: cut, objective, dual_bound, gap, n_planes, n_projections, seconds.
    seconds_ : dict
        Wall time of the oracle, the quadratic programs and the projections.

    See Also
    --------
    MLRCV : Chooses `C` on held-out artists.
    GMML : Closed form: milliseconds instead of seconds.
    MultipleKernelMLR : Several descriptions of the songs at once.
    musicsim.order.LinearPartialOrderEmbedding : Learns from answers that compare pairs.

    Notes
    -----
    If you have fewer than some hundred songs, use ``regularizer="plain"`` and a small C, or the plain distance. With 25
    to 100 songs of two sets of real recordings, the trace lowered P@1 for other composers by .46 to .71. "plain" with
    C = 10 changed it by -.03 to +.01, and with C = 100 or 1,000 by -.09 to .00. See ``docs/research/figures.md``.

    Memory: the oracle (about four times X, and 64 MB), and 8 d^2 bytes per plane; planes of the last 150 rounds are
    kept.

    References
    ----------
    - B. McFee and G. Lanckriet, Metric learning to rank, ICML 2010.
    - B. McFee, More like this: machine learning approaches to music similarity, PhD thesis, UC San Diego, 2012,
      chapters 3 and 4.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from musicsim.evaluation import ranking_scores
    >>> from musicsim.metric import MLR
    >>> from musicsim.relevance import Relevance
    >>> X, y = load_wine(return_X_y=True)
    >>> X, train, test = scale(X), np.arange(0, 178, 2), np.arange(1, 178, 2)
    >>> mlr = MLR(C=100).fit(X[train], y[train])
    >>> relevance = Relevance.from_labels(y).restrict(test, train)  # look for training rows like each test row
    >>> round(ranking_scores(X[test], X[train], relevance)["auc"], 2)
    0.89
    >>> round(ranking_scores(mlr.transform(X[test]), mlr.transform(X[train]), relevance)["auc"], 2)
    0.97
    >>> bool(mlr.objective_ - mlr.dual_bound_ <= 1e-3 * mlr.objective_)  # certified: close to the optimum
    True
    """

    def __init__(
        self,
        loss: str = "auc",
        k: int = 10,
        C: float = 1.0,
        structure: str = "full",
        regularizer: str = "trace",
        solver: str = "bundle",
        admm_steps: int = 10,
        tol: float = 1e-3,
        max_cuts: int = 200,
        n_queries: int | None = None,
        random_state: int | np.random.Generator | None = None,
    ):
        super().__init__(loss, k, C, structure, solver, admm_steps, tol, max_cuts, n_queries, random_state)
        self.regularizer = regularizer

    def fit(
        self, X: npt.ArrayLike, y: Any, callback: StepCallback | None = None, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Learn the metric.

        Parameters
        ----------
        X : array-like of shape (n_songs, d)
        y : array-like of shape (n_songs,) or Relevance
            Class labels, or the relevance of the rows of X to each other.
        callback : callable, optional
            Gets the newest entry of `history_` after each cut, and ``components``, a function without arguments that
            returns L of the best metric so far. The callback returns True to end the fit with that metric.
        sample_weight : array-like of shape (n_songs,), optional
            Weights of the songs as queries: with weights v and hinge losses xi, the objective contains
            ``sum(v_q xi_q) / sum(v_q)`` over the queries. A song of weight 0 is not a query, but other songs are still
            ranked against it. A weight of 2 counts a query twice. For AUC, the oracle then takes up to twice as long.

        Raises
        ------
        ValueError
            If no query has both relevant and irrelevant songs.

        Warns
        -----
        UserWarning
            If the best metric is 0, usually because C is too small for the scale of X.
        """
        self._fit(X, y, callback, None, sample_weight)
        self._warn_if_zero(self.metric_, "X")
        return self

    def fit_path(
        self,
        X: npt.ArrayLike,
        y: Any,
        Cs: Sequence[float],
        callback: StepCallback | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> list[Self]:
        """Learn one metric per C; with the default solver, each fit starts from the planes of the previous fit.

        Parameters
        ----------
        X, y, callback, sample_weight : as in :meth:`fit`; steps also contain C
        Cs : sequence of float; ascending order is fastest

        Returns
        -------
        list of MLR
            Fitted clones in the order of `Cs`; there are fewer if `callback` ends the path.
        """
        fitted: list[Self] = []
        state = None
        for C in Cs:
            is_stopped = False

            def progress(step: dict[str, Any], C: float = C) -> bool:
                nonlocal is_stopped
                is_stopped = bool(callback is not None and callback({"C": C, **step}))
                return is_stopped

            mlr = clone(self).set_params(C=C)
            state = mlr._fit(X, y, progress, state, sample_weight)
            fitted.append(mlr)
            if is_stopped:
                break
        return fitted

    def _fit(
        self,
        X: npt.ArrayLike,
        y: Any,
        callback: StepCallback | None,
        state: BundleState | None,
        sample_weight: npt.ArrayLike | None,
    ) -> BundleState | None:
        self._check_parameters()
        songs: Float64Array = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        relevance = as_relevance(y, len(songs))
        query_weights = check_query_weights(sample_weight, len(songs))
        coordinates: Axes | Columns
        is_varied = bool(np.ptp(songs, axis=0).any())
        if self.regularizer == "plain" and is_varied:
            coordinates = Columns.scaled(songs) if self.structure == "diagonal" else Axes.scaled(songs)
        elif self.structure == "diagonal":
            coordinates = Columns.from_songs(songs)
        elif self.regularizer == "l21":
            coordinates = Axes(np.ones(songs.shape[1]), np.eye(songs.shape[1]))
        else:
            coordinates = Axes.principal(songs)
        width = len(coordinates.weights)
        if width == 0 or not is_varied:
            raise ValueError("All rows of X are equal; there is nothing to learn from.")
        cone = Cone([width], self.structure, coordinates.weights)

        def components(flat: Float64Array) -> Float64Array:
            return factor(coordinates.metric(flat))

        rows = coordinates.apply(songs)
        flat, state = self._solve(rows, relevance, cone, callback, components, state, 4, query_weights)
        self.metric_ = coordinates.metric(flat)
        self.components_ = factor(self.metric_)
        return state
