"""Short reasons in words: what two songs have in common besides their sound."""

import math
from collections.abc import Mapping, Sequence

from musicsim.library import Song
from musicsim.library.genres import genre_key

__all__ = ["short_reason"]

_TAGS_COMPARED = 8
_SAME_TEMPO = 1.04
"""Tempos within 4 % are told apart by few listeners, and by no estimate of them."""


def short_reason(tags_of: Mapping[int, Sequence[tuple[str, float]]], song: Song | None, other: Song) -> str:
    """At most two things that a query and an answer share; "close in sound" when nothing else is known.

    Parameters
    ----------
    tags_of : mapping of song id to tags with weights, heaviest first
        As :meth:`Snapshot.tags_of` gives them; a song without tags may be left out.
    song : Song or None
        The query; None for sound that is not in the library.
    other : Song
        The answer.
    """
    facts = []
    if song is not None:
        if song.artist and song.artist == other.artist:
            facts.append("same artist")
        tags = [tag for tag, _ in tags_of.get(song.id, ())[:_TAGS_COMPARED]]
        others = {tag for tag, _ in tags_of.get(other.id, ())[:_TAGS_COMPARED]}
        facts += [f"both {tag}" for tag in tags if tag in others]
        if (
            song.genre
            and other.genre
            and genre_key(song.genre) == genre_key(other.genre)
            and f"both {song.genre.lower()}" not in facts
        ):
            facts.append(f"both {song.genre}")
        if song.year and other.year and abs(song.year - other.year) <= 1:
            facts.append("same years")
        if song.key and (song.key, song.mode) == (other.key, other.mode):
            facts.append(f"both in {song.key} {song.mode}")
        if song.tempo and other.tempo and abs(math.log(song.tempo / other.tempo)) <= math.log(_SAME_TEMPO):
            facts.append(f"both about {song.tempo:.0f} beats/min")
    return " · ".join(facts[:2]) or "close in sound"
