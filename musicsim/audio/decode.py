"""Decode a file, bytes or a file object to mono samples of one rate.

Conventions: samples are float32, full scale is 1.0, mono is the mean of all channels (stereo and
surround alike, as in librosa), and times are seconds of decoded sound, not of what a header or a tag
claims. Decoding goes on behind damage, and what was lost is told in `Decoded.notes`. The samples equal
librosa's where it reads the same packets: soxr's HQ filter at the file's own rate, fed block by
block, so that of a long song only the mono result is held (88 kB a second; 159 MB for 30 minutes).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import soxr

from musicsim.errors import AudioDecodeError

from ._reader import AudioSource, SoundReader, open_source

__all__ = ["AUDIO_EXTENSIONS", "AudioSource", "Decoded", "decode", "load"]

# What a scan of folders looks at. Containers that mostly carry films (mp4, webm, mkv, avi, ts) are left
# out: `decode` reads their sound all the same.
AUDIO_EXTENSIONS = frozenset(
    (
        *(".wav", ".wave", ".w64", ".rf64", ".aiff", ".aif", ".aifc", ".au", ".snd", ".caf", ".voc"),
        *(".flac", ".alac", ".ape", ".wv", ".tta", ".tak", ".shn", ".dsf"),
        *(".mp3", ".mp2", ".ogg", ".oga", ".opus", ".spx", ".m4a", ".m4b", ".aac", ".wma", ".mka"),
        *(".ac3", ".eac3", ".dts", ".mpc", ".amr"),
    )
)

# Samples beyond this are damage (floats that hold 24-bit integers stay below): one alone would push all
# the rest under the features' 80 dB.
_MAX_SAMPLE = 1e7
# A mix 40 dB below one of its channels is what a lossy codec leaves of channels that cancel.
_CANCELLED = 1e-2
# Channels within three steps of 16 bit count as silent: dither, not music.
_SILENT = 1e-4
_SHORTEST_S = 0.001  # one sample at the lowest rate there is
# Shorter than stated by less than this is encoder delay and rounding, not a loss.
_SHORT_BY_S, _SHORT_BY_SHARE = 0.1, 0.005


@dataclass(frozen=True, slots=True)
class Decoded:
    """The sound of one source.

    Attributes
    ----------
    samples : ndarray of shape (n_samples,), float32, mono, full scale 1.0
    sr : int
        Samples per second.
    duration_s : float
        Length of `samples` in seconds.
    expected_s : float or None
        Length of the whole file as its container states it; None if it states none.
    notes : tuple of str
        What a listener should know: damage that was skipped, channels that cancel, NaN samples.
    """

    samples: npt.NDArray[np.float32]
    sr: int
    duration_s: float
    expected_s: float | None
    notes: tuple[str, ...]


def load(
    source: AudioSource, *, sr: int = 22050, offset: float = 0.0, duration: float | None = None
) -> npt.NDArray[np.float32]:
    """Decode `source` to mono samples; see :func:`decode`, which also tells what was wrong with it.

    Returns
    -------
    ndarray of shape (n_samples,), float32, full scale 1.0

    Raises
    ------
    AudioDecodeError
        If nothing can be decoded; the message names the file and what to do.
    """
    return decode(source, sr=sr, offset=offset, duration=duration).samples


def decode(
    source: AudioSource,
    *,
    sr: int = 22050,
    offset: float = 0.0,
    duration: float | None = None,
    name: str | None = None,
) -> Decoded:
    """Decode a path, bytes or a binary file object to mono samples at `sr`.

    Parameters
    ----------
    source : path, bytes-like or binary file object
        A file object is read into memory from its current position, and put back there if it can
        seek.
    sr : int > 0
        Samples per second of the result.
    offset, duration : float, seconds
        The part to keep, by decoded time: 0 <= offset, 0.001 <= duration; None keeps all to the end.
        Everything before `offset` is decoded and dropped, since seeking in damaged or VBR files is
        inexact.
    name : str, optional
        What messages call the source; default is its path or its `name`.

    Returns
    -------
    Decoded

    Raises
    ------
    AudioDecodeError
        If the file is missing, a folder, empty, holds no sound, or ends before `offset`.
    ValueError, TypeError
        If another argument is out of range, or `source` is none of the above.

    Notes
    -----
    Digital silence is legal. If the mix is silent and a channel is not (right = -left), the loudest
    channel is taken, which costs a second decoding.
    """
    if not (np.isfinite(sr) and sr >= 1):
        raise ValueError(f"sr={sr} must be at least 1 sample a second.")
    if not (np.isfinite(offset) and offset >= 0):
        raise ValueError(f"offset={offset} must be zero or more seconds.")
    if duration is not None and not duration >= _SHORTEST_S:
        raise ValueError(f"duration={duration} must be at least {_SHORTEST_S} seconds, or None for all.")
    opened, label = open_source(source, name)
    mono = _Mono(sr, offset, duration, channel=None)
    reader = _read(opened, label, mono)
    samples = mono.finish()
    if len(samples) == 0:
        raise _nothing_decoded(reader, mono, label, offset)
    notes = []
    if (channel := mono.cancelled_channel()) is not None:
        mono = _Mono(sr, offset, duration, channel=channel)
        reader = _read(opened, label, mono)
        samples = mono.finish()
        side = ("left", "right")[channel] if mono.n_channels == 2 else f"{channel + 1}."
        notes.append(f"channels are opposite: the {side} one was used")
    whole = offset == 0 and duration is None
    notes += _notes(reader, mono, whole)
    return Decoded(samples, int(sr), len(samples) / sr, reader.expected_s, tuple(notes))


def _read(source: Path | bytes, label: str, mono: _Mono) -> SoundReader:
    reader = SoundReader(source)
    try:
        for rate, block in reader.blocks():
            mono.add(rate, block)
            if mono.full:
                break
    except OSError as error:
        raise AudioDecodeError(f"{label} cannot be read to its end ({error}): check the disk.") from error
    return reader


def _nothing_decoded(reader: SoundReader, mono: _Mono, label: str, offset: float) -> AudioDecodeError:
    if mono.seconds > 0:
        return AudioDecodeError(
            f"{label} ends at {mono.seconds:.1f} s, before offset={offset:g} s: give a smaller offset."
        )
    if reader.has_audio:
        return AudioDecodeError(
            f"{label} has a sound track, but nothing in it can be decoded: it is empty or damaged; "
            "copy or convert it again."
        )
    return AudioDecodeError(
        f"{label} cannot be read as sound: it is no audio file, or it is damaged or cut off; "
        "give a WAV, FLAC, MP3, Ogg or M4A file, or copy it again."
    )


def _notes(reader: SoundReader, mono: _Mono, whole: bool) -> list[str]:
    notes = []
    expected = reader.expected_s
    short_by = (expected or 0.0) - mono.seconds
    if whole and expected and short_by > max(_SHORT_BY_S, _SHORT_BY_SHARE * expected):
        notes.append(f"partly read: {mono.seconds:.1f} of {expected:.1f} s")
    elif whole and reader.cut_off:
        notes.append("the end of the file is missing")
    if reader.damaged:
        plural = "packet" if reader.damaged == 1 else "packets"
        notes.append(f"{reader.damaged} damaged {plural} skipped")
    if len(mono.rates) > 1:
        notes.append(f"sampling rate changes inside the file: {', '.join(map(str, mono.rates))} Hz")
    if mono.zeroed:
        notes.append("NaN, infinite or huge samples zeroed")
    return notes


class _Mono:
    """Cut, mix and resample blocks, and keep only the mono result."""

    def __init__(self, sr: float, offset: float, duration: float | None, channel: int | None) -> None:
        self.sr, self.offset, self.channel = sr, offset, channel
        self.duration = np.inf if duration is None else duration
        self.rates: dict[int, None] = {}  # an ordered set
        self.n_channels = 0
        self.zeroed = False
        self.full = False
        self._rate = 0
        self._run_start_s = 0.0  # a run is a stretch of one sampling rate
        self._n_run = self._n_kept = self._n_out = 0
        self._resampler: soxr.ResampleStream | None = None
        self._mix_peak = 0.0
        self._channel_peaks: dict[int, float] = {}
        self._buffer = np.empty(0, np.float32)
        self._n_buffered = 0

    @property
    def seconds(self) -> float:
        """Seconds seen so far, whether kept or not."""
        return self._run_start_s + (self._n_run / self._rate if self._rate else 0.0)

    def add(self, rate: int, block: npt.NDArray[np.float32]) -> None:
        if rate != self._rate:
            self._start_run(rate)
        block = self._cut(block)
        if block.shape[1]:
            self._write(self._mix(block))

    def finish(self) -> npt.NDArray[np.float32]:
        self._end_run()
        # no copy: the block of memory is cut to its used length
        self._buffer.resize(self._n_buffered, refcheck=False)
        return self._buffer

    def cancelled_channel(self) -> int | None:
        """Return the channel to be used alone, if the mix has cancelled what the channels hold."""
        if self.channel is not None or not self._channel_peaks:
            return None
        best = max(self._channel_peaks, key=self._channel_peaks.__getitem__)
        peak = self._channel_peaks[best]
        return best if peak > _SILENT and self._mix_peak < _CANCELLED * peak else None

    def _start_run(self, rate: int) -> None:
        self._end_run()
        self._run_start_s = self.seconds
        self._rate, self._n_run, self._n_kept, self._n_out = rate, 0, 0, 0
        self.rates[rate] = None
        self._resampler = None if rate == self.sr else soxr.ResampleStream(rate, self.sr, 1, "float32", "HQ")

    def _end_run(self) -> None:
        if self._resampler is None or self._n_kept == 0:
            return
        self._append(self._resampler.resample_chunk(np.empty(0, np.float32), last=True))
        # librosa's length, so that both give the same number of frames
        missing = int(np.ceil(self._n_kept * self.sr / self._rate)) - self._n_out
        if missing > 0:
            self._append(np.zeros(missing, np.float32))
        self._resampler = None

    def _cut(self, block: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the part of the block between offset and offset + duration; note when all is there."""
        first = int(max(self.offset - self._run_start_s, 0.0) * self._rate)
        length = min(self.duration, self.offset + self.duration - self._run_start_s) * self._rate
        start = max(first - self._n_run, 0)
        self._n_run += block.shape[1]
        if np.isinf(length):
            return block[:, start:]
        stop = block.shape[1] + first + int(length) - self._n_run
        self.full = stop <= block.shape[1]
        return block[:, start : max(stop, start)]

    def _mix(self, block: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        mix = self._blend(block)
        peak = _peak(mix)
        if not peak < _MAX_SAMPLE:  # also true of NaN
            self.zeroed = True
            block = np.where(np.abs(block) < _MAX_SAMPLE, block, np.float32(0))
            mix = self._blend(block)
            peak = _peak(mix)
        self._mix_peak = max(self._mix_peak, peak)
        self.n_channels = len(block)
        # a louder mix is not silent, whatever its channels hold: their peaks need not be known
        if self.n_channels > 1 and peak < _CANCELLED:
            for i, row in enumerate(block):
                self._channel_peaks[i] = max(self._channel_peaks.get(i, 0.0), _peak(row))
        return mix

    def _blend(self, block: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        if self.channel is not None:
            return np.ascontiguousarray(block[min(self.channel, len(block) - 1)])
        if len(block) == 1:
            return np.ascontiguousarray(block[0])
        # adding rows: a mean over the short axis of interleaved samples takes forty times as long
        with np.errstate(invalid="ignore", over="ignore"):  # the caller looks for NaN in the result
            mix = block[0] + block[1]
            for row in block[2:]:
                mix += row
            mix *= np.float32(1 / len(block))
        return mix

    def _write(self, mix: npt.NDArray[np.float32]) -> None:
        self._n_kept += len(mix)
        self._append(mix if self._resampler is None else self._resampler.resample_chunk(mix))

    def _append(self, samples: npt.NDArray[np.float32]) -> None:
        self._n_out += len(samples)
        needed = self._n_buffered + len(samples)
        if needed > len(self._buffer):
            # growing in place by a quarter: the whole song is never held twice
            self._buffer.resize(max(needed, len(self._buffer) * 5 // 4, 1 << 20), refcheck=False)
        self._buffer[self._n_buffered : needed] = samples
        self._n_buffered = needed


def _peak(samples: npt.NDArray[np.float32]) -> float:
    return float(max(samples.max(), -samples.min()))
