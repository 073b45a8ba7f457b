"""Codewords of audio frames, and histograms of the codewords in each song (thesis 5.3 and appendix B).

A codebook is learned in one pass over shuffled frames, by the online form of Hartigan's k-means. A song is then
represented by the histogram of the codewords nearest to its frames. Pass raw frames: the codebook z-scores them with
the mean and deviation of the training frames.

Codewords and distances are in z-scored units. Distances are compared in float32, and ties go to the lower index;
centroids are float64. Results do not depend on the number of threads. In :meth:`Codebook.transform`, the result for a
song does not depend on other songs.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from musicsim._arrays import Float32Array, Float64Array, Int64Array
from musicsim._checks import check_dense, check_whole
from musicsim.codebook import _kernels

_PAGE = 4096
_STATISTICS_BLOCK = 16384
_MIN_CODEWORDS, _FRAMES_PER_CODEWORD = 16, 50
_NO_RESULT = np.empty((0, 0), dtype=np.int64)

FramesLike = npt.ArrayLike | Sequence[npt.ArrayLike]


def suggest_n_codewords(n_frames: int, maximum: int = 1024) -> int:
    """Suggest a number of codewords for `n_frames` training frames.

    It is the largest power of two with at least 50 frames per codeword, from 16 to `maximum`, and at most `n_frames`.

    Examples
    --------
    >>> from musicsim.codebook import suggest_n_codewords
    >>> suggest_n_codewords(431 * 40), suggest_n_codewords(1_000_000), suggest_n_codewords(5)
    (256, 1024, 5)
    """
    check_whole("n_frames", n_frames, 1)
    check_whole("maximum", maximum, _MIN_CODEWORDS)
    affordable = max(1, n_frames // _FRAMES_PER_CODEWORD)
    power = 1 << (affordable.bit_length() - 1)
    return min(max(power, _MIN_CODEWORDS), maximum, n_frames)


class Codebook(TransformerMixin, BaseEstimator):
    """Describe the sound of songs as histograms of codewords, in which similar timbres share codewords.

    Learn codewords by online Hartigan k-means; represent songs as top-tau histograms over them.

    Parameters
    ----------
    n_codewords : int >= 1; see :func:`suggest_n_codewords` for small libraries
    tau : int, 1 <= tau <= n_codewords; each frame adds 1/tau to each of its tau nearest codewords (equation 5.5)
    random_state : int, numpy.random.Generator or None; seed of the order of frames

    Attributes
    ----------
    codewords_ : ndarray of shape (n_codewords, n_features_in_), float64, z-scored units
    counts_ : ndarray of shape (n_codewords,), int64
        Number of training frames that moved each codeword. It is 0 for unused codewords, which remain if there are
        fewer distinct frames than codewords; they are farther from every frame than all used ones.
    mean_, scale_ : ndarray of shape (n_features_in_,), float64
        Mean and standard deviation of the training frames; the scale of a constant column is 1.
    n_features_in_ : int

    See Also
    --------
    suggest_n_codewords : Number of codewords for a library.
    musicsim.kernels.ppk_kernel : Similarity of histograms.
    musicsim.gaussians.GaussianEmbedding : Describes timbre without codewords.

    Notes
    -----
    This is algorithm B.1 of the thesis, one pass. Counts start at 0, so the first `n_codewords` distinct frames of the
    shuffled sequence become the initial centroids.

    References
    ----------
    - B. McFee, More like this: machine learning approaches to music similarity, PhD thesis, UC San Diego, 2012, section
      5.3 (equation 5.5) and appendix B (algorithm B.1).

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.codebook import Codebook
    >>> rng = np.random.default_rng(0)
    >>> songs = [rng.normal(loc=kind, size=(400, 39)) for kind in (0, 0, 3)]  # frames of three songs
    >>> codebook = Codebook(n_codewords=32, tau=4, random_state=0).fit(np.concatenate(songs))
    >>> histograms = codebook.transform(songs)
    >>> histograms.shape, histograms.sum(axis=1).round(3)
    ((3, 32), array([1., 1., 1.], dtype=float32))
    >>> bool(histograms[0] @ histograms[1] > histograms[0] @ histograms[2])  # songs of one kind share codewords
    True
    """

    def __init__(self, n_codewords: int = 1024, tau: int = 4, random_state: int | np.random.Generator | None = None):
        self.n_codewords, self.tau, self.random_state = n_codewords, tau, random_state

    def fit(self, frames: FramesLike, y: object = None) -> Self:
        """Learn the codewords in one pass over `frames`, in an order drawn from `random_state`.

        Parameters
        ----------
        frames : array-like of shape (n_frames, n_features), raw, n_frames >= n_codewords; or a list of such arrays
            Types other than float32 are copied. In addition, the fit needs 8 bytes per frame.
        y : ignored
        """
        self._check_parameters()
        frames = _as_frames(frames, "frames")
        n_frames, n_features = frames.shape
        if n_frames < self.n_codewords:
            raise ValueError(
                f"n_frames={n_frames} must be >= n_codewords={self.n_codewords}. Use more frames or fewer "
                "codewords (suggest_n_codewords)."
            )
        self.n_features_in_ = n_features
        self.mean_, self.scale_ = _mean_and_scale(frames)
        self.codewords_ = np.zeros((self.n_codewords, n_features))
        self.counts_ = np.zeros(self.n_codewords, dtype=np.int64)
        return self._learn(frames)

    def partial_fit(self, frames: FramesLike, y: object = None) -> Self:
        """Continue learning with another batch of frames, in shuffled order.

        The first batch is passed to :meth:`fit`: it sets `mean_` and `scale_`, which stay fixed, and needs at least
        `n_codewords` frames. It should be a representative sample of all frames.

        Parameters
        ----------
        frames : array-like of shape (n_frames, n_features), raw; or a list of such arrays
        y : ignored
        """
        if not hasattr(self, "codewords_"):
            return self.fit(frames)
        self._check_parameters()
        return self._learn(_as_frames(frames, "frames", self.n_features_in_))

    def transform(self, list_of_frames: Iterable[npt.ArrayLike | Iterator[npt.ArrayLike]]) -> Float32Array:
        """Return the top-tau histogram of each song (equation 5.5).

        Parameters
        ----------
        list_of_frames : iterable of array-likes of shape (n_frames, n_features), raw, one per song
            Songs are read one at a time, so a generator is sufficient; a long song may itself be an iterator of such
            arrays. The order of frames within a song does not matter, but temporal order is faster.

        Returns
        -------
        ndarray of shape (n_songs, n_codewords), float32, rows sum to 1
        """
        check_is_fitted(self)
        self._check_parameters()
        if isinstance(list_of_frames, np.ndarray) and list_of_frames.ndim == 2:
            raise ValueError("list_of_frames must contain one array per song; for a single song, pass [frames].")
        work = self._work_space()
        histograms = []
        for index, song in enumerate(list_of_frames):
            counts = np.zeros(len(self.codewords_), dtype=np.int64)
            for block in song if isinstance(song, Iterator) else (song,):
                frames = _as_frames(block, f"the frames of song {index}", self.n_features_in_)
                _kernels.add_top_tau(frames, self.mean_, 1.0 / self.scale_, *work, self.tau, counts, _NO_RESULT)
            if not counts.any():
                raise ValueError(f"the frames of song {index} are empty: at least one frame is needed.")
            histograms.append((counts / counts.sum()).astype(np.float32))
        return np.array(histograms, dtype=np.float32).reshape(len(histograms), len(self.codewords_))

    def nearest(self, frames: npt.ArrayLike) -> Int64Array:
        """Return the `tau` nearest codewords of each raw frame, int64 (n_frames, tau); :meth:`transform` counts them.

        The nearest codeword comes first; ties go to the lower index.
        """
        check_is_fitted(self)
        self._check_parameters()
        frames = _as_frames(frames, "frames", self.n_features_in_)
        result = np.empty((len(frames), self.tau), dtype=np.int64)
        counts = np.zeros(len(self.codewords_), dtype=np.int64)
        work = self._work_space()
        _kernels.add_top_tau(frames, self.mean_, 1.0 / self.scale_, *work, self.tau, counts, result)
        return result

    def fit_transform(self, list_of_frames: Iterable[npt.ArrayLike], y: object = None) -> Float32Array:
        """Fit the codebook to the frames of all songs, and return the histogram of each song."""
        songs = list(list_of_frames)
        return self.fit(songs).transform(songs)

    def _check_parameters(self) -> None:
        if self.n_codewords < 1:
            raise ValueError(f"n_codewords={self.n_codewords} must be >= 1.")
        if not 1 <= self.tau <= self.n_codewords:
            raise ValueError(f"tau={self.tau} must be >= 1 and <= n_codewords={self.n_codewords}.")
        fitted = getattr(self, "codewords_", None)
        if fitted is not None and self.tau > len(fitted):
            raise ValueError(f"tau={self.tau} must be at most {len(fitted)}, the number of codewords in the last fit.")

    def _learn(self, frames: Float32Array) -> Self:
        order = self._order(len(frames))
        codewords, counts = self.codewords_.copy(), self.counts_.copy()
        _kernels.hartigan_pass(frames, order, self.mean_, 1.0 / self.scale_, *self._work_space(), codewords, counts)
        self.codewords_, self.counts_ = codewords, counts
        return self

    def _order(self, n_frames: int) -> Int64Array:
        """Draw the order of a batch; it depends on the counts, so that a stored codebook can be trained further."""
        seed = self.random_state
        if isinstance(seed, (int, np.integer)):
            rng = np.random.default_rng([int(seed), int(self.counts_.sum())])
        else:
            rng = np.random.default_rng(seed)
        return rng.permutation(n_frames)

    def _work_space(self) -> tuple[Float32Array, Float32Array, Float32Array]:
        """Return the codewords in the layout of the kernels, and work space for a tile and its products."""
        n_codewords, n_features = self.codewords_.shape
        n_blocks = -(-n_codewords // _kernels.BLOCK)
        depth = -(-(n_features + 1) // 4) * 4
        coordinates = self.codewords_.astype(np.float32)
        coordinates[self.counts_ == 0] = 0.0
        columns = np.zeros((n_blocks * _kernels.BLOCK, depth), dtype=np.float32)
        columns[:n_codewords, :n_features] = -2.0 * coordinates
        columns[:, n_features] = _kernels.FAR
        norms = np.einsum("ij,ij->i", coordinates, coordinates, dtype=np.float64)
        columns[:n_codewords, n_features] = np.where(self.counts_ == 0, _kernels.FAR, norms)
        packed, products, tile = _allocate_aligned(
            (n_blocks, depth, _kernels.BLOCK), (n_blocks, _kernels.TILE, _kernels.BLOCK), (_kernels.TILE, depth)
        )
        packed[:] = columns.reshape(n_blocks, _kernels.BLOCK, depth).transpose(0, 2, 1)
        tile[:] = 0.0
        return packed, tile, products


def _as_frames(frames: FramesLike, name: str, n_features: int | None = None) -> Float32Array:
    """Check frames and return one contiguous float32 array; a list of two-dimensional arrays is concatenated."""
    if isinstance(frames, (list, tuple)) and len(frames) and np.ndim(frames[0]) == 2:
        parts = [_as_frames(part, f"{name}[{i}]", n_features) for i, part in enumerate(frames)]
        widths = sorted({part.shape[1] for part in parts})
        if len(widths) > 1:
            raise ValueError(f"{name} have different numbers of features: {widths}.")
        return np.concatenate(parts)
    check_dense(name, frames)
    array = np.ascontiguousarray(frames, dtype=np.float32)
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(f"{name}: the shape is {array.shape}; it must be (n_frames, n_features).")
    if len(array) == 0:
        raise ValueError(f"{name}: empty; at least one frame is needed.")
    if n_features is not None and array.shape[1] != n_features:
        raise ValueError(f"{name}: {array.shape[1]} features; the codebook was fitted to {n_features}.")
    # the sum is a fast check; if it is not finite, it may only have overflowed, so every value is checked
    with np.errstate(over="ignore", invalid="ignore"):
        total = array.sum()
    if not np.isfinite(total) and not np.isfinite(array).all():
        raise ValueError(f"{name}: the values contain NaN or infinity.")
    return array


def _mean_and_scale(frames: Float32Array) -> tuple[Float64Array, Float64Array]:
    """Return the mean and standard deviation of each column; for a constant column, the deviation is set to 1."""
    origin = frames[0].astype(np.float64)  # subtracted, so that the sums of a constant column are exactly zero
    total, squares = np.zeros_like(origin), np.zeros_like(origin)
    for start in range(0, len(frames), _STATISTICS_BLOCK):
        difference = frames[start : start + _STATISTICS_BLOCK] - origin
        total += difference.sum(axis=0)
        squares += np.einsum("ij,ij->j", difference, difference)
    offset = total / len(frames)
    variance = np.maximum(squares / len(frames) - offset**2, 0.0)
    scale = np.sqrt(variance)
    return origin + offset, np.where(scale > 0.0, scale, 1.0)


def _allocate_aligned(*shapes: tuple[int, ...]) -> list[Float32Array]:
    """Return uninitialized arrays that start at page boundaries, so that vectors do not straddle cache lines."""
    sizes = [4 * int(np.prod(shape)) for shape in shapes]
    buffer = np.empty(sum(sizes) + (len(shapes) + 1) * _PAGE, dtype=np.uint8)
    start = -buffer.ctypes.data % _PAGE
    arrays = []
    for shape, size in zip(shapes, sizes, strict=True):
        arrays.append(buffer[start : start + size].view(np.float32).reshape(shape))
        start += -(-size // _PAGE) * _PAGE
    return arrays
