"""Gaussian mixtures of songs' frames, fitted by expectation maximization (EM).

Mixtures are in the units of the frames (usually raw delta-MFCC) and stored in float32. EM runs in float64 on frames
that are z-scored per song. Songs are read one at a time; a song's mixture does not depend on other songs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float32Array, Float64Array, FloatingArray
from musicsim._checks import check_whole

FrameBlocks = npt.ArrayLike | Iterator[npt.ArrayLike]
"""Frames of a song: one array of shape (n_frames, n_features), or an iterator of such arrays."""

# Weight, in frames, of the song's mean and variance as a prior for each component. It keeps a component well-defined
# even if no frame belongs to the component.
_PRIOR_FRAMES = 1e-3
_VARIANCE_FLOOR = 1e-3  # minimum variance of a component, because silence has a variance of 0
_RELATIVE_FLOOR = 1e-3  # minimum as a share of the song's variance in a feature; the larger minimum applies
_KMEANS_STEPS = 8
_TOL, _MAX_ITER = 1e-3, 100  # EM stops when the mean log-likelihood per frame increases by less than `_TOL`


@dataclass(frozen=True)
class SongMixtures:
    """Diagonal Gaussian mixtures of songs, stacked; 8 components of 39 features take 2.5 kB per song.

    Parameters
    ----------
    weights : ndarray of shape (n_songs, n_components), float32, > 0, rows sum to 1
    means : ndarray of shape (n_songs, n_components, n_features), float32, units of the frames
    variances : ndarray of shape (n_songs, n_components, n_features), float32, > 0, units squared

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.mixtures import SongMixtures
    >>> weights, means, variances = np.ones((3, 1)), np.arange(3.0).reshape(3, 1, 1), np.ones((3, 1, 1))
    >>> songs = SongMixtures(*(values.astype(np.float32) for values in (weights, means, variances)))
    >>> len(songs), len(songs[:2]), SongMixtures.concatenate([songs, songs]).means.shape
    (3, 2, (6, 1, 1))
    """

    weights: Float32Array
    means: Float32Array
    variances: Float32Array

    def __post_init__(self) -> None:
        for name in ("weights", "means", "variances"):
            array = np.ascontiguousarray(getattr(self, name), dtype=np.float32)
            if not np.isfinite(array).all():
                raise ValueError(f"{name} of the mixtures contain NaN or infinity.")
            object.__setattr__(self, name, array)
        if self.means.ndim != 3 or self.means.shape[:2] != self.weights.shape:
            raise ValueError(
                f"means has shape {self.means.shape} and weights has shape {self.weights.shape}; "
                f"they must be (n_songs, n_components, n_features) and (n_songs, n_components)."
            )
        if self.variances.shape != self.means.shape:
            raise ValueError(f"variances has shape {self.variances.shape}, but means has shape {self.means.shape}.")
        if self.weights.size and min(self.weights.min(), self.variances.min()) <= 0.0:
            raise ValueError("weights and variances of the mixtures must be above 0.")

    def __len__(self) -> int:
        return len(self.weights)

    def __getitem__(self, rows: npt.ArrayLike | slice) -> "SongMixtures":
        """Return the mixtures of some songs, selected by a slice, row numbers or a mask."""
        chosen = rows if isinstance(rows, slice) else np.atleast_1d(np.asarray(rows))
        return SongMixtures(self.weights[chosen], self.means[chosen], self.variances[chosen])

    @classmethod
    def concatenate(cls, parts: Sequence["SongMixtures"]) -> Self:
        """Stack the songs of several instances, which must have equal numbers of components and features."""
        shapes = sorted({part.means.shape[1:] for part in parts})
        if len(shapes) != 1:
            raise ValueError(f"parts must have equal numbers of components and features, not {shapes}.")
        stacks = zip(*(part.arrays().values() for part in parts), strict=True)
        return cls(*(np.concatenate(stack) for stack in stacks))

    def arrays(self) -> dict[str, Float32Array]:
        """Return the arrays to save for :meth:`from_arrays`, keyed by name."""
        return {"weights": self.weights, "means": self.means, "variances": self.variances}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Float32Array]) -> Self:
        """Restore mixtures from the arrays that :meth:`arrays` returned; arrays with other names are ignored."""
        return cls(arrays["weights"], arrays["means"], arrays["variances"])


def fit_mixtures(
    list_of_frames: Iterable[FrameBlocks],
    n_components: int = 8,
    max_frames: int = 2500,
    random_state: int | np.random.Generator | None = None,
) -> SongMixtures:
    """Fit a Gaussian mixture with diagonal covariances to the frames of each song.

    Parameters
    ----------
    list_of_frames : iterable of arrays of shape (n_frames, n_features), one per song
        Songs are read one at a time; a song may be an iterator of blocks of frames.
    n_components : int >= 1
    max_frames : int >= 1
        Number of frames sampled from longer songs; 2500 are 29 seconds of half-overlapping windows of 23 ms.
    random_state : int, numpy.random.Generator or None; seed of the sampled frames and of the initialization

    Returns
    -------
    SongMixtures

    Notes
    -----
    Thesis 5.4.3. Mixtures are initialized by k-means++ and eight steps of k-means. They differ from maximum likelihood
    by the minimum variance and a prior of a thousandth of a frame per component. The fit needs memory for the frames of
    one song, and 24 bytes per sampled frame and feature (2.4 MB).

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.mixtures import fit_mixtures
    >>> rng = np.random.default_rng(0)
    >>> songs = [rng.normal(loc=[[0, 0], [5, 5]] * 300, size=(600, 2)) for _ in range(3)]  # frames of two kinds
    >>> mixtures = fit_mixtures(songs, n_components=2, random_state=0)
    >>> mixtures.weights.round(1)
    array([[0.5, 0.5],
           [0.5, 0.5],
           [0.5, 0.5]], dtype=float32)
    >>> np.sort(mixtures.means[0], axis=0).round(0) + 0.0
    array([[0., 0.],
           [5., 5.]], dtype=float32)
    """
    check_whole("n_components", n_components, 1)
    check_whole("max_frames", max_frames, 1)
    seed = fix_seed(random_state)
    fitted = []
    for index, song in enumerate(list_of_frames):
        rng = np.random.default_rng(seed)
        frames = sample_frames(song, max_frames, rng, f"the frames of song {index}")
        fitted.append(em_mixture(frames, n_components, rng))
    if not fitted:
        raise ValueError("list_of_frames is empty; at least one song is needed.")
    return SongMixtures(*(np.stack(part).astype(np.float32) for part in zip(*fitted, strict=True)))


def fix_seed(random_state: int | np.random.Generator | None) -> int:
    """Return one seed for all songs, so that the result for a song does not depend on other songs."""
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    return int(np.random.default_rng(random_state).integers(2**63))


def sample_frames(song: FrameBlocks, max_frames: int, rng: np.random.Generator, name: str) -> FloatingArray:
    """Return at most `max_frames` frames of a song, sampled without replacement, in temporal order.

    Raises ValueError if the song is empty or not two-dimensional, or if a sampled frame contains NaN or infinity.
    """
    blocks = [np.asarray(block) for block in song] if isinstance(song, Iterator) else [np.asarray(song)]
    if not blocks or any(block.ndim != 2 or block.shape[1] == 0 for block in blocks):
        raise ValueError(f"{name} must be an array of shape (n_frames, n_features).")
    frames = blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
    if len(frames) == 0:
        raise ValueError(f"{name} are empty: at least one frame is needed.")
    if len(frames) > max_frames:
        frames = frames[np.sort(rng.choice(len(frames), max_frames, replace=False))]
    if not np.isfinite(frames).all():
        raise ValueError(f"{name}: the values contain NaN or infinity.")
    return frames


def em_mixture(
    frames: FloatingArray, n_components: int, rng: np.random.Generator
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return the weights (c,), means (c, d) and variances (c, d) of one mixture, float64, in the units of the frames.

    This needs 24 bytes per frame and feature.
    """
    mean = frames.mean(axis=0, dtype=np.float64)
    variance = np.maximum(frames.var(axis=0, dtype=np.float64), _VARIANCE_FLOOR)
    scale = np.sqrt(variance)
    z = (frames - mean) / scale
    moments = np.concatenate([z * z, z], axis=1)
    floor = np.maximum(_RELATIVE_FLOOR, _VARIANCE_FLOOR / variance)
    parameters = _initialize(z, moments, n_components, floor, rng)
    last_likelihood = -np.inf
    for _ in range(_MAX_ITER):
        form, offset = quadratic_form(*parameters)
        joint = moments @ form.T + offset  # log(w_c N(z; m_c, v_c)), (n_frames, c)
        top = joint.max(axis=1, keepdims=True)
        np.exp(joint - top, out=joint)
        total = joint.sum(axis=1, keepdims=True)
        likelihood = float((np.log(total) + top).mean())
        parameters = _maximize(np.divide(joint, total, out=joint), moments, floor)
        if likelihood - last_likelihood < _TOL:
            break
        last_likelihood = likelihood
    weights, means, variances = parameters
    return weights, means * scale + mean, np.maximum(variances * scale**2, _VARIANCE_FLOOR)


def quadratic_form(
    weights: Float64Array, means: Float64Array, variances: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return the coefficients (..., c, 2 d) of [z^2, z] and the constants (..., c) in the log of w N(z; m, v)."""
    precisions = 1.0 / variances
    form = np.concatenate([-0.5 * precisions, means * precisions], axis=-1)
    offset = np.log(weights) - 0.5 * (
        np.einsum("...d,...d,...d->...", means, means, precisions)
        + np.log(variances).sum(axis=-1)
        + means.shape[-1] * np.log(2.0 * np.pi)
    )
    return form, offset


def _maximize(
    responsibilities: Float64Array, moments: Float64Array, floor: Float64Array
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Compute the M-step, including the prior: `_PRIOR_FRAMES` frames with mean 0 and variance 1."""
    d = moments.shape[1] // 2
    counts = responsibilities.sum(axis=0) + _PRIOR_FRAMES
    sums = responsibilities.T @ moments
    means = sums[:, d:] / counts[:, None]
    variances = (sums[:, :d] + _PRIOR_FRAMES) / counts[:, None] - means**2
    return counts / counts.sum(), means, np.maximum(variances, floor)


def _initialize(
    z: Float64Array, moments: Float64Array, n_components: int, floor: Float64Array, rng: np.random.Generator
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return the parameters after k-means++ and a few steps of k-means."""
    squares = np.einsum("ij,ij->i", z, z)
    centers = np.empty((n_components, z.shape[1]))
    centers[0] = z[rng.integers(len(z))]
    nearest = np.full(len(z), np.inf)
    for c in range(1, n_components):
        last = centers[c - 1]
        np.minimum(nearest, np.maximum(squares - 2.0 * (z @ last) + last @ last, 0.0), out=nearest)
        cumulative = np.cumsum(nearest)
        index = np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right")
        centers[c] = z[min(index, len(z) - 1)]
    for _ in range(_KMEANS_STEPS):
        chosen = np.argmax(z @ centers.T - 0.5 * np.einsum("ij,ij->i", centers, centers), axis=1)
        one_hot = (chosen[:, None] == np.arange(n_components)).astype(np.float64)
        parameters = _maximize(one_hot, moments, floor)
        centers = parameters[1]
    return parameters
