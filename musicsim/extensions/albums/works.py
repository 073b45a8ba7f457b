"""Works with several movements: consecutive songs of an album whose titles begin with the same words.

A title is split before a movement: after a colon, or before a numbered part, as in “Symphony No. 5 - II. Andante”.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from musicsim.library import Song

_NUMBER = r"(?:[IVXLC]+|\d{1,2})[.):](?=\s|$)"
_BEFORE_MOVEMENT = re.compile(rf"\s*:\s+|\s*[,;]\s+(?={_NUMBER})|\s+[-–—]\s+(?={_NUMBER})")


@dataclass(frozen=True, slots=True)
class Work:
    """Consecutive songs of an album; the title is empty if they are not movements of a work."""

    title: str
    songs: tuple[Song, ...]


def group_works(songs: Sequence[Song]) -> list[Work]:
    """Group songs in track order into works; the longest beginning that a title shares with the next one counts."""
    beginnings = [_beginnings(song) for song in songs]
    works, first = list[Work](), 0
    while first < len(songs):
        following = beginnings[first + 1] if first + 1 < len(songs) else {}
        key = max((key for key in beginnings[first] if key in following), key=len, default=None)
        end = first + 1
        while key is not None and end < len(songs) and key in beginnings[end]:
            end += 1
        if key is not None:
            works.append(Work(beginnings[first][key], tuple(songs[first:end])))
        else:
            before = works.pop().songs if works and not works[-1].title else ()
            works.append(Work("", (*before, songs[first])))
        first = end
    return works


def _beginnings(song: Song) -> dict[str, str]:
    """Return the possible names of a song's work, keyed by lower case; a composer's name is not a work."""
    titles = [song.title[: match.start()].strip() for match in _BEFORE_MOVEMENT.finditer(song.title)]
    composer = (song.artist or "").casefold()
    return {title.casefold(): title for title in titles if title and title.casefold() not in composer}


def name_movement(work: Work, song: Song) -> str:
    """Return the title of a song within its work, such as “II. Andante”."""
    return song.title[len(work.title) :].lstrip(" :,;-–—") or song.title if work.title else song.title
