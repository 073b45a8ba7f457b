"""Short reasons in words: what two songs have in common besides their sound."""

from musicsim.explorer.snapshot import Snapshot
from musicsim.library import Song

__all__ = ["short_reason"]

_TAGS_COMPARED = 8


def short_reason(snapshot: Snapshot, song: Song | None, other: Song) -> str:
    """At most two things that a query and an answer share; "close in sound" when nothing else is known.

    Parameters
    ----------
    snapshot : Snapshot
    song : Song or None
        The query; None for sound that is not in the library.
    other : Song
        The answer.
    """
    facts = []
    if song is not None:
        if song.artist and song.artist == other.artist:
            facts.append("same artist")
        tags = [tag for tag, _ in snapshot.tags.get(song.id, ())[:_TAGS_COMPARED]]
        others = {tag for tag, _ in snapshot.tags.get(other.id, ())[:_TAGS_COMPARED]}
        facts += [f"both {tag}" for tag in tags if tag in others]
        if song.genre and song.genre == other.genre and f"both {song.genre.lower()}" not in facts:
            facts.append(f"both {song.genre}")
        if song.year and other.year and abs(song.year - other.year) <= 1:
            facts.append("same years")
    return " · ".join(facts[:2]) or "close in sound"
