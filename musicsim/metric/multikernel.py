"""Metric learning to rank with several kernels (thesis 4.3.2, equation 4.14)."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from musicsim.metric._cone import Cone
from musicsim.metric._coordinates import Axes, Columns
from musicsim.metric._learner import RankingLearner, as_relevance
from musicsim.metric._problem import StepCallback
from musicsim.metric.mlr import factor

__all__ = ["MultipleKernelMLR"]

FloatArray = npt.NDArray[np.float64]


class MultipleKernelMLR(RankingLearner):
    """A metric in the feature spaces of several kernels together.

    Song x is, for kernel k, the column K_x^k of its similarities to the training songs, and its squared
    distance to y the sum over k of (K_x^k - K_y^k)^T W^k (K_x^k - K_y^k). Solves
    ``min over W^k >= 0 of sum of <W^k, K^k> + C * mean structured hinge loss``.

    Parameters
    ----------
    loss, k, C, solver, admm_steps, tol, max_cuts, n_queries, random_state
        As of :class:`MLR`.
    structure : "full" or "diagonal"
        W^k any positive semi-definite matrix, or a weight a training song (thesis 4.B).

    Attributes
    ----------
    components_ : list of ndarrays of shape (r_k, n_songs)
        L^k, W^k = L^k^T L^k. One with no row belongs to a kernel that was not needed.
    metrics_ : list of ndarrays of shape (n_songs, n_songs)
        W^k.
    objective_, dual_bound_, n_cuts_, n_projections_, n_queries_, history_, seconds_
        As of :class:`MLR`.
    n_kernels_in_, n_songs_in_ : int

    Notes
    -----
    In the kernel's principal coordinates z = V^T K_x / sqrt(s), K = V diag(s) V^T, the penalty <W, K> is the
    trace of the metric of z: with a full structure the problem is that of :class:`MLR` with one block a kernel,
    of its rank. Memory: 8 (sum of squared ranks) bytes a plane.
    """

    def __init__(
        self,
        loss: str = "auc",
        k: int = 10,
        C: float = 1.0,
        structure: str = "full",
        solver: str = "bundle",
        admm_steps: int = 10,
        tol: float = 1e-3,
        max_cuts: int = 200,
        n_queries: int | None = None,
        random_state: int | np.random.Generator | None = None,
    ):
        self.loss = loss
        self.k = k
        self.C = C
        self.structure = structure
        self.solver = solver
        self.admm_steps = admm_steps
        self.tol = tol
        self.max_cuts = max_cuts
        self.n_queries = n_queries
        self.random_state = random_state

    def fit(self, kernels: Any, y: Any, callback: StepCallback | None = None) -> Self:
        """Learn the metrics.

        Parameters
        ----------
        kernels : array-like of shape (n_kernels, n_songs, n_songs), or a sequence of (n_songs, n_songs)
            Symmetric, positive semi-definite.
        y, callback
            As of :meth:`MLR.fit`.

        Raises
        ------
        ValueError
            If a parameter is out of range, or a kernel is not square, finite, symmetric and positive
            semi-definite.
        """
        self._check_parameters()
        checked = [_checked_kernel(kernel, i) for i, kernel in enumerate(_as_list(kernels))]
        n = len(checked[0])
        if any(len(kernel) != n for kernel in checked):
            raise ValueError(
                f"kernels are of {[len(kernel) for kernel in checked]} songs; they should be of the same."
            )
        relevance = as_relevance(y, n)
        maps = [_diagonal_map(K) if self.structure == "diagonal" else _full_map(K) for K in checked]
        widths = [len(coordinates.weights) for coordinates in maps]
        if sum(widths) == 0:
            raise ValueError("All kernels are constant; there is nothing to tell songs apart by.")
        used = [i for i, width in enumerate(widths) if width > 0]
        cone = Cone(
            [widths[i] for i in used], self.structure, np.concatenate([maps[i].weights for i in used])
        )
        songs = np.concatenate([maps[i].apply(checked[i]) for i in used], axis=1)
        flat, _ = self._solve(songs, relevance, cone, callback and (lambda step, _best: callback(step)))
        self.components_ = [np.empty((0, n)) for _ in checked]
        for i, block in zip(used, cone.blocks(flat), strict=True):
            self.components_[i] = _pulled_back(maps[i], block)
        self.n_kernels_in_, self.n_songs_in_ = len(checked), n
        return self

    @property
    def _n_features_out(self) -> int:
        return sum(map(len, self.components_))

    @property
    def metrics_(self) -> list[FloatArray]:
        check_is_fitted(self)
        return [L.T @ L for L in self.components_]

    def transform(self, kernels: Any) -> FloatArray:
        """Map songs so that Euclidean distance is the learned distance.

        Parameters
        ----------
        kernels : sequence of array-likes of shape (n_new, n_songs)
            Similarities of new songs to the training songs, one a kernel, in the order of the fit.

        Returns
        -------
        float64 ndarray of shape (n_new, sum of r_k)
        """
        check_is_fitted(self)
        given = [np.asarray(kernel, dtype=np.float64) for kernel in _as_list(kernels)]
        if len(given) != self.n_kernels_in_:
            raise ValueError(f"kernels holds {len(given)}, the model was fitted on {self.n_kernels_in_}.")
        for i, kernel in enumerate(given):
            if kernel.ndim != 2 or kernel.shape[1] != self.n_songs_in_ or len(kernel) != len(given[0]):
                raise ValueError(
                    f"kernels[{i}] has the shape {kernel.shape}; it should be ({len(given[0])}, {self.n_songs_in_}), "
                    f"new songs by training songs."
                )
            if not np.isfinite(kernel).all():
                raise ValueError(f"kernels[{i}] holds NaN or infinite values.")
        return np.concatenate([K @ L.T for K, L in zip(given, self.components_, strict=True)], axis=1)


def _as_list(kernels: Any) -> list[Any]:
    listed = list(kernels)
    if not listed:
        raise ValueError("kernels is empty; give at least one.")
    if np.ndim(listed[0]) != 2:
        raise ValueError("kernels should be a sequence of matrices, also where it is but one.")
    return listed


def _checked_kernel(kernel: Any, i: int) -> FloatArray:
    K = np.asarray(kernel, dtype=np.float64)
    if K.ndim != 2 or K.shape[0] != K.shape[1] or len(K) < 2:
        raise ValueError(f"kernels[{i}] has the shape {K.shape}; it should be square, two songs or more.")
    if not np.isfinite(K).all():
        raise ValueError(f"kernels[{i}] holds NaN or infinite values.")
    if not np.allclose(K, K.T, rtol=1e-6, atol=1e-6 * np.abs(K).max(initial=0.0)):
        raise ValueError(f"kernels[{i}] is not symmetric.")
    return 0.5 * (K + K.T)


def _full_map(K: FloatArray) -> Axes:
    """From columns of K to scaled principal coordinates of its feature space."""
    values, vectors = np.linalg.eigh(K)
    if len(values) and values[0] < -1e-6 * max(values[-1], -values[0]):
        raise ValueError(f"a kernel has the eigenvalue {values[0]:.3g}; it should be positive semi-definite.")
    kept = values > 1e-10 * values[-1]
    whitening = vectors[:, kept] / np.sqrt(values[kept])
    axes = Axes.principal(K @ whitening)
    return Axes(axes.weights, whitening @ axes.basis)


def _diagonal_map(K: FloatArray) -> Columns:
    """Weights of columns, whose penalty is diag(K)."""
    try:
        np.linalg.cholesky(K + 1e-6 * max(np.abs(K).max(), 1e-300) * np.eye(len(K)))
    except np.linalg.LinAlgError:
        raise ValueError("a kernel has a negative eigenvalue; it should be positive semi-definite.") from None
    return Columns.scaled(np.where(np.diag(K) > 0, K, 0.0), np.diag(K))


def _pulled_back(coordinates: Axes | Columns, block: FloatArray) -> FloatArray:
    """A factor of W^k from the metric of the scaled coordinates."""
    if isinstance(coordinates, Axes):
        L = factor(block)
        return L[np.abs(L).max(axis=1) > 0] @ coordinates.basis.T
    L = np.diag(np.sqrt(coordinates.diagonal(block)))
    return L[np.flatnonzero(np.diag(L))]
