"""The feature spaces of several kernels, as columns in which a metric is learned.

With K = V diag(s) V^T, the principal coordinates of a kernel are z = V^T K_x / sqrt(s). The papers' penalty <W, K> is
the trace of the metric of z. A diagonal W assigns a weight to each training song.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from musicsim._arrays import Float64Array
from musicsim._checks import check_dense
from musicsim.metric.cone import Cone
from musicsim.metric.coordinates import Axes, Columns
from musicsim.metric.linear import factor


@dataclass(frozen=True, slots=True)
class KernelSpaces:
    """Training songs in scaled coordinates of all kernels, and the cone of metrics there.

    A constant kernel has no columns.
    """

    songs: Float64Array
    cone: Cone
    _maps: list[Axes | Columns]

    @classmethod
    def build(cls, kernels: list[Float64Array], structure: str, max_rank: int | None = None) -> "KernelSpaces":
        """Return the spaces of :func:`training_kernels`; full metrics use at most the `max_rank` widest directions.

        Raises ValueError if a kernel is not positive semidefinite, or all kernels are constant. With `max_rank`, a
        negative eigenvalue is detected only if its size exceeds a thousandth of the largest eigenvalue.
        """
        maps: list[Axes | Columns] = [
            _diagonal_map(K) if structure == "diagonal" else _full_map(K, max_rank) for K in kernels
        ]
        used = [(K, coordinates) for K, coordinates in zip(kernels, maps, strict=True) if len(coordinates.weights)]
        if not used:
            raise ValueError("All kernels are constant, so the songs do not differ.")
        weights = [coordinates.weights for _, coordinates in used]
        cone = Cone([len(w) for w in weights], structure, np.concatenate(weights))
        songs = np.concatenate([coordinates.apply(K) for K, coordinates in used], axis=1)
        return cls(songs, cone, maps)

    def components(self, flat: Float64Array) -> list[Float64Array]:
        """Return, per kernel, a factor (r_k, n_songs) of W = L^T L; it has no rows if the kernel is not used."""
        blocks = self.cone.blocks(flat)
        factors = []
        for coordinates in self._maps:
            if not len(coordinates.weights):
                factors.append(np.empty((0, len(self.songs))))
            elif isinstance(coordinates, Axes):
                L = factor(next(blocks))
                factors.append(L[np.abs(L).max(axis=1) > 0] @ coordinates.basis.T)
            else:
                L = np.sqrt(coordinates.metric(next(blocks)))
                factors.append(L[np.flatnonzero(np.diag(L))])
        return factors


class KernelProjections:
    """Mixin for estimators that learn one projection for each of several kernels."""

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

    def _check_new(self, kernels: Any) -> list[Float64Array]:
        """Return kernels between new songs and training songs; raise ValueError if a shape or number is not valid."""
        check_is_fitted(self)
        matrices = [np.asarray(kernel, dtype=np.float64) for kernel in _as_list(kernels)]
        if len(matrices) != self.n_kernels_in_:
            raise ValueError(
                f"kernels contains {len(matrices)} matrices, but the model was fitted on {self.n_kernels_in_}."
            )
        shape = len(matrices[0]), self.n_songs_in_
        for i, kernel in enumerate(matrices):
            if kernel.shape != shape:
                raise ValueError(
                    f"kernels[{i}] has shape {kernel.shape}; it must be {shape}, new songs by training songs."
                )
            if not np.isfinite(kernel).all():
                raise ValueError(f"kernels[{i}] contains NaN or infinite values.")
        return matrices

    def _project(self, kernels: list[Float64Array]) -> Float64Array:
        return np.concatenate([K @ L.T for K, L in zip(kernels, self.components_, strict=True)], axis=1)


def training_kernels(kernels: Any) -> list[Float64Array]:
    """Return the kernels of the training songs as matrices.

    Raises ValueError if there are no kernels, their sizes differ, or a kernel is not square, finite and symmetric.
    """
    matrices = []
    for i, kernel in enumerate(_as_list(kernels)):
        K = np.asarray(kernel, dtype=np.float64)
        if K.ndim != 2 or K.shape[0] != K.shape[1] or len(K) < 2:
            raise ValueError(f"kernels[{i}] has shape {K.shape}; it must be square, with at least two songs.")
        if not np.isfinite(K).all():
            raise ValueError(f"kernels[{i}] contains NaN or infinite values.")
        if not np.allclose(K, K.T, rtol=1e-6, atol=1e-6 * np.abs(K).max(initial=0.0)):
            raise ValueError(f"kernels[{i}] is not symmetric.")
        matrices.append(0.5 * (K + K.T))
    if any(len(kernel) != len(matrices[0]) for kernel in matrices):
        raise ValueError(f"kernels have sizes {[len(K) for K in matrices]}; they must all be for the same songs.")
    return matrices


def _as_list(kernels: Any) -> list[Any]:
    check_dense("kernels", kernels)
    matrices = list(np.asarray(kernels) if hasattr(kernels, "__array__") else kernels)
    if not matrices:
        raise ValueError("kernels is empty; give at least one kernel.")
    if np.ndim(matrices[0]) != 2:
        raise ValueError("kernels must be a sequence of matrices, even if there is only one.")
    for i, kernel in enumerate(matrices):
        check_dense(f"kernels[{i}]", kernel)
    return matrices


def _full_map(K: Float64Array, max_rank: int | None) -> Axes:
    """Return the map from columns of K to scaled principal coordinates of its feature space."""
    values, vectors, lowest = _spectrum(K, max_rank)
    if lowest < -1e-6 * max(values[-1], -lowest):
        raise ValueError(f"a kernel has an eigenvalue of {lowest:.3g}; it must be positive semidefinite.")
    is_positive = values > 1e-10 * values[-1]
    whitening = vectors[:, is_positive] / np.sqrt(values[is_positive])
    axes = Axes.principal(K @ whitening)
    return Axes(axes.weights, whitening @ axes.basis)


def _spectrum(K: Float64Array, max_rank: int | None) -> tuple[Float64Array, Float64Array, float]:
    """Return all or the `max_rank` largest eigenvalues, ascending, their eigenvectors, and the lowest eigenvalue."""
    if max_rank is None or max_rank >= len(K):
        values, vectors = np.linalg.eigh(K)
        return values, vectors, float(values[0])
    from scipy.sparse.linalg import LinearOperator, eigsh

    # start Lanczos from a vector that is the same in every run, and unlikely to be orthogonal to an eigenvector
    start = np.random.default_rng(0).standard_normal(len(K))
    values, vectors = eigsh(K, k=max_rank, which="LA", v0=start)
    # Lanczos is fast if K has a clearly negative eigenvalue, far from the many eigenvalues near 0. Finding a negative
    # eigenvalue much closer to 0 may take longer than decomposing K.
    reversed_K = LinearOperator(K.shape, matvec=lambda x: values[-1] * x - K @ x, dtype=np.float64)
    largest = eigsh(reversed_K, k=1, which="LA", v0=start, tol=1e-3, return_eigenvectors=False)
    return values, vectors, float(values[-1] - largest[0])


def _diagonal_map(K: Float64Array) -> Columns:
    """Return the map to weighted columns, whose penalty is diag(K)."""
    try:
        np.linalg.cholesky(K + 1e-6 * max(np.abs(K).max(), 1e-300) * np.eye(len(K)))
    except np.linalg.LinAlgError:
        raise ValueError("a kernel has a negative eigenvalue; it must be positive semidefinite.") from None
    return Columns.from_songs(np.where(np.diag(K) > 0, K, 0.0), np.diag(K))
