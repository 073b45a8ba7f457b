"""Histograms of songs, checked, and cosines of rows."""

from typing import Any

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float64Array, FloatingArray

_SUM_TOLERANCE = 1e-3
"""Distance from 1 that sums of float32 histograms may have, for rounding or a few stored digits."""


def root(histograms: npt.ArrayLike, name: str) -> FloatingArray:
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


def cosines(left: Any, right: Any) -> Float64Array:
    """Products of unit rows that are not negative, dense; rounding may not lift them above 1."""
    product = left @ right.T
    kernel = product.toarray() if hasattr(product, "toarray") else np.asarray(product)
    return np.minimum(kernel, 1.0, out=kernel)


def check_same_width(left: Float64Array, right: Float64Array) -> None:
    if left.shape[1] != right.shape[1]:
        raise ValueError(
            f"A has {left.shape[1]} codewords and B {right.shape[1]}; both need the same codebook."
        )
