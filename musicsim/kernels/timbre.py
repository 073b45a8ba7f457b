"""The probability product kernel of timbre, between histograms of codewords."""

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float32Array, Float64Array
from musicsim.kernels._rows import check_same_width, cosines, root


def ppk_map(histograms: npt.ArrayLike) -> Float32Array:
    """Map histograms to the unit sphere, where the inner product is the probability product kernel.

    Element-wise square root, equation 5.7 of the thesis. Rows are rescaled, so that their length is 1 in float32 even
    if the sum is not exactly 1. Raises ValueError if an entry is negative or not finite, or a row does not sum to 1.

    Parameters
    ----------
    histograms : array of shape (n_songs, n_codewords), not negative, rows sum to 1 within 0.001

    Returns
    -------
    ndarray of shape (n_songs, n_codewords), float32, rows of length 1

    Examples
    --------
    >>> ppk_map([[0.25, 0.75, 0.0]]).round(3)
    array([[0.5  , 0.866, 0.   ]], dtype=float32)
    """
    return root(histograms, "histograms").astype(np.float32, copy=False)


def ppk_kernel(A: npt.ArrayLike, B: npt.ArrayLike | None = None) -> Float64Array:
    """Return the probability product kernel, the sum over codewords of sqrt(a b), of songs A with B.

    Raises ValueError if rows are not histograms, or A and B have different numbers of codewords.

    Parameters
    ----------
    A : array of shape (n, n_codewords), histograms
    B : array of shape (m, n_codewords), histograms; A when None

    Returns
    -------
    ndarray of shape (n, m), float64, in 0..1; 1 for equal histograms
    """
    left = root(A, "A").astype(np.float64)
    right = left if B is None else root(B, "B").astype(np.float64)
    check_same_width(left, right)
    return cosines(left, right)


def ppk_similarity(distances: npt.ArrayLike) -> Float64Array:
    """Return the kernel between songs from Euclidean distances between their maps: 1 - d^2 / 2, clipped to 0..1.

    Parameters
    ----------
    distances : array of any shape, >= 0; between rows of :func:`ppk_map`, or of its PCA

    Returns
    -------
    ndarray of the same shape, float64, in 0..1
    """
    return np.clip(1.0 - np.square(distances, dtype=np.float64) / 2.0, 0.0, 1.0)
