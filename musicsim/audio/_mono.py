"""Mono samples of one rate from blocks of any rate and number of channels, block by block.

Conventions: mono is the mean of all channels; a sink gets the samples in order, in blocks of any
length, and copies what it keeps. Nothing here grows with the length of the sound.
"""

from __future__ import annotations

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


class Sink(Protocol):
    """Takes mono samples, block by block."""

    def add(self, samples: Float32Array) -> None:
        """Take the next samples: (n,), float32, n >= 1; valid during the call only."""


SinkT = TypeVar("SinkT", bound=Sink)


@dataclass(frozen=True, slots=True)
class MonoSound(Generic[SinkT]):
    """The sink that took the sound, what is to be said of it, and whether there is more behind `duration`."""

    sink: SinkT
    expected_s: float | None
    notes: tuple[str, ...]
    is_cut: bool


def check_duration(duration: float | None) -> None:
    """Refuse a length, in seconds, that not one sample fits into; None stands for all."""
    if duration is not None and not duration >= _SHORTEST_S:
        raise ValueError(f"duration={duration} must be at least {_SHORTEST_S} seconds, or None for all.")


def read_mono(
    source: Path | bytes,
    label: str,
    sr: float,
    new_sink: Callable[[], SinkT],
    offset: float = 0.0,
    duration: float | None = None,
) -> MonoSound[SinkT]:
    """Read a source's sound as mono samples at `sr` into a sink.

    The source is as :func:`open_source` returns it, with `label` to name it in errors. `new_sink` makes an empty
    sink; it is called once more where the channels turn out to be opposite and the sound is read again. Of the sound
    `duration` seconds from `offset` on are kept, or all to the end.

    Raises AudioDecodeError if there is not one sample; errors of the sink go through.
    """
    reader, mono, sink = _pass(source, label, sr, new_sink, offset, duration, None)
    if mono.n_samples == 0:
        raise _nothing_decoded(reader, mono, label, offset)
    notes = []
    if (channel := mono.cancelled_channel()) is not None:
        reader, mono, sink = _pass(source, label, sr, new_sink, offset, duration, channel)
        side = ("left", "right")[channel] if mono.n_channels == 2 else f"{channel + 1}."
        notes.append(f"channels are opposite: the {side} one was used")
    whole = offset == 0 and not mono.is_cut
    return MonoSound(sink, reader.expected_s, (*notes, *_notes(reader, mono, whole)), mono.is_cut)


def _pass(
    source: Path | bytes,
    label: str,
    sr: float,
    new_sink: Callable[[], SinkT],
    offset: float,
    duration: float | None,
    channel: int | None,
) -> tuple[SoundReader, _Mono, SinkT]:
    reader, sink = SoundReader(source), new_sink()
    mono = _Mono(sr, offset, duration, channel, sink)
    with contextlib.closing(reader.blocks()) as blocks:
        while not mono.is_cut:
            try:
                rate, block = next(blocks)
            except StopIteration:
                break
            except OSError as error:
                raise AudioDecodeError(f"{label} cannot be read to its end ({error}): check the disk.") from error
            mono.add(rate, block)
    mono.end_run()
    return reader, mono, sink


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
    return NoSoundError(f"{label} {reader.what_else()}")


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
    """Cut, mix and resample blocks, and hand the mono result to a sink."""

    def __init__(self, sr: float, offset: float, duration: float | None, channel: int | None, sink: Sink) -> None:
        self.sr, self.offset, self.channel, self.sink = sr, offset, channel, sink
        self.duration = np.inf if duration is None else duration
        self.rates: dict[int, None] = {}  # an ordered set
        self.n_channels = 0
        self.n_samples = 0  # handed to the sink
        self.zeroed = False
        self.is_cut = False  # whether sound behind the part to keep has come
        self._rate = 0
        self._run_start_s = 0.0  # a run is a stretch of one sampling rate
        self._n_run = self._n_kept = self._n_out = 0
        self._resampler: soxr.ResampleStream | None = None
        self._mix_peak = 0.0
        self._channel_peaks: dict[int, float] = {}

    @property
    def seconds(self) -> float:
        """Seconds seen so far, whether kept or not."""
        return self._run_start_s + (self._n_run / self._rate if self._rate else 0.0)

    def add(self, rate: int, block: Float32Array) -> None:
        if rate != self._rate:
            self._start_run(rate)
        block = self._cut(block)
        if block.shape[1]:
            self._write(self._mix(block))

    def cancelled_channel(self) -> int | None:
        """Return the channel to be used alone, if the mix has cancelled what the channels hold."""
        if self.channel is not None or not self._channel_peaks:
            return None
        best = max(self._channel_peaks, key=self._channel_peaks.__getitem__)
        peak = self._channel_peaks[best]
        return best if peak > _SILENT and self._mix_peak < _CANCELLED * peak else None

    def _start_run(self, rate: int) -> None:
        self.end_run()
        self._run_start_s = self.seconds
        self._rate, self._n_run, self._n_kept, self._n_out = rate, 0, 0, 0
        self.rates[rate] = None
        self._resampler = None if rate == self.sr else soxr.ResampleStream(rate, self.sr, 1, "float32", "HQ")

    def end_run(self) -> None:
        """Hand over what the resampler still holds: at a change of rate and at the end."""
        if self._resampler is None or self._n_kept == 0:
            return
        self._append(self._resampler.resample_chunk(np.empty(0, np.float32), last=True))
        # librosa's length, so that both give the same number of frames
        missing = int(np.ceil(self._n_kept * self.sr / self._rate)) - self._n_out
        if missing > 0:
            self._append(np.zeros(missing, np.float32))
        self._resampler = None

    def _cut(self, block: Float32Array) -> Float32Array:
        """Return the part of the block between offset and offset + duration; note when all is there."""
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

    def _blend(self, block: Float32Array) -> Float32Array:
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

    def _write(self, mix: Float32Array) -> None:
        self._n_kept += len(mix)
        self._append(mix if self._resampler is None else self._resampler.resample_chunk(mix))

    def _append(self, samples: Float32Array) -> None:
        if len(samples):
            self._n_out += len(samples)
            self.n_samples += len(samples)
            self.sink.add(samples)


def _peak(samples: Float32Array) -> float:
    return float(max(samples.max(), -samples.min()))
