"""Parse queries such as "slow piano 1960s" or "fast -rock played:never" into conditions; typos are corrected.

:mod:`musicsim.explorer.requests.query` has the syntax. Words between fields are read from left to right, the longest
known phrase first. A phrase is looked up in this order: tags and genres, descriptors, years, tempos, keys, artists. Any
other word can be part of a tag, a folder or a title, contain a typo, or be known to an extension. "Slow" means the
slowest third of the library's songs, "very slow" the slowest sixth.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np

from musicsim._arrays import Int64Array
from musicsim.audio import DESCRIPTORS, MODES
from musicsim.explorer.requests.filters import Filters
from musicsim.explorer.requests.query import (
    BY_SOUND,
    PRIVATE,
    QUERY_FIELDS,
    FieldCondition,
    QueryGroup,
    QueryProblem,
    QueryTerm,
    Text,
    parse_query,
)
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.hooks import FilterByWord, RankByText
from musicsim.library import genre_key
from musicsim.public import is_public
from musicsim.registry import load_hooks

_MAX_TEXT = 1_000
_MAX_PHRASE = 4  # maximum number of words in a tag or an artist's name
_MIN_TYPO, _MIN_RATIO = 4, 0.75  # minimum length of a word with a typo, and its minimum similarity to the right word
_MIN_PART = 3  # minimum length of a word in a name
_WORD = re.compile(r"[^\W_]+")
_TEMPO_WITHIN = 0.04  # tolerance as a share of the tempo; listeners and estimates are not more precise
_FIRST_YEAR, _LAST_YEAR = 1000, 2999
_SCALES = {name: descriptor.words for name, descriptor in DESCRIPTORS.items()} | {"duration_s": ("long", "short")}
# units of the descriptors whose numbers mean something to listeners
_UNITS = {name: (1, descriptor.unit) for name, descriptor in DESCRIPTORS.items() if descriptor.familiar_unit}
_UNITS["duration_s"] = (60, "min")
_DESCRIPTORS = {word: (name, side) for name, pair in _SCALES.items() for side, word in enumerate(pair)}
_SYNONYMS = {
    "quick": "fast", "upbeat": "fast", "uptempo": "fast", "downtempo": "slow", "soft": "quiet", "gentle": "quiet",
    "silent": "quiet", "noisy": "loud", "energetic": "lively", "aggressive": "lively", "intense": "lively",
    "relaxed": "calm", "relaxing": "calm", "mellow": "calm", "peaceful": "calm", "chill": "calm", "chilled": "calm",
    "gloomy": "dark", "warm": "dark", "brilliant": "bright", "hiphop": "hip-hop", "dnb": "drum and bass",
    "rnb": "r&b", "electro": "electronic", "electronica": "electronic", "orchestra": "orchestral",
    "symphonic": "orchestral", "choir": "choral", "classic": "classical",
}  # fmt: skip
_MAX_TITLES = 1000  # maximum number of songs whose titles contain a word
_NOT, _VERY, _ABOUT = {"not", "no", "without"}, "very", "about"
_FILLERS = {"a", "about", "and", "but", "by", "from", "in", "music", "of", "or", "some", "song", "songs", "the", "with"}
_DECADE = re.compile(r"(\d\d|\d{3}0)['’]?s")
_YEARS = re.compile(r"(\d{4})(?:[-–](\d{4}))?")
_BOUND = re.compile(r"(before|until|since|after) (\d{4})")
_TEMPO = re.compile(r"(\d{2,3}) ?(?:bpm|beats)")
_KEY = re.compile(r"([a-g])(#|♯| sharp|b|♭| flat)?(?: (major|minor))?")
_SAME_KEY = {"Db": "C#", "D#": "Eb", "Fb": "E", "E#": "F", "Gb": "F#", "G#": "Ab", "A#": "Bb", "Cb": "B", "B#": "C"}


@dataclass(frozen=True, slots=True)
class QueryPart:
    """Words that together are one condition."""

    text: str  # the words, without typos
    words: str  # their meaning
    filters: Filters = field(default_factory=Filters)  # the condition, unless there are `song_ids`
    song_ids: Int64Array | None = field(default=None, compare=False)  # matching songs, found by an extension
    along: tuple[str, int] | None = None  # name of a column; 1 if songs with larger values match better, else -1
    is_not: bool = False  # matching songs are excluded
    condition: FieldCondition | None = None  # the condition, if the text names a field
    parts: "tuple[QueryPart, ...]" = ()  # the conditions, if there are several
    is_any: bool = False  # whether one of `parts` is enough
    rank: Callable[[], Int64Array] | None = field(default=None, compare=False)  # finds ids, the nearest in sound first

    def find_songs(self) -> Int64Array | None:
        """Return the ids of matching songs; None if `filters` is the condition."""
        if self.rank is None:
            return self.song_ids
        ids = self.rank()
        return ids[: -(-len(ids) // 3)]


@dataclass(frozen=True, slots=True)
class Words:
    """The conditions in a text, and words that the library does not know."""

    parts: tuple[QueryPart, ...]
    strange: tuple[str, ...]  # words that match nothing
    problems: tuple[QueryProblem, ...] = ()  # terms that cannot be read
    lacks_ranking: bool = False  # whether the text says "sounds like", but no extension ranks songs by sound

    @property
    def unknown(self) -> tuple[str, ...]:
        """The words and terms that are not understood."""
        return (*self.strange, *(problem.text for problem in self.problems))

    @property
    def known(self) -> str:
        """The text without unknown words."""
        return " ".join(part.text for part in self.parts)

    def drop_part(self, place: int) -> str:
        """Return the text without `parts[place]`."""
        return " ".join([*(part.text for i, part in enumerate(self.parts) if i != place), *self.unknown])


def parse_words(snapshot: Snapshot, text: str) -> Words:
    """Read the first 1,000 characters of a query."""
    return _reader(snapshot).read(text[:_MAX_TEXT])


def parse_sound(snapshot: Snapshot, text: str) -> Words | None:
    """Read a whole text as a condition on the sound; None if no extension ranks songs by sound."""
    if _reader(snapshot).rank is None:
        return None
    words = parse_words(snapshot, f"{BY_SOUND} {text.casefold().removeprefix(BY_SOUND)}")
    return words if words.parts else None


def known_fields() -> list[str]:
    """Return the names of the fields that this listener can use in a query."""
    return [name for name in QUERY_FIELDS if not (is_public() and name in PRIVATE)]


def suggest_words(snapshot: Snapshot, n: int = 14) -> list[str]:
    """Return at most `n` words that :func:`parse_words` knows in this library."""
    return _reader(snapshot).suggest(n)


def _find_bounds(
    snapshot: Snapshot, name: str, shares: tuple[float, float] = (1 / 3, 2 / 3)
) -> tuple[float, float] | None:
    """Return two quantiles of a descriptor, by default the bounds of the outer thirds; None if no value is known."""
    values = getattr(snapshot.columns, name)
    known = values[np.isfinite(values)]
    if not len(known):
        return None
    low, high = np.quantile(known, shares).tolist()
    return low, high


@lru_cache(maxsize=2)
def _reader(snapshot: Snapshot) -> "_Reader":
    return _Reader(snapshot)


class _Reader:
    def __init__(self, snapshot: Snapshot) -> None:
        columns = snapshot.columns
        self._snapshot = snapshot
        self._tags = _group_spellings([*columns.genre.counts(), *snapshot.library.listening.tag_counts()])
        self._artists = _group_spellings(columns.artist.counts())
        self._tags_by_word = _group_by_word((name for names in self._tags.values() for name in names), str.split)
        self._known = [*{*self._tags, *self._tags_by_word, *_DESCRIPTORS, *_SYNONYMS, *MODES}]
        self.read = lru_cache(maxsize=64)(self._read)
        rankings = [rank for find in load_hooks(RankByText) if (rank := find(snapshot.library)) is not None]
        self.rank: Callable[[str], Int64Array] | None = lru_cache(maxsize=8)(rankings[0]) if rankings else None

    def _read(self, text: str) -> Words:
        return self._read_group(parse_query(text))

    def _read_group(self, group: QueryGroup) -> Words:
        """Return the conditions of a group; alternatives are one part."""
        read = [self._read_term(term) for term in group.terms]
        parts = tuple(part for words in read for part in words.parts)
        if group.match == "any":
            alternatives = tuple(_join_parts(words.parts) for words in read if words.parts)
            meaning = " or ".join(one.words for one in alternatives)
            parts = (
                QueryPart(" or ".join(one.text for one in alternatives), meaning, parts=alternatives, is_any=True),
            )
            parts = parts if len(alternatives) > 1 else alternatives
        return Words(
            parts,
            tuple(word for words in read for word in words.strange),
            tuple(problem for words in read for problem in words.problems),
            any(words.lacks_ranking for words in read),
        )

    def _read_term(self, term: QueryTerm) -> Words:
        if isinstance(term, Text):
            return self._read_text(term.words)
        if isinstance(term, QueryProblem):
            return Words((), (), (term,))
        if isinstance(term, FieldCondition) and term.field == "words":
            term = replace(parse_query(str(term.value[0])), is_not=term.is_negative)
        if isinstance(term, FieldCondition):
            if is_public() and term.field in PRIVATE:
                return Words((), (str(term),))
            return Words((QueryPart(str(term), term.meaning, condition=term),), ())
        words = self._read_group(term)
        if not words.parts:
            return words
        part = _join_parts(words.parts)
        text = part.text if part.text.startswith("(") else f"({part.text})"
        if term.is_not:
            part = QueryPart(f"-{text}", f"not {part.words}", parts=(part,), is_not=True)
        elif part.is_any:
            part = replace(part, text=text)
        return replace(words, parts=(part,))

    def _read_text(self, text: str) -> Words:
        tokens = [token.strip(',.;:!?"“”()') for token in text.casefold().split()]
        tokens = [token for token in tokens if token.strip("-–")]
        before, *sounds = f" {' '.join(tokens)} ".split(f" {BY_SOUND} ")
        if self.rank is None:
            parts, unknown = self._read_tokens(" ".join([before, *sounds]).split())
            return Words(tuple(parts), tuple(word for word, _ in unknown), lacks_ranking=bool(sounds))
        parts, unknown = self._read_tokens(before.split())
        # words after "not" stay unknown: the songs that sound least like a text have nothing in common
        sounds = [" ".join(word for word, is_not in unknown if not is_not), *sounds]
        parts += [self._rank_by_sound(sound.strip()) for sound in sounds if sound.strip()]
        return Words(tuple(parts), tuple(word for word, is_not in unknown if is_not))

    def _rank_by_sound(self, sound: str) -> QueryPart:
        assert self.rank is not None
        return QueryPart(f"{BY_SOUND} {sound}", f"sounds like “{sound}”", rank=partial(self.rank, sound))

    def _read_tokens(self, tokens: Sequence[str]) -> tuple[list[QueryPart], list[tuple[str, bool]]]:
        """Return the parts, and the unknown words, each with whether it is after "not"."""
        parts, unknown, at = [], [], 0
        while at < len(tokens):
            start = at
            # a modifier at the end of the text modifies nothing
            is_not = at + 1 < len(tokens) and tokens[at] in _NOT
            at += is_not
            is_very = at + 1 < len(tokens) and tokens[at] == _VERY
            at += is_very
            part, n = self._read_part(tokens[at:], is_very)
            if part is not None:
                words = f"not {part.words}" if is_not else part.words
                parts.append(replace(part, text=" ".join([*tokens[start:at], part.text]), words=words, is_not=is_not))
            elif tokens[at] not in _FILLERS:
                unknown.append((tokens[at], is_not))
            at += n
        return parts, unknown

    def _read_part(self, tokens: Sequence[str], is_very: bool) -> tuple[QueryPart | None, int]:
        """Return the longest part at the start of the tokens, and its length; allow typos only if nothing matches."""
        phrases = [(" ".join(tokens[:n]), n) for n in range(min(_MAX_PHRASE, len(tokens)), 0, -1)]
        for phrase, n in phrases:
            part = self._read_phrase(phrase, is_very)
            if part is not None:
                return part, n
        if tokens[0] in _FILLERS:
            return None, 1
        *phrases, word = phrases
        for read in (lambda phrase: self._read_mistyped(phrase, is_very), self._read_part_of_name):
            for phrase, n in phrases:
                part = read(phrase)
                if part is not None:
                    return part, n
        part = self._read_part_of_name(word[0]) or self._find_in_titles(word[0])
        return part or self._read_mistyped(word[0], is_very) or self._ask_extensions(word[0]), 1

    def _read_part_of_name(self, phrase: str) -> QueryPart | None:
        """Read a phrase that is part of the names of tags or folders."""
        keys = genre_key(phrase), genre_key(_SYNONYMS.get(phrase, phrase))
        tags = self._tags_by_word.get(keys[0]) or self._tags_by_word.get(keys[1])
        if tags:
            more = f" and {len(tags) - 1} more" if len(tags) > 1 else ""
            return QueryPart(phrase, f"“{tags[0]}”{more}", Filters(tags=frozenset(tags)))
        folders = self._folders_by_word.get(keys[0])
        if folders:
            rows = np.flatnonzero(self._snapshot.columns.folder.is_in(folders))
            names = [name for name in folders[0].split(os.sep) if keys[0] in genre_key(name)]
            return QueryPart(phrase, f"in “{names[-1]}”", song_ids=self._snapshot.row_ids[rows])
        return None

    def _find_in_titles(self, word: str) -> QueryPart | None:
        is_word = re.compile(rf"\b{re.escape(word)}\b", re.IGNORECASE)
        songs = self._snapshot.songs_with(word, _MAX_TITLES) if len(word) >= _MIN_TYPO else []
        ids = [song.id for song in songs if is_word.search(song.title)]
        return QueryPart(word, f"“{word}” in the title", song_ids=np.array(ids, dtype=np.int64)) if ids else None

    @cached_property
    def _folders_by_word(self) -> dict[str, list[str]]:
        """Folders, keyed by each word in their path below a folder of the library; empty for visitors."""
        if is_public():
            return {}
        roots = {str(root) for root in self._snapshot.library.files.roots()}

        def words_below(folder: str) -> Iterator[str]:
            while folder not in roots and os.path.dirname(folder) != folder:
                folder, name = os.path.split(folder)
                yield name
                yield from _WORD.findall(name)

        return _group_by_word(self._snapshot.columns.folder.counts(), words_below)

    def suggest(self, n: int) -> list[str]:
        """Return known words: descriptors that differ between songs, and the most frequent tags and genres."""
        columns = self._snapshot.columns
        words = [word for word, (name, _) in _DESCRIPTORS.items() if np.isfinite(getattr(columns, name)).any()]
        counts = columns.genre.counts() + self._snapshot.library.listening.tag_counts()
        tags = [name for name, _ in counts.most_common(n) if name not in words]
        return [*tags[: max(0, n - len(words))], *words][:n]

    def _read_phrase(self, phrase: str, is_very: bool) -> QueryPart | None:
        key = genre_key(phrase)
        word = _SYNONYMS.get(phrase, phrase)
        tags = self._tags.get(key) or self._tags.get(genre_key(word))
        if tags:
            return QueryPart(phrase, f"“{tags[0]}”", Filters(tags=frozenset(tags)))
        if word in _DESCRIPTORS:
            return self._read_descriptor(word, is_very)
        part = _read_years(phrase) or _read_tempo(phrase) or _read_key(phrase)
        if part is not None:
            return part
        artists = self._artists.get(key)
        if artists and phrase not in _FILLERS:
            return QueryPart(phrase, f"by {artists[0]}", Filters(artists=frozenset(artists)))
        about = phrase.removeprefix(f"{_ABOUT} ")
        return self._ask_extensions(about) if about != phrase and " " not in about else None

    def _read_mistyped(self, phrase: str, is_very: bool) -> QueryPart | None:
        """Correct a typo; only artists with the same first letter are compared, because there are many."""
        key = genre_key(phrase)
        if len(key) < _MIN_TYPO:
            return None
        artists = [name for name in self._artists if name[:1] == key[:1] and abs(len(name) - len(key)) <= 2]
        for known, spellings in ((self._known, self._tags), (artists, self._artists)):
            for right in get_close_matches(key, known, 1, _MIN_RATIO):
                correct = spellings.get(right, [right])[0].casefold()
                return self._read_phrase(correct, is_very) or self._read_part_of_name(correct)
        for right in get_close_matches(key, self._folders_by_word, 1, _MIN_RATIO):
            return self._read_part_of_name(right)
        return None

    def _read_descriptor(self, word: str, is_very: bool) -> QueryPart | None:
        name, side = _DESCRIPTORS[word]
        share = 1 / 6 if is_very else 1 / 3
        bounds = _find_bounds(self._snapshot, name, (0.0, share) if side else (1 - share, 1.0))
        if bounds is None:
            return None
        meaning = f"{'very ' * is_very}{word} for this library"
        if name in _UNITS:
            scale, unit = _UNITS[name]
            meaning += f" ({'up to' if side else 'from'} {bounds[side] / scale:.0f} {unit})"
        condition: dict[str, Any] = {name: bounds}
        return QueryPart(word, meaning, Filters(**condition), along=(name, -1 if side else 1))

    def _ask_extensions(self, word: str) -> QueryPart | None:
        for find in load_hooks(FilterByWord):
            if (match := find(self._snapshot.library, word)) is not None:
                return QueryPart(word, match[0], song_ids=match[1])
        return None


def _join_parts(parts: tuple[QueryPart, ...]) -> QueryPart:
    """Return several conditions as one; a single condition stays as it is."""
    if len(parts) == 1:
        return parts[0]
    text = " ".join(part.text for part in parts)
    return QueryPart(f"({text})", " and ".join(part.words for part in parts), parts=parts)


def _group_spellings(names: Iterable[str]) -> dict[str, list[str]]:
    spellings: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        spellings.setdefault(genre_key(name), []).append(name)
    return spellings


def _group_by_word(names: Iterable[str], split: Callable[[str], Iterable[str]]) -> dict[str, list[str]]:
    """Group names by the keys (:func:`genre_key`) of their words that have at least three letters."""
    groups: dict[str, dict[str, None]] = {}
    for name in names:
        for word in split(name):
            if len(word) >= _MIN_PART and word.casefold() not in _FILLERS:
                groups.setdefault(genre_key(word), {})[name] = None
    return {word: list(group) for word, group in groups.items()}


def _read_years(phrase: str) -> QueryPart | None:
    decade, years, bound = _DECADE.fullmatch(phrase), _YEARS.fullmatch(phrase), _BOUND.fullmatch(phrase)
    if bound:
        word, year = bound[1], int(bound[2])
        first = year + (word == "after") if word in ("since", "after") else _FIRST_YEAR
        last = year - (word == "before") if word in ("before", "until") else _LAST_YEAR
        return QueryPart(phrase, phrase, Filters(years=(first, last)))
    if decade:
        first = int(decade[1]) if len(decade[1]) == 4 else int(decade[1]) + (1900 if int(decade[1]) >= 30 else 2000)
        last = first + 9
        if first % 10:
            return None
    elif years:
        first, last = int(years[1]), int(years[2] or years[1])
    else:
        return None
    if not _FIRST_YEAR <= first <= last <= _LAST_YEAR:
        return None
    return QueryPart(phrase, f"{first}" if first == last else f"{first} to {last}", Filters(years=(first, last)))


def _read_tempo(phrase: str) -> QueryPart | None:
    match = _TEMPO.fullmatch(phrase)
    if not match:
        return None
    tempo = int(match[1])
    bounds = (tempo * (1 - _TEMPO_WITHIN), tempo * (1 + _TEMPO_WITHIN))
    return QueryPart(phrase, f"about {tempo} beats/min", Filters(tempo=bounds))


def _read_key(phrase: str) -> QueryPart | None:
    if phrase in MODES:
        return QueryPart(phrase, phrase, Filters(modes=frozenset({phrase})))
    match = _KEY.fullmatch(phrase)
    if not match or not (match[2] or match[3]):  # a single letter is ambiguous
        return None
    name = match[1].upper() + {"": "", "#": "#", "♯": "#", " sharp": "#"}.get(match[2] or "", "b")
    name = _SAME_KEY.get(name, name)
    modes = frozenset({match[3]} if match[3] else ())
    return QueryPart(phrase, " ".join([name, *modes]), Filters(keys=frozenset({name}), modes=modes))
