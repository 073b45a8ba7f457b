"""The expected-likelihood kernel of timbre, between Gaussian mixtures of frames."""

from typing import Protocol

import numpy as np

from musicsim._arrays import Float64Array, FloatingArray
from musicsim.mixtures._kernels import expected_log_likelihoods

__all__ = ["Mixtures", "gmm_kernel"]


class Mixtures(Protocol):
    """Stacked diagonal mixtures, as :class:`musicsim.mixtures.SongMixtures` holds them."""

    @property
    def weights(self) -> FloatingArray: ...
    @property
    def means(self) -> FloatingArray: ...
    @property
    def variances(self) -> FloatingArray: ...


def gmm_kernel(A: Mixtures, B: Mixtures | None = None) -> Float64Array:
    """Expected-likelihood kernel between Gaussian mixtures, normalised to 1 between equal songs.

    Parameters
    ----------
    A : mixtures of n songs with diagonal covariances
    B : mixtures of m songs over the same features; A when None

    Returns
    -------
    ndarray of shape (n, m), float64, in 0..1

    Raises
    ------
    ValueError
        If A and B have different numbers of features.

    Notes
    -----
    Probability product kernel with exponent 1 (Jebara et al. 2004): the integral of p q is the sum over
    pairs of components of w w' N(m; m', v + v'), in closed form; divided by the square roots of the
    integrals of p^2 and q^2. The thesis (2.5.2) uses exponent 1/2, which has no closed form for mixtures.
    In 39 dimensions songs are nearly disjoint, and the kernel is close to the identity. Time: 64 pairs
    of components a pair of songs of 8; memory: the result and float64 copies of the mixtures.
    """
    left = _mixture_parts(A)
    right = left if B is None else _mixture_parts(B)
    if left[1].shape[2] != right[1].shape[2]:
        raise ValueError(
            f"A has {left[1].shape[2]} features and B {right[1].shape[2]}; both need the same frames."
        )
    overlap = expected_log_likelihoods(*left, *right)
    own_left = _self_overlap(left)
    own_right = own_left if B is None else _self_overlap(right)
    overlap -= 0.5 * own_left[:, None]
    overlap -= 0.5 * own_right[None, :]
    np.exp(overlap, out=overlap)
    return np.minimum(overlap, 1.0, out=overlap)


def _mixture_parts(mixtures: Mixtures) -> tuple[Float64Array, Float64Array, Float64Array]:
    weights, means, variances = (
        np.ascontiguousarray(part, dtype=np.float64)
        for part in (mixtures.weights, mixtures.means, mixtures.variances)
    )
    return np.log(weights), means, variances


def _self_overlap(parts: tuple[Float64Array, Float64Array, Float64Array]) -> Float64Array:
    """Log of the integral of p^2, one a song."""
    n_songs = len(parts[0])
    own = np.empty(n_songs)
    for i in range(n_songs):
        song = tuple(part[i : i + 1] for part in parts)
        own[i] = expected_log_likelihoods(*song, *song)[0, 0]
    return own
