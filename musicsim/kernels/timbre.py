"""The probability product kernel of timbre, between histograms of codewords."""

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float32Array, Float64Array
from musicsim.kernels._rows import check_same_width, cosines, root


def ppk_map(histograms: npt.ArrayLike) -> Float32Array:
    """Map histograms to the unit sphere, where the inner product is the probability product kernel.

    Rows of (n_songs, n_codewords) are not negative and sum to 1 within 0.001; otherwise raises ValueError. The result
    is their element-wise square root (equation 5.7 of the thesis), float32. It is rescaled to length 1, even if the sum
    is not exactly 1.

    Examples
    --------
    >>> ppk_map([[0.25, 0.75, 0.0]]).round(3)
    array([[0.5  , 0.866, 0.   ]], dtype=float32)
    """
    return root(histograms, "histograms").astype(np.float32, copy=False)


def ppk_kernel(A: npt.ArrayLike, B: npt.ArrayLike | None = None) -> Float64Array:
    """Return the probability product kernel of histograms, the sum over codewords of sqrt(a b): float64 (n, m).

    `A` is (n, n_codewords); `B` is (m, n_codewords), or A when None. Equal histograms have 1. Raises ValueError if rows
    are not histograms, or A and B have different numbers of codewords.
    """
    left = root(A, "A").astype(np.float64)
    right = left if B is None else root(B, "B").astype(np.float64)
    check_same_width(left, right)
    return cosines(left, right)


def ppk_similarity(distances: npt.ArrayLike) -> Float64Array:
    """Return the kernel from Euclidean distances between rows of :func:`ppk_map`: 1 - d^2 / 2, clipped to 0..1.

    The distances, of any shape, may also be between rows of a PCA of the map. The result is float64.
    """
    return np.clip(1.0 - np.square(distances, dtype=np.float64) / 2.0, 0.0, 1.0)
