"""Spectral shape of a song: the mean and covariance of the shape of its spectrum, in blocks of 6 s.

1. The powers of two consecutive frames are averaged to one spectrum of 35 ms. It has the 40 mel bands of the frames,
   with levels of at least 80 dB below the song's loudest band.
2. The first 25 coefficients of the orthonormal DCT describe its levels in dB. The frames of timbre have only 13, so
   they do not contain the finer shape of a spectrum.
3. A block has one mean and one covariance over its spectra.

If any value changes, increase `musicsim.audio.FEATURE_VERSION`.
"""

import numpy as np

from musicsim._arrays import Float32Array, FloatingArray
from musicsim.audio.features import N_MELS, SAMPLE_RATE, dct_basis, mel_levels, raise_to_floor

N_SHAPE = 25
"""Number of coefficients of a spectrum."""
SHAPE_ROW = 1 + N_SHAPE + N_SHAPE * (N_SHAPE + 1) // 2
"""Length of a block's row: number of spectra, mean, and upper triangle of the covariance."""
SHAPE_FRAMES = 512
"""Number of frames per block, 5.9 s; the last block of a song may be shorter."""

_UPPER = np.triu_indices(N_SHAPE)


def spectral_shape(y: FloatingArray, sr: float = SAMPLE_RATE) -> Float32Array:
    """Compute the spectral shape of finite mono samples (n_samples,), float32 (n_blocks, 351).

    Each row has the number of spectra, their mean, (25,) in dB, and the upper triangle of their covariance, (325,) in
    dB^2, row by row. The divisor is the number of spectra less 1; the covariance of a single spectrum is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.audio import spectral_shape
    >>> spectral_shape(np.random.default_rng(0).normal(0, 0.1, 22050 * 5)).shape
    (1, 351)
    """
    levels, loudest = mel_levels(y, sr)
    raise_to_floor(levels, loudest)
    return shape_rows(levels)


def shape_rows(levels: Float32Array) -> Float32Array:
    """Return a row of :func:`spectral_shape` per block of levels, which are (n_frames, 40) in dB."""
    blocks = (levels[start : start + SHAPE_FRAMES] for start in range(0, len(levels), SHAPE_FRAMES))
    return np.array([_describe_block(block) for block in blocks])


def _describe_block(levels: Float32Array) -> Float32Array:
    if len(levels) > 1:
        levels = levels[: len(levels) // 2 * 2]
    loudest = levels.max()  # powers relative to it cannot overflow
    power = np.exp((levels - loudest) * np.float32(np.log(10) / 10))
    power = power.reshape(-1, min(len(levels), 2), N_MELS).mean(axis=1)
    spectra = np.log10(power) * np.float32(10) + loudest
    coefficients = (spectra @ dct_basis(N_SHAPE)).astype(np.float64)
    mean = coefficients.mean(axis=0)
    coefficients -= mean
    covariance = coefficients.T @ coefficients / max(len(coefficients) - 1, 1)
    return np.concatenate([[len(coefficients)], mean, covariance[_UPPER]]).astype(np.float32)
