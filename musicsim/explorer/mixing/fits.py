"""Fades on the beat between two grids of beats, and the reasons why two songs have none.

A fade on the beat lasts a whole number of beats. It ends on the last beat of the earlier song, and begins on the first
beat of the later one. Both parts are stretched to the mean of the two tempos (the geometric mean), so each changes by
at most 4 %.
"""

import math
from dataclasses import dataclass

from musicsim.explorer.mixing.beats import MAX_STRETCH, BeatGrid

BEATS = (4, 8, 16, 32)
"""Usual numbers of beats of a fade; no fade is shorter than the first one."""


@dataclass(frozen=True, slots=True)
class BeatFade:
    """A fade during which the beats of two songs coincide; all times are in seconds."""

    n_beats: int  # number of beats of the earlier song
    out_s: tuple[float, float]  # part of the earlier song that fades out: start and end in the song
    in_s: tuple[float, float]  # part of the later song that fades in

    @property
    def duration_s(self) -> float:
        """The length of the fade, in which both parts are stretched to one tempo."""
        return math.sqrt((self.out_s[1] - self.out_s[0]) * (self.in_s[1] - self.in_s[0]))


def fit_beats(
    leaving: BeatGrid | None,
    arriving: BeatGrid | None,
    *,
    end_s: float,
    start_s: float,
    room_s: tuple[float, float],
    n_beats: int,
) -> BeatFade | str:
    """Return a fade on the beat over at most `n_beats` beats, or the reason why there is none.

    The earlier song ends at `end_s`, and the later one starts at `start_s`. The fade stays within the last `room_s[0]`
    seconds of the earlier song and the first `room_s[1]` of the later one.
    """
    if leaving is None:
        return "the earlier song has no regular beats at its end"
    if arriving is None:
        return "the later song has no regular beats at its start"
    arriving_s = _fold_period(arriving, leaving)
    if max(arriving_s / leaving.period_s, leaving.period_s / arriving_s) > MAX_STRETCH:
        return f"the tempos {leaving.tempo:.0f} and {arriving.tempo:.0f} beats/min are too different"
    last_s, first_s = leaving.beat_before(end_s), arriving.beat_after(start_s)
    room = min((room_s[0] - (end_s - last_s)) / leaving.period_s, (room_s[1] - (first_s - start_s)) / arriving_s)
    while BEATS[0] <= n_beats > room:
        n_beats //= 2
    if n_beats < BEATS[0]:
        return f"a song is too short for {BEATS[0]} beats"
    return BeatFade(
        n_beats, (last_s - n_beats * leaving.period_s, last_s), (first_s, first_s + n_beats * arriving_s)
    )  # fmt: skip


def _fold_period(grid: BeatGrid, other: BeatGrid) -> float:
    """Return a period, multiplied by the power of two that makes it most similar to the other one."""
    return float(grid.period_s * 2.0 ** round(math.log2(other.period_s / grid.period_s)))
