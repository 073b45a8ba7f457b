"""A playlist as one file of sound: the typical part of each song, evened out in loudness, faded into the next.

Conventions: samples are float32 of shape (2, n), full scale 1.0; 44.1 kHz, and 48 kHz in Opus, which knows no other.
The mix is written as it is made: no more than three excerpts are held, however many songs there are (10 MB each
at 30 s).
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self, cast

import numpy as np

from musicsim import audio
from musicsim._arrays import Float32Array
from musicsim.audio.reader import Block, SoundReader, open_source
from musicsim.errors import AudioDecodeError, AudioError
from musicsim.library import Library, Song
from musicsim.library.disk.arrays import atomic_path
from musicsim.progress import Progress, no_progress

_RMS = 0.1  # of an excerpt: -20 dB, which leaves most music its peaks
# Two excerpts at their peaks add up to sqrt(2) of it where they cross: 0.85, and lossy codecs may overshoot.
_PEAK = 0.6
_MAX_GAIN = 8.0  # 18 dB: what is quieter is noise, or means to be quiet
_SHORTEST_S, _MAX_S = 1.0, 600.0
_CHUNK = 1 << 16  # samples handed to the encoder at once


class _Form(NamedTuple):
    codec: str
    sample_format: str
    rate: int
    bit_rate: int | None  # None: no loss


_FORMS = {
    ".m4a": _Form("aac", "fltp", 44_100, 192_000),
    ".mp3": _Form("libmp3lame", "fltp", 44_100, 192_000),
    ".opus": _Form("libopus", "flt", 48_000, 128_000),
    ".flac": _Form("flac", "s16", 44_100, None),
    ".wav": _Form("pcm_s16le", "s16", 44_100, None),
}
MIX_ENDINGS = tuple(_FORMS)
"""How the name of a mix may end; each stands for its format."""


@dataclass(frozen=True, slots=True)
class Mix:
    """A mix that was written."""

    path: Path
    duration_s: float
    # seconds at which each song of `songs` begins to fade in; ascending, the first 0
    starts: tuple[float, ...]
    left_out: tuple[tuple[Song, str], ...]  # songs that are not in it, and why
    songs: tuple[Song, ...]  # songs that are, in order


def render_mix(
    library: Library,
    songs: Sequence[Song],
    target: Path,
    *,
    seconds: float = 30.0,
    crossfade_s: float = 4.0,
    progress: Progress | None = None,
) -> Mix:
    """Write a mix of the most typical parts of some songs.

    Parameters
    ----------
    library : Library
        Says where the songs lie by now.
    songs : sequence of Song
        In their order; a song may stand more than once.
    target : Path
        Its ending says the format, see :data:`MIX_ENDINGS`. It appears when it is complete; an older file of this
        name is replaced.
    seconds : float, 1 to 600
        Length of an excerpt; a song that is shorter is taken whole.
    crossfade_s : float, 0 to seconds / 2
        Equal-power fade between two songs, at both ends of the mix too; at most half of a short excerpt.
    progress : Progress, optional
        Told before each song what is being done; what it raises
        (:class:`~musicsim.progress.Stopped`) ends the work, and nothing is written.

    Raises
    ------
    ValueError
        If there are no songs, the ending is no format that can be written here, or a length is out of range.
    AudioDecodeError
        If not one of the songs can be read.
    OSError
        If the target cannot be written.

    Notes
    -----
    Each excerpt gets the same root mean square, unless its peaks would pass a limit that no crossfade can lift above
    full scale: dynamic music stays quieter, nothing is clipped.
    """
    form = _form(target)
    if not songs:
        raise ValueError("songs is empty: a mix needs one song at least.")
    if not _SHORTEST_S <= seconds <= _MAX_S:
        raise ValueError(f"seconds={seconds} must be between {_SHORTEST_S:g} and {_MAX_S:g}.")
    if not 0 <= crossfade_s <= seconds / 2:
        raise ValueError(f"crossfade_s={crossfade_s} must be between 0 and half of seconds={seconds}.")
    excerpts = _Excerpts(library, songs, seconds, form.rate, progress or no_progress)
    with atomic_path(target) as partial, contextlib.ExitStack() as stack:
        mixer: _Mixer | None = None
        for excerpt in excerpts:
            if mixer is None:  # a file without sound is not even begun
                writer = stack.enter_context(_Writer(partial, form))
                mixer = _Mixer(writer.write, round(crossfade_s * form.rate))
            mixer.add(_evened(excerpt))
        if mixer is None:
            first, reason = excerpts.left_out[0]
            raise AudioDecodeError(
                f"none of {len(songs)} songs can be read, so there is no mix. “{first.title}”: {reason}"
            )
        mixer.finish()
    starts = tuple(start / form.rate for start in mixer.starts)
    duration_s = mixer.n_written / form.rate
    return Mix(target, duration_s, starts, tuple(excerpts.left_out), tuple(excerpts.taken))


def _form(target: Path) -> _Form:
    import av

    usable = [ending for ending, form in _FORMS.items() if form.codec in av.codec.codecs_available]
    ending = target.suffix.lower()
    if ending not in usable:
        raise ValueError(f"target={str(target)!r} must end in one of {', '.join(usable)}.")
    return _FORMS[ending]


# Reading


class _Excerpts:
    """The excerpts of songs, one after the other, and account of the songs that give none."""

    def __init__(self, library: Library, songs: Sequence[Song], seconds: float, rate: int, progress: Progress) -> None:
        self._songs, self._seconds, self._rate, self._tell = songs, seconds, rate, progress
        self._now = {song.id: song for song in library.songs({s.id for s in songs}, missing=True)}
        self.taken: list[Song] = []
        self.left_out: list[tuple[Song, str]] = []

    def __iter__(self) -> Iterator[Float32Array]:
        for done, asked in enumerate(self._songs):
            self._tell(f"mixing “{asked.title}”", done, len(self._songs))
            song = self._now.get(asked.id)
            if song is None or song.is_missing:
                reason = "its file is missing." if song else "it is no longer in the library."
                self.left_out.append((asked, reason))
                continue
            try:
                excerpt = _read_excerpt(song, self._seconds, self._rate)
            except (AudioError, OSError) as error:
                self.left_out.append((song, str(error)))
                continue
            self.taken.append(song)
            yield excerpt


def _read_excerpt(song: Song, seconds: float, rate: int) -> Float32Array:
    """The typical part of a song in stereo.

    Raises AudioDecodeError if its file is missing or holds no sound there.
    """

    source, label = open_source(song.path, None)
    start_s = max(min(song.typical_s, song.duration_s - seconds), 0.0)
    out = np.zeros((2, round(seconds * rate)), np.float32)
    n = 0
    with contextlib.closing(SoundReader(source).blocks()) as blocks:
        part = _cut(blocks, start_s, seconds)
        for frame in audio.resampled(part, "fltp", "stereo", rate):
            samples = frame.to_ndarray()[:, : out.shape[1] - n]
            out[:, n : n + samples.shape[1]] = samples
            n += samples.shape[1]
    if n == 0:
        raise AudioDecodeError(
            f"{label} has no sound at {start_s:.0f} s: it is damaged, or has changed since it was added."
        )
    return out[:, :n]


def _cut(blocks: Iterator[Block], start_s: float, seconds: float) -> Iterator[Block]:
    """The blocks between two times; what comes before has to be decoded, what comes behind is not."""
    at_s = 0.0
    for rate, block in blocks:
        first, last = (round((t - at_s) * rate) for t in (start_s, start_s + seconds))
        at_s += block.shape[1] / rate
        if last <= 0:
            return
        if first < block.shape[1]:
            yield rate, block[:, max(first, 0) : last]


# Mixing


def _evened(excerpt: Float32Array) -> Float32Array:
    """An excerpt at the common loudness, in place."""
    peak = float(max(excerpt.max(), -excerpt.min()))
    rms = math.sqrt(sum(float(np.square(channel, dtype=np.float64).mean()) for channel in excerpt) / 2)
    if rms > 0:
        excerpt *= np.float32(min(_RMS / rms, _PEAK / peak, _MAX_GAIN))
    return excerpt


def _rising(n: int) -> Float32Array:
    """Gains of a fade-in, (n,): its squares and those of the fade-out, which is its mirror, sum to 1."""
    return np.sin(0.5 * np.pi * (np.arange(n) + 0.5) / n).astype(np.float32) if n else np.empty(0, np.float32)


class _Mixer:
    """Joins excerpts, and hands on what no later one can change.

    `starts` are the samples at which the excerpts begin, `n_written` those that were handed on.
    """

    def __init__(self, write: Callable[[Float32Array], None], fade: int) -> None:
        self._write, self._fade = write, fade
        self._pending: Float32Array = np.empty((2, 0), np.float32)  # the last excerpt without what was written of it
        self._longest = fade  # half of the last excerpt, which may fade
        self.starts: list[int] = []
        self.n_written = 0

    def add(self, excerpt: Float32Array) -> None:
        """Take the next excerpt, (2, n), which is changed."""
        is_first = not self.starts
        half = excerpt.shape[1] // 2
        n = min(self._fade, self._longest, half)
        excerpt[:, :n] *= _rising(n)
        overlap = 0 if is_first else n
        end = self._pending.shape[1] - overlap
        self._hand_on(self._pending[:, :end])
        self.starts.append(self.n_written)
        excerpt[:, :overlap] += self._pending[:, end:] * _rising(overlap)[::-1]
        self._hand_on(excerpt[:, :n])
        self._pending, self._longest = excerpt[:, n:], half

    def finish(self) -> None:
        """Fade the last excerpt out."""
        n = min(self._fade, self._longest)
        self._pending[:, self._pending.shape[1] - n :] *= _rising(n)[::-1]
        self._hand_on(self._pending)

    def _hand_on(self, samples: Float32Array) -> None:
        self.n_written += samples.shape[1]
        for start in range(0, samples.shape[1], _CHUNK):
            self._write(samples[:, start : start + _CHUNK])


class _Writer:
    """An audio file that is being written; closing it completes it."""

    def __init__(self, path: Path, form: _Form) -> None:
        import av

        self._rate = form.rate
        self._container = av.open(str(path.absolute()), "w")
        stream = cast(av.AudioStream, self._container.add_stream(form.codec, rate=form.rate, layout="stereo"))
        stream.codec_context.format = av.AudioFormat(form.sample_format)
        if form.bit_rate is not None:
            stream.bit_rate = form.bit_rate
        self._stream = stream

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._container.mux(self._stream.encode(None))
        finally:
            self._container.close()

    def write(self, samples: Float32Array) -> None:
        """Encode samples, (2, n)."""
        import av

        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(samples), format="fltp", layout="stereo")
        frame.sample_rate = self._rate
        self._container.mux(self._stream.encode(frame))
