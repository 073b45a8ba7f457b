"""A song's outline for drawing: the highest level in each of a few hundred equal stretches."""

from __future__ import annotations

import numpy as np

from musicsim._arrays import Float32Array, FloatingArray

_MAX_STEPS = 1 << 13
_BLOCK = 1 << 15


def peaks(samples: FloatingArray, n_bins: int = 400) -> Float32Array:
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

    Notes
    -----
    Of up to 8,192 samples the stretches are exact; in longer sounds each begins up to 1/4,096 of the
    sound early, a tenth of a stretch: see :class:`Outline`.
    """
    if n_bins < 1:
        raise ValueError(f"n_bins={n_bins} must be at least 1.")
    if samples.ndim != 1 or len(samples) == 0:
        raise ValueError(f"samples must be 1-D and not empty, not of shape {samples.shape}.")
    outline = Outline()
    for start in range(0, len(samples), _BLOCK):
        outline.add(samples[start : start + _BLOCK])
    return outline.finish(n_bins)


class Outline:
    """Peak levels of sound that comes block by block and whose length is not known before its end.

    Notes
    -----
    Keeps the peak of every step, a step being one sample at first. As soon as there are more than
    8,192 of them, neighbours are joined and steps are twice as long, so that the outline depends on
    the samples only, not on how they were cut into blocks, and takes 32 kB whatever the length.
    """

    def __init__(self) -> None:
        self._step = 1
        self._levels = np.zeros(_MAX_STEPS, np.float32)
        self._n_samples = 0

    @property
    def loudest(self) -> float:
        """The highest level so far."""
        return float(self._levels.max())

    def add(self, samples: FloatingArray) -> None:
        """Take the next samples: (n,), floating."""
        if len(samples) == 0:
            return
        while self._n_samples + len(samples) > _MAX_STEPS * self._step:
            self._levels[: _MAX_STEPS // 2] = np.maximum(self._levels[::2], self._levels[1::2])
            self._levels[_MAX_STEPS // 2 :] = 0
            self._step *= 2
        first, into_step = divmod(self._n_samples, self._step)
        starts = np.arange(-into_step, len(samples), self._step)
        starts[0] = 0
        levels = np.maximum.reduceat(np.abs(samples), starts)
        target = self._levels[first : first + len(levels)]
        np.maximum(target, levels, out=target, casting="same_kind")
        self._n_samples += len(samples)

    def finish(self, n_bins: int = 400) -> Float32Array:
        """Return the peaks of `n_bins` equal stretches; see :func:`peaks`.

        Raises
        ------
        ValueError
            If a sample was NaN or infinite.
        """
        n_steps = -(-self._n_samples // self._step)
        starts = np.arange(n_bins) * n_steps // n_bins
        levels = np.maximum.reduceat(self._levels[:n_steps], starts)
        loudest = levels.max()
        if not np.isfinite(loudest):
            raise ValueError("samples holds NaN or infinite values: set them to zero first.")
        return levels / loudest if loudest > 0 else levels
