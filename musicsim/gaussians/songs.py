"""Gaussians of whole songs or of their parts: the mean and the covariance of the frames.

Frames come in blocks and are read once. Sums are computed in float64; results are float32. Means are in the units of
the frames, and covariances are in squared units.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Self

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float32Array, Float64Array, FloatingArray, Int64Array

FrameBlocks = npt.ArrayLike | Iterator[npt.ArrayLike]
"""Frames of a song: one array of shape (n_frames, n_features), or an iterator of such arrays."""

Moments = tuple[int, Float64Array, Float64Array]
"""Number of frames, their mean, and the sum of the outer products of their deviations."""


@dataclass(frozen=True)
class SongGaussians:
    """Gaussians of songs, or of parts of songs, stacked; 39 columns take 6.2 kB per song.

    Parameters
    ----------
    means : ndarray of shape (n, d), float32, units of the frames
    covariances : ndarray of shape (n, d, d), float32, units squared
        The divisor is the number of frames less 1; a single frame has a covariance of zeros.
    n_frames : ndarray of shape (n,), int64, >= 1

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.gaussians import SongGaussians, fit_parts
    >>> frames = np.random.default_rng(0).normal(size=(1000, 13))
    >>> parts = fit_parts(frames, 250)
    >>> parts.means.shape, parts.covariances.shape, parts.n_frames
    ((4, 13), (4, 13, 13), array([250, 250, 250, 250]))
    >>> bool(np.allclose(parts.merge().means[0], frames.mean(axis=0), atol=1e-6))  # one Gaussian for the song
    True
    """

    means: Float32Array
    covariances: Float32Array
    n_frames: Int64Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "means", np.asarray(self.means, dtype=np.float32))
        object.__setattr__(self, "covariances", np.asarray(self.covariances, dtype=np.float32))
        object.__setattr__(self, "n_frames", np.asarray(self.n_frames, dtype=np.int64))
        if self.means.ndim != 2:
            raise ValueError(f"means has shape {self.means.shape}; it must be (n, d).")
        n, d = self.means.shape
        if self.covariances.shape != (n, d, d) or self.n_frames.shape != (n,):
            raise ValueError(
                f"covariances has shape {self.covariances.shape} and n_frames has shape {self.n_frames.shape}; "
                f"they must be {(n, d, d)} and {(n,)}, because means has shape {(n, d)}."
            )
        if not (np.isfinite(self.means).all() and np.isfinite(self.covariances).all()):
            raise ValueError("means or covariances contain NaN or infinity.")
        if n and self.n_frames.min() < 1:
            raise ValueError("n_frames must be at least 1 for every song.")

    def __len__(self) -> int:
        return len(self.means)

    def __getitem__(self, rows: npt.ArrayLike | slice) -> "SongGaussians":
        """Return some of the Gaussians, selected by a slice, row numbers or a mask."""
        chosen = rows if isinstance(rows, slice) else np.atleast_1d(np.asarray(rows))
        return SongGaussians(self.means[chosen], self.covariances[chosen], self.n_frames[chosen])

    @classmethod
    def concatenate(cls, parts: Sequence["SongGaussians"]) -> Self:
        """Stack several instances with the same number of columns.

        Raises ValueError if there are no instances, or if they differ in the number of columns.
        """
        return cls(
            np.concatenate([part.means for part in parts]),
            np.concatenate([part.covariances for part in parts]),
            np.concatenate([part.n_frames for part in parts]),
        )

    def merge(self) -> "SongGaussians":
        """Merge all Gaussians into one, for example the parts of a song into one Gaussian for the song."""
        parts = [
            (n, mean.astype(np.float64), covariance.astype(np.float64) * (n - 1))
            for n, mean, covariance in zip(self.n_frames.tolist(), self.means, self.covariances, strict=True)
        ]
        return _stack([reduce(_merge, parts)] if parts else [], self.means.shape[1])


def fit_parts(frames: FrameBlocks, n_frames: int | None = None) -> SongGaussians:
    """Return the Gaussians of a song's parts, in order; by default, there is one part.

    Each part has `n_frames` frames. A remainder of less than half a part is added to the last part.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.gaussians import fit_parts
    >>> frames = np.random.default_rng(0).normal(size=(1000, 13))
    >>> len(fit_parts(frames)), fit_parts(frames, 300).n_frames  # the rest of 100 frames joins the last part
    (1, array([300, 300, 400]))
    """
    parts: list[Moments] = []
    width = 0
    for block in frames if isinstance(frames, Iterator) else iter([frames]):
        rows = np.asarray(block)
        if rows.ndim != 2:
            raise ValueError(f"frames has shape {rows.shape}; it must be (n_frames, n_features).")
        width = rows.shape[1]
        while len(rows):
            if not parts or parts[-1][0] == n_frames:
                parts.append((0, np.zeros(width), np.zeros((width, width))))
            size = len(rows) if n_frames is None else n_frames - parts[-1][0]
            parts[-1] = _merge(parts[-1], _moments(rows[:size]))
            rows = rows[size:]
    if not parts:
        raise ValueError("a song must have at least one frame.")
    if n_frames is not None and len(parts) > 1 and 2 * parts[-1][0] < n_frames:
        last = parts.pop()
        parts[-1] = _merge(parts[-1], last)
    return _stack(parts, width)


def _moments(rows: FloatingArray) -> Moments:
    centered = rows.astype(np.float64)
    mean = centered.mean(axis=0)
    centered -= mean
    return len(rows), mean, centered.T @ centered


def _merge(one: Moments, other: Moments) -> Moments:
    """Combine the moments of two sets of frames (Chan, Golub and LeVeque 1979)."""
    n = one[0] + other[0]
    shift = other[1] - one[1]
    share = other[0] / n
    return n, one[1] + share * shift, one[2] + other[2] + one[0] * share * np.outer(shift, shift)


def _stack(parts: Sequence[Moments], width: int) -> SongGaussians:
    return SongGaussians(
        np.array([mean for _, mean, _ in parts]).reshape(-1, width),
        np.array([scatter / max(n - 1, 1) for n, _, scatter in parts]).reshape(-1, width, width),
        np.array([n for n, _, _ in parts], dtype=np.int64),
    )


def embedding_size(n_columns: int) -> int:
    """Return the length of a Gaussian's vector, given the number of columns of its frames.

    Examples
    --------
    >>> from musicsim.gaussians import embedding_size
    >>> embedding_size(39)
    820
    """
    return (n_columns + 1) * (n_columns + 2) // 2
