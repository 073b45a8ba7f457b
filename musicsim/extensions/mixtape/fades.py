"""Joining excerpts by fades: on the beat if both songs have regular beats of similar tempo, else plain crossfades.

If the tempos are so similar that the beats coincide anyway, nothing is stretched.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from musicsim._arrays import Float32Array
from musicsim.audio import import_librosa
from musicsim.explorer import find_beats, fit_beats
from musicsim.extensions.mixtape.encoding import Write
from musicsim.extensions.mixtape.excerpts import Excerpt

_SEARCHED_S = 20.0  # length of the parts in which beats are searched
_UNHEARD_S = 0.02  # beats that drift apart by at most this during a fade are not stretched, which would blur drums
_BLEND_S = 0.01  # a stretched part does not begin exactly as the original one, so this time joins them


@dataclass(frozen=True, slots=True)
class Fade:
    """The fade between two songs of a mix; all times are in seconds."""

    start_s: float  # time in the mix
    duration_s: float
    out_s: tuple[float, float]  # part of the earlier song that fades out: start and end in the song
    in_s: tuple[float, float]  # part of the later song that fades in
    n_beats: int = 0  # number of beats of the earlier song; 0 for a plain crossfade
    reason: str = ""  # why the fade is not on the beat, if it should have been

    @property
    def words(self) -> str:
        """The kind of fade."""
        if self.n_beats:
            return f"{self.n_beats} beats, {60 * self.n_beats / self.duration_s:.0f} beats/min"
        return f"crossfade: {self.reason}" if self.reason else "crossfade"


class _Join(NamedTuple):
    """A fade in samples; parts are (start, end) in the two excerpts."""

    fading_out: tuple[int, int]
    fading_in: tuple[int, int]
    length: int
    n_beats: int = 0
    reason: str = ""


class Mixer:
    """Joins excerpts and writes samples once they are final.

    `starts` are the samples at which excerpts begin, and `fades` are between them. Fades take `fade` samples, or
    `n_beats` beats if both songs have them; at most half of an excerpt is faded at each end.
    """

    def __init__(self, write: Write, rate: int, fade: int, n_beats: int | None = None) -> None:
        self._write, self._rate, self._fade, self._n_beats = write, rate, fade, n_beats
        self._last: Excerpt | None = None
        self._n_used = 0  # samples of the last excerpt that have been written
        self.starts: list[int] = []
        self.fades: list[Fade] = []
        self.n_written = 0

    def add(self, excerpt: Excerpt) -> None:
        """Add the next excerpt."""
        if self._last is None:
            n = min(self._fade, excerpt.samples.shape[1] // 2)
            self.starts.append(0)
            self._put(excerpt.samples[:, :n] * _fade_in(n))
            self._n_used = n
        else:
            self._join(self._last, excerpt)
        self._last = excerpt

    def finish(self) -> None:
        """Write the rest of the last excerpt, with a fade to silence."""
        if self._last is None:
            return
        samples = self._last.samples
        n = min(self._fade, samples.shape[1] // 2)
        end = samples.shape[1] - n
        self._put(samples[:, self._n_used : end])
        self._put(samples[:, end:] * _fade_in(n)[::-1])

    def _join(self, last: Excerpt, excerpt: Excerpt) -> None:
        join = self._plan(last, excerpt)
        self._put(last.samples[:, self._n_used : join.fading_out[0]])
        self.starts.append(self.n_written)
        self.fades.append(
            Fade(
                self.n_written / self._rate, join.length / self._rate, self._in_song(last, join.fading_out),
                self._in_song(excerpt, join.fading_in), join.n_beats, join.reason,
            )
        )  # fmt: skip
        if join.length:
            blend = round(_BLEND_S * self._rate)
            leaving = _stretch(last.samples[:, slice(*join.fading_out)], join.length, blend)
            # Stretching keeps the phases at the start. The later song is reversed, so that it continues without a gap.
            reversed_part = excerpt.samples[:, slice(*join.fading_in)][:, ::-1]
            arriving = _stretch(reversed_part, join.length, blend)[:, ::-1]
            gains = _fade_in(join.length)
            self._put(np.clip(leaving * gains[::-1] + arriving * gains, -1.0, 1.0))  # stretching may raise peaks
        self._n_used = join.fading_in[1]

    def _in_song(self, excerpt: Excerpt, part: tuple[int, int]) -> tuple[float, float]:
        start, end = (excerpt.start_s + at / self._rate for at in part)
        return start, end

    def _plan(self, last: Excerpt, excerpt: Excerpt) -> _Join:
        reason = ""
        if self._n_beats is not None:
            planned = _plan_beats(last, excerpt, self._rate, self._n_beats)
            if isinstance(planned, _Join):
                return planned
            reason = planned
        n_last = last.samples.shape[1]
        n = min(self._fade, n_last // 2, excerpt.samples.shape[1] // 2)
        return _Join((n_last - n, n_last), (0, n), n, reason=reason)

    def _put(self, samples: Float32Array) -> None:
        self.n_written += samples.shape[1]
        self._write(samples)


def _plan_beats(last: Excerpt, excerpt: Excerpt, rate: int, n_beats: int) -> _Join | str:
    """Return a fade on the beat over at most `n_beats` beats, or the reason why there is none."""
    n_searched = round(_SEARCHED_S * rate)
    tail, head = last.samples[:, -n_searched:], excerpt.samples[:, :n_searched]
    leaving, arriving = find_beats(tail, rate, last.tempo), find_beats(head, rate, excerpt.tempo)
    end_s, other_s = (part.samples.shape[1] / rate for part in (last, excerpt))
    leaving = leaving and leaving.shift(end_s - tail.shape[1] / rate)
    room_s = end_s / 2, other_s / 2
    fade = fit_beats(leaving, arriving, end_s=end_s, start_s=0.0, room_s=room_s, n_beats=n_beats)
    if isinstance(fade, str):
        return fade
    end, start = round(fade.out_s[1] * rate), round(fade.in_s[0] * rate)
    n_out, n_in = (round((stop_s - from_s) * rate) for from_s, stop_s in (fade.out_s, fade.in_s))
    n = round(fade.duration_s * rate)
    if abs(n_out - n_in) <= _UNHEARD_S * rate:
        n_out = n_in = n
    return _Join((end - n_out, end), (start, start + n_in), n, fade.n_beats)


def _fade_in(n: int) -> Float32Array:
    """Return the gains of a fade-in, (n,). A fade-out is the mirror image; the squares of both sum to 1."""
    return np.sin(0.5 * np.pi * (np.arange(n) + 0.5) / n).astype(np.float32) if n else np.empty(0, np.float32)


def _stretch(samples: Float32Array, n: int, blend: int) -> Float32Array:
    """Return samples (2, m) stretched to (2, n) at the same pitch; the first `blend` samples join them seamlessly."""
    if samples.shape[1] == n:
        return samples
    librosa = import_librosa()

    stretched = librosa.effects.time_stretch(np.ascontiguousarray(samples), rate=samples.shape[1] / n)
    stretched = librosa.util.fix_length(stretched, size=n)
    weights = np.linspace(0.0, 1.0, blend, dtype=np.float32)
    stretched[:, :blend] += (samples[:, :blend] - stretched[:, :blend]) * (1 - weights)
    return np.asarray(stretched, np.float32)
