"""Options of a mix."""

from dataclasses import dataclass

from musicsim.explorer import BEATS, option, settle

MAX_WHOLE_S = 1200.0
"""Whole songs are cut after this time, because they are in memory: 0.35 MB per second."""


@dataclass(frozen=True, kw_only=True)
class MixRequest:
    """Parts of the songs, their order, and the fades between them."""

    seconds: float = option(
        30.0, "Seconds of each song, the most typical ones.", label="Seconds of each song", min=1, max=600
    )
    whole: bool = option(
        False,
        f"Use whole songs without silence at their ends, but at most {MAX_WHOLE_S / 60:g} minutes of each.",
        label="Whole songs",
    )
    crossfade_s: float = option(
        4.0, "Length of a crossfade in seconds, at most half of a song's part.", label="Crossfade in seconds",
        min=0, max=300,
    )  # fmt: skip
    beats: int | None = option(
        None,
        f"Fade on the beat, over {', '.join(map(str, BEATS[:-1]))} or {BEATS[-1]} beats. During the fade, both songs "
        "are stretched to one tempo. Songs without regular beats, or with different tempos, are crossfaded.",
        label="Fade on the beat",
    )
    reorder: bool = option(
        False,
        "Order the songs so that keys and tempos of neighbors fit. The first song and the playlist do not change.",
        label="Order for mixing",
    )

    def __post_init__(self) -> None:
        settle(self)
        if not (self.whole or self.crossfade_s <= self.seconds / 2):
            raise ValueError(f"crossfade_s={self.crossfade_s} must be between 0 and half of seconds={self.seconds}.")
        if self.beats is not None and self.beats not in BEATS:
            raise ValueError(f"beats={self.beats} must be one of {', '.join(map(str, BEATS))}.")
