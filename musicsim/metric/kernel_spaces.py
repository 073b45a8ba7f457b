"""The feature spaces of several kernels side by side, as columns in which a metric is learned.

In the kernel's principal coordinates z = V^T K_x / sqrt(s), K = V diag(s) V^T, the penalty <W, K> of the papers is
the trace of the metric of z; a diagonal W weighs the training songs themselves.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from musicsim._arrays import Float64Array
from musicsim.metric.cone import Cone
from musicsim.metric.coordinates import Axes, Columns
from musicsim.metric.linear import factor


@dataclass(frozen=True, slots=True)
class KernelSpaces:
    """Training songs in scaled coordinates of all kernels, the cone of metrics there, and the way back.

    A kernel whose songs are all alike has no column.
    """

    songs: Float64Array
    cone: Cone
    _maps: list[Axes | Columns]

    @classmethod
    def of(cls, kernels: list[Float64Array], structure: str, max_rank: int | None = None) -> "KernelSpaces":
        """Spaces of :func:`training_kernels`; of a full metric's kernels the `max_rank` widest directions.

        Raises ValueError if a kernel is not positive semi-definite, or all are constant. With `max_rank`, values
        below 0 are found that are more than a thousandth of the largest.
        """
        maps: list[Axes | Columns] = [
            _diagonal_map(K) if structure == "diagonal" else _full_map(K, max_rank) for K in kernels
        ]
        used = [(K, coordinates) for K, coordinates in zip(kernels, maps, strict=True) if len(coordinates.weights)]
        if not used:
            raise ValueError("All kernels are constant; there is nothing to tell songs apart by.")
        weights = [coordinates.weights for _, coordinates in used]
        cone = Cone([len(w) for w in weights], structure, np.concatenate(weights))
        songs = np.concatenate([coordinates.apply(K) for K, coordinates in used], axis=1)
        return cls(songs, cone, maps)

    def components(self, flat: Float64Array, n_songs: int) -> list[Float64Array]:
        """Factors (r_k, n_songs) of each kernel's W = L^T L; of no row where a kernel was not needed."""
        blocks = self.cone.blocks(flat)
        return [
            _pulled_back(coordinates, next(blocks)) if len(coordinates.weights) else np.empty((0, n_songs))
            for coordinates in self._maps
        ]


class KernelProjections:
    """Mixin for estimators that learn a projection of each of several kernels."""

    components_: list[Float64Array]
    n_kernels_in_: int
    n_songs_in_: int

    @property
    def _n_features_out(self) -> int:
        return sum(map(len, self.components_))

    @property
    def metrics_(self) -> list[Float64Array]:
        check_is_fitted(self)
        return [L.T @ L for L in self.components_]

    def _given(self, kernels: Any) -> list[Float64Array]:
        """Kernels of new songs, checked against those of the fit."""
        check_is_fitted(self)
        return new_kernels(kernels, self.n_kernels_in_, self.n_songs_in_)

    def _projected(self, kernels: list[Float64Array]) -> Float64Array:
        """Projections of all kernels side by side, (n_new, sum of r_k)."""
        return np.concatenate([K @ L.T for K, L in zip(kernels, self.components_, strict=True)], axis=1)


def training_kernels(kernels: Any) -> list[Float64Array]:
    """Check kernels of the same songs among themselves.

    Raises ValueError if there is none, or one is not square, finite and symmetric, or of other songs.
    """
    checked = [_symmetric(kernel, i) for i, kernel in enumerate(_listed(kernels))]
    if any(len(kernel) != len(checked[0]) for kernel in checked):
        raise ValueError(f"kernels are of {[len(kernel) for kernel in checked]} songs; they should be of the same.")
    return checked


def new_kernels(kernels: Any, n_kernels: int, n_songs: int) -> list[Float64Array]:
    """Check kernels of new songs with training songs.

    Raises ValueError if there are not `n_kernels`, or one is not finite or has another shape than (n_new, n_songs).
    """
    given = [np.asarray(kernel, dtype=np.float64) for kernel in _listed(kernels)]
    if len(given) != n_kernels:
        raise ValueError(f"kernels holds {len(given)}, the model was fitted on {n_kernels}.")
    for i, kernel in enumerate(given):
        if kernel.ndim != 2 or kernel.shape[1] != n_songs or len(kernel) != len(given[0]):
            raise ValueError(
                f"kernels[{i}] has the shape {kernel.shape}; it should be ({len(given[0])}, {n_songs}), "
                f"new songs by training songs."
            )
        if not np.isfinite(kernel).all():
            raise ValueError(f"kernels[{i}] holds NaN or infinite values.")
    return given


def _listed(kernels: Any) -> list[Any]:
    listed = list(kernels)
    if not listed:
        raise ValueError("kernels is empty; give at least one.")
    if np.ndim(listed[0]) != 2:
        raise ValueError("kernels should be a sequence of matrices, also where it is but one.")
    return listed


def _symmetric(kernel: Any, i: int) -> Float64Array:
    K = np.asarray(kernel, dtype=np.float64)
    if K.ndim != 2 or K.shape[0] != K.shape[1] or len(K) < 2:
        raise ValueError(f"kernels[{i}] has the shape {K.shape}; it should be square, two songs or more.")
    if not np.isfinite(K).all():
        raise ValueError(f"kernels[{i}] holds NaN or infinite values.")
    if not np.allclose(K, K.T, rtol=1e-6, atol=1e-6 * np.abs(K).max(initial=0.0)):
        raise ValueError(f"kernels[{i}] is not symmetric.")
    return 0.5 * (K + K.T)


def _full_map(K: Float64Array, max_rank: int | None) -> Axes:
    """Map from columns of K to scaled principal coordinates of its feature space."""
    values, vectors, lowest = _spectrum(K, max_rank)
    if lowest < -1e-6 * max(values[-1], -lowest):
        raise ValueError(f"a kernel has the eigenvalue {lowest:.3g}; it should be positive semi-definite.")
    kept = values > 1e-10 * values[-1]
    whitening = vectors[:, kept] / np.sqrt(values[kept])
    axes = Axes.principal(K @ whitening)
    return Axes(axes.weights, whitening @ axes.basis)


def _spectrum(K: Float64Array, max_rank: int | None) -> tuple[Float64Array, Float64Array, float]:
    """Eigenvalues, ascending, and vectors: all, or the largest; and the lowest value of all."""
    if max_rank is None or max_rank >= len(K):
        values, vectors = np.linalg.eigh(K)
        return values, vectors, float(values[0])
    from scipy.sparse.linalg import LinearOperator, eigsh

    # Lanczos needs somewhere to start that is the same in every run, and orthogonal to no eigenvector by design
    start = np.random.default_rng(0).standard_normal(len(K))
    values, vectors = eigsh(K, k=max_rank, which="LA", v0=start)
    # on the widest's scale the many values near 0 are as one, from which what lies well below soon stands out; to find
    # what is much smaller may take longer than all of K
    turned = LinearOperator(K.shape, matvec=lambda x: values[-1] * x - K @ x, dtype=np.float64)
    farthest = eigsh(turned, k=1, which="LA", v0=start, tol=1e-3, return_eigenvectors=False)
    return values, vectors, float(values[-1] - farthest[0])


def _diagonal_map(K: Float64Array) -> Columns:
    """Weights of columns, whose penalty is diag(K)."""
    try:
        np.linalg.cholesky(K + 1e-6 * max(np.abs(K).max(), 1e-300) * np.eye(len(K)))
    except np.linalg.LinAlgError:
        raise ValueError("a kernel has a negative eigenvalue; it should be positive semi-definite.") from None
    return Columns.scaled(np.where(np.diag(K) > 0, K, 0.0), np.diag(K))


def _pulled_back(coordinates: Axes | Columns, block: Float64Array) -> Float64Array:
    """A factor of W^k from the metric of the scaled coordinates."""
    if isinstance(coordinates, Axes):
        L = factor(block)
        return L[np.abs(L).max(axis=1) > 0] @ coordinates.basis.T
    L = np.diag(np.sqrt(coordinates.diagonal(block)))
    return L[np.flatnonzero(np.diag(L))]
