"""From samples to delta-MFCC: 13 MFCC with their first and second derivatives.

Conventions: mono samples, frames of 512 samples every 256, the signal padded with zeros so that frame
`i` is centred on sample 256 * i; 1 + n_samples // 256 frames. The reference is librosa
(``feature.mfcc(y=y, sr=sr, n_mfcc=13, n_fft=512, hop_length=256, n_mels=40)`` and ``feature.delta`` of
orders 1 and 2); this module computes the same numbers with fewer passes over the memory and the
spectrogram in blocks. A change of any number here needs a new `FEATURE_VERSION`.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from musicsim.errors import AudioTooShortError

__all__ = [
    "DELTA_WIDTH",
    "FEATURE_VERSION",
    "FRAME",
    "HOP",
    "SAMPLE_RATE",
    "delta_mfcc",
    "derivatives",
    "mfcc",
]

FEATURE_VERSION = 1
SAMPLE_RATE = 22050
FRAME = 512
HOP = 256

_N_MELS = 40
_N_MFCC = 13
DELTA_WIDTH = 9
_AMIN = np.float32(1e-10)
_TOP_DB = np.float32(80.0)
# 512 frames of windowed samples (1 MB) stay in the processor's cache
_BLOCK_FRAMES = 512
# beyond this, float32 power overflows
_MAX_SAMPLE = 1e15


def mfcc(y: npt.NDArray[np.floating], sr: float = SAMPLE_RATE) -> npt.NDArray[np.float32]:
    """Compute 13 Mel-frequency cepstral coefficients a frame.

    Parameters
    ----------
    y : ndarray of shape (n_samples,), floating, finite, full scale 1.0
    sr : float > 0
        Samples per second.

    Returns
    -------
    ndarray of shape (1 + n_samples // 256, 13), float32, dB (orthonormal DCT of 40 levels in dB)

    Raises
    ------
    ValueError
        If `y` is empty, not 1-D, not floating or not finite, or `sr` is not positive.

    Notes
    -----
    Levels below 1e-10 and more than 80 dB below the song's loudest band are raised to that limit, so
    silence gives constant rows, never NaN. Holds 160 bytes a frame besides the result.
    """
    y = _checked(y, sr)
    levels = _mel_levels(y, sr)
    np.maximum(levels, levels.max() - _TOP_DB, out=levels)
    return levels @ _dct_basis()


def derivatives(mfcc: npt.NDArray[np.floating]) -> npt.NDArray[np.float32]:
    """Append first and second derivatives to coefficients.

    Parameters
    ----------
    mfcc : ndarray of shape (n_frames, n_coefficients), n_frames >= 9

    Returns
    -------
    ndarray of shape (n_frames, 3 * n_coefficients), float32
        Coefficients, their slope a frame, their curvature a frame squared.

    Raises
    ------
    AudioTooShortError
        If there are fewer than 9 frames.

    Notes
    -----
    Savitzky-Golay filters of 9 frames; the first and last four frames lie on the polynomial of
    the first and last nine, as with ``librosa.feature.delta(mode="interp")``.
    """
    if mfcc.ndim != 2:
        raise ValueError(f"mfcc must be 2-D (n_frames, n_coefficients), not of shape {mfcc.shape}.")
    n_frames, n_columns = mfcc.shape
    if n_frames < DELTA_WIDTH:
        raise AudioTooShortError(
            f"the sound has {n_frames} frames; derivatives need at least {DELTA_WIDTH}. "
            "Leave it out or join it with its neighbour."
        )
    from scipy.signal import savgol_filter  # a second to import: not before it is needed

    result = np.empty((n_frames, 3 * n_columns), np.float32)
    result[:, :n_columns] = mfcc
    for order in (1, 2):
        block = slice(order * n_columns, (order + 1) * n_columns)
        result[:, block] = savgol_filter(
            mfcc, DELTA_WIDTH, polyorder=order, deriv=order, axis=0, mode="interp"
        )
    return result


def delta_mfcc(y: npt.NDArray[np.floating], sr: float = SAMPLE_RATE) -> npt.NDArray[np.float32]:
    """Compute MFCC, delta and delta-delta of mono samples.

    Parameters
    ----------
    y : ndarray of shape (n_samples,), floating, finite, n_samples >= 2048
    sr : float > 0
        Samples per second.

    Returns
    -------
    ndarray of shape (1 + n_samples // 256, 39), float32

    Raises
    ------
    AudioTooShortError
        If `y` gives fewer than 9 frames (93 ms at 22,050 Hz).
    ValueError
        If `y` is empty, not 1-D, not floating or not finite, or `sr` is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> delta_mfcc(np.zeros(22050, np.float32)).shape
    (87, 39)
    """
    y = _checked(y, sr)
    n_frames = 1 + len(y) // HOP
    if n_frames < DELTA_WIDTH:
        shortest = (DELTA_WIDTH - 1) * HOP
        raise AudioTooShortError(
            f"the sound is {len(y) / sr:.3f} s long ({n_frames} frames); derivatives need at least {DELTA_WIDTH} "
            f"frames ({shortest / sr:.3f} s). Leave it out or join it with its neighbour."
        )
    return derivatives(mfcc(y, sr))


def _checked(y: npt.NDArray[np.floating], sr: float) -> npt.NDArray[np.floating]:
    if not isinstance(y, np.ndarray) or not np.issubdtype(y.dtype, np.floating):
        kind = y.dtype if isinstance(y, np.ndarray) else type(y).__name__
        raise ValueError(f"y must be an array of floating-point samples, not {kind}.")
    if y.ndim != 1:
        raise ValueError(f"y must be 1-D (mono), not of shape {y.shape}: average its channels first.")
    if len(y) == 0:
        raise ValueError("y is empty: at least one sample is needed.")
    if not max(y.max(), -y.min()) < _MAX_SAMPLE:  # also true of NaN
        raise ValueError("y holds NaN, infinite or huge samples: set them to zero first.")
    if not (np.isfinite(sr) and sr > 0):
        raise ValueError(f"sr={sr} must be a positive number of samples a second.")
    return y


def _mel_levels(y: npt.NDArray[np.floating], sr: float) -> npt.NDArray[np.float32]:
    """Return the level of each band in each frame: (n_frames, 40), dB, at least -100."""
    from scipy.fft import rfft  # half a second to import: not before it is needed

    n_frames = 1 + len(y) // HOP
    window, mel = _hann(), _mel_basis(float(sr))
    levels = np.empty((n_frames, _N_MELS), np.float32)
    for start in range(0, n_frames, _BLOCK_FRAMES):
        stop = min(start + _BLOCK_FRAMES, n_frames)
        frames = np.lib.stride_tricks.sliding_window_view(_stretch(y, start, stop), FRAME)[::HOP]
        # in float64, as librosa does: in float32 a band 80 dB below its frame's loudest is off by 0.01 dB
        spectrum = rfft(frames * window, overwrite_x=True).astype(np.complex64)
        power = np.square(spectrum.real) + np.square(spectrum.imag)
        np.matmul(power, mel, out=levels[start:stop])
    np.maximum(levels, _AMIN, out=levels)
    np.log10(levels, out=levels)
    levels *= np.float32(10.0)
    return levels


def _stretch(y: npt.NDArray[np.floating], start: int, stop: int) -> npt.NDArray[np.float32]:
    """Return the samples under frames start..stop-1, with zeros before the first and after the last."""
    first, last = start * HOP - FRAME // 2, (stop - 1) * HOP + FRAME // 2
    samples = np.zeros(last - first, np.float32)
    kept = y[max(first, 0) : last]
    offset = max(-first, 0)
    samples[offset : offset + len(kept)] = kept
    return samples


@lru_cache(maxsize=1)
def _hann() -> npt.NDArray[np.float64]:
    # periodic, as for spectra: the last point of the symmetric window is left out
    return 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FRAME) / FRAME)


@lru_cache(maxsize=8)
def _mel_basis(sr: float) -> npt.NDArray[np.float32]:
    from librosa.filters import mel

    return np.ascontiguousarray(mel(sr=sr, n_fft=FRAME, n_mels=_N_MELS).T, dtype=np.float32)


@lru_cache(maxsize=1)
def _dct_basis() -> npt.NDArray[np.float32]:
    from scipy.fft import dct

    basis = dct(np.eye(_N_MELS), axis=1, norm="ortho")[:, :_N_MFCC]
    return np.ascontiguousarray(basis, dtype=np.float32)
