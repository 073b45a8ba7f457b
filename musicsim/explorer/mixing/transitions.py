"""Transitions of the player from one song to the next: on the beat, or the reason why only a crossfade fits.

The slower song is played faster, at the tempo of the other one, because browsers do not slow down sound exactly
(``musicsim/web/player/beat_mixer.js``).
"""

from dataclasses import dataclass

from musicsim.explorer.mixing.beats import BeatGrid
from musicsim.explorer.mixing.fits import BEATS, BeatFade, fit_beats
from musicsim.explorer.mixing.ordering import measure_keys
from musicsim.explorer.mixing.song_ends import SongEnds
from musicsim.library import Song

WARM_UP_S = 1.5  # the next song plays silently for this time before the fade, while the player aligns it
_FADE_S, _CLASHING_FADE_S = 9.0, 5.5  # maximum lengths of fades; the second one for keys that do not fit
_FITTING_KEYS = 1.5  # fifths apart, at most: neighbors on the circle of fifths, in the same mode or the other one
_UNHEARD_S = 0.005  # if beats drift apart by at most this during a fade, both songs keep their speed


@dataclass(frozen=True, slots=True)
class Transition:
    """A fade between two songs of the player; all times are in seconds, and rates are relative to the songs' own."""

    tempos: tuple[float | None, float | None]  # beats per minute at the end of the first song and the start of the next
    keys: tuple[str, str]  # such as "A minor"; empty if unknown
    reason: str = ""  # why the fade is not on the beat; the fields below then have no meaning
    n_beats: int = 0
    leave_s: float = 0.0  # position in the first song at which the fade begins
    enter_s: float = 0.0  # position in the next song at the same time
    duration_s: float = 0.0
    rates: tuple[float, float] = (1.0, 1.0)  # speeds of both songs during the fade, at least 1


def plan_transition(first: Song, second: Song, ends: tuple[SongEnds, SongEnds]) -> Transition:
    """Return the transition from a song to the next one. Songs whose keys do not fit overlap for less time."""
    leaving, arriving = ends
    tempos = _tempo(leaving.last, first), _tempo(arriving.first, second)
    keys = first.key_words, second.key_words
    does_fit = measure_keys([first, second])[0, 1] <= _FITTING_KEYS
    half_s, other_half_s = ((one.end_s - one.start_s) / 2 for one in ends)
    fade = fit_beats(
        leaving.last, arriving.first, end_s=leaving.end_s, start_s=arriving.start_s + WARM_UP_S,
        room_s=(half_s - WARM_UP_S, other_half_s - WARM_UP_S),
        n_beats=_count_beats(leaving.last, _FADE_S if does_fit else _CLASHING_FADE_S),
    )  # fmt: skip
    if not isinstance(fade, BeatFade):
        return Transition(tempos, keys, fade)
    out_s, in_s = (end_s - start_s for start_s, end_s in (fade.out_s, fade.in_s))
    duration_s = min(out_s, in_s)
    if abs(out_s - in_s) <= _UNHEARD_S:
        out_s = in_s = duration_s
    rates = out_s / duration_s, in_s / duration_s
    return Transition(tempos, keys, "", fade.n_beats, fade.out_s[1] - out_s, fade.in_s[0], duration_s, rates)


def _count_beats(grid: BeatGrid | None, seconds: float) -> int:
    """Return the largest usual number of beats that takes at most this time, or the smallest one."""
    return max((n for n in BEATS if grid and n * grid.period_s <= seconds), default=BEATS[0])


def _tempo(grid: BeatGrid | None, song: Song) -> float | None:
    return grid.tempo if grid else song.tempo
