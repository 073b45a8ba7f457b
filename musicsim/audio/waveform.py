"""A song's outline for drawing: the highest level in each of a few hundred equal stretches."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["peaks"]


def peaks(samples: npt.NDArray[np.floating], n_bins: int = 400) -> npt.NDArray[np.float32]:
    """Reduce samples to the peak level of `n_bins` equal stretches.

    Parameters
    ----------
    samples : ndarray of shape (n_samples,), floating, n_samples >= 1
    n_bins : int >= 1

    Returns
    -------
    ndarray of shape (n_bins,), float32, 0 to 1
        Relative to the loudest sample; all zeros for silence. With fewer samples than bins, samples
        repeat.

    Raises
    ------
    ValueError
        If `samples` is empty, not 1-D or not finite, or `n_bins` is less than 1.
    """
    if n_bins < 1:
        raise ValueError(f"n_bins={n_bins} must be at least 1.")
    if samples.ndim != 1 or len(samples) == 0:
        raise ValueError(f"samples must be 1-D and not empty, not of shape {samples.shape}.")
    starts = np.arange(n_bins) * len(samples) // n_bins
    # two reductions instead of abs(): a long song is not copied
    levels = np.maximum(np.maximum.reduceat(samples, starts), -np.minimum.reduceat(samples, starts))
    loudest = levels.max()
    if not np.isfinite(loudest):
        raise ValueError("samples holds NaN or infinite values: set them to zero first.")
    if loudest == 0:
        return np.zeros(n_bins, np.float32)
    return (levels / loudest).astype(np.float32)
