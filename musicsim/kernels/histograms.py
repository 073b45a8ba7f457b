"""Probability product kernels of histograms: one for timbre, and two each for harmony and rhythm."""

from typing import Any

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float32Array, Float64Array
from musicsim._checks import check_dense
from musicsim.kernels._rows import check_same_width, cosines, root

KEYLESS_HARMONY_SIZE = 7 + 12 * 7
"""Number of columns of key-invariant harmony: the spectra of 12 pitch classes and of 12 intervals."""


def ppk_map(histograms: Any) -> Any:
    """Map histograms to the unit sphere, where the inner product is the probability product kernel.

    The map is the element-wise square root, equation 5.7 of the thesis.

    Parameters
    ----------
    histograms : array-like or SciPy sparse matrix of shape (n_songs, n_codewords)
        Not negative, rows sum to 1 within 0.001.

    Returns
    -------
    ndarray of shape (n_songs, n_codewords), float32, rows of length 1; a CSR array if the histograms are sparse

    Examples
    --------
    >>> from musicsim.kernels import ppk_map
    >>> ppk_map([[0.25, 0.75, 0.0]]).round(3)
    array([[0.5  , 0.866, 0.   ]], dtype=float32)
    """
    return root(histograms, "histograms").astype(np.float32, copy=False)


def ppk_kernel(A: Any, B: Any = None) -> Float64Array:
    """Return the probability product kernel between histograms: the sum over codewords of sqrt(a b).

    Parameters
    ----------
    A : array-like or SciPy sparse matrix of shape (n, n_codewords), histograms
    B : array-like or SciPy sparse matrix of shape (m, n_codewords), histograms; A when None

    Returns
    -------
    ndarray of shape (n, m), float64, from 0 to 1; 1 for equal histograms

    Examples
    --------
    >>> from musicsim.kernels import ppk_kernel
    >>> ppk_kernel([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.0, 1.0]]).round(2)  # songs 0 and 2 share no codeword
    array([[1.  , 0.5 , 0.  ],
           [0.5 , 1.  , 0.71],
           [0.  , 0.71, 1.  ]])
    """
    left = root(A, "A").astype(np.float64)
    right = left if B is None else root(B, "B").astype(np.float64)
    check_same_width(left, right)
    return cosines(left, right)


def ppk_similarity(distances: npt.ArrayLike) -> Float64Array:
    """Convert Euclidean distances between rows of :func:`ppk_map` or its PCA to kernel values 1 - d^2 / 2 in [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.kernels import ppk_kernel, ppk_map, ppk_similarity
    >>> songs = ppk_map([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5]])
    >>> ppk_similarity([np.linalg.norm(songs[0] - songs[1])]).round(2)
    array([0.5])
    >>> ppk_kernel([[0.5, 0.5, 0.0]], [[0.5, 0.0, 0.5]]).round(2)
    array([[0.5]])
    """
    return np.clip(1.0 - np.square(distances, dtype=np.float64) / 2.0, 0.0, 1.0)


def harmony_map(harmony: npt.ArrayLike, *, key_invariant: bool = False) -> Float32Array:
    """Map harmony to the unit sphere, where the inner product is :func:`harmony_kernel`.

    Parameters
    ----------
    harmony : array-like of shape (n_songs, 156)
        Rows from :func:`musicsim.audio.harmony`: two histograms, of 12 pitch classes and of 12 x 12 pairs of them.
    key_invariant : bool; if True, the key of a song has no effect

    Returns
    -------
    ndarray of shape (n_songs, 156), or (n_songs, 91) if key-invariant, float32, rows of length 1

    Notes
    -----
    Both histograms are mapped by :func:`ppk_map` and have equal weights. A different key rotates the 12 classes, and
    the pairs along their diagonals. The largest kernel over the 12 rotations would not be positive semidefinite. If
    each song were rotated to its estimated key, an error in the estimate would change all columns. So key-invariant
    columns are the magnitudes of the discrete Fourier transform along the rotation, which rotations do not change.
    Their inner product is equal to the largest kernel over rotations, or slightly above it.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.kernels import harmony_map
    >>> classes = np.zeros((2, 12))
    >>> classes[0, [0, 4, 7]] = classes[1, [2, 6, 9]] = 1 / 3  # chords: C major and D major
    >>> pairs = np.full((2, 144), 1 / 144)
    >>> songs = harmony_map(np.hstack([classes, pairs]), key_invariant=True)
    >>> songs.shape, bool(np.allclose(songs[0], songs[1], atol=1e-6))  # the key does not matter
    ((2, 91), True)
    """
    classes, pairs = _two_roots(harmony, 12, 144, "harmony")
    if key_invariant:
        # with these weights, spectra have the same inner products as the rows they come from
        weights = np.sqrt(np.array([1, 2, 2, 2, 2, 2, 1]) / 12.0)
        first, interval = np.ogrid[:12, :12]
        along = pairs.reshape(-1, 12, 12)[:, first, (first + interval) % 12]
        classes = np.abs(np.fft.rfft(classes, axis=1)) * weights
        pairs = (np.abs(np.fft.rfft(along, axis=1)) * weights[:, np.newaxis]).reshape(-1, 84)
    return np.concatenate([classes, pairs], axis=1).astype(np.float32)


def harmony_kernel(A: npt.ArrayLike, B: npt.ArrayLike | None = None, *, key_invariant: bool = False) -> Float64Array:
    """Return the mean of the probability product kernels of pitch classes and of pairs of pitch classes.

    `A` (n, 156) and `B` (m, 156) are from :func:`musicsim.audio.harmony`; without B, A is compared with itself. The
    result is float64 (n, m), from 0 to 1. See :func:`harmony_map` for `key_invariant`.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.kernels import harmony_kernel
    >>> classes = np.zeros((2, 12))
    >>> classes[0, [0, 4, 7]] = classes[1, [2, 6, 9]] = 1 / 3  # chords: C major and D major
    >>> songs = np.hstack([classes, np.full((2, 144), 1 / 144)])
    >>> harmony_kernel(songs).round(2)
    array([[1. , 0.5],
           [0.5, 1. ]])
    >>> harmony_kernel(songs, key_invariant=True).round(2)
    array([[1., 1.],
           [1., 1.]])
    """
    left = harmony_map(A, key_invariant=key_invariant).astype(np.float64)
    right = left if B is None else harmony_map(B, key_invariant=key_invariant).astype(np.float64)
    return cosines(left, right)


def rhythm_map(rhythm: npt.ArrayLike) -> Float32Array:
    """Map rows of :func:`musicsim.audio.rhythm`, (n_songs, 240), to the unit sphere.

    The histograms of tempos and pulses get equal weights. The inner product of the result is :func:`rhythm_kernel`.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.audio import rhythm
    >>> from musicsim.kernels import rhythm_map
    >>> clicks = np.zeros(22050 * 12, np.float32)
    >>> clicks[::11025] = 1.0  # 120 beats per minute
    >>> rhythm_map(rhythm(clicks)[None]).shape
    (1, 240)
    """
    return np.concatenate(_two_roots(rhythm, 48, 192, "rhythm"), axis=1).astype(np.float32)


def rhythm_kernel(A: npt.ArrayLike, B: npt.ArrayLike | None = None) -> Float64Array:
    """Return the mean of the kernels of tempos and of pulses, given rows of :func:`musicsim.audio.rhythm`.

    A is (n, 240) and B is (m, 240); without B, A is compared with itself. The result is float64 (n, m), from 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.audio import rhythm
    >>> from musicsim.kernels import rhythm_kernel
    >>> def clicks(per_minute):
    ...     y = np.zeros(22050 * 12, np.float32)
    ...     y[:: 22050 * 60 // per_minute] = 1.0
    ...     return rhythm(y)
    ...
    >>> K = rhythm_kernel([clicks(120), clicks(122), clicks(90)])
    >>> bool(K[0, 1] > K[0, 2])  # 122 beats per minute are nearer to 120 than 90 are
    True
    """
    left = rhythm_map(A).astype(np.float64)
    return cosines(left, left if B is None else rhythm_map(B).astype(np.float64))


def _two_roots(rows: npt.ArrayLike, first: int, second: int, name: str) -> tuple[Float64Array, Float64Array]:
    """Return the square roots of two histograms per row, each scaled to length sqrt(1/2)."""
    check_dense(name, rows)
    array = np.asarray(rows, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != first + second:
        raise ValueError(f"{name} has shape {array.shape}; it must be (n_songs, {first + second}).")
    parts = array[:, :first], array[:, first:]
    left, right = (np.asarray(root(part, name) * np.sqrt(0.5), dtype=np.float64) for part in parts)
    return left, right
