"""Similarity of songs from their histograms: n songs by m songs, or a map that makes it a product.

Conventions. Histograms are rows that are not negative and sum to 1. Kernels are float64, since
solvers take them: n songs by m songs need 8 n m bytes (80 GB for 100 000 songs by themselves; use
the map and a search index there). Maps are float32, as features are stored.
"""

import numpy as np
import numpy.typing as npt

__all__ = ["ppk_kernel", "ppk_map", "ppk_similarity"]

_SUM_TOLERANCE = 1e-3
"""What float32 histograms, summed or stored with a few digits, may be away from 1."""


def ppk_map(histograms: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Map histograms to the unit sphere, where the inner product is the probability product kernel.

    Parameters
    ----------
    histograms : array of shape (n_songs, n_codewords), not negative, rows sum to 1 within 0.001

    Returns
    -------
    ndarray of shape (n_songs, n_codewords), float32, rows of length 1

    Raises
    ------
    ValueError
        If an entry is negative or not finite, or a row does not sum to 1.

    Notes
    -----
    Element-wise square root, equation 5.7 of the thesis. What a row lacks of the sum 1 is divided
    out, so that the length is 1 to float32.

    Examples
    --------
    >>> ppk_map([[0.25, 0.75, 0.0]]).round(3)
    array([[0.5  , 0.866, 0.   ]], dtype=float32)
    """
    return _root(histograms, "histograms").astype(np.float32, copy=False)


def ppk_kernel(A: npt.ArrayLike, B: npt.ArrayLike | None = None) -> npt.NDArray[np.float64]:
    """Return the probability product kernel, the sum over codewords of sqrt(a b), of songs A with B.

    Parameters
    ----------
    A : array of shape (n, n_codewords), histograms
    B : array of shape (m, n_codewords), histograms; A when None

    Returns
    -------
    ndarray of shape (n, m), float64, in 0..1; 1 where two histograms are the same

    Raises
    ------
    ValueError
        If rows are not histograms, or A and B have different numbers of codewords.
    """
    left = _root(A, "A").astype(np.float64)
    right = left if B is None else _root(B, "B").astype(np.float64)
    if left.shape[1] != right.shape[1]:
        raise ValueError(
            f"A has {left.shape[1]} codewords and B {right.shape[1]}; both need the same codebook."
        )
    kernel = left @ right.T
    return np.minimum(kernel, 1.0, out=kernel)


def _root(histograms: npt.ArrayLike, name: str) -> npt.NDArray[np.floating]:
    """Check histograms and return their element-wise square root, in their own precision."""
    array = np.asarray(histograms)
    if array.dtype != np.float32:
        array = array.astype(np.float64)
    if array.ndim != 2:
        raise ValueError(f"{name}: shape {array.shape} should be (n_songs, n_codewords).")
    sums = array.sum(axis=1, dtype=np.float64)
    off = np.flatnonzero(~(np.abs(sums - 1.0) <= _SUM_TOLERANCE))
    if len(off):
        raise ValueError(f"{name}: row {off[0]} sums to {sums[off[0]]:.6g}; a histogram sums to 1.")
    if array.size and array.min() < 0.0:
        raise ValueError(f"{name}: smallest entry {array.min():.6g}; a histogram is not negative.")
    root = array / sums[:, np.newaxis].astype(array.dtype)
    return np.sqrt(root, out=root)


def ppk_similarity(distances: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """The kernel between songs from Euclidean distances between their maps: 1 - d^2 / 2, never below 0.

    Parameters
    ----------
    distances : array of any shape, >= 0
        Of :func:`ppk_map`, or of what PCA leaves of it.

    Returns
    -------
    ndarray of the same shape, float64, in [0, 1]
    """
    return np.clip(1.0 - np.square(distances, dtype=np.float64) / 2.0, 0.0, 1.0)
