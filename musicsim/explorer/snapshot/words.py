"""Words that say what songs must be: "slow piano 1960s", "fast bright minor", "not rock", read with their typos.

Words are read from left to right, the longest known phrase first, in this order: tags and genres, what can be heard,
years, keys, artists, words that extensions know. "Slow" is the slowest third of the library's songs, "very slow" the
slowest sixth.

The hook ``text_filter`` is ``function(library: Library, word: str) -> tuple[str, Int64Array] | None``: the meaning of a
word and the ids of the songs that fit, or None.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

import numpy as np

from musicsim._arrays import Int64Array
from musicsim.audio import MODES
from musicsim.explorer.requests.filters import HEARD_WORDS, Filters
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.hooks import load_hooks
from musicsim.library.stores.genres import genre_key

_MAX_TEXT = 200
_LONGEST_PHRASE = 4  # words of a tag or an artist's name
_MIN_TYPO, _ALIKE = 4, 0.75  # letters of a word that may have a typo, and how alike the right one is
_TEMPO_WITHIN = 0.04  # as close as listeners, and estimates, tell tempos apart
_FIRST_YEAR, _LAST_YEAR = 1000, 2999
_SCALES = HEARD_WORDS | {"duration_s": ("long", "short")}
_UNITS = {"tempo": "beats/min", "loudness": "LUFS", "brightness": "Hz", "energy": "dB/s", "duration_s": "s"}
_HEARD = {word: (name, side) for name, pair in _SCALES.items() for side, word in enumerate(pair)}
_SAME = {"quick": "fast", "upbeat": "fast", "soft": "quiet", "energetic": "lively", "relaxed": "calm", "mellow": "calm"}
_NOT, _VERY, _ABOUT = {"not", "no", "without"}, "very", "about"
_FILLERS = {"a", "about", "and", "but", "by", "from", "in", "music", "of", "or", "some", "song", "songs", "the", "with"}
_DECADE = re.compile(r"(\d\d|\d{3}0)['’]?s")
_YEARS = re.compile(r"(\d{4})(?:[-–](\d{4}))?")
_BOUND = re.compile(r"(before|until|since|after) (\d{4})")
_TEMPO = re.compile(r"(\d{2,3}) ?(?:bpm|beats)")
_KEY = re.compile(r"([a-g])(#|♯| sharp|b|♭| flat)?(?: (major|minor))?")
_SAME_KEY = {"Db": "C#", "D#": "Eb", "Fb": "E", "E#": "F", "Gb": "F#", "G#": "Ab", "A#": "Bb", "Cb": "B", "B#": "C"}


@dataclass(frozen=True, slots=True)
class Part:
    """Some words that are one condition."""

    text: str  # the words, without typos
    words: str  # what they mean
    filters: Filters = field(default_factory=Filters)  # the condition, unless `song_ids` is
    song_ids: Int64Array | None = field(default=None, compare=False)  # songs that fit, by an extension
    along: tuple[str, int] | None = None  # what there is more, or less, of in songs that fit better
    is_not: bool = False  # songs that fit the condition are left out


@dataclass(frozen=True, slots=True)
class Words:
    """What a text says of songs, and the words of it that mean nothing to the library."""

    parts: tuple[Part, ...]
    unknown: tuple[str, ...]

    @property
    def known(self) -> str:
        """The text without the words that mean nothing."""
        return " ".join(part.text for part in self.parts)

    def without(self, place: int) -> str:
        """The text without the part at a place."""
        return " ".join([*(part.text for i, part in enumerate(self.parts) if i != place), *self.unknown])


def understood(snapshot: Snapshot, text: str) -> Words:
    """Read words as conditions on songs.

    Parameters
    ----------
    text : str
        The first 200 letters are read.
    """
    return _reader(snapshot).read(text[:_MAX_TEXT])


def _skipped(tokens: Sequence[str], at: int, words: Iterable[str]) -> tuple[bool, int]:
    """Whether one of some words is there with another one behind it, and where that is."""
    is_there = at + 1 < len(tokens) and tokens[at] in words
    return is_there, at + is_there


@lru_cache(maxsize=2)
def _reader(snapshot: Snapshot) -> "_Reader":
    return _Reader(snapshot)


class _Reader:
    """Reads phrases by the names that a library has."""

    def __init__(self, snapshot: Snapshot) -> None:
        columns = snapshot.columns
        self._snapshot = snapshot
        labels = [*columns.genre.counts(), *snapshot.library.listening.tag_counts()]
        self._tags = _by_key(labels)
        self._artists = _by_key(columns.artist.counts())
        self._known = [*{*self._tags, *_HEARD, *_SAME, *MODES}]
        self.read = lru_cache(maxsize=64)(self._read)

    def _read(self, text: str) -> Words:
        tokens = [token.strip(',.;:!?"“”()') for token in text.casefold().split()]
        tokens = [token for token in tokens if token]
        parts, unknown, at = [], [], 0
        while at < len(tokens):
            start = at
            is_not, at = _skipped(tokens, at, _NOT)
            is_very, at = _skipped(tokens, at, {_VERY})
            found, n = self._longest(tokens[at:], is_very)
            if found is not None:
                text = " ".join([*tokens[start:at], found.text])
                words = f"not {found.words}" if is_not else found.words
                parts.append(Part(text, words, found.filters, found.song_ids, found.along, is_not))
            elif tokens[at] not in _FILLERS:
                unknown.append(tokens[at])
            at += n
        return Words(tuple(parts), tuple(unknown))

    def _longest(self, tokens: Sequence[str], is_very: bool) -> tuple[Part | None, int]:
        """The part that the first tokens are, as many as can be, and how many these are; typos only where none is."""
        for n in range(min(_LONGEST_PHRASE, len(tokens)), 0, -1):
            part = self._exact(" ".join(tokens[:n]), is_very)
            if part is not None:
                return part, n
        if not tokens or tokens[0] in _FILLERS:
            return None, 1
        for n in range(min(_LONGEST_PHRASE, len(tokens)), 0, -1):
            part = self._mistyped(" ".join(tokens[:n]), is_very)
            if part is not None:
                return part, n
        return self._by_extensions(tokens[0]), 1

    def _exact(self, phrase: str, is_very: bool) -> Part | None:
        key = genre_key(phrase)
        tags = self._tags.get(key)
        if tags:
            return Part(phrase, f"“{tags[0]}”", Filters(tags=frozenset(tags)))
        word = _SAME.get(phrase, phrase)
        if word in _HEARD:
            return self._heard(word, is_very)
        part = _years(phrase) or _tempo(phrase) or _key(phrase)
        if part is not None:
            return part
        artists = self._artists.get(key)
        if artists and phrase not in _FILLERS:
            return Part(phrase, f"by {artists[0]}", Filters(artists=frozenset(artists)))
        about = phrase.removeprefix(f"{_ABOUT} ")
        return self._by_extensions(about) if about != phrase and " " not in about else None

    def _mistyped(self, phrase: str, is_very: bool) -> Part | None:
        """A name or word that differs by a letter or so; of artists only those that begin alike, as there are many."""
        key = genre_key(phrase)
        if len(key) < _MIN_TYPO:
            return None
        artists = [name for name in self._artists if name[:1] == key[:1] and abs(len(name) - len(key)) <= 2]
        for known, spellings in ((self._known, self._tags), (artists, self._artists)):
            for right in get_close_matches(key, known, 1, _ALIKE):
                return self._exact(spellings.get(right, [right])[0].casefold(), is_very)
        return None

    def _heard(self, word: str, is_very: bool) -> Part | None:
        name, side = _HEARD[word]
        values = getattr(self._snapshot.columns, name)
        known = values[np.isfinite(values)]
        if not len(known):
            return None
        share = 1 / 6 if is_very else 1 / 3
        bound = float(np.quantile(known, share if side else 1 - share))
        low, high = (float(known.min()), bound) if side else (bound, float(known.max()))
        said = f"{'very ' * is_very}{word} ({'up to' if side else 'from'} {bound:.0f} {_UNITS[name]})"
        return Part(word, said, Filters(**_range(name, low, high)), along=(name, -1 if side else 1))

    def _by_extensions(self, word: str) -> Part | None:
        for find in load_hooks("text_filter"):
            if (fitting := find(self._snapshot.library, word)) is not None:
                return Part(word, fitting[0], song_ids=fitting[1])
        return None


def _range(name: str, low: float, high: float) -> dict[str, Any]:
    return {name: (low, high)}


def _by_key(names: Iterable[str]) -> dict[str, list[str]]:
    """Spellings of each name by what they have in common."""
    found: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        found.setdefault(genre_key(name), []).append(name)
    return found


def _years(phrase: str) -> Part | None:
    decade, years, bound = _DECADE.fullmatch(phrase), _YEARS.fullmatch(phrase), _BOUND.fullmatch(phrase)
    if decade:
        start = int(decade[1]) if len(decade[1]) == 4 else int(decade[1]) + (1900 if int(decade[1]) >= 30 else 2000)
        if start % 10:
            return None
        first, last = start, start + 9
    elif years:
        first, last = int(years[1]), int(years[2] or years[1])
    elif bound:
        year = int(bound[2])
        first, last = {
            "before": (_FIRST_YEAR, year - 1), "until": (_FIRST_YEAR, year), "since": (year, _LAST_YEAR),
            "after": (year + 1, _LAST_YEAR),
        }[bound[1]]  # fmt: skip
        return Part(phrase, phrase, Filters(years=(first, last)))
    else:
        return None
    if not _FIRST_YEAR <= first <= last <= _LAST_YEAR:
        return None
    return Part(phrase, f"{first}" if first == last else f"{first} to {last}", Filters(years=(first, last)))


def _tempo(phrase: str) -> Part | None:
    said = _TEMPO.fullmatch(phrase)
    if not said:
        return None
    tempo = int(said[1])
    within = (tempo * (1 - _TEMPO_WITHIN), tempo * (1 + _TEMPO_WITHIN))
    return Part(phrase, f"about {tempo} beats/min", Filters(tempo=within))


def _key(phrase: str) -> Part | None:
    if phrase in MODES:
        return Part(phrase, phrase, Filters(modes=frozenset({phrase})))
    said = _KEY.fullmatch(phrase)
    if not said or not (said[2] or said[3]):  # a letter alone may be anything
        return None
    name = said[1].upper() + {"": "", "#": "#", "♯": "#", " sharp": "#"}.get(said[2] or "", "b")
    name = _SAME_KEY.get(name, name)
    modes = frozenset({said[3]} if said[3] else ())
    return Part(phrase, " ".join([name, *modes]), Filters(keys=frozenset({name}), modes=modes))
