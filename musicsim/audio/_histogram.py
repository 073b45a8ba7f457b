"""Sums as shares of their total, for the descriptions of harmony and rhythm."""

import numpy as np

from musicsim._arrays import Float32Array, Float64Array


def joined_histograms(*sums: Float64Array) -> Float32Array:
    """Join histograms, each of which sums to 1; of sums that are all 0 all entries are equal.

    Parameters
    ----------
    *sums : ndarrays of any shape, not negative

    Returns
    -------
    ndarray of shape (sum of sizes,), float32
    """
    totals = [part.sum() for part in sums]
    parts = [
        part.ravel() / total if total > 0 else np.full(part.size, 1.0 / part.size)
        for part, total in zip(sums, totals, strict=True)
    ]
    return np.concatenate(parts).astype(np.float32)
