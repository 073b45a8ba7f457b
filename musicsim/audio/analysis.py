"""Analyze the sound of one file; memory use hardly grows with its length.

Times are in seconds of decoded sound. Coefficients are rounded to float16, and later steps use the rounded values. The
sound is decoded once. Levels are kept in a temporary file until the song's highest level is known (160 bytes per frame,
50 MB per hour; on disk beyond 4 MB). If coefficients are written, the temporary file is in the same folder, because
the system's temporary folder may be in memory.
"""

import hashlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import numpy as np

from musicsim._arrays import Float16Array, Float32Array, Float64Array, FloatingArray
from musicsim._npy import write_array
from musicsim.audio._mono import MonoSound, read_mono
from musicsim.audio.features import HOP, N_MELS, N_MFCC, SAMPLE_RATE, BlockBuffer, LevelStream, cepstra
from musicsim.audio.fluctuation import FluctuationStream
from musicsim.audio.harmony import HarmonyStream
from musicsim.audio.networks import AudioNetwork
from musicsim.audio.reader import AudioSource, open_source
from musicsim.audio.rhythm import RhythmStream
from musicsim.audio.spectral_shape import SHAPE_ROW, shape_rows

TYPICAL_S = 30
# a multiple of the blocks in which levels and spectral shape are computed
_BLOCK_FRAMES = 2048
IN_MEMORY = 4 << 20
# Samples per batch. With smaller batches, decoding and computing spectra would evict each other's data from the
# processor's cache, which costs 5% of the time.
_BATCH = 1 << 20
_MAX_STEPS = 1 << 13  # steps in an outline
_N_PEAKS = 400
_DOT = 8192  # samples per inner product; longer products wake BLAS threads
# dB; float16 stores coefficients above 256 in steps of 0.25, so smaller deviations are rounding errors
_MIN_DEVIATION = 0.25
# Windows that differ by less than this are treated as equal.
_MIN_SPREAD = 0.01


class Outline:
    """Peak levels in 400 equal intervals of a sound that arrives in blocks; its length is unknown until the end.

    The peak of each step is stored. A step is one sample at first; whenever there are more than 8,192 steps, neighbors
    are merged and steps become twice as long. So the outline does not depend on the blocks and always takes 32 kB. In
    sounds of more than 8,192 samples, intervals begin too early by up to 1/4,096 of the sound's length.
    """

    def __init__(self) -> None:
        self._step = 1
        self._levels = np.zeros(_MAX_STEPS, np.float32)
        self._n_samples = 0

    @property
    def loudest(self) -> float:
        """Highest level so far."""
        return float(self._levels.max())

    def add(self, samples: FloatingArray) -> None:
        """Add floating-point samples, (n,)."""
        if len(samples) == 0:
            return
        while self._n_samples + len(samples) > _MAX_STEPS * self._step:
            self._levels[: _MAX_STEPS // 2] = np.maximum(self._levels[::2], self._levels[1::2])
            self._levels[_MAX_STEPS // 2 :] = 0
            self._step *= 2
        first, offset = divmod(self._n_samples, self._step)
        starts = np.arange(-offset, len(samples), self._step)
        starts[0] = 0
        levels = np.maximum.reduceat(np.abs(samples), starts)
        target = self._levels[first : first + len(levels)]
        np.maximum(target, levels, out=target, casting="same_kind")
        self._n_samples += len(samples)

    def finish(self) -> Float32Array:
        """Return the peaks, float32 (400,), relative to the highest one; for silence, all are 0."""
        n_steps = -(-self._n_samples // self._step)
        starts = np.arange(_N_PEAKS) * n_steps // _N_PEAKS
        levels: Float32Array = np.maximum.reduceat(self._levels[:n_steps], starts)
        return levels / self._levels.max() if self.loudest else levels


@dataclass(frozen=True, slots=True)
class Sound:
    """Description of the sound of one source.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> import soundfile
    >>> from musicsim.audio import analyze_sound
    >>> file = io.BytesIO()
    >>> soundfile.write(file, 0.5 * np.sin(2 * np.pi * 440 * np.arange(44100) / 22050), 22050, format="FLAC")
    >>> first, cut = analyze_sound(file.getvalue()), analyze_sound(file.getvalue(), duration=1.0)
    >>> first.is_cut, cut.is_cut
    (False, True)
    >>> first.sound_hash == cut.sound_hash, first.notes
    (False, ())
    """

    duration_s: float  # length of the decoded sound
    expected_s: float | None  # length that the container states, or None
    notes: tuple[str, ...]  # warnings: skipped damage, canceling channels, NaN samples
    n_frames: int  # 1 + n_samples // 256
    outline: Float32Array  # (400,), float32, 0 to 1: peaks of equal intervals
    loudest: float  # highest sample of the mix, full scale 1.0; 0 for digital silence
    rms: float  # root mean square of the mix, full scale 1.0
    typical_s: float  # start of the most typical 30 seconds, in whole seconds; 0 in shorter songs
    # BLAKE2b hash of the coefficients, 32 hexadecimal digits: equal for files with the same sound but different tags
    # or a different lossless container
    sound_hash: str
    mfcc: Float16Array | None  # (n_frames, 13), float16; None if written to a file
    fluctuation: Float16Array  # (n_patterns, 594), float16: see musicsim.audio.fluctuation()
    spectral_shape: Float32Array  # (n_blocks, 351), float32: see musicsim.audio.spectral_shape()
    is_cut: bool  # whether the sound continues beyond the requested duration
    harmony: Float32Array | None = None  # (156,), float32: see musicsim.audio.harmony(); None without aspects
    rhythm: Float32Array | None = None  # (240,), float32: see musicsim.audio.rhythm(); None without aspects
    network_vectors: Mapping[str, Float32Array] = field(default_factory=dict)  # keyed by network


def analyze_sound(
    source: AudioSource,
    *,
    sr: int = SAMPLE_RATE,
    duration: float | None = None,
    name: str | None = None,
    frames_to: Path | None = None,
    aspects: bool = False,
    networks: Sequence[AudioNetwork] = (),
) -> Sound:
    """Decode a source once and describe its sound.

    Parameters
    ----------
    source : path, bytes-like or binary file object
        As for :func:`musicsim.audio.decode`; only a path keeps the file itself out of memory.
    sr : int >= 8000; samples per second at which the sound is analyzed
    duration : float, seconds
        Length to read from the start, as for :func:`musicsim.audio.decode`; None reads everything.
    name : str, optional; name of the source in messages; default is its path or its `name`
    frames_to : Path, optional
        File for coefficients, fluctuation and spectral shape, as :func:`musicsim.audio.read_song_frames` reads it; then
        the coefficients are not returned. An existing file is overwritten, and removed if writing fails.
    aspects : bool; whether to compute harmony and rhythm, too
    networks : sequence of AudioNetwork
        Networks that describe the same samples; one that fails has no vector in the result.

    Returns
    -------
    Sound

    Raises
    ------
    AudioDecodeError
        If the file is missing, a folder, empty or without sound.
    OSError
        If the temporary file or `frames_to` cannot be written.

    Notes
    -----
    The coefficients equal ``mfcc(decode(source, sr=sr).samples, sr)`` rounded to float16, bit for bit. A sound of 10
    hours takes 125 MB of memory including imports (200 MB if the coefficients are returned), and 500 MB of disk space
    while it is read.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> import soundfile
    >>> from musicsim.audio import analyze_sound
    >>> file = io.BytesIO()
    >>> soundfile.write(file, 0.5 * np.sin(2 * np.pi * 440 * np.arange(44100) / 22050), 22050, format="FLAC")
    >>> sound = analyze_sound(file.getvalue(), aspects=True)
    >>> sound.duration_s, sound.mfcc.shape, sound.harmony.shape
    (2.0, (173, 13), (156,))
    >>> round(sound.loudest, 1)
    0.5
    """
    data, label = open_source(source, name)
    folder = None if frames_to is None else str(frames_to.parent)
    with tempfile.SpooledTemporaryFile(IN_MEMORY, dir=folder) as spool:

        def new_sink() -> _Levels:
            spool.seek(0)
            spool.truncate()
            return _Levels(sr, spool, aspects, networks)

        sound = read_mono(data, label, sr, new_sink, duration=duration)
        sound.sink.finish()
        shape = (sound.sink.n_frames, N_MFCC)
        if frames_to is None:
            return _describe(sound, np.empty(shape, np.float16), None)
        try:
            with frames_to.open("wb") as file:
                header = {"descr": "<f2", "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(file, header)
                return _describe(sound, None, file)
        except BaseException:
            frames_to.unlink(missing_ok=True)
            raise


def _describe(sound: "MonoSound[_Levels]", mfcc: Float16Array | None, file: IO[bytes] | None) -> Sound:
    """Compute the coefficients from the levels, write them to `mfcc` or `file`, and return the description."""
    levels = sound.sink
    digest = hashlib.blake2b(digest_size=16)
    seconds = _Seconds(levels.n_frames, levels.sr)
    start = 0
    for block in levels.coefficients():
        digest.update(block.data)
        seconds.add(start, block)
        if mfcc is not None:
            mfcc[start : start + len(block)] = block
        if file is not None:
            file.write(block.data)
        start += len(block)
    fluctuation = levels.fluctuation.finish()
    if file is not None:
        for array in (fluctuation, levels.spectral_shape):
            write_array(file, array)
    return Sound(
        levels.n_samples / levels.sr,
        sound.expected_s,
        sound.notes,
        levels.n_frames,
        levels.outline.finish(),
        levels.outline.loudest,
        float(np.sqrt(levels.energy / levels.n_samples)),
        seconds.typical_start(levels.n_samples // levels.sr - TYPICAL_S + 1),
        digest.hexdigest(),
        mfcc,
        fluctuation,
        levels.spectral_shape,
        sound.is_cut,
        None if levels.harmony is None else levels.harmony.finish(),
        None if levels.rhythm is None else levels.rhythm.finish(),
        {key: vector for key, stream in levels.networks.items() if (vector := stream.finish()) is not None},
    )


class _Levels:
    """A sink that stores mel levels in a file, and computes everything that does not require all levels together."""

    def __init__(self, sr: int, spool: IO[bytes], aspects: bool, networks: Sequence[AudioNetwork]) -> None:
        self.sr, self.spool = sr, spool
        self.n_samples = self.n_frames = 0
        self.energy = 0.0
        self.outline = Outline()
        self.fluctuation = FluctuationStream(sr)
        self.spectral_shape = np.empty((0, SHAPE_ROW), np.float32)
        self.harmony = HarmonyStream(sr) if aspects else None
        self.rhythm = RhythmStream(sr) if aspects else None
        self.networks = {network.key: network.open(sr) for network in networks}
        self._stream = LevelStream(sr)
        self._batch = BlockBuffer(np.empty(_BATCH, np.float32))

    def add(self, samples: Float32Array) -> None:
        for _ in self._batch.fill(samples):
            self._describe_batch()
            self._batch.keep(0)

    def finish(self) -> None:
        self._describe_batch()
        self._store(self._stream.finish())

    def _describe_batch(self) -> None:
        samples = self._batch.rows[: self._batch.n_filled]
        self.n_samples += len(samples)
        for start in range(0, len(samples), _DOT):
            part = samples[start : start + _DOT]
            self.energy += float(part @ part)
        self.outline.add(samples)
        self.fluctuation.add(samples)
        if self.harmony is not None:
            self.harmony.add(samples)
        for stream in self.networks.values():
            stream.add(samples)
        self._store(self._stream.add(samples))

    def _store(self, blocks: Iterator[Float32Array]) -> None:
        for block in blocks:
            self.spool.write(block.data)
            self.n_frames += len(block)

    def coefficients(self) -> Iterator[Float16Array]:
        """Yield the coefficients in order, in blocks; rhythm and spectral shape are complete after the last block."""
        self.spool.seek(0)
        shapes = [self.spectral_shape]
        for start in range(0, self.n_frames, _BLOCK_FRAMES):
            levels = np.empty((min(_BLOCK_FRAMES, self.n_frames - start), N_MELS), np.float32)
            levels.reshape(-1).view(np.uint8)[:] = np.frombuffer(self.spool.read(levels.nbytes), np.uint8)
            coefficients = cepstra(levels, self._stream.loudest).astype("<f2")
            if self.rhythm is not None:
                self.rhythm.add(levels)
            shapes.append(shape_rows(levels))
            yield coefficients
        self.spectral_shape = np.concatenate(shapes)


class _Seconds:
    """Sums of the coefficients for each second (216 bytes per second, 8 MB for 10 hours)."""

    def __init__(self, n_frames: int, sr: int) -> None:
        self.sr = sr
        n_seconds = (n_frames - 1) * HOP // sr + 1
        self._counts = np.zeros(n_seconds)
        self._sums = np.zeros((n_seconds, 2 * N_MFCC))

    def add(self, start: int, block: Float16Array) -> None:
        """Add the coefficients of the frames that begin at `start`."""
        second = np.arange(start, start + len(block)) * HOP // self.sr
        firsts = np.flatnonzero(np.diff(second, prepend=-1))
        values = np.empty((len(block), 2 * N_MFCC))
        values[:, :N_MFCC] = block
        np.square(values[:, :N_MFCC], out=values[:, N_MFCC:])
        self._sums[second[firsts]] += np.add.reduceat(values, firsts)
        self._counts[second[firsts]] += np.diff(firsts, append=len(block))

    def typical_start(self, n_windows: int) -> float:
        """Return the start, in seconds, of the 30 s that are most like the rest of the song.

        A window of 30 s begins at each second. It is described by the mean and the log deviation of each coefficient,
        scaled by their deviations over all windows. The window nearest to the median of all windows wins. The window
        nearest to the mean would contain some of the silence at the song's end.
        """
        if n_windows <= 1:
            return 0.0
        counts, sums = _over_windows(self._counts, n_windows), _over_windows(self._sums, n_windows)
        means, squares = np.split(sums / counts[:, None], 2, axis=1)
        deviations = np.sqrt(np.maximum(squares - means**2, _MIN_DEVIATION**2))
        windows = np.hstack([means, np.log(deviations)])
        windows -= np.median(windows, axis=0)
        windows /= np.maximum(windows.std(axis=0), _MIN_SPREAD)
        # rounded, so that the first of several equal windows wins
        return float(np.argmin(np.round(np.linalg.norm(windows, axis=1), 6)))


def _over_windows(values: Float64Array, n_windows: int) -> Float64Array:
    """Sum the values per second over windows of 30 s that begin at each second."""
    totals = np.concatenate([np.zeros_like(values[:1]), np.cumsum(values, axis=0)])
    return totals[TYPICAL_S : TYPICAL_S + n_windows] - totals[:n_windows]
