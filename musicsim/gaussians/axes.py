"""Axes along which songs differ more than the parts of one song do."""

from dataclasses import dataclass

import numpy as np

from musicsim._arrays import Float64Array, FloatingArray, Int64Array


@dataclass(frozen=True)
class Spread:
    """Variation of vectors between songs, and between the parts of a song, along some axes.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.gaussians import Spread
    >>> spread = Spread(n_songs=100, mean=np.zeros(3), axes=np.eye(3)[:2], between=np.array([9.0, 1.0]))
    >>> songs = np.array([[3.0, 0.0, 5.0], [0.0, 3.0, 5.0]])
    >>> (songs - spread.mean) @ spread.axes.T / np.sqrt(spread.between)  # songs usually vary more along the first axis
    array([[1., 0.],
           [0., 3.]])
    """

    n_songs: float  # weight of this spread when it is combined with other songs
    mean: Float64Array  # (d,): mean of the songs
    axes: Float64Array  # (p, d): orthonormal rows
    between: Float64Array  # (p,): variances between songs along the axes
    # (p, p): covariance of parts about the means of their songs, along the axes; None if songs have no parts
    within: Float64Array | None = None


def pool_covariance(vectors: FloatingArray, songs: Int64Array) -> Float64Array:
    """Return the covariance (d, d) of parts about the means of their songs, pooled over songs.

    `vectors` (n_parts, d) contains the parts, and `songs` (n_parts,) their songs. Songs with one part have no effect.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.gaussians import pool_covariance
    >>> parts = np.array([[0.0, 1.0], [0.0, 3.0], [9.0, 1.0], [9.0, 3.0]])
    >>> pool_covariance(parts, np.array([7, 7, 8, 8]))  # the first column does not vary within songs
    array([[0., 0.],
           [0., 2.]])
    """
    X = np.asarray(vectors, dtype=np.float64)
    if X.ndim != 2 or np.shape(songs) != (len(X),):
        raise ValueError(f"vectors has shape {X.shape} and songs {np.shape(songs)}; pass one song for each row.")
    _, which, counts = np.unique(songs, return_inverse=True, return_counts=True)
    sums = np.zeros((len(counts), X.shape[1]))
    np.add.at(sums, which, X)
    X = X - (sums / counts[:, None])[which]
    return X.T @ X / max(len(X) - len(counts), 1)


def principal_axes(covariance: Float64Array, variance: float) -> tuple[Float64Array, Float64Array]:
    """Return the p largest eigenvalues, which explain the share `variance`, and their eigenvectors as rows (p, d).

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.gaussians import principal_axes
    >>> values, axes = principal_axes(np.diag([1.0, 90.0, 9.0]), 0.95)
    >>> values, np.abs(axes)
    (array([90.,  9.]), array([[0., 1., 0.],
           [0., 0., 1.]]))
    """
    values, vectors = np.linalg.eigh(covariance)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    is_enough = np.cumsum(values) >= variance * values.sum() * (1 - 1e-12)  # tolerates rounding
    n_axes = int(np.argmax(is_enough)) + 1 if is_enough.any() else len(values)
    return values[:n_axes], vectors[:, :n_axes].T


def shrink(covariance: Float64Array, shrinkage: float) -> Float64Array:
    """Shrink a covariance (d, d) toward the multiple of the identity that has the same trace.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.gaussians import shrink
    >>> shrink(np.array([[4.0, 2.0], [2.0, 2.0]]), 0.5)
    array([[3.5, 1. ],
           [1. , 2.5]])
    """
    d = len(covariance)
    return (1 - shrinkage) * covariance + shrinkage * (np.trace(covariance) / d) * np.eye(d)


def inverse_root(covariance: Float64Array) -> Float64Array:
    """Return the symmetric whitening matrix (d, d): the inverse square root of a positive definite covariance.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.gaussians import inverse_root
    >>> inverse_root(np.array([[4.0, 0.0], [0.0, 25.0]])).round(6)
    array([[0.5, 0. ],
           [0. , 0.2]])
    """
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
    """Return the principal axes of songs, scaled down in directions in which the parts of a song vary.

    Parameters
    ----------
    X : ndarray of shape (n_songs, d)
    within : ndarray of shape (d, d), optional; from :func:`pool_covariance`; without it, axes are the principal axes
    prior : Spread, optional; combined with the variation of these songs, which may be few
    variance : float in (0, 1]; share of the variance that is kept
    shrinkage : float in [0, 1]
        Shrinkage of `within` toward a multiple of the identity; with 1, the variation within songs has no effect.

    Returns
    -------
    mean : float64 ndarray of shape (d,); the mean of these songs, combined with that of the prior
    axes : float64 ndarray of shape (p, d)
        Rows, not orthogonal, scaled so that the mean squared distance between two songs is 1.

    Notes
    -----
    Within-class covariance normalization (Hatch, Kajarekar and Stolcke, Interspeech 2006). Songs are the classes, and
    their parts are the examples, so no labels are needed. This copies `X` in float64: 131 MB for 20,000 songs.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.gaussians import song_axes
    >>> X = np.random.default_rng(0).normal(size=(50, 3)) * [3, 3, 0.1]
    >>> within = np.diag([9.0, 0.1, 0.1])  # the first column also varies within songs
    >>> mean, axes = song_axes(X, within, shrinkage=0.1)
    >>> axes.shape
    (2, 3)
    >>> bool(np.linalg.norm(axes[:, 0]) < 0.5 * np.linalg.norm(axes[:, 1]))
    True
    """
    centered = np.array(X, dtype=np.float64)
    mean = centered.mean(axis=0)
    centered -= mean
    total = centered.T @ centered / len(centered)
    weight = 0.0
    if prior is not None:
        weight = prior.n_songs / (prior.n_songs + len(centered))
        mean = (1 - weight) * mean + weight * prior.mean
        total = (1 - weight) * total + weight * (prior.axes.T * prior.between) @ prior.axes
    _, axes = principal_axes(total, variance)
    n_axes = len(axes)
    parts = [] if within is None else [(1 - weight, axes @ within @ axes.T)]
    if prior is not None and prior.within is not None:
        overlaps = axes @ prior.axes.T
        parts.append((weight if parts else 1.0, overlaps @ prior.within @ overlaps.T))
    W: Float64Array = sum((share * part for share, part in parts), np.zeros((n_axes, n_axes)))
    if np.trace(W) > 0:
        axes = inverse_root(shrink(W, shrinkage)) @ axes
    distance = 2 * np.trace(axes @ total @ axes.T)
    return mean, axes / np.sqrt(distance) if distance > 0 else axes
