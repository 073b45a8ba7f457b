"""Works with several movements: consecutive songs of an album whose titles begin with the same words.

A title is split before a movement: after a colon, or before a number, as in “Symphony No. 5 - II. Andante”. Songs of an
ordinary album can share words, too. These words must therefore name a form, a key or an opus, such as “Sonata” or
“Op. 9”; otherwise, the movements must be numbered I, II, III and so on.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from musicsim.library import Song

_NUMBER = r"(?:[IVXLC]+|\d{1,2})[.):](?=\s|$)"
_BEFORE_MOVEMENT = re.compile(rf"\s*:\s+|\s*[,;]\s+(?={_NUMBER})|\s+[-–—]\s+(?={_NUMBER})")
_DIGITS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}
_NAMES_WORK = re.compile(
    # not “trio” or “quartet”, which are also the names of many artists
    r"\b(?:symphon(?:y|ie)|sinfoni[ae]|concert[oi]|\w*konzert (?:nr|f[uü]r|in)|sonat(?:as?|en?|in[ae])|suites?|"
    r"partitas?|divertimento|serenad[ae]|[ck]antat[ae]|requiem|missa|variation(?:s|en)|pr[eé]ludes|[eé]tudes|nocturnes)\b|"
    r"\b(?:op|opus|(?:bux)?bwv|kv?|hob|[rht]wv|rv|woo|d|sz)\b[. ]+(?:[ivx]+:)?\d|"
    r"\bin [a-g](?:[- ](?:flat|sharp))? (?:major|minor)\b|\b[a-h](?:is|es|s)?-(?:dur|moll)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Work:
    """Consecutive songs of an album; the title is empty if they are not movements of a work."""

    title: str
    songs: tuple[Song, ...]


@dataclass(frozen=True, slots=True)
class _Beginning:
    """The beginning of a song's title that may be the name of a work."""

    title: str
    number: int | None  # of the movement
    is_roman: bool

    def may_precede(self, other: "_Beginning | None") -> bool:
        """Return True if two songs with the same beginning are movements of the same work."""
        if other is None:
            return False
        if self.number is None or other.number is None:
            return bool(_NAMES_WORK.search(self.title))
        if self.is_roman and other.is_roman and other.number == self.number + 1:  # initials never follow each other
            return True
        return other.number > self.number and bool(_NAMES_WORK.search(self.title))


def group_works(songs: Sequence[Song]) -> list[Work]:
    """Group songs in track order into works; the longest beginning that a title shares with the next one counts."""
    beginnings = [_beginnings(song) for song in songs]
    joins = [
        {key for key, one in before.items() if one.may_precede(after.get(key))}
        for before, after in pairwise(beginnings)
    ]
    works, first = list[Work](), 0
    while first < len(songs):
        key = max(joins[first], key=len, default=None) if first < len(joins) else None
        end = first + 1
        while key is not None and end <= len(joins) and key in joins[end - 1]:
            end += 1
        if key is not None:
            works.append(Work(beginnings[first][key].title, tuple(songs[first:end])))
        else:
            before = works.pop().songs if works and not works[-1].title else ()
            works.append(Work("", (*before, songs[first])))
        first = end
    return works


def _beginnings(song: Song) -> dict[str, _Beginning]:
    """Return the possible names of a song's work, keyed by lower case; a composer's name is not a work."""
    composer, found = (song.artist or "").casefold(), dict[str, _Beginning]()
    for match in _BEFORE_MOVEMENT.finditer(song.title):
        title = song.title[: match.start()].strip()
        if title and title.casefold() not in composer:
            numbered = re.match(_NUMBER, song.title[match.end() :])
            number = numbered[0][:-1] if numbered else ""
            value = int(number) if number.isdigit() else _read_roman(number)
            found[title.casefold()] = _Beginning(title, value or None, not number.isdigit())
    return found


def _read_roman(number: str) -> int:
    """Return the value of a Roman numeral; 0 if it is empty."""
    values = [_DIGITS[digit] for digit in number]
    return sum(-one if one < after else one for one, after in zip(values, [*values[1:], 0], strict=False))


def name_movement(work: Work, song: Song) -> str:
    """Return the title of a song within its work, such as “II. Andante”."""
    return song.title[len(work.title) :].lstrip(" :,;-–—") or song.title if work.title else song.title
