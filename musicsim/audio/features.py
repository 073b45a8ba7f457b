"""Delta-MFCC of samples: 13 MFCC with their first and second derivatives.

Conventions: mono samples, frames of 512 samples every 256, the signal padded with zeros so that frame
`i` is centred on sample 256 * i; 1 + n_samples // 256 frames. The reference is librosa
(``feature.mfcc(y=y, sr=sr, n_mfcc=13, n_fft=512, hop_length=256, n_mels=40)`` and ``feature.delta`` of
orders 1 and 2); this module computes the same numbers with fewer passes over the memory and block by
block, from whole signals and from streams alike. A change of any number here needs a new
`FEATURE_VERSION`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from musicsim._arrays import Float32Array, Float64Array, FloatingArray, Int64Array
from musicsim.errors import AudioTooShortError

FEATURE_VERSION = 3
MIN_FEATURE_VERSION = 2
"""The oldest that songs and models may have: its numbers are among those of this one."""
# What a song gains by being analysed again, by the version that brought it: shown to people after an update.
FEATURE_CHANGES = {
    2: "songs are known again by their sound when files move or change their tags, and previews start at the most "
    "typical 30 seconds",
    3: "songs are compared by their rhythm, too",
}
SAMPLE_RATE = 22050
FRAME = 512
HOP = 256

N_MELS = 40
N_MFCC = 13
DELTA_WIDTH = 9
_AMIN = np.float32(1e-10)
_TOP_DB = np.float32(80.0)
# The arrays of 256 frames (3 MB) stay in the processor's cache. All frames go through the same blocks,
# counted from the start, since matrix products of other shapes may round differently.
_BLOCK_FRAMES = 256
# So many frames at once are too little work for BLAS to wake threads, which cost more than they bring here.
_PRODUCT_FRAMES = 16
_EDGE = DELTA_WIDTH // 2
# Savitzky-Golay weights of a frame and its neighbours 1 to 4 frames away: the slope of the line and the
# curvature of the parabola through nine points.
_SLOPE = np.array([0, 1, 2, 3, 4]) / 60
_CURVATURE = np.array([-20, -17, -8, 7, 28]) / 462
_DERIVATIVE_BLOCK = 8192
# Frames: of more, what is worked out lies in memory that the system takes back each time.
_FILLED_AT_ONCE = 2048
# beyond this, float32 power overflows
_MAX_SAMPLE = 1e15


def mfcc(y: FloatingArray, sr: float = SAMPLE_RATE) -> Float32Array:
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
    y = checked_samples(y, sr)
    levels = np.empty((1 + len(y) // HOP, N_MELS), np.float32)
    stream, start = LevelStream(sr), 0
    for blocks in (stream.add(y), stream.finish()):
        for block in blocks:
            levels[start : start + len(block)] = block
            start += len(block)
    return cepstra(levels, stream.loudest)


def derivatives(mfcc: FloatingArray) -> Float32Array:
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
    _check_frames(mfcc)
    n_frames, n_columns = mfcc.shape
    result = np.empty((n_frames, 3 * n_columns), np.float32)
    for start in range(0, n_frames, _DERIVATIVE_BLOCK):
        _fill_derivatives(mfcc, start, result[start : start + _DERIVATIVE_BLOCK])
    return result


def derivative_blocks(mfcc: FloatingArray, block: int = _DERIVATIVE_BLOCK) -> Iterator[Float32Array]:
    """Yield the rows of :func:`derivatives` in order, `block` at a time.

    Parameters
    ----------
    mfcc : ndarray of shape (n_frames, n_coefficients), n_frames >= 9
        Any floating type; a memory-mapped array of any length is read as it is needed.
    block : int >= 1
        Frames a block; the last block has what is left.

    Yields
    ------
    ndarray of shape (<= block, 3 * n_coefficients), float32

    Raises
    ------
    AudioTooShortError
        If there are fewer than 9 frames.
    ValueError
        If `mfcc` is not 2-D, or `block` is less than 1.
    """
    _check_frames(mfcc)
    if block < 1:
        raise ValueError(f"block={block} must be at least 1 frame.")
    return _derivative_blocks(mfcc, block)


def _derivative_blocks(mfcc: FloatingArray, block: int) -> Iterator[Float32Array]:
    for start in range(0, len(mfcc), block):
        result = np.empty((min(block, len(mfcc) - start), 3 * mfcc.shape[1]), np.float32)
        _fill_derivatives(mfcc, start, result)
        yield result


def derivatives_at(mfcc: FloatingArray, rows: Int64Array) -> Float32Array:
    """Some rows of :func:`derivatives`, without working out the others.

    Parameters
    ----------
    mfcc : ndarray of shape (n_frames, n_coefficients), n_frames >= 9
    rows : ndarray of shape (n,), int64, 0 to n_frames - 1

    Returns
    -------
    ndarray of shape (n, 3 * n_coefficients), float32

    Raises
    ------
    AudioTooShortError
        If there are fewer than 9 frames.
    """
    _check_frames(mfcc)
    centres = np.clip(rows, _EDGE, len(mfcc) - _EDGE - 1)
    shifted = [np.asarray(mfcc[centres + k], np.float64) for k in range(-_EDGE, _EDGE + 1)]
    result = np.concatenate([mfcc[rows], *_slope_and_curvature(shifted)], axis=1)
    return np.asarray(result, np.float32)


def _fill_derivatives(mfcc: FloatingArray, start: int, result: Float32Array) -> None:
    """Write coefficients, slopes and curvatures of the frames from `start` on into `result`."""
    for at in range(0, len(result), _FILLED_AT_ONCE):
        _fill_rows(mfcc, start + at, result[at : at + _FILLED_AT_ONCE])


def _fill_rows(mfcc: FloatingArray, start: int, result: Float32Array) -> None:
    n_frames, n_columns = mfcc.shape
    stop = start + len(result)
    # Frames with four neighbours on each side. A line has one slope and a parabola one curvature, so the
    # frames beyond take over those of the outermost.
    first = min(max(start, _EDGE), n_frames - _EDGE - 1)
    last = max(min(stop, n_frames - _EDGE), first + 1)
    x = np.asarray(mfcc[first - _EDGE : last + _EDGE], np.float64)
    shifted = [x[k : k + last - first] for k in range(DELTA_WIDTH)]
    slope, curvature = _slope_and_curvature(shifted)
    result[:, :n_columns] = mfcc[start:stop]
    begin = max(first, start)
    end = max(min(last, stop), begin)
    before, inside, after = slice(begin - start), slice(begin - start, end - start), slice(end - start, None)
    for column, of_rows in ((n_columns, slope), (2 * n_columns, curvature)):
        columns = slice(column, column + n_columns)
        result[before, columns] = of_rows[0]
        result[inside, columns] = of_rows[begin - first : end - first]
        result[after, columns] = of_rows[-1]


def _slope_and_curvature(shifted: Sequence[Float64Array]) -> tuple[Float64Array, Float64Array]:
    """Of frames, from their nine neighbours each, one array a neighbour."""
    slope = np.zeros_like(shifted[0])
    curvature = _CURVATURE[0] * shifted[_EDGE]
    term = np.empty_like(slope)
    for k in range(1, _EDGE + 1):
        before, after = shifted[_EDGE - k], shifted[_EDGE + k]
        slope += np.multiply(np.subtract(after, before, out=term), _SLOPE[k], out=term)
        curvature += np.multiply(np.add(after, before, out=term), _CURVATURE[k], out=term)
    return slope, curvature


def _check_frames(mfcc: FloatingArray) -> None:
    if mfcc.ndim != 2:
        raise ValueError(f"mfcc must be 2-D (n_frames, n_coefficients), not of shape {mfcc.shape}.")
    if len(mfcc) < DELTA_WIDTH:
        raise AudioTooShortError(
            f"the sound has {len(mfcc)} frames; derivatives need at least {DELTA_WIDTH}. "
            "Leave it out or join it with its neighbour."
        )


def delta_mfcc(y: FloatingArray, sr: float = SAMPLE_RATE) -> Float32Array:
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
    y = checked_samples(y, sr)
    n_frames = 1 + len(y) // HOP
    if n_frames < DELTA_WIDTH:
        shortest = (DELTA_WIDTH - 1) * HOP
        raise AudioTooShortError(
            f"the sound is {len(y) / sr:.3f} s long ({n_frames} frames); derivatives need at least {DELTA_WIDTH} "
            f"frames ({shortest / sr:.3f} s). Leave it out or join it with its neighbour."
        )
    return derivatives(mfcc(y, sr))


def checked_samples(y: FloatingArray, sr: float) -> FloatingArray:
    """Return mono samples that can be described.

    Raises ValueError if `y` is empty, not 1-D, not floating or not finite, or `sr` is not positive.
    """
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


class LevelStream:
    """Turn samples that come block by block into the levels of 40 mel bands.

    `loudest` is the highest level so far, dB. Both methods yield arrays of shape (<= 256, 40), float32, dB, at least
    -100; each is valid until the next is asked for.
    """

    def __init__(self, sr: float) -> None:
        self.loudest = -np.inf
        self._mel = _mel_basis(float(sr))
        # Half a frame of zeros stands before the first sample. In float64, as librosa does: in float32 a
        # band 80 dB below its frame's loudest is off by 0.01 dB.
        self._samples = np.zeros((_BLOCK_FRAMES + 1) * HOP)
        self._n_samples = HOP
        self._frames = np.lib.stride_tricks.sliding_window_view(self._samples, FRAME)[::HOP]
        self._windowed = np.empty((_BLOCK_FRAMES, FRAME))
        self._spectrum = np.empty((_BLOCK_FRAMES, FRAME // 2 + 1), np.complex128)

    def add(self, samples: FloatingArray) -> Iterator[Float32Array]:
        """Take the next samples; yield the levels of the frames that they complete."""
        at = 0
        while at < len(samples):
            part = samples[at : at + len(self._samples) - self._n_samples]
            # rounded to float32 first, so that float64 samples give the same numbers
            self._samples[self._n_samples : self._n_samples + len(part)] = part.astype(np.float32, copy=False)
            self._n_samples += len(part)
            at += len(part)
            if self._n_samples == len(self._samples):
                yield self._levels(_BLOCK_FRAMES)
                self._samples[:HOP] = self._samples[-HOP:]
                self._n_samples = HOP

    def finish(self) -> Iterator[Float32Array]:
        """Yield the levels of the last frames, which reach beyond the last sample."""
        self._samples[self._n_samples :] = 0
        yield self._levels(self._n_samples // HOP)

    def _levels(self, n_frames: int) -> Float32Array:
        n_products = -(-n_frames // _PRODUCT_FRAMES)
        rows = n_products * _PRODUCT_FRAMES  # those beyond `n_frames` are silent
        windowed, spectrum = self._windowed[:rows], self._spectrum[:rows]
        np.multiply(self._frames[:rows], _hann(), out=windowed)
        np.fft.rfft(windowed, out=spectrum)
        bins = spectrum.astype(np.complex64)
        power = np.square(bins.real) + np.square(bins.imag)
        products = power.reshape(n_products, _PRODUCT_FRAMES, -1) @ self._mel
        levels = products.reshape(rows, N_MELS)[:n_frames]
        np.maximum(levels, _AMIN, out=levels)
        np.log10(levels, out=levels)
        levels *= np.float32(10.0)
        self.loudest = max(self.loudest, float(levels.max()))
        return levels


def cepstra(levels: Float32Array, loudest: float) -> Float32Array:
    """Turn levels, float32 (n_frames, 40) in dB, into coefficients, float32 (n_frames, 13).

    The first frame is the song's first, or one that many whole blocks of 256 frames behind it. Levels are raised in
    place, see :func:`raise_to_floor`; `loudest` is the song's highest, dB.
    """
    raise_to_floor(levels, loudest)
    result = np.empty((len(levels), N_MFCC), np.float32)
    for start in range(0, len(levels), _BLOCK_FRAMES):
        block = slice(start, start + _BLOCK_FRAMES)
        np.matmul(levels[block], dct_basis(), out=result[block])
    return result


def raise_to_floor(levels: Float32Array, loudest: float) -> None:
    """Raise levels, (n_frames, 40) in dB, in place to 80 dB below the song's highest."""
    np.maximum(levels, np.float32(loudest) - _TOP_DB, out=levels)


@lru_cache(maxsize=1)
def _hann() -> Float64Array:
    # periodic, as for spectra: the last point of the symmetric window is left out
    return 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FRAME) / FRAME)


def mel_corners(sr: float) -> Float64Array:
    """Return where the mel bands begin, peak and end, Hz: (42,); band i has corners i, i + 1 and i + 2."""
    return _mel_to_hz(np.linspace(0.0, _hz_to_mel(sr / 2), N_MELS + 2))


@lru_cache(maxsize=8)
def _mel_basis(sr: float) -> Float32Array:
    """Return Slaney's mel filters: (257, 40).

    Written out, since the import of librosa.filters takes two seconds and 110 MB in each process.
    """
    corners = mel_corners(sr)
    ramps = np.subtract.outer(corners, np.arange(FRAME // 2 + 1) * (sr / FRAME))
    widths = np.diff(corners)
    rising, falling = -ramps[:-2] / widths[:-1, None], ramps[2:] / widths[1:, None]
    triangles = np.maximum(0, np.minimum(rising, falling)).astype(np.float32)
    triangles *= (2.0 / (corners[2:] - corners[:-2]))[:, None]
    return np.ascontiguousarray(triangles.T)


# Slaney's scale: 3 mel in 200 Hz up to 1 kHz (15 mel), then 27 mel in a factor of 6.4.
_LINEAR_HZ, _LINEAR_MEL, _LOG_STEP = 1000.0, 15.0, np.log(6.4) / 27.0


def _hz_to_mel(hz: float) -> float:
    if hz < _LINEAR_HZ:
        return hz * 3 / 200
    return _LINEAR_MEL + float(np.log(hz / _LINEAR_HZ)) / _LOG_STEP


def _mel_to_hz(mel: Float64Array) -> Float64Array:
    return np.where(mel < _LINEAR_MEL, mel * 200 / 3, _LINEAR_HZ * np.exp(_LOG_STEP * (mel - _LINEAR_MEL)))


@lru_cache(maxsize=1)
def dct_basis() -> Float32Array:
    """Return the first columns of the orthonormal DCT-II: (40, 13)."""
    angles = np.outer(np.arange(N_MELS) + 0.5, np.arange(N_MFCC)) * (np.pi / N_MELS)
    basis = np.sqrt(2 / N_MELS) * np.cos(angles)
    basis[:, 0] = np.sqrt(1 / N_MELS)
    return basis.astype(np.float32)


class BlockBuffer:
    """Samples that come in parts of any size, until there is a block of them.

    A subclass takes the block in :meth:`_take_full`, and sets `_n_samples` to the samples that it leaves at the front.
    """

    _samples: Float32Array
    _n_samples = 0

    def add(self, samples: FloatingArray) -> None:
        """Take the next samples: (n,), floating."""
        at = 0
        while at < len(samples):
            part = samples[at : at + len(self._samples) - self._n_samples]
            self._samples[self._n_samples : self._n_samples + len(part)] = part
            self._n_samples += len(part)
            at += len(part)
            if self._n_samples == len(self._samples):
                self._take_full()

    def _take_full(self) -> None:
        raise NotImplementedError


def check_rate(sr: float) -> None:
    """Raise ValueError for fewer than 8000 samples per second."""
    if not (np.isfinite(sr) and sr >= 8000):
        raise ValueError(f"sr={sr} should be at least 8000 samples a second.")


def joined_histograms(*sums: Float64Array) -> Float32Array:
    """Join histograms, each of which sums to 1, into one row; of sums that are all 0 all entries are equal."""
    totals = [part.sum() for part in sums]
    parts = [
        part.ravel() / total if total > 0 else np.full(part.size, 1.0 / part.size)
        for part, total in zip(sums, totals, strict=True)
    ]
    return np.concatenate(parts).astype(np.float32)
