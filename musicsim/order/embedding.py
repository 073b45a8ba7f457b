"""Partial order embedding: learn a space whose distances agree with comparisons (thesis 2.3 and 2.4)."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import validate_data

from musicsim._arrays import Float64Array, Int64Array
from musicsim._callbacks import StepCallback
from musicsim._checks import check_choice, check_positive, check_whole
from musicsim.blas import one_blas_thread
from musicsim.metric.cone import Cone, ConeProjection
from musicsim.metric.coordinates import Axes, Columns
from musicsim.metric.kernel_spaces import KernelProjections, KernelSpaces, training_kernels
from musicsim.metric.linear import LinearMetric, factor
from musicsim.order._kernels import pair_distances
from musicsim.order._solvers import Course, solve_accelerated, solve_subgradient
from musicsim.order.comparisons import check_comparisons
from musicsim.order.objective import Objective

_CHOICES = {
    "structure": ("full", "diagonal"),
    "combination": ("concatenated", "sum"),
    "solver": ("accelerated", "subgradient"),
}


def share_in_order(embedding: npt.ArrayLike, comparisons: npt.ArrayLike) -> float:
    """Return the share of comparisons that hold in an embedding (the generalized AUC of thesis 2.C).

    Parameters
    ----------
    embedding : array-like of shape (n_songs, r)
    comparisons : int array-like of shape (m, 4)
        Rows (i, j, k, l) for d(i, j) < d(k, l). A comparison of equal distances does not hold.

    Returns
    -------
    float, or NaN without comparisons

    Examples
    --------
    >>> from musicsim.order import share_in_order
    >>> songs = [[0.0], [1.0], [3.0]]
    >>> share_in_order(songs, [[0, 1, 0, 2], [0, 2, 1, 2]])  # 1 < 3 holds, 3 < 2 does not
    0.5
    """
    Y = np.ascontiguousarray(embedding, dtype=np.float64)
    if Y.ndim != 2 or not np.isfinite(Y).all():
        raise ValueError(f"embedding has shape {Y.shape}; it must be (n_songs, r) and contain finite numbers.")
    rows = check_comparisons(comparisons, len(Y))
    if not len(rows):
        return float("nan")
    near, far = pair_distances(Y, rows[:, :2]), pair_distances(Y, rows[:, 2:])
    return float(np.mean(near < far))


class _OrderEmbedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Parameters and results that both embeddings share."""

    structure: str
    C: float
    solver: str
    tol: float
    max_iter: int

    def _check_parameters(self) -> None:
        for name, choices in _CHOICES.items():
            if hasattr(self, name):
                check_choice(name, getattr(self, name), choices)
        check_whole("max_iter", self.max_iter, 1)
        for name in ("C", "tol"):
            check_positive(name, getattr(self, name))

    def _solve(
        self, songs: Float64Array, comparisons: Int64Array, cone: Cone, callback: StepCallback | None
    ) -> ConeProjection:
        """Learn a metric in `cone`, set the attributes that describe the fit, and warn if it did not converge."""
        objective = Objective(songs, comparisons, cone, float(self.C))
        course = Course(float(self.tol), int(self.max_iter), callback)
        solve = solve_accelerated if self.solver == "accelerated" else solve_subgradient
        with one_blas_thread():  # the matrices are small; more threads would wait for each other
            solve(objective, course)
        assert course.best is not None
        self.objective_, self.dual_bound_ = course.objective, course.dual_bound
        self.n_iter_, self.history_ = course.n_iter, course.history
        course.warn_if_open(f"{course.n_iter} iterations", f"Raise max_iter, or lower C={self.C:g}.", stacklevel=3)
        return course.best


def _check_training(comparisons: npt.ArrayLike, n_songs: int) -> Int64Array:
    rows = check_comparisons(comparisons, n_songs)
    if not len(rows):
        raise ValueError("comparisons is empty; there is nothing to learn from.")
    return rows


class PartialOrderEmbedding(KernelProjections, _OrderEmbedding):
    """Learn similarity from answers such as "A is more similar to B than to C", and which kernels matter.

    Embed songs, from one or several kernels, so that distances agree with comparisons. The objective is ``min over W^p
    >= 0 of sum_p <W^p, K^p> + C / m * sum of max(0, 1 + d(i, j) - d(k, l))``. Squared distances are ``d(x, y) = sum_p
    (K_x^p - K_y^p)^T W^p (K_x^p - K_y^p)`` (algorithms 2.3 and 2.4).

    Parameters
    ----------
    structure : "full" or "diagonal"
        W^p is any positive semidefinite matrix, or has one weight per training song.
    C : float > 0
        Weight of the mean hinge loss.
    combination : "concatenated" or "sum"
        One projection per kernel (K_4), or a single projection for the sum of the kernels (K_1, equation 2.7).
    solver : "accelerated" or "subgradient"
        Projected gradients of a smoothed hinge, or the thesis's projected sub-gradients (2.B), which are slower.
    tol : float > 0
        The fit ends when the relative gap between the objective and its lower bound is at most this, or after
        `max_iter` iterations.
    max_rank : int or None
        Number of principal directions of each kernel's feature space, for a full structure; None uses all. Needed for
        thousands of songs with kernels of full rank.

    Attributes
    ----------
    components_, metrics_ : lists of ndarrays of shape (r_p, n_songs) and (n_songs, n_songs)
        N^p and W^p = N^p^T N^p. N^p has no rows if kernel p is not used.
    kernel_weights_ : ndarray of shape (n_kernels,), or (1,) for the sum of kernels
        Each kernel's share of the mean squared distance between training songs. The shares sum to 1, or are all 0 if W
        is 0.
    objective_, dual_bound_ : float
    n_iter_, n_kernels_in_, n_songs_in_ : int
    history_ : list of dict

    See Also
    --------
    LinearPartialOrderEmbedding : The same for songs with vectors; faster.
    clean_comparisons : Removes contradictions before the fit.

    Notes
    -----
    With K = I, this is generalized non-metric multidimensional scaling, which cannot embed new songs (2.3.3). Clean the
    comparisons first (:func:`clean_comparisons`), because repeated comparisons have a higher weight. Time per
    iteration: an eigendecomposition of every W^p, plus O(m r + n r^2) for rank r. Memory: ``10 r^2 + 4 n r`` numbers,
    and the kernels.

    References
    ----------
    - B. McFee and G. Lanckriet, Learning multi-modal similarity, JMLR 12, 2011.
    - B. McFee, More like this: machine learning approaches to music similarity, PhD thesis, UC San Diego, 2012, chapter
      2 (algorithms 2.3 and 2.4).

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.order import PartialOrderEmbedding
    >>> points = np.array([[0.0], [1.0], [5.0], [6.0]])
    >>> noise = np.random.default_rng(0).normal(size=(4, 4))
    >>> kernels = [points @ points.T, noise @ noise.T]
    >>> comparisons = [[0, 1, 0, 2], [2, 3, 1, 2], [0, 1, 1, 3]]  # 0 and 1 are more alike than 0 and 2
    >>> model = PartialOrderEmbedding(C=100.0).fit(kernels, comparisons)
    >>> model.score(kernels, comparisons)
    1.0
    """

    def __init__(
        self,
        structure: str = "full",
        C: float = 1.0,
        combination: str = "concatenated",
        solver: str = "accelerated",
        tol: float = 1e-2,
        max_iter: int = 2000,
        max_rank: int | None = None,
    ) -> None:
        self.structure, self.C, self.combination, self.solver = structure, C, combination, solver
        self.tol, self.max_iter, self.max_rank = tol, max_iter, max_rank

    def fit(self, kernels: Any, comparisons: npt.ArrayLike, callback: StepCallback | None = None) -> Self:
        """Learn the projections.

        Parameters
        ----------
        kernels : array-like of shape (n_songs, n_songs), or a sequence of them; symmetric, positive semidefinite
        comparisons : int array-like of shape (m, 4), m >= 1
            Rows (i, j, k, l): songs i and j are nearer to each other than k and l.
        callback : callable, optional
            Gets a dict after each iteration: iteration, objective, dual_bound, gap, seconds. The callback returns True
            to end the fit with the best result so far.
        """
        self._check_parameters()
        if self.max_rank is not None:
            check_whole("max_rank", self.max_rank, 1)
        matrices = training_kernels(_list_kernels(kernels))
        n = len(matrices[0])
        rows = _check_training(comparisons, n)
        spaces = KernelSpaces.build(self._combine(matrices), self.structure, self.max_rank)
        W = self._solve(spaces.songs, rows, spaces.cone, callback)
        self.components_ = spaces.components(W.point)
        self.n_kernels_in_, self.n_songs_in_ = len(matrices), n
        spread = [(K @ N.T).var(axis=0).sum() for K, N in zip(self._combine(matrices), self.components_, strict=True)]
        self.kernel_weights_ = np.array(spread) / max(sum(spread), 1e-300)
        return self

    def _combine(self, kernels: list[Float64Array]) -> list[Float64Array]:
        return [np.sum(kernels, axis=0)] if self.combination == "sum" else kernels

    def transform(self, kernels: Any) -> Float64Array:
        """Map training songs or new songs to ``g(x) = (N^p K_x^p)_p`` (equation 2.9).

        Parameters
        ----------
        kernels : array-like of shape (n_new, n_songs), or a sequence of them, in the order of the fit

        Returns
        -------
        float64 ndarray of shape (n_new, sum of r_p)
        """
        return self._project(self._combine(self._check_new(_list_kernels(kernels))))

    def score(self, kernels: Any, comparisons: npt.ArrayLike) -> float:
        """Return the share of comparisons that hold; `kernels` has the same form as in :meth:`transform`."""
        return share_in_order(self.transform(kernels), comparisons)


def _list_kernels(kernels: Any) -> Any:
    if getattr(kernels, "ndim", None) == 2:  # a single array or table, possibly without rows
        return [kernels]
    listed = list(kernels)
    return [listed] if listed and np.ndim(listed[0]) == 1 else listed


class LinearPartialOrderEmbedding(LinearMetric, _OrderEmbedding):
    """Learn a metric from answers such as "A is more similar to B than to C", for songs with vectors.

    A linear metric of songs whose distances agree with comparisons. The objective is ``min over W >= 0 of trace(W) + C
    / m * sum of max(0, 1 + d(i, j) - d(k, l))``. Squared distances are ``d(x, y) = (x - y)^T W (x - y)`` (algorithm
    2.2).

    Parameters
    ----------
    structure : "full" or "diagonal"
        W is any positive semidefinite matrix, or has one weight per column.
    C, solver, tol, max_iter : as in :class:`PartialOrderEmbedding`

    Attributes
    ----------
    components_, metric_ : ndarrays of shape (r, n_features) and (n_features, n_features)
        M and W = M^T M.
    objective_, dual_bound_, n_iter_, history_ : as in :class:`PartialOrderEmbedding`

    See Also
    --------
    PartialOrderEmbedding : The same from kernels.
    clean_comparisons : Removes contradictions before the fit.
    musicsim.metric.MLR : Learns from rankings instead.

    References
    ----------
    - B. McFee and G. Lanckriet, Learning multi-modal similarity, JMLR 12, 2011.
    - B. McFee, More like this: machine learning approaches to music similarity, PhD thesis, UC San Diego, 2012, chapter
      2 (algorithm 2.2).

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.order import LinearPartialOrderEmbedding, share_in_order
    >>> X = np.array([[0.0, 9.0], [1.0, 0.0], [3.0, 9.0], [4.0, 0.0]])
    >>> comparisons = [[0, 1, 0, 2], [2, 3, 1, 3]]  # the first column decides
    >>> share_in_order(X, comparisons)
    0.0
    >>> model = LinearPartialOrderEmbedding(C=100.0).fit(X, comparisons)
    >>> model.score(X, comparisons)
    1.0
    >>> bool(model.metric_[0, 0] > model.metric_[1, 1])
    True
    """

    def __init__(
        self,
        structure: str = "full",
        C: float = 1.0,
        solver: str = "accelerated",
        tol: float = 1e-2,
        max_iter: int = 2000,
    ) -> None:
        self.structure, self.C, self.solver = structure, C, solver
        self.tol, self.max_iter = tol, max_iter

    def fit(self, X: npt.ArrayLike, comparisons: npt.ArrayLike, callback: StepCallback | None = None) -> Self:
        """Learn the metric.

        Parameters
        ----------
        X : array-like of shape (n_songs, n_features), not constant
        comparisons, callback : as in :meth:`PartialOrderEmbedding.fit`
        """
        self._check_parameters()
        songs: Float64Array = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        rows = _check_training(comparisons, len(songs))
        coordinates = Columns.from_songs(songs) if self.structure == "diagonal" else Axes.principal(songs)
        if not len(coordinates.weights):
            raise ValueError("All rows of X are equal, so no metric can distinguish the songs.")
        cone = Cone([len(coordinates.weights)], self.structure, coordinates.weights)
        W = self._solve(coordinates.apply(songs), rows, cone, callback).point
        self.metric_ = coordinates.metric(W)
        self.components_ = (
            np.sqrt(self.metric_)[np.flatnonzero(np.diag(self.metric_))]
            if self.structure == "diagonal"
            else factor(self.metric_)
        )
        return self

    def score(self, X: npt.ArrayLike, comparisons: npt.ArrayLike) -> float:
        """Return the share of comparisons that hold among the rows of X."""
        return share_in_order(self.transform(X), comparisons)
