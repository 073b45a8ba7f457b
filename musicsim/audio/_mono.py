"""Mono samples at a single sample rate, from blocks of any rate and number of channels.

Mono is the mean of all channels. A sink receives the samples in blocks of any length, and must copy what it keeps.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import numpy as np
import soxr

from musicsim._arrays import Float32Array
from musicsim.audio.reader import SoundReader
from musicsim.errors import AudioDecodeError, NoSoundError

# Larger samples are a sign of damage: even floats that hold 24-bit integers are smaller. One such sample would push all
# others below the 80 dB range of the features.
_MAX_SAMPLE = 1e7
# After lossy coding, the mix of two opposite channels is not silent, but 40 dB below the channels.
_CANCELED = 1e-2
# A channel whose samples stay within three 16-bit steps of 0 is treated as silent: it is dither, not music.
_SILENT = 1e-4
_MIN_DURATION_S = 0.001  # one sample at the lowest supported rate
# If the sound is shorter than stated by less than this, the cause is encoder delay or rounding, not damage.
_SHORT_BY_S, _SHORT_BY_SHARE = 0.1, 0.005


class Sink(Protocol):
    """Receives mono samples in blocks."""

    def add(self, samples: Float32Array) -> None:
        """Add samples, float32 (n,) with n >= 1; the array is valid only during the call."""


SinkT = TypeVar("SinkT", bound=Sink)


@dataclass(frozen=True, slots=True)
class MonoSound(Generic[SinkT]):
    """A decoded sound: its sink, stated length, warnings, and whether it continues beyond the requested part."""

    sink: SinkT
    expected_s: float | None
    notes: tuple[str, ...]
    is_cut: bool


def read_mono(
    source: Path | bytes,
    label: str,
    sr: float,
    new_sink: Callable[[], SinkT],
    offset: float = 0.0,
    duration: float | None = None,
    channel: int | None = None,
) -> MonoSound[SinkT]:
    """Decode a source to mono samples at `sr` and add them to a sink.

    `source` and its name for error messages, `label`, come from :func:`open_source`. `new_sink` returns an empty sink;
    it is called again if the channels cancel each other, because the source is then decoded a second time. Only the
    `duration` seconds that start at `offset` are kept (None: all), from one `channel` or from the mix.

    Raises ValueError if `duration` is shorter than one sample, and AudioDecodeError if nothing can be decoded. Errors
    raised by the sink propagate.
    """
    if duration is not None and not duration >= _MIN_DURATION_S:
        raise ValueError(
            f"duration={duration} must be at least {_MIN_DURATION_S} seconds, or None for the whole sound."
        )
    reader, sink = SoundReader(source), new_sink()
    mono = _Mono(sr, offset, duration, channel, sink)
    with contextlib.closing(reader.blocks()) as blocks:
        while not mono.is_cut:
            try:
                rate, block = next(blocks)
            except StopIteration:
                break
            except OSError as error:
                raise AudioDecodeError(f"{label} cannot be read to the end ({error}): check the disk.") from error
            mono.add(rate, block)
    mono.end_run()
    if mono.n_samples == 0:
        raise _nothing_decoded(reader, mono, label, offset)
    if channel is None and (loudest := mono.find_canceled_channel()) is not None:
        return read_mono(source, label, sr, new_sink, offset, duration, loudest)
    notes = _list_notes(reader, mono, is_whole=offset == 0 and not mono.is_cut)
    return MonoSound(sink, reader.expected_s, tuple(notes), mono.is_cut)


def _nothing_decoded(reader: SoundReader, mono: "_Mono", label: str, offset: float) -> AudioDecodeError:
    if mono.seconds > 0:
        return AudioDecodeError(
            f"{label} ends at {mono.seconds:.1f} s, before offset={offset:g} s: give a smaller offset."
        )
    if reader.has_audio:
        return AudioDecodeError(
            f"{label} has an audio track, but nothing in it can be decoded: it is empty or damaged; "
            "copy or convert the file again."
        )
    return NoSoundError(f"{label} {reader.explain_no_sound()}")


def _list_notes(reader: SoundReader, mono: "_Mono", is_whole: bool) -> list[str]:
    notes = []
    if mono.channel is not None:
        is_stereo = mono.n_channels == 2
        used = f"the {('left', 'right')[mono.channel]} channel" if is_stereo else f"channel {mono.channel + 1}"
        notes.append(f"the channels cancel each other out: only {used} was used")
    expected = reader.expected_s
    short_by = (expected or 0.0) - mono.seconds
    if is_whole and expected and short_by > max(_SHORT_BY_S, _SHORT_BY_SHARE * expected):
        notes.append(f"only partially read: {mono.seconds:.1f} of {expected:.1f} s")
    elif is_whole and reader.cut_off:
        notes.append("the end of the file is missing")
    if reader.damaged:
        plural = "packet" if reader.damaged == 1 else "packets"
        notes.append(f"{reader.damaged} damaged {plural} skipped")
    if len(mono.rates) > 1:
        notes.append(f"sampling rate changes within the file: {', '.join(map(str, mono.rates))} Hz")
    if mono.zeroed:
        notes.append("NaN, infinite or huge samples zeroed")
    return notes


class _Mono:
    """Cuts, mixes and resamples blocks, and adds the mono result to a sink."""

    def __init__(self, sr: float, offset: float, duration: float | None, channel: int | None, sink: Sink) -> None:
        self.sr, self.offset, self.channel, self.sink = sr, offset, channel, sink
        self.duration = np.inf if duration is None else duration
        self.rates: dict[int, None] = {}  # an ordered set
        self.n_channels = 0
        self.n_samples = 0  # added to the sink
        self.zeroed = False
        self.is_cut = False  # whether there is sound beyond the part to keep
        self._rate = 0
        self._run_start_s = 0.0  # a run is an interval with one sampling rate
        self._n_run = self._n_kept = self._n_out = 0
        self._resampler: soxr.ResampleStream | None = None
        self._mix_peak = 0.0
        self._channel_peaks: dict[int, float] = {}

    @property
    def seconds(self) -> float:
        """Number of seconds decoded so far, including parts that are not kept."""
        return self._run_start_s + (self._n_run / self._rate if self._rate else 0.0)

    def add(self, rate: int, block: Float32Array) -> None:
        if rate != self._rate:
            self.end_run()
            self._run_start_s = self.seconds
            self._rate, self._n_run, self._n_kept, self._n_out = rate, 0, 0, 0
            self.rates[rate] = None
            self._resampler = None if rate == self.sr else soxr.ResampleStream(rate, self.sr, 1, "float32", "HQ")
        block = self._cut(block)
        if block.shape[1]:
            mix = self._mix(block)
            self._n_kept += len(mix)
            self._append(mix if self._resampler is None else self._resampler.resample_chunk(mix))

    def find_canceled_channel(self) -> int | None:
        """Return the loudest channel if it is canceled in the mix, otherwise None."""
        if not self._channel_peaks:
            return None
        loudest = max(self._channel_peaks, key=self._channel_peaks.__getitem__)
        peak = self._channel_peaks[loudest]
        return loudest if peak > _SILENT and self._mix_peak < _CANCELED * peak else None

    def end_run(self) -> None:
        """Flush the resampler; called when the rate changes and at the end."""
        if self._resampler is None or self._n_kept == 0:
            return
        self._append(self._resampler.resample_chunk(np.empty(0, np.float32), last=True))
        # pad to librosa's length, so that both produce the same number of frames
        missing = int(np.ceil(self._n_kept * self.sr / self._rate)) - self._n_out
        if missing > 0:
            self._append(np.zeros(missing, np.float32))
        self._resampler = None

    def _cut(self, block: Float32Array) -> Float32Array:
        """Return the part of the block between offset and offset + duration; set `is_cut` if the block continues."""
        first = int(max(self.offset - self._run_start_s, 0.0) * self._rate)
        length = min(self.duration, self.offset + self.duration - self._run_start_s) * self._rate
        start = max(first - self._n_run, 0)
        self._n_run += block.shape[1]
        if np.isinf(length):
            return block[:, start:]
        stop = block.shape[1] + first + int(length) - self._n_run
        self.is_cut = stop < block.shape[1]
        return block[:, start : max(stop, start)]

    def _mix(self, block: Float32Array) -> Float32Array:
        mix = self._blend(block)
        peak = _peak(mix)
        if not peak < _MAX_SAMPLE:  # also true for NaN
            self.zeroed = True
            block = np.where(np.abs(block) < _MAX_SAMPLE, block, np.float32(0))
            mix = self._blend(block)
            peak = _peak(mix)
        self._mix_peak = max(self._mix_peak, peak)
        self.n_channels = len(block)
        # the channels' peaks matter only if the mix is nearly silent
        if self.n_channels > 1 and peak < _CANCELED:
            for i, row in enumerate(block):
                self._channel_peaks[i] = max(self._channel_peaks.get(i, 0.0), _peak(row))
        return mix

    def _blend(self, block: Float32Array) -> Float32Array:
        if self.channel is not None:
            return np.ascontiguousarray(block[min(self.channel, len(block) - 1)])
        if len(block) == 1:
            return np.ascontiguousarray(block[0])
        # taking the mean over the short axis of interleaved samples would take forty times as long
        with np.errstate(invalid="ignore", over="ignore"):  # the caller checks for NaN
            mix = block[0] + block[1]
            for row in block[2:]:
                mix += row
            mix *= np.float32(1 / len(block))
        return mix

    def _append(self, samples: Float32Array) -> None:
        if len(samples):
            self._n_out += len(samples)
            self.n_samples += len(samples)
            self.sink.add(samples)


def _peak(samples: Float32Array) -> float:
    return float(max(samples.max(), -samples.min()))
