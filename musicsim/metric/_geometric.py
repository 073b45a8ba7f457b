"""Geometric means of positive definite matrices, and their metric (Su, King, Lyu, SIGIR 2017, 3.1)."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg

from musicsim._arrays import Float64Array
from musicsim._checks import check_number

_SYMMETRY = 1e-8  # Maximum difference from the transpose, relative to the largest entry, that counts as rounding
_MIN_SHARE = 1e-12  # Minimum size of a scatter, relative to the other scatter
# A positive `reg` is raised to at least this times d^2, because rounding could otherwise make a scatter singular.
_ROUNDING = 4.0 * np.finfo(np.float64).eps


def geometric_mean(A: npt.ArrayLike, B: npt.ArrayLike, t: float = 0.5) -> Float64Array:
    """Return the point A #_t B on the geodesic from A to B among positive definite matrices.

    It is ``A^1/2 (A^-1/2 B A^-1/2)^t A^1/2``: A at t = 0, B at t = 1, and at t = 1/2 the G with ``G A^-1 G = B``.

    Parameters
    ----------
    A, B : array-likes of shape (d, d), symmetric positive definite
    t : float in [0, 1]

    Returns
    -------
    float64 ndarray of shape (d, d), symmetric

    Notes
    -----
    With A = L L^T, the point is ``L (L^-1 B L^-T)^t L^T``: a Cholesky factor, two triangular solves and one symmetric
    eigendecomposition. The better conditioned matrix is factored, because A #_t B = B #_{1-t} A. Memory: 32 d^2 bytes.

    Examples
    --------
    >>> from musicsim.metric import geometric_mean
    >>> geometric_mean([[4.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 9.0]]).round(6)
    array([[2., 0.],
           [0., 3.]])
    """
    check_mean_parameters(t, 0.0)
    first, second = _symmetric(A, "A"), _symmetric(B, "B")
    if first.shape != second.shape:
        raise ValueError(f"A has shape {first.shape} and B has shape {second.shape}; the shapes must be equal.")
    L, K = _cholesky(first, "A"), _cholesky(second, "B")
    if _spread(L) <= _spread(K):
        return _from_factor(L, linalg.solve_triangular(L, K, lower=True), float(t))
    return _from_factor(K, linalg.solve_triangular(K, L, lower=True), 1.0 - float(t))


def geometric_mean_metric(S: Float64Array, D: Float64Array, t: float = 0.5) -> Float64Array:
    """Return S^-1 #_t D without computing an inverse; at t = 1/2, this is the M with M S M = D.

    S and D, (d, d), are the scatters of similar and of dissimilar pairs; t is from 0 to 1. Raises ValueError if S or D
    is not positive definite in double precision.
    """
    # both are scaled to about 1, because S D has the fourth power of the vectors' unit; powers of 4 have exact roots
    p, q = (2 * (int(np.frexp(np.abs(np.diag(A)).max())[1]) // 2) for A in (S, D))
    L = _cholesky(np.ldexp(S, -p), "S, the scatter of similar pairs,")
    K = _cholesky(np.ldexp(D, -q), "D, the scatter of dissimilar pairs,")
    # with S = L L^T, the result is L^-T (L^T D L)^t L^-1
    values, vectors = _eigh(_gram(L.T @ K))
    half = linalg.solve_triangular(L, vectors * values ** (0.5 * t), lower=True, trans="T")
    return np.exp2(t * q - (1.0 - t) * p) * _gram(half)


def _from_factor(L: Float64Array, inner: Float64Array, t: float) -> Float64Array:
    """Return L (inner inner^T)^t L^T."""
    values, vectors = _eigh(_gram(inner))
    return _gram((L @ vectors) * values ** (0.5 * t))


def _gram(F: Float64Array) -> Float64Array:
    product: Float64Array = F @ F.T
    return product


def _eigh(A: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return the eigenvalues, kept positive despite rounding, and the eigenvectors of a full-rank F F^T."""
    values, vectors = linalg.eigh(A, driver="evd", check_finite=False, overwrite_a=True)
    return np.maximum(values, np.finfo(np.float64).tiny + 1e-17 * values[-1]), vectors


def _symmetric(A: npt.ArrayLike, name: str) -> Float64Array:
    matrix = np.asarray(A, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ValueError(f"{name} has shape {matrix.shape}; it must be square, (d, d).")
    if not np.isfinite(matrix).all():
        raise ValueError(f"{name} contains NaN or infinite values.")
    largest, off = np.abs(matrix).max(), np.abs(matrix - matrix.T).max()
    if off > _SYMMETRY * largest:
        raise ValueError(f"{name} is not symmetric: it differs from its transpose by up to {off:.3g}.")
    return 0.5 * (matrix + matrix.T)


def _cholesky(A: Float64Array, name: str) -> Float64Array:
    """Return the lower Cholesky factor; its diagonal is checked, because rounding may hide that A is singular."""
    try:
        L: Float64Array = linalg.cholesky(A, lower=True, check_finite=False)
    except linalg.LinAlgError:
        L = np.zeros((1, 1))
    if not _spread(L) < 1.0 / (len(A) * np.finfo(np.float64).eps):
        raise ValueError(
            f"{name} is not positive definite in double precision; add a multiple of the identity "
            "(for scatters of pairs: increase reg)."
        )
    return L


def _spread(L: Float64Array) -> float:
    """Return a lower bound on the condition number of L L^T."""
    diagonal = np.diag(L)
    return float((diagonal.max() / diagonal.min()) ** 2) if diagonal.min() > 0 else np.inf


def prior_metric(prior: Any, X: Float64Array) -> Float64Array:
    """Return the metric (d, d) given by the parameter `prior`; raise ValueError if it does not match X."""
    d = X.shape[1]
    if prior is None:
        return np.eye(d)
    if isinstance(prior, str):
        if prior != "covariance":
            raise ValueError(f"prior={prior!r} must be None, 'covariance' or a matrix.")
        covariance = np.atleast_2d(np.cov(X, rowvar=False))
        covariance += 1e-6 * max(np.trace(covariance) / d, np.finfo(np.float64).tiny) * np.eye(d)
        inverse: Float64Array = linalg.inv(covariance)
        return 0.5 * (inverse + inverse.T)
    matrix = _symmetric(prior, "prior")
    if matrix.shape != (d, d):
        raise ValueError(f"prior has shape {matrix.shape}; it must be {(d, d)}, because X has {d} columns.")
    _cholesky(matrix, "prior")
    return matrix


def check_mean_parameters(t: Any, reg: Any) -> None:
    """Raise ValueError if `t` or `reg` is out of range."""
    check_number("t", t, 0, 1)
    check_number("reg", reg, 0)


def regularize(S: Float64Array, D: Float64Array, prior: Float64Array, reg: float) -> tuple[Float64Array, Float64Array]:
    """Return scatters that pull S^-1 # D toward a multiple of the prior metric P; raise ValueError if both are 0.

    They are ``S + reg s P^-1`` and ``D + reg e P``, where s and e are the mean eigenvalues of S P and of D P^-1.
    """
    if not (S.any() or D.any()):
        raise ValueError("All pairs consist of equal rows; there is nothing to learn from.")
    if reg == 0:
        return S, D
    inverse: Float64Array = linalg.inv(prior, check_finite=False)
    inverse = 0.5 * (inverse + inverse.T)
    d = len(prior)
    parts = []
    for scatter, other, metric, added in ((S, D, prior, inverse), (D, S, inverse, prior)):
        # traces of products of symmetric matrices; if one scatter is 0, the other one determines its size
        own, others = np.vdot(scatter, metric), np.vdot(other, metric)
        share = reg * (max(own, _MIN_SHARE * others) / d)
        parts.append(scatter + max(share, _ROUNDING * d * max(own, others)) * added)
    return parts[0], parts[1]
