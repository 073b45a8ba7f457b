"""Analysis of the sound of one file, in memory that does not grow with its length, and what is kept of it.

Conventions: times are seconds of decoded sound; coefficients are rounded to float16, as they are kept,
and all that is derived from them here is derived from the rounded ones. The sound is read once: what a
song's own loudest level decides waits till the end in a temporary file (160 bytes a frame, 50 MB an
hour, on disk beyond 16 MB) in the folder that the coefficients go to, where there is one: the system's
own folder may be kept in memory.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from musicsim._arrays import Float16Array, Float32Array, Float64Array, FloatingArray
from musicsim.audio._mono import MonoSound, check_duration, read_mono
from musicsim.audio.features import HOP, N_MELS, N_MFCC, SAMPLE_RATE, LevelStream, cepstra, check_rate
from musicsim.audio.fluctuation import FluctuationStream
from musicsim.audio.harmony import HarmonyStream
from musicsim.audio.reader import AudioSource, open_source
from musicsim.audio.rhythm import RhythmStream


def peaks(samples: FloatingArray, n_bins: int = 400) -> Float32Array:
    """Reduce samples to the peak level of `n_bins` equal stretches.

    Parameters
    ----------
    samples : ndarray of shape (n_samples,), floating, n_samples >= 1
    n_bins : int >= 1

    Returns
    -------
    ndarray of shape (n_bins,), float32, 0 to 1
        Relative to the loudest sample; all zeros for silence. With fewer samples than bins, samples
        repeat.

    Raises
    ------
    ValueError
        If `samples` is empty, not 1-D or not finite, or `n_bins` is less than 1.

    Notes
    -----
    Of up to 8,192 samples the stretches are exact; in longer sounds each begins up to 1/4,096 of the
    sound early, a tenth of a stretch: see :class:`Outline`.
    """
    if n_bins < 1:
        raise ValueError(f"n_bins={n_bins} must be at least 1.")
    if samples.ndim != 1 or len(samples) == 0:
        raise ValueError(f"samples must be 1-D and not empty, not of shape {samples.shape}.")
    outline = Outline()
    for start in range(0, len(samples), _OUTLINED):
        outline.add(samples[start : start + _OUTLINED])
    return outline.finish(n_bins)


class Outline:
    """Peak levels of sound that comes block by block and whose length is not known before its end.

    Keeps the peak of every step, a step being one sample at first. As soon as there are more than 8,192 of them,
    neighbours are joined and steps are twice as long, so that the outline depends on the samples only, not on how
    they were cut into blocks, and takes 32 kB whatever the length.
    """

    def __init__(self) -> None:
        self._step = 1
        self._levels = np.zeros(_MAX_STEPS, np.float32)
        self._n_samples = 0

    @property
    def loudest(self) -> float:
        """The highest level so far."""
        return float(self._levels.max())

    def add(self, samples: FloatingArray) -> None:
        """Take the next samples: (n,), floating."""
        if len(samples) == 0:
            return
        while self._n_samples + len(samples) > _MAX_STEPS * self._step:
            self._levels[: _MAX_STEPS // 2] = np.maximum(self._levels[::2], self._levels[1::2])
            self._levels[_MAX_STEPS // 2 :] = 0
            self._step *= 2
        first, into_step = divmod(self._n_samples, self._step)
        starts = np.arange(-into_step, len(samples), self._step)
        starts[0] = 0
        levels = np.maximum.reduceat(np.abs(samples), starts)
        target = self._levels[first : first + len(levels)]
        np.maximum(target, levels, out=target, casting="same_kind")
        self._n_samples += len(samples)

    def finish(self, n_bins: int = 400) -> Float32Array:
        """Return the peaks of `n_bins` equal stretches; see :func:`peaks`.

        Raises ValueError if a sample was NaN or infinite.
        """
        n_steps = -(-self._n_samples // self._step)
        starts = np.arange(n_bins) * n_steps // n_bins
        levels = np.maximum.reduceat(self._levels[:n_steps], starts)
        loudest = levels.max()
        if not np.isfinite(loudest):
            raise ValueError("samples holds NaN or infinite values: set them to zero first.")
        return levels / loudest if loudest > 0 else levels


TYPICAL_S = 30
# 2048 frames: a whole number of the blocks in which levels are computed
_BLOCK_FRAMES = 2048
_IN_MEMORY = 16 << 20
# Samples described at a time: to and fro between decoder and spectra, each would find the other's data in
# the processor's cache, which costs a twentieth of the time.
_BATCH = 1 << 20
_MAX_STEPS = 1 << 13  # of an outline
_OUTLINED = 1 << 15  # samples of an outline at a time
_DOT = 8192  # longer products wake BLAS threads
# dB: float16 keeps coefficients beyond 256 in steps of 0.25, so that smaller deviations say nothing
_MIN_DEVIATION = 0.25
# windows whose descriptions differ by less than this are alike
_MIN_SPREAD = 0.01


@dataclass(frozen=True, slots=True)
class Sound:
    """The sound of one source, described."""

    duration_s: float  # length of the decoded sound
    expected_s: float | None  # length as the container states it; None if it states none
    # what a listener should know: damage that was skipped, channels that cancel, NaN samples
    notes: tuple[str, ...]
    n_frames: int  # 1 + n_samples // 256
    outline: Float32Array  # (400,), float32, 0 to 1: see musicsim.audio.peaks()
    loudest: float  # the highest sample of the mix, full scale 1.0; 0 for digital silence
    rms: float  # root of the mean square of the mix, full scale 1.0
    typical_s: float  # where the most typical 30 seconds start, in whole seconds; 0 in shorter songs
    # 32 hexadecimal digits, BLAKE2b of the coefficients: equal for files of one sound whose tags or lossless
    # containers differ
    sound_hash: str
    mfcc: Float16Array | None  # (n_frames, 13), float16, or None: none if they were written to a file
    fluctuation: Float16Array  # (n_patterns, 594), float16: see musicsim.audio.fluctuation()
    is_cut: bool  # whether the sound goes on behind the part that was asked for
    # (156,), float32, or None: see musicsim.audio.harmony(); None if aspects were not asked for
    harmony: Float32Array | None = None
    # (240,), float32, or None: see musicsim.audio.rhythm(); None if aspects were not asked for
    rhythm: Float32Array | None = None


def analyse_sound(
    source: AudioSource,
    *,
    sr: int = SAMPLE_RATE,
    duration: float | None = None,
    name: str | None = None,
    frames_to: Path | None = None,
    aspects: bool = False,
) -> Sound:
    """Read a source once and describe its sound.

    Parameters
    ----------
    source : path, bytes-like or binary file object
        As for :func:`musicsim.audio.decode`; only a path keeps the file itself out of memory.
    sr : int >= 8000
        Samples per second at which the sound is described.
    duration : float, seconds
        Of its beginning, as for :func:`musicsim.audio.decode`; None reads all to the end.
    name : str, optional
        What messages call the source; default is its path or its `name`.
    frames_to : Path, optional
        Where to write coefficients and fluctuation, for :func:`musicsim.audio.read_song_frames`, instead of
        returning the coefficients. What is there is overwritten, and removed if the writing fails: give a path
        that nobody else uses.
    aspects : bool
        Whether harmony and rhythm are taken, too.

    Returns
    -------
    Sound

    Raises
    ------
    AudioDecodeError
        If the file is missing, a folder, empty or holds no sound.
    OSError
        If the temporary file or `frames_to` cannot be written.
    ValueError, TypeError
        If `sr` or `duration` is out of range, or `source` is none of the above.

    Notes
    -----
    The coefficients are those of ``mfcc(decode(source, sr=sr).samples, sr)`` rounded to float16, bit
    for bit, and the outline is that of ``peaks``. A sound of 10 hours takes 125 MB of memory with all
    imports (200 MB where the coefficients are returned), and 500 MB of disk while it is read.
    """
    check_rate(sr)
    check_duration(duration)
    opened, label = open_source(source, name)
    folder = None if frames_to is None else str(frames_to.parent)
    with tempfile.SpooledTemporaryFile(_IN_MEMORY, dir=folder) as spool:

        def new_sink() -> _Levels:
            spool.seek(0)
            spool.truncate()
            return _Levels(sr, spool, aspects)

        sound = read_mono(opened, label, sr, new_sink, duration=duration)
        sound.sink.finish()
        if frames_to is None:
            kept = np.empty((sound.sink.n_frames, N_MFCC), np.float16)
            return _describe(sound, kept, None)
        try:
            with frames_to.open("wb") as file:
                shape = (sound.sink.n_frames, N_MFCC)
                header = {"descr": "<f2", "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(file, header)
                return _describe(sound, None, file)
        except BaseException:
            frames_to.unlink(missing_ok=True)
            raise


def _describe(sound: MonoSound[_Levels], kept: Float16Array | None, file: IO[bytes] | None) -> Sound:
    """Turn the levels into coefficients, and keep or write these."""
    levels = sound.sink
    digest = hashlib.blake2b(digest_size=16)
    seconds = _Seconds(levels.n_frames, levels.sr)
    start = 0
    for block in levels.coefficients():
        digest.update(block.data)
        seconds.add(start, block)
        if kept is not None:
            kept[start : start + len(block)] = block
        if file is not None:
            file.write(block.data)
        start += len(block)
    fluctuation = levels.fluctuation.finish()
    if file is not None:
        np.lib.format.write_array(file, fluctuation, version=(1, 0))
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
        kept,
        fluctuation,
        sound.is_cut,
        None if levels.harmony is None else levels.harmony.finish(),
        None if levels.rhythm is None else levels.rhythm.finish(),
    )


class _Levels:
    """A sink that keeps outline, fluctuation and harmony in memory and the mel levels, for rhythm too, in a file."""

    def __init__(self, sr: int, spool: IO[bytes], aspects: bool) -> None:
        self.sr, self.spool = sr, spool
        self.n_samples = self.n_frames = 0
        self.energy = 0.0
        self.outline = Outline()
        self.fluctuation = FluctuationStream(sr)
        self.harmony = HarmonyStream(sr) if aspects else None
        self.rhythm = RhythmStream(sr) if aspects else None
        self._stream = LevelStream(sr)
        self._waiting = np.empty(_BATCH, np.float32)
        self._n_waiting = 0

    def add(self, samples: Float32Array) -> None:
        at = 0
        while at < len(samples):
            part = samples[at : at + _BATCH - self._n_waiting]
            self._waiting[self._n_waiting : self._n_waiting + len(part)] = part
            self._n_waiting += len(part)
            at += len(part)
            if self._n_waiting == _BATCH:
                self._take_waiting()

    def finish(self) -> None:
        self._take_waiting()
        self._keep(self._stream.finish())

    def _take_waiting(self) -> None:
        samples = self._waiting[: self._n_waiting]
        self.n_samples += len(samples)
        self._n_waiting = 0
        for start in range(0, len(samples), _DOT):
            part = samples[start : start + _DOT]
            self.energy += float(part @ part)
        self.outline.add(samples)
        self.fluctuation.add(samples)
        if self.harmony is not None:
            self.harmony.add(samples)
        self._keep(self._stream.add(samples))

    def _keep(self, blocks: Iterator[Float32Array]) -> None:
        for block in blocks:
            self.spool.write(block.data)
            self.n_frames += len(block)

    def coefficients(self) -> Iterator[Float16Array]:
        """Yield the rows of the coefficients in order; rhythm is complete after the last."""
        self.spool.seek(0)
        for start in range(0, self.n_frames, _BLOCK_FRAMES):
            levels = np.empty((min(_BLOCK_FRAMES, self.n_frames - start), N_MELS), np.float32)
            levels.reshape(-1).view(np.uint8)[:] = np.frombuffer(self.spool.read(levels.nbytes), np.uint8)
            coefficients = cepstra(levels, self._stream.loudest).astype("<f2")
            if self.rhythm is not None:
                self.rhythm.add(levels)
            yield coefficients


class _Seconds:
    """Sums of the coefficients second by second (216 bytes each, 8 MB for 10 hours)."""

    def __init__(self, n_frames: int, sr: int) -> None:
        self.sr = sr
        n_seconds = (n_frames - 1) * HOP // sr + 1
        self._counts = np.zeros(n_seconds)
        self._sums = np.zeros((n_seconds, 2 * N_MFCC))

    def add(self, start: int, block: Float16Array) -> None:
        """Take the rows of the frames from `start` on."""
        second = np.arange(start, start + len(block)) * HOP // self.sr
        firsts = np.flatnonzero(np.diff(second, prepend=-1))
        values = np.empty((len(block), 2 * N_MFCC))
        values[:, :N_MFCC] = block
        np.square(values[:, :N_MFCC], out=values[:, N_MFCC:])
        self._sums[second[firsts]] += np.add.reduceat(values, firsts)
        self._counts[second[firsts]] += np.diff(firsts, append=len(block))

    def typical_start(self, n_windows: int) -> float:
        """Return where the 30 s start that are most like all the others.

        The `n_windows` windows of 30 s, one a second, are described by the mean and the logarithm of the deviation of
        each coefficient, both in units of their own deviation over the song. The song stands for
        the median of its windows: its mean would make a window with a bit of the silence at its end the
        most typical one.
        """
        if n_windows <= 1:
            return 0.0
        counts, sums = _over_windows(self._counts, n_windows), _over_windows(self._sums, n_windows)
        means, squares = np.split(sums / counts[:, None], 2, axis=1)
        deviations = np.sqrt(np.maximum(squares - means**2, _MIN_DEVIATION**2))
        windows = np.hstack([means, np.log(deviations)])
        windows -= np.median(windows, axis=0)
        windows /= np.maximum(windows.std(axis=0), _MIN_SPREAD)
        # rounded, so that of equal windows the first is taken
        return float(np.argmin(np.round(np.linalg.norm(windows, axis=1), 6)))


def _over_windows(values: Float64Array, n_windows: int) -> Float64Array:
    """Sum values of seconds over 30 seconds, from each second on."""
    totals = np.concatenate([np.zeros_like(values[:1]), np.cumsum(values, axis=0)])
    return totals[TYPICAL_S : TYPICAL_S + n_windows] - totals[:n_windows]
