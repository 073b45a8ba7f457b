"""Probability product kernels of histograms: one for timbre, and two each for harmony and rhythm."""

from typing import Any

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float32Array, Float64Array
from musicsim._checks import check_dense
from musicsim.kernels._rows import check_same_width, cosines, root

KEYLESS_HARMONY_SIZE = 7 + 12 * 7
"""Number of columns of key-invariant harmony: the spectra of 12 pitch classes and of 12 intervals."""


def ppk_map(histograms: Any) -> Any:
    """Map histograms to the unit sphere, where the inner product is the probability product kernel.

    The map is the element-wise square root, equation 5.7 of the thesis.

    Parameters
    ----------
    histograms : array-like or SciPy sparse matrix of shape (n_songs, n_codewords)
        Not negative, rows sum to 1 within 0.001.

    Returns
    -------
    ndarray of shape (n_songs, n_codewords), float32, rows of length 1; a CSR array if the histograms are sparse

    Examples
    --------
    >>> ppk_map([[0.25, 0.75, 0.0]]).round(3)
    array([[0.5  , 0.866, 0.   ]], dtype=float32)
    """
    return root(histograms, "histograms").astype(np.float32, copy=False)


def ppk_kernel(A: Any, B: Any = None) -> Float64Array:
    """Return the probability product kernel between histograms: the sum over codewords of sqrt(a b).

    Parameters
    ----------
    A : array-like or SciPy sparse matrix of shape (n, n_codewords), histograms
    B : array-like or SciPy sparse matrix of shape (m, n_codewords), histograms; A when None

    Returns
    -------
    ndarray of shape (n, m), float64, from 0 to 1; 1 for equal histograms
    """
    left = root(A, "A").astype(np.float64)
    right = left if B is None else root(B, "B").astype(np.float64)
    check_same_width(left, right)
    return cosines(left, right)


def ppk_similarity(distances: npt.ArrayLike) -> Float64Array:
    """Convert Euclidean distances between rows of :func:`ppk_map` or its PCA to kernel values 1 - d^2 / 2 in [0, 1]."""
    return np.clip(1.0 - np.square(distances, dtype=np.float64) / 2.0, 0.0, 1.0)


def harmony_map(harmony: npt.ArrayLike, *, key_invariant: bool = False) -> Float32Array:
    """Map harmony to the unit sphere, where the inner product is :func:`harmony_kernel`.

    Parameters
    ----------
    harmony : array-like of shape (n_songs, 156)
        Rows from :func:`musicsim.audio.harmony`: two histograms, of 12 pitch classes and of 12 x 12 pairs of them.
    key_invariant : bool; if True, the key of a song has no effect

    Returns
    -------
    ndarray of shape (n_songs, 156), or (n_songs, 91) if key-invariant, float32, rows of length 1

    Notes
    -----
    Both histograms are mapped by :func:`ppk_map` and have equal weights. A different key rotates the 12 classes, and
    the pairs along their diagonals. The largest kernel over the 12 rotations would not be positive semidefinite. If
    each song were rotated to its estimated key, an error in the estimate would change all columns. So key-invariant
    columns are the magnitudes of the discrete Fourier transform along the rotation, which rotations do not change.
    Their inner product is equal to the largest kernel over rotations, or slightly above it.
    """
    classes, pairs = _two_roots(harmony, 12, 144, "harmony")
    if key_invariant:
        # with these weights, spectra have the same inner products as the rows they come from
        weights = np.sqrt(np.array([1, 2, 2, 2, 2, 2, 1]) / 12.0)
        first, interval = np.ogrid[:12, :12]
        along = pairs.reshape(-1, 12, 12)[:, first, (first + interval) % 12]
        classes = np.abs(np.fft.rfft(classes, axis=1)) * weights
        pairs = (np.abs(np.fft.rfft(along, axis=1)) * weights[:, np.newaxis]).reshape(-1, 84)
    return np.concatenate([classes, pairs], axis=1).astype(np.float32)


def harmony_kernel(A: npt.ArrayLike, B: npt.ArrayLike | None = None, *, key_invariant: bool = False) -> Float64Array:
    """Return the mean of the probability product kernels of pitch classes and of pairs of pitch classes.

    `A` (n, 156) and `B` (m, 156) are from :func:`musicsim.audio.harmony`; without B, A is compared with itself. The
    result is float64 (n, m), from 0 to 1. See :func:`harmony_map` for `key_invariant`.
    """
    left = harmony_map(A, key_invariant=key_invariant).astype(np.float64)
    right = left if B is None else harmony_map(B, key_invariant=key_invariant).astype(np.float64)
    return cosines(left, right)


def rhythm_map(rhythm: npt.ArrayLike) -> Float32Array:
    """Map rows of :func:`musicsim.audio.rhythm`, (n_songs, 240), to the unit sphere.

    The histograms of tempos and pulses get equal weights. The inner product of the result is :func:`rhythm_kernel`.
    """
    return np.concatenate(_two_roots(rhythm, 48, 192, "rhythm"), axis=1).astype(np.float32)


def rhythm_kernel(A: npt.ArrayLike, B: npt.ArrayLike | None = None) -> Float64Array:
    """Return the mean of the kernels of tempos and of pulses, given rows of :func:`musicsim.audio.rhythm`.

    A is (n, 240) and B is (m, 240); without B, A is compared with itself. The result is float64 (n, m), from 0 to 1.
    """
    left = rhythm_map(A).astype(np.float64)
    return cosines(left, left if B is None else rhythm_map(B).astype(np.float64))


def _two_roots(rows: npt.ArrayLike, first: int, second: int, name: str) -> tuple[Float64Array, Float64Array]:
    """Return the square roots of two histograms per row, each scaled to length sqrt(1/2)."""
    check_dense(name, rows)
    array = np.asarray(rows, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != first + second:
        raise ValueError(f"{name} has shape {array.shape}; it must be (n_songs, {first + second}).")
    parts = array[:, :first], array[:, first:]
    left, right = (np.asarray(root(part, name) * np.sqrt(0.5), dtype=np.float64) for part in parts)
    return left, right
