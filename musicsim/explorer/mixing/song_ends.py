"""The sounding part of songs, and their beats at both ends: decoded by workers, and kept for the next transitions.

Only the ends of a decoded song are in memory.
"""

import contextlib
import threading
from collections import OrderedDict, deque
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from musicsim import audio
from musicsim._arrays import Float32Array
from musicsim.errors import AudioDecodeError
from musicsim.explorer.mixing.beats import BEAT_RATE, BeatGrid, find_beats
from musicsim.library import Library, Song
from musicsim.library.processes.decoding import Decoder, Decoding, Run

_END_S = 30.0  # length of the ends that are kept
_SEARCHED_S = 20.0  # length of the parts of them in which beats are searched, without silence
_SILENCE = 0.01  # maximum level of silence relative to the loudest moment, -40 dB, which other songs mask in a fade
_MOMENT_S = 0.1
_MAX_KEPT = 4096  # songs; the ends of one take 0.5 kB


@dataclass(frozen=True, slots=True)
class SongEnds:
    """The sounding part of a song, and its beats at both ends; all times are in seconds of the song."""

    start_s: float
    end_s: float
    first: BeatGrid | None  # None if there are no regular beats
    last: BeatGrid | None


def find_sound(samples: Float32Array, rate: int) -> slice:
    """Return the samples (c, n) between silences at both ends, in whole moments; all samples of a silent song."""
    moment = round(_MOMENT_S * rate)
    starts = np.arange(0, samples.shape[1], moment)
    high, low = np.maximum.reduceat(samples, starts, axis=1), np.minimum.reduceat(samples, starts, axis=1)
    peaks = np.maximum(high, -low).max(axis=0)
    loud = np.flatnonzero(peaks > _SILENCE * peaks.max())
    return slice(int(starts[loud[0]]), int(starts[loud[-1]]) + moment) if len(loud) else slice(0, samples.shape[1])


def find_ends(path: Path, tempo: float | None = None) -> SongEnds:
    """Decode a song, and find the beats at its ends; `tempo` helps if it is known. Raises AudioDecodeError."""
    source, label = audio.open_source(path, None)
    head: list[Float32Array] = []
    tail: deque[Float32Array] = deque()
    n, n_tail, n_end = 0, 0, round(_END_S * BEAT_RATE)
    with contextlib.closing(audio.SoundReader(source).blocks()) as blocks:
        for frame in audio.resample_blocks(blocks, "fltp", "mono", BEAT_RATE):
            samples: Float32Array = np.asarray(frame.to_ndarray(), np.float32)
            if n < n_end:
                head.append(samples)
            tail.append(samples)
            n, n_tail = n + samples.shape[1], n_tail + samples.shape[1]
            while n_tail - tail[0].shape[1] >= n_end:
                n_tail -= tail.popleft().shape[1]
    if n == 0:
        raise AudioDecodeError(f"{label} has no audio: the file is damaged, or has changed since it was added.")
    beginning, end = (np.concatenate(parts, axis=1) for parts in (head, tail))
    sounding, last_sounding = find_sound(beginning, BEAT_RATE), find_sound(end, BEAT_RATE)
    start, stop = sounding.start, min(last_sounding.stop, n_tail)
    n_searched = round(_SEARCHED_S * BEAT_RATE)
    from_stop = max(last_sounding.start, stop - n_searched)
    delay_s = find_browser_delay(path)
    before_s = (n - n_tail) / BEAT_RATE + delay_s
    first = find_beats(beginning[:, start : start + n_searched], BEAT_RATE, tempo)
    last = find_beats(end[:, from_stop:stop], BEAT_RATE, tempo)
    start_s = start / BEAT_RATE + delay_s
    return SongEnds(
        start_s, before_s + stop / BEAT_RATE,
        first and first.shift(start_s), last and last.shift(before_s + from_stop / BEAT_RATE),
    )  # fmt: skip


def find_browser_delay(path: Path) -> float:
    """Return the position, in a browser, of the first decoded sample of a file, in seconds.

    Encoders of MP3 begin with samples that decoders leave out. In Chromium, they take the time that FFmpeg states, or a
    frame if the file does not state it. All other formats begin at 0.
    """
    import av

    try:
        with av.open(str(path.absolute()), options=audio.SAFE_OPTIONS) as container:
            frame = next(container.decode(audio=0))
            if not container.streams.audio[0].codec_context.name.startswith("mp3"):
                return 0.0
            return float(frame.time or frame.samples / frame.sample_rate)
    except (av.FFmpegError, IndexError, StopIteration):
        return 0.0  # FFmpeg does not read it, but another decoder did


class EndsOfSongs:
    """The ends of the songs that were asked for last. All requests for a song share one task of the decoder."""

    def __init__(self, decoder: Decoder, max_kept: int = _MAX_KEPT) -> None:
        self._decoder, self._max_kept = decoder, max_kept
        self._kept: OrderedDict[tuple[object, ...], SongEnds] = OrderedDict()
        self._running: dict[tuple[object, ...], Decoding[SongEnds]] = {}
        self._lock = threading.Lock()

    def ends_of(self, library: Library, song: Song) -> SongEnds | Decoding[SongEnds]:
        """Return the ends of a song, or the task that finds them. Raises OSError if the file is missing."""
        stat = song.path.stat()
        key = song.path, stat.st_mtime_ns, stat.st_size, song.tempo
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
            decoding = self._running.get(key)
            if decoding is None or decoding.future.done():
                work = partial(self._find, key=key, path=song.path, tempo=song.tempo)
                decoding = self._decoder.ask(work, name=str(song.path), limits=library.file_limits)
                self._running[key] = decoding
            decoding.keep()
        return decoding

    def _find(self, run: Run, key: tuple[object, ...], path: Path, tempo: float | None) -> SongEnds:
        try:
            found: SongEnds = run(find_ends, path, tempo)
            with self._lock:
                self._kept[key] = found
                while len(self._kept) > self._max_kept:
                    self._kept.popitem(last=False)
        finally:
            with self._lock:
                self._running.pop(key, None)
        return found
