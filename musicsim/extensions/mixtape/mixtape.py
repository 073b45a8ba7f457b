"""A playlist as one audio file: the most typical part of each song, at equal loudness, crossfaded.

Samples are float32 (2, n) at 44.1 kHz, or 48 kHz for Opus. At most three excerpts are in memory.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from musicsim import audio
from musicsim._arrays import Float32Array
from musicsim.audio.reader import Block, SoundReader, open_source
from musicsim.errors import AudioDecodeError, AudioError
from musicsim.library import Library, Song
from musicsim.library.disk.arrays import atomic_path
from musicsim.progress import Progress, no_progress

_RMS = 0.1  # target level of an excerpt, -20 dB, which leaves headroom for most music
# Maximum peak of an excerpt. In a crossfade, two peaks add up to at most 0.85 (sqrt(2) * 0.6); codecs may overshoot.
_PEAK = 0.6
_MAX_GAIN = 8.0  # maximum gain, 18 dB; an excerpt that needs more is noise or intentionally quiet
_SHORTEST_S, _MAX_S = 1.0, 600.0
_CHUNK = 1 << 16  # number of samples per call to the encoder


class _Format(NamedTuple):
    codec: str
    sample_format: str
    rate: int
    bit_rate: int | None  # None: lossless


_FORMATS = {
    ".m4a": _Format("aac", "fltp", 44_100, 192_000),
    ".mp3": _Format("libmp3lame", "fltp", 44_100, 192_000),
    ".opus": _Format("libopus", "flt", 48_000, 128_000),
    ".flac": _Format("flac", "s16", 44_100, None),
    ".wav": _Format("pcm_s16le", "s16", 44_100, None),
}
MIX_ENDINGS = tuple(_FORMATS)  # file extensions of mixes, one per format


@dataclass(frozen=True, slots=True)
class Mix:
    path: Path
    duration_s: float
    starts: tuple[float, ...]  # time in seconds at which each song begins to fade in; ascending, starting at 0
    left_out: tuple[tuple[Song, str], ...]  # songs that are not in the mix, with the reasons
    songs: tuple[Song, ...]  # songs in the mix, in order


def render_mix(
    library: Library,
    songs: Sequence[Song],
    target: Path,
    *,
    seconds: float = 30.0,
    crossfade_s: float = 4.0,
    progress: Progress = no_progress,
) -> Mix:
    """Write a mix of the most typical `seconds` (1 to 600) of each song; shorter songs are used in full.

    The extension of `target` selects the format (see :data:`MIX_ENDINGS`). Equal-power fades join the songs and end the
    mix. They take `crossfade_s` seconds (0 to `seconds` / 2), but at most half an excerpt. All excerpts get the same
    RMS level, unless their peaks would clip. Raises AudioDecodeError if none of the songs can be read.
    """
    import av

    usable = [ending for ending, form in _FORMATS.items() if form.codec in av.codec.codecs_available]
    if target.suffix.lower() not in usable:
        raise ValueError(f"target={str(target)!r} must end in one of {', '.join(usable)}.")
    form = _FORMATS[target.suffix.lower()]
    if not songs:
        raise ValueError("songs is empty: a mix needs at least one song.")
    if not _SHORTEST_S <= seconds <= _MAX_S:
        raise ValueError(f"seconds={seconds} must be between {_SHORTEST_S:g} and {_MAX_S:g}.")
    if not 0 <= crossfade_s <= seconds / 2:
        raise ValueError(f"crossfade_s={crossfade_s} must be between 0 and half of seconds={seconds}.")
    mixed: list[Song] = []
    left_out: list[tuple[Song, str]] = []
    with atomic_path(target) as partial, contextlib.ExitStack() as stack:
        mixer: _Mixer | None = None
        for song, excerpt in _excerpts(library, songs, seconds, form.rate, left_out, progress):
            if mixer is None:  # start the file only once there is audio
                write = stack.enter_context(_open_writer(partial, form))
                mixer = _Mixer(write, round(crossfade_s * form.rate))
            mixed.append(song)
            mixer.add(_normalize(excerpt))
        if mixer is None:
            first, reason = left_out[0]
            raise AudioDecodeError(
                f"the mix was not made, because none of the {len(songs)} songs can be read. “{first.title}”: {reason}"
            )
        mixer.finish()
    starts = tuple(start / form.rate for start in mixer.starts)
    return Mix(target, mixer.n_written / form.rate, starts, tuple(left_out), tuple(mixed))


def _excerpts(
    library: Library,
    songs: Sequence[Song],
    seconds: float,
    rate: int,
    left_out: list[tuple[Song, str]],
    progress: Progress,
) -> Iterator[tuple[Song, Float32Array]]:
    current = {song.id: song for song in library.songs({song.id for song in songs}, missing=True)}
    for n_done, wanted in enumerate(songs):
        progress(f"mixing “{wanted.title}”", n_done, len(songs))
        song = current.get(wanted.id)
        if song is None or song.is_missing:
            left_out.append((wanted, "the file is missing." if song else "the song is no longer in the library."))
            continue
        try:
            excerpt = _read_excerpt(song, seconds, rate)
        except (AudioError, OSError) as error:
            left_out.append((song, str(error)))
            continue
        yield song, excerpt


def _read_excerpt(song: Song, seconds: float, rate: int) -> Float32Array:
    """Read the typical part of a song in stereo. Raises AudioDecodeError if the file has no audio there."""
    source, label = open_source(song.path, None)
    start_s = max(min(song.typical_s, song.duration_s - seconds), 0.0)
    out = np.zeros((2, round(seconds * rate)), np.float32)
    n = 0
    with contextlib.closing(SoundReader(source).blocks()) as blocks:
        for frame in audio.resample_blocks(_cut(blocks, start_s, seconds), "fltp", "stereo", rate):
            samples = frame.to_ndarray()[:, : out.shape[1] - n]
            out[:, n : n + samples.shape[1]] = samples
            n += samples.shape[1]
    if n == 0:
        raise AudioDecodeError(
            f"{label} has no audio at {start_s:.0f} s: the file is damaged, or has changed since it was added."
        )
    return out[:, :n]


def _cut(blocks: Iterator[Block], start_s: float, seconds: float) -> Iterator[Block]:
    """Yield the blocks in a time span. Earlier blocks must also be decoded; later blocks are not."""
    at_s = 0.0
    for rate, block in blocks:
        first, last = (round((t - at_s) * rate) for t in (start_s, start_s + seconds))
        at_s += block.shape[1] / rate
        if last <= 0:
            return
        if first < block.shape[1]:
            yield rate, block[:, max(first, 0) : last]


def _normalize(excerpt: Float32Array) -> Float32Array:
    peak = float(max(excerpt.max(), -excerpt.min()))
    rms = math.sqrt(sum(float(np.square(channel, dtype=np.float64).mean()) for channel in excerpt) / 2)
    if rms > 0:
        excerpt *= np.float32(min(_RMS / rms, _PEAK / peak, _MAX_GAIN))
    return excerpt


def _fade_in(n: int) -> Float32Array:
    """Return the gains of a fade-in, (n,). A fade-out is the mirror image; the squares of both sum to 1."""
    return np.sin(0.5 * np.pi * (np.arange(n) + 0.5) / n).astype(np.float32) if n else np.empty(0, np.float32)


class _Mixer:
    """Joins excerpts and writes samples once they are final; `starts` are the samples at which excerpts begin."""

    def __init__(self, write: Callable[[Float32Array], None], fade: int) -> None:
        self._write, self._fade = write, fade
        self._pending: Float32Array = np.empty((2, 0), np.float32)  # unwritten part of the last excerpt
        self._max_fade = fade  # maximum fade in samples: at most half of the last excerpt
        self.starts: list[int] = []
        self.n_written = 0

    def add(self, excerpt: Float32Array) -> None:
        """Add the next excerpt, (2, n); it is modified in place."""
        half = excerpt.shape[1] // 2
        n = min(self._fade, self._max_fade, half)
        excerpt[:, :n] *= _fade_in(n)
        overlap = n if self.starts else 0
        end = self._pending.shape[1] - overlap
        self._write_chunks(self._pending[:, :end])
        self.starts.append(self.n_written)
        excerpt[:, :overlap] += self._pending[:, end:] * _fade_in(overlap)[::-1]
        self._write_chunks(excerpt[:, :n])
        self._pending, self._max_fade = excerpt[:, n:], half

    def finish(self) -> None:
        n = min(self._fade, self._max_fade)
        self._pending[:, self._pending.shape[1] - n :] *= _fade_in(n)[::-1]
        self._write_chunks(self._pending)

    def _write_chunks(self, samples: Float32Array) -> None:
        self.n_written += samples.shape[1]
        for start in range(0, samples.shape[1], _CHUNK):
            self._write(samples[:, start : start + _CHUNK])


@contextlib.contextmanager
def _open_writer(path: Path, form: _Format) -> Iterator[Callable[[Float32Array], None]]:
    """Open an audio file, and yield a function that encodes samples (2, n); leaving the block completes the file."""
    import av

    with av.open(str(path.absolute()), "w") as container:
        stream = cast(av.AudioStream, container.add_stream(form.codec, rate=form.rate, layout="stereo"))
        stream.codec_context.format = av.AudioFormat(form.sample_format)
        if form.bit_rate is not None:
            stream.bit_rate = form.bit_rate

        def write(samples: Float32Array) -> None:
            frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(samples), format="fltp", layout="stereo")
            frame.sample_rate = form.rate
            container.mux(stream.encode(frame))

        yield write
        container.mux(stream.encode(None))
