"""Songs as mixtures of Gaussians over their frames, fitted by expectation maximisation.

Conventions. Mixtures are in the units of the frames that were given (raw delta-MFCC as a rule) and
stored in float32; EM works in float64 on frames z-scored by the song itself. Songs are read one at a
time, and what a song gets depends neither on its place nor on the songs beside it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float32Array, Float64Array, FloatingArray

FrameBlocks = npt.ArrayLike | Iterator[npt.ArrayLike]
"""Frames of a song: one array of shape (n_frames, n_features), or an iterator of such arrays."""

_PRIOR_FRAMES = 1e-3
"""Frames of the song's own mean and variance that each component holds beforehand: with them a component
that no frame chooses has a place, a width and a weight above zero."""

_RELATIVE_FLOOR = 1e-3
"""Smallest variance of a component, as a share of the song's own variance in that feature."""

_KMEANS_STEPS = 8


@dataclass(frozen=True)
class SongMixtures:
    """Diagonal Gaussian mixtures of songs, stacked.

    Parameters
    ----------
    weights : ndarray of shape (n_songs, n_components), float32, > 0, rows sum to 1
    means : ndarray of shape (n_songs, n_components, n_features), float32, units of the frames
    variances : ndarray of the same shape, float32, > 0, units squared

    Raises
    ------
    ValueError
        If the shapes do not fit each other, or a value is not finite or not above zero where it has to be.

    Notes
    -----
    8 components of 39 features take 2.5 kB a song (250 MB for 100 000 songs).
    """

    weights: Float32Array
    means: Float32Array
    variances: Float32Array

    def __post_init__(self) -> None:
        for name in ("weights", "means", "variances"):
            array = np.ascontiguousarray(getattr(self, name), dtype=np.float32)
            if not np.isfinite(array).all():
                raise ValueError(f"{name} of the mixtures hold NaN or infinity.")
            object.__setattr__(self, name, array)
        if self.means.ndim != 3 or self.means.shape[:2] != self.weights.shape:
            raise ValueError(
                f"means of shape {self.means.shape} do not fit weights of shape {self.weights.shape}; "
                f"(n_songs, n_components, n_features) and (n_songs, n_components) belong together."
            )
        if self.variances.shape != self.means.shape:
            raise ValueError(
                f"variances of shape {self.variances.shape} should have the shape {self.means.shape} of means."
            )
        if self.weights.size and min(self.weights.min(), self.variances.min()) <= 0.0:
            raise ValueError("weights and variances of the mixtures should be above 0.")

    def __len__(self) -> int:
        return len(self.weights)

    def __getitem__(self, rows: npt.ArrayLike | slice) -> "SongMixtures":
        """The mixtures of some songs: a slice, row numbers or a mask."""
        chosen = rows if isinstance(rows, slice) else np.atleast_1d(np.asarray(rows))
        return SongMixtures(self.weights[chosen], self.means[chosen], self.variances[chosen])

    @classmethod
    def concatenate(cls, parts: Sequence["SongMixtures"]) -> Self:
        """Stack the songs of several; all need the same numbers of components and features."""
        shapes = sorted({part.means.shape[1:] for part in parts})
        if len(shapes) != 1:
            raise ValueError(f"parts have (components, features) {shapes}; one kind is needed to stack mixtures.")
        return cls(
            np.concatenate([part.weights for part in parts]),
            np.concatenate([part.means for part in parts]),
            np.concatenate([part.variances for part in parts]),
        )

    def arrays(self) -> dict[str, Float32Array]:
        """The arrays to save, by name; :meth:`from_arrays` takes them back."""
        return {"weights": self.weights, "means": self.means, "variances": self.variances}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Float32Array]) -> Self:
        """The mixtures that :meth:`arrays` gave; other names are ignored."""
        return cls(arrays["weights"], arrays["means"], arrays["variances"])


def fit_mixtures(
    list_of_frames: Iterable[FrameBlocks],
    n_components: int = 8,
    max_frames: int = 2500,
    *,
    variance_floor: float = 1e-3,
    tol: float = 1e-3,
    max_iter: int = 100,
    random_state: int | np.random.Generator | None = None,
) -> SongMixtures:
    """Fit a Gaussian mixture with diagonal covariances to the frames of each song.

    Parameters
    ----------
    list_of_frames : iterable of arrays of shape (n_frames, n_features), one a song
        Read one song at a time; a song may be an iterator of blocks of frames.
    n_components : int >= 1
    max_frames : int >= 1
        Of longer songs so many frames are drawn; 2500 are 29 seconds of half-overlapping windows of 23 ms.
    variance_floor : float > 0, squared units of the frames
        No variance is smaller, nor smaller than a thousandth of the song's own: silence has no width.
    tol : float > 0
        EM stops where the mean log-likelihood of a frame grows by less.
    max_iter : int >= 1
    random_state : int, numpy.random.Generator or None
        Draw of frames and of the start.

    Returns
    -------
    SongMixtures

    Raises
    ------
    ValueError
        If a song is empty or holds NaN or infinity, naming its index; or a parameter is out of range.

    Notes
    -----
    Thesis 5.4.3. Starts from k-means++ and eight steps of k-means. Differs from maximum likelihood by
    the floor of the variances and a prior of a thousandth of a frame a component. Memory: the frames of
    one song, and 24 bytes a drawn frame and feature (2.4 MB).
    """
    if min(n_components, max_frames, max_iter) < 1 or min(variance_floor, tol) <= 0.0:
        raise ValueError(
            f"n_components={n_components}, max_frames={max_frames} and max_iter={max_iter} should be >= 1, "
            f"variance_floor={variance_floor} and tol={tol} above 0."
        )
    seed = fixed_seed(random_state)
    fitted = []
    for index, song in enumerate(list_of_frames):
        rng = np.random.default_rng(seed)
        frames = sampled_frames(song, max_frames, rng, f"the frames of song {index}")
        fitted.append(em_mixture(frames, n_components, variance_floor, tol, max_iter, rng))
    if not fitted:
        raise ValueError("list_of_frames is empty; at least one song is needed.")
    return SongMixtures(*(np.stack(part).astype(np.float32) for part in zip(*fitted, strict=True)))


def fixed_seed(random_state: int | np.random.Generator | None) -> int:
    """A seed that every song starts from, so that songs do not depend on each other."""
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    return int(np.random.default_rng(random_state).integers(2**63))


def sampled_frames(song: FrameBlocks, max_frames: int, rng: np.random.Generator, name: str) -> FloatingArray:
    """At most `max_frames` frames of a song, drawn without repetition and left in their order.

    Raises ValueError if the song is empty or not two-dimensional, or a drawn frame holds NaN or infinity.
    """
    blocks = [np.asarray(block) for block in song] if isinstance(song, Iterator) else [np.asarray(song)]
    if not blocks or any(block.ndim != 2 or block.shape[1] == 0 for block in blocks):
        raise ValueError(f"{name}: should be an array of shape (n_frames, n_features).")
    frames = blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
    if len(frames) == 0:
        raise ValueError(f"{name} are empty: at least one frame is needed.")
    if len(frames) > max_frames:
        frames = frames[np.sort(rng.choice(len(frames), max_frames, replace=False))]
    if not np.isfinite(frames).all():
        raise ValueError(f"{name}: NaN or infinity among the values.")
    return frames


def em_mixture(
    frames: FloatingArray, n_components: int, variance_floor: float, tol: float, max_iter: int, rng: np.random.Generator
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Weights (c,), means (c, d) and variances (c, d) of one mixture, float64, units of the frames.

    Memory: 24 bytes a frame and feature.
    """
    mean = frames.mean(axis=0, dtype=np.float64)
    variance = np.maximum(frames.var(axis=0, dtype=np.float64), variance_floor)
    scale = np.sqrt(variance)
    z = (frames - mean) / scale
    moments = np.concatenate([z * z, z], axis=1)
    floor = np.maximum(_RELATIVE_FLOOR, variance_floor / variance)
    parameters = _start(z, moments, n_components, floor, rng)
    before = -np.inf
    for _ in range(max_iter):
        joint = log_joint(moments, *parameters)
        top = joint.max(axis=1, keepdims=True)
        np.exp(joint - top, out=joint)
        total = joint.sum(axis=1, keepdims=True)
        likelihood = float((np.log(total) + top).mean())
        parameters = _maximise(np.divide(joint, total, out=joint), moments, floor)
        if likelihood - before < tol:
            break
        before = likelihood
    weights, means, variances = parameters
    return weights, means * scale + mean, np.maximum(variances * scale**2, variance_floor)


def log_joint(
    moments: FloatingArray, weights: Float64Array, means: Float64Array, variances: Float64Array
) -> FloatingArray:
    """log(w_c N(z; m_c, v_c)) of each frame and component, (n_frames, c): one matrix product.

    Moments are [z^2, z], (n_frames, 2 n_features), whose precision the result has; weights are (c,), means and
    variances (c, d).
    """
    form, offset = quadratic_form(weights, means, variances)
    return moments @ form.T.astype(moments.dtype, copy=False) + offset.astype(moments.dtype, copy=False)


def quadratic_form(
    weights: Float64Array, means: Float64Array, variances: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Coefficients (..., c, 2 d) of [z^2, z] and constants (..., c) of the log of w N(z; m, v)."""
    precisions = 1.0 / variances
    form = np.concatenate([-0.5 * precisions, means * precisions], axis=-1)
    offset = np.log(weights) - 0.5 * (
        np.einsum("...d,...d,...d->...", means, means, precisions)
        + np.log(variances).sum(axis=-1)
        + means.shape[-1] * np.log(2.0 * np.pi)
    )
    return form, offset


def _maximise(
    responsibilities: Float64Array, moments: Float64Array, floor: Float64Array
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """The M-step, with the prior frames of mean 0 and variance 1."""
    d = moments.shape[1] // 2
    counts = responsibilities.sum(axis=0) + _PRIOR_FRAMES
    sums = responsibilities.T @ moments
    means = sums[:, d:] / counts[:, None]
    variances = (sums[:, :d] + _PRIOR_FRAMES) / counts[:, None] - means**2
    return counts / counts.sum(), means, np.maximum(variances, floor)


def _start(
    z: Float64Array, moments: Float64Array, n_components: int, floor: Float64Array, rng: np.random.Generator
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Parameters after k-means++ and a few steps of k-means."""
    squares = np.einsum("ij,ij->i", z, z)
    centres = np.empty((n_components, z.shape[1]))
    centres[0] = z[rng.integers(len(z))]
    nearest = np.full(len(z), np.inf)
    for c in range(1, n_components):
        last = centres[c - 1]
        np.minimum(nearest, np.maximum(squares - 2.0 * (z @ last) + last @ last, 0.0), out=nearest)
        reach = np.cumsum(nearest)
        place = np.searchsorted(reach, rng.random() * reach[-1], side="right")
        centres[c] = z[min(place, len(z) - 1)]
    for _ in range(_KMEANS_STEPS):
        chosen = np.argmax(z @ centres.T - 0.5 * np.einsum("ij,ij->i", centres, centres), axis=1)
        one_hot = (chosen[:, None] == np.arange(n_components)).astype(np.float64)
        parameters = _maximise(one_hot, moments, floor)
        centres = parameters[1]
    return parameters
