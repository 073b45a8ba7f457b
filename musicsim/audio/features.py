"""Delta-MFCC: 13 MFCCs with their first and second derivatives.

A frame of 512 samples starts every 256 samples. The sound is zero-padded so that frame `i` is centered on sample
256 * i; there are 1 + n_samples // 256 frames. The values are equal to librosa's (``feature.mfcc(y=y, sr=sr, n_mfcc=13,
n_fft=512, hop_length=256, n_mels=40)`` and ``feature.delta``), but are computed block by block. If any value changes,
increase `FEATURE_VERSION`.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from musicsim._arrays import Float32Array, Float64Array, FloatingArray, Int64Array
from musicsim.errors import AudioTooShortError

FEATURE_VERSION = 4
MIN_FEATURE_VERSION = 2
"""Oldest supported version of songs and models. Its features are a subset of the current version's features."""
# Benefit of analyzing songs again for each version; shown after an update.
FEATURE_CHANGES = {
    2: "songs are recognized by their sound when files move or change their tags, and previews start at the most "
    "typical 30 seconds",
    3: "songs are also compared by their rhythm",
    4: "songs are also compared by the shape of their spectrum",
}
SAMPLE_RATE = 22050
FRAME = 512
HOP = 256

N_MELS = 40
N_MFCC = 13
DELTA_WIDTH = 9
_AMIN = np.float32(1e-10)
_TOP_DB = np.float32(80.0)
# The arrays for 256 frames (3 MB) fit in the processor's cache. Blocks are always counted from the first frame,
# because matrix products of different shapes may round differently.
_BLOCK_FRAMES = 256
# Larger products wake BLAS threads, which would cost more time than they save.
_PRODUCT_FRAMES = 16
_EDGE = DELTA_WIDTH // 2
# Savitzky-Golay weights of a frame and its neighbors 1 to 4 frames away: the slope of the line and the
# curvature of the parabola through nine points.
_SLOPE = np.array([0, 1, 2, 3, 4]) / 60
_CURVATURE = np.array([-20, -17, -8, 7, 28]) / 462
_DERIVATIVE_BLOCK = 8192
# Frames per step. Larger temporary arrays would be returned to the system after each step, which costs time.
_FRAMES_PER_STEP = 2048
# The float32 power of larger samples overflows.
_MAX_SAMPLE = 1e15


def mfcc(y: FloatingArray, sr: float = SAMPLE_RATE) -> Float32Array:
    """Compute 13 mel-frequency cepstral coefficients per frame.

    Parameters
    ----------
    y : ndarray of shape (n_samples,), floating, finite, full scale 1.0
    sr : float > 0; samples per second

    Returns
    -------
    ndarray of shape (1 + n_samples // 256, 13), float32, dB; the orthonormal DCT of 40 levels in dB

    Notes
    -----
    Levels below -100 dB, or more than 80 dB below the song's loudest band, are raised to these limits. So silence gives
    constant rows, never NaN. In addition to the result, this needs 160 bytes per frame.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.audio import mfcc
    >>> low, high = (np.sin(2 * np.pi * f * np.arange(22050) / 22050) for f in (110, 3520))
    >>> mfcc(low).shape  # frames of 93 ms, 12 ms apart
    (87, 13)
    >>> bool(mfcc(low)[40, 1] > mfcc(high)[40, 1])  # the second coefficient falls with the brightness
    True
    """
    return cepstra(*mel_levels(y, sr))


def mel_levels(y: FloatingArray, sr: float) -> tuple[Float32Array, float]:
    """Return the levels of all frames of samples, (1 + n_samples // 256, 40) in dB, and the highest level."""
    check_samples(y, sr)
    levels = np.empty((1 + len(y) // HOP, N_MELS), np.float32)
    stream, start = LevelStream(sr), 0
    for blocks in (stream.add(y), stream.finish()):
        for block in blocks:
            levels[start : start + len(block)] = block
            start += len(block)
    return levels, stream.loudest


def derivatives(mfcc: FloatingArray) -> Float32Array:
    """Append first and second derivatives to coefficients, (n_frames, n_coefficients).

    The result is float32, (n_frames, 3 * n_coefficients): coefficients, slopes per frame, and curvatures per frame
    squared. Raises AudioTooShortError if there are fewer than 9 frames.

    Derivatives come from Savitzky-Golay filters of 9 frames. For the first and last four frames, they come from the
    polynomials through the first and last nine frames, as with ``librosa.feature.delta(mode="interp")``.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.audio import derivatives
    >>> ramp = np.arange(20.0)[:, None] * 3
    >>> derivatives(ramp)[10].round(3)  # value, slope, curvature
    array([30.,  3.,  0.], dtype=float32)
    """
    return next(derivative_blocks(mfcc, mfcc.size))  # one block with all rows


def derivative_blocks(mfcc: FloatingArray, block: int = _DERIVATIVE_BLOCK) -> Iterator[Float32Array]:
    """Iterate over the rows of :func:`derivatives` in blocks of `block` frames, without holding all rows in memory.

    `mfcc` may have any floating type and may be a memory map. The last block may be shorter. Raises AudioTooShortError
    if there are fewer than 9 frames.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.audio import derivative_blocks
    >>> frames = np.random.default_rng(0).normal(size=(1000, 13))
    >>> [len(block) for block in derivative_blocks(frames, 400)]
    [400, 400, 200]
    """
    _check_frames(mfcc)
    if block < 1:
        raise ValueError(f"block={block} must be at least 1 frame.")

    def compute_block(start: int) -> Float32Array:
        result = np.empty((min(block, len(mfcc) - start), 3 * mfcc.shape[1]), np.float32)
        for at in range(0, len(result), _FRAMES_PER_STEP):
            _fill_derivatives(mfcc, start + at, result[at : at + _FRAMES_PER_STEP])
        return result

    return map(compute_block, range(0, len(mfcc), block))


def derivatives_at(mfcc: FloatingArray, rows: Int64Array) -> Float32Array:
    """Compute only the given `rows` (n,) of :func:`derivatives`; fewer than 9 frames cause an AudioTooShortError.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.audio import derivatives, derivatives_at
    >>> frames = np.random.default_rng(0).normal(size=(100, 13))
    >>> some = derivatives_at(frames, np.array([0, 50, 99]))
    >>> bool(np.allclose(some, derivatives(frames)[[0, 50, 99]], atol=1e-5))
    True
    """
    _check_frames(mfcc)
    centers = np.clip(rows, _EDGE, len(mfcc) - _EDGE - 1)
    shifted = [np.asarray(mfcc[centers + k], np.float64) for k in range(-_EDGE, _EDGE + 1)]
    result = np.concatenate([mfcc[rows], *_slope_and_curvature(shifted)], axis=1)
    return np.asarray(result, np.float32)


def _fill_derivatives(mfcc: FloatingArray, start: int, result: Float32Array) -> None:
    """Write the coefficients, slopes and curvatures of the frames that begin at `start` into `result`."""
    n_frames, n_columns = mfcc.shape
    stop = start + len(result)
    # Frames from `first` to `last` have four neighbors on each side. A line has one slope and a parabola has one
    # curvature, so frames outside this range get the derivatives of the outermost frame inside it.
    first = min(max(start, _EDGE), n_frames - _EDGE - 1)
    last = max(min(stop, n_frames - _EDGE), first + 1)
    x = np.asarray(mfcc[first - _EDGE : last + _EDGE], np.float64)
    slope, curvature = _slope_and_curvature([x[k : k + last - first] for k in range(DELTA_WIDTH)])
    result[:, :n_columns] = mfcc[start:stop]
    begin = max(first, start)
    end = max(min(last, stop), begin)
    for column, values in ((n_columns, slope), (2 * n_columns, curvature)):
        columns = slice(column, column + n_columns)
        result[: begin - start, columns] = values[0]
        result[begin - start : end - start, columns] = values[begin - first : end - first]
        result[end - start :, columns] = values[-1]


def _slope_and_curvature(shifted: Sequence[Float64Array]) -> tuple[Float64Array, Float64Array]:
    """Return the derivatives of frames, given nine arrays: the frames, shifted by -4 to 4."""
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
        raise ValueError(f"mfcc must have shape (n_frames, n_coefficients), not {mfcc.shape}.")
    if len(mfcc) < DELTA_WIDTH:
        raise AudioTooShortError(
            f"the sound has {len(mfcc)} frames; derivatives need at least {DELTA_WIDTH}. "
            "Skip this sound, or merge it with an adjacent one."
        )


def delta_mfcc(y: FloatingArray, sr: float = SAMPLE_RATE) -> Float32Array:
    """Compute MFCCs, delta and delta-delta of mono samples.

    Parameters
    ----------
    y : ndarray of shape (n_samples,), floating, finite, n_samples >= 2048
    sr : float > 0; samples per second

    Returns
    -------
    ndarray of shape (1 + n_samples // 256, 39), float32

    Raises
    ------
    AudioTooShortError
        If `y` gives fewer than 9 frames (93 ms at 22,050 Hz).

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.audio import delta_mfcc
    >>> frames = delta_mfcc(np.sin(np.arange(22050) ** 2 / 10000))
    >>> frames.shape
    (87, 39)
    """
    check_samples(y, sr)
    n_frames = 1 + len(y) // HOP
    if n_frames < DELTA_WIDTH:
        raise AudioTooShortError(
            f"the sound is {len(y) / sr:.3f} s long ({n_frames} frames); derivatives need at least {DELTA_WIDTH} "
            f"frames ({(DELTA_WIDTH - 1) * HOP / sr:.3f} s). Skip this sound, or merge it with an adjacent one."
        )
    return derivatives(mfcc(y, sr))


def check_samples(y: FloatingArray, sr: float) -> None:
    """Check that `y` is a 1-D, non-empty, finite floating array and `sr` is positive."""
    if not isinstance(y, np.ndarray) or not np.issubdtype(y.dtype, np.floating):
        kind = y.dtype if isinstance(y, np.ndarray) else type(y).__name__
        raise ValueError(f"y must be an array of floating-point samples, not {kind}.")
    if y.ndim != 1:
        raise ValueError(f"y must be 1-D (mono), but has shape {y.shape}: average its channels first.")
    if len(y) == 0:
        raise ValueError("y is empty: at least one sample is needed.")
    if not max(y.max(), -y.min()) < _MAX_SAMPLE:  # also true for NaN
        raise ValueError("y contains NaN, infinite or huge samples: set them to zero first.")
    if not (np.isfinite(sr) and sr > 0):
        raise ValueError(f"sr={sr} must be a positive number of samples per second.")


def check_rate(sr: float) -> None:
    """Check that there are at least 8000 samples per second."""
    if not (np.isfinite(sr) and sr >= 8000):
        raise ValueError(f"sr={sr} must be at least 8000 samples per second.")


class BlockBuffer:
    """A buffer that collects rows from parts of any size until it is full.

    `rows` is the array to fill; its first `n_filled` rows are already filled.
    """

    def __init__(self, rows: FloatingArray, n_filled: int = 0) -> None:
        self.rows, self.n_filled = rows, n_filled

    def fill(self, rows: FloatingArray) -> Iterator[None]:
        """Append rows, rounded to float32; yield each time the buffer is full. The caller must then call `keep`."""
        start = 0
        while start < len(rows):
            part = rows[start : start + len(self.rows) - self.n_filled]
            self.rows[self.n_filled : self.n_filled + len(part)] = part.astype(np.float32, copy=False)
            self.n_filled += len(part)
            start += len(part)
            if self.n_filled == len(self.rows):
                yield

    def keep(self, n_rows: int) -> None:
        """Move the last `n_rows` rows of the full buffer to its start and drop the others."""
        self.rows[:n_rows] = self.rows[len(self.rows) - n_rows :]
        self.n_filled = n_rows


class LevelStream:
    """Compute the levels of 40 mel bands from samples that arrive in blocks.

    `loudest` is the highest level so far in dB. Both methods yield float32 arrays of shape (<= 256, 40) in dB, with
    values of at least -100. Each array is valid only until the next one is requested.
    """

    def __init__(self, sr: float) -> None:
        self.loudest = -np.inf
        self._mel = mel_basis(float(sr))
        # Half a frame of zeros comes before the first sample. The buffer is float64, as in librosa. In float32, a band
        # 80 dB below the loudest band of its frame would be off by 0.01 dB.
        self._buffer = BlockBuffer(np.zeros((_BLOCK_FRAMES + 1) * HOP), HOP)
        self._frames = np.lib.stride_tricks.sliding_window_view(self._buffer.rows, FRAME)[::HOP]
        self._windowed = np.empty((_BLOCK_FRAMES, FRAME))
        self._spectrum = np.empty((_BLOCK_FRAMES, FRAME // 2 + 1), np.complex128)

    def add(self, samples: FloatingArray) -> Iterator[Float32Array]:
        """Add samples; yield the levels of all frames that are now complete."""
        for _ in self._buffer.fill(samples):
            yield self._compute_levels(_BLOCK_FRAMES)
            self._buffer.keep(HOP)

    def finish(self) -> Iterator[Float32Array]:
        """Yield the levels of the last frames, which extend beyond the last sample."""
        self._buffer.rows[self._buffer.n_filled :] = 0
        yield self._compute_levels(self._buffer.n_filled // HOP)

    def _compute_levels(self, n_frames: int) -> Float32Array:
        n_products = -(-n_frames // _PRODUCT_FRAMES)
        rows = n_products * _PRODUCT_FRAMES  # rows beyond `n_frames` are silent
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

    The position of the first frame in the song must be a multiple of 256. :func:`raise_to_floor` changes `levels` in
    place; `loudest` is the highest level of the song in dB.
    """
    raise_to_floor(levels, loudest)
    result = np.empty((len(levels), N_MFCC), np.float32)
    for start in range(0, len(levels), _BLOCK_FRAMES):
        block = slice(start, start + _BLOCK_FRAMES)
        np.matmul(levels[block], dct_basis(), out=result[block])
    return result


def raise_to_floor(levels: Float32Array, loudest: float) -> None:
    """Raise all levels, (n_frames, 40) in dB, in place to at least 80 dB below the song's highest level."""
    np.maximum(levels, np.float32(loudest) - _TOP_DB, out=levels)


@lru_cache(maxsize=1)
def _hann() -> Float64Array:
    # This is the periodic window, which is usual for spectra: the symmetric window without its last point.
    return 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FRAME) / FRAME)


def mel_corners(sr: float) -> Float64Array:
    """Return the corners of the mel bands in Hz, (42,); band i begins, peaks and ends at corners i, i + 1 and i + 2."""
    mel = np.linspace(0.0, _hz_to_mel(sr / 2), N_MELS + 2)
    return np.where(mel < _LINEAR_MEL, mel * 200 / 3, _LINEAR_HZ * np.exp(_LOG_STEP * (mel - _LINEAR_MEL)))


@lru_cache(maxsize=8)
def mel_basis(sr: float) -> Float32Array:
    """Return Slaney's mel filters, (257, 40). Importing librosa.filters would take 2 s and 110 MB per process."""
    corners = mel_corners(sr)
    ramps = np.subtract.outer(corners, np.arange(FRAME // 2 + 1) * (sr / FRAME))
    widths = np.diff(corners)
    rising, falling = -ramps[:-2] / widths[:-1, None], ramps[2:] / widths[1:, None]
    triangles = np.maximum(0, np.minimum(rising, falling)).astype(np.float32)
    triangles *= (2.0 / (corners[2:] - corners[:-2]))[:, None]
    return np.ascontiguousarray(triangles.T)


# Slaney's scale: 3 mel per 200 Hz up to 1 kHz (15 mel), then 27 mel per factor of 6.4.
_LINEAR_HZ, _LINEAR_MEL, _LOG_STEP = 1000.0, 15.0, np.log(6.4) / 27.0


def _hz_to_mel(hz: float) -> float:
    if hz < _LINEAR_HZ:
        return hz * 3 / 200
    return _LINEAR_MEL + float(np.log(hz / _LINEAR_HZ)) / _LOG_STEP


@lru_cache(maxsize=2)
def dct_basis(n_columns: int = N_MFCC) -> Float32Array:
    """Return the first columns of the orthonormal DCT-II, (40, n_columns)."""
    angles = np.outer(np.arange(N_MELS) + 0.5, np.arange(n_columns)) * (np.pi / N_MELS)
    basis = np.sqrt(2 / N_MELS) * np.cos(angles)
    basis[:, 0] = np.sqrt(1 / N_MELS)
    return basis.astype(np.float32)


def join_histograms(*sums: Float64Array) -> Float32Array:
    """Scale each histogram to sum to 1, and join them into one row; a histogram of zeros becomes uniform."""
    totals = [part.sum() for part in sums]
    parts = [
        part.ravel() / total if total > 0 else np.full(part.size, 1.0 / part.size)
        for part, total in zip(sums, totals, strict=True)
    ]
    return np.concatenate(parts).astype(np.float32)
