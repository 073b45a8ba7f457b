"""The axes of a space of songs: those along which songs differ from each other more than in themselves."""

from dataclasses import dataclass

import numpy as np

from musicsim._arrays import Float64Array, FloatingArray, Int64Array


@dataclass(frozen=True)
class Spread:
    """How vectors vary from song to song, and from part to part of a song, along some axes."""

    n_songs: float  # how much it counts when it is joined with that of other songs
    axes: Float64Array  # (p, d): orthonormal rows
    between: Float64Array  # (p,): variances of songs along them
    within: Float64Array  # (p, p): covariance of parts about their songs, along them


def within_covariance(vectors: FloatingArray, songs: Int64Array) -> Float64Array:
    """The covariance of parts about the means of their songs, pooled over songs, float64 (d, d).

    Parameters
    ----------
    vectors : ndarray of shape (n_parts, d)
    songs : int64 ndarray of shape (n_parts,)
        Which song each is a part of; songs of a single part add nothing.
    """
    X = np.asarray(vectors, dtype=np.float64)
    _, which, counts = np.unique(songs, return_inverse=True, return_counts=True)
    sums = np.zeros((len(counts), X.shape[1]))
    np.add.at(sums, which, X)
    X = X - (sums / counts[:, None])[which]
    return X.T @ X / max(len(X) - len(counts), 1)


def principal_axes(covariance: Float64Array, variance: float) -> tuple[Float64Array, Float64Array]:
    """The largest eigenvalues, (p,), that make up a share of the variance, and their vectors as rows, (p, d)."""
    values, vectors = np.linalg.eigh(covariance)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    reached = np.cumsum(values) >= variance * values.sum() * (1 - 1e-12)  # sums of rounded numbers
    n_axes = int(np.argmax(reached)) + 1 if reached.any() else len(values)
    return values[:n_axes], vectors[:, :n_axes].T


def shrunk(covariance: Float64Array, shrinkage: float) -> Float64Array:
    """A covariance (d, d) moved towards a multiple of the identity of the same trace: not at all at 0, all at 1."""
    d = len(covariance)
    return (1 - shrinkage) * covariance + shrinkage * (np.trace(covariance) / d) * np.eye(d)


def inverse_root(covariance: Float64Array) -> Float64Array:
    """The symmetric matrix (d, d) that whitens: the inverse of the root of a positive definite covariance."""
    values, vectors = np.linalg.eigh(covariance)
    root: Float64Array = (vectors / np.sqrt(values)) @ vectors.T
    return root


def song_axes(
    X: FloatingArray,
    within: Float64Array | None = None,
    prior: Spread | None = None,
    *,
    variance: float = 0.95,
    shrinkage: float = 0.9,
) -> tuple[Float64Array, Float64Array]:
    """Principal axes of songs, each direction divided by how much songs vary along it in themselves.

    Parameters
    ----------
    X : ndarray of shape (n_songs, d)
    within : ndarray of shape (d, d), optional
        Of :func:`within_covariance`; without it the axes are the principal ones.
    prior : Spread, optional
        Joined with what is known of these songs, which may be few.
    variance : float in (0, 1]
        Share of the variance that is kept.
    shrinkage : float in [0, 1]
        How far the covariance within songs is moved towards a multiple of the identity; 1 is the same as none.

    Returns
    -------
    mean : float64 ndarray of shape (d,)
    axes : float64 ndarray of shape (p, d)
        Rows, not orthogonal, of a length by which the mean squared distance of two songs is 1.

    Notes
    -----
    Hatch, Kajarekar and Stolcke, Interspeech 2006 (within-class covariance normalisation); songs are the classes,
    their parts the examples, so that it takes no label. Memory: a copy of `X` in float64, 131 MB for 20,000 songs.
    """
    centred = np.array(X, dtype=np.float64)
    mean = centred.mean(axis=0)
    centred -= mean
    total = centred.T @ centred / len(centred)
    weight = 0.0
    if prior is not None:
        weight = prior.n_songs / (prior.n_songs + len(centred))
        total = (1 - weight) * total + weight * (prior.axes.T * prior.between) @ prior.axes
    _, axes = principal_axes(total, variance)
    n_axes = len(axes)
    parts = [] if within is None else [(1 - weight, axes @ within @ axes.T)]
    if prior is not None:
        onto = axes @ prior.axes.T
        parts.append((weight if parts else 1.0, onto @ prior.within @ onto.T))
    W: Float64Array = sum((share * part for share, part in parts), np.zeros((n_axes, n_axes)))
    if np.trace(W) > 0:
        axes = inverse_root(shrunk(W, shrinkage)) @ axes
    apart = 2 * np.trace(axes @ total @ axes.T)
    return mean, axes / np.sqrt(apart) if apart > 0 else axes
