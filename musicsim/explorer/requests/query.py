"""The query language: search words, rules and commands read ``fast -metal year:1990.. bpm:110..130 played:never``.

A query is a list of terms, all of which a song must meet. A term is a word, ``field:value``, or a query in parentheses.
“-”, “^” or “not” before a term excludes its songs. “or”, or a comma between two spaces, separates alternatives. This
module reads the syntax. The meaning of words depends on the library (:mod:`musicsim.explorer.snapshot.words`).
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from musicsim.audio import DESCRIPTORS, KEYS, MODES

MAX_NEAREST = 10_000
USUAL_NEAREST = 100
MAX_DAYS = 100_000.0
BY_SOUND = "sounds like"
_MAX_TEXT = 1_000
_MAX_DEPTH = 8  # of parentheses

Kind = Literal["number", "choice", "names", "words", "days", "similar"]

QUERY_FIELDS: dict[str, Kind] = {
    **dict.fromkeys(DESCRIPTORS, "number"),
    **dict.fromkeys(("minutes", "year", "rating", "plays"), "number"),
    "key": "choice", "mode": "choice",
    **dict.fromkeys(("artist", "album", "title", "genre", "tag", "folder"), "names"),
    "thumb": "choice", "words": "words", "played": "days", "added": "days", "similar": "similar",
}  # fmt: skip
"""Kind of each field, in the order of menus."""
FIELD_COMPARISONS: dict[Kind, tuple[str, ...]] = {
    "number": (">=", "<=", ">", "<", "=", "between"),
    "choice": ("is", "is not"),
    "names": ("is", "is not", "contains", "does not contain"),
    "words": ("match", "do not match"),
    "days": ("in the last", "not in the last"),
    "similar": ("nearest songs", "nearest percent"),
}
FIELD_CHOICES: dict[str, tuple[str, ...]] = {"key": KEYS, "mode": MODES, "thumb": ("up", "down")}
"""Possible values of fields that have few."""
PRIVATE = frozenset({"rating", "plays", "thumb", "played", "added", "folder"})
"""Fields that say something about the owner; visitors cannot use them."""
COMPARISON_WORDS = {">=": "at least", "<=": "at most", ">": "above", "<": "below", "=": "exactly"}
"""Comparisons of numbers in words."""

_OTHER_NAMES = {"bpm": "tempo", "length": "minutes", "stars": "rating"}
_DAYS = {"": 1, "d": 1, "w": 7, "m": 30, "y": 365}
_NEVER = "never"
_SEPARATORS = ("or", ",")
_MINUS = "-^"  # a shell reads “-” at the start of an argument as an option
_OPPOSITE = {
    "is": "is not", "contains": "does not contain", "match": "do not match", "in the last": "not in the last",
}  # fmt: skip
_OPPOSITE |= {no: yes for yes, no in _OPPOSITE.items()}
_NEGATIVE = tuple(name for name in _OPPOSITE if "not" in name)

_ITEM = r"""(?:'(?:[^']|'')*'|"(?:[^"]|"")*"|[^\s,'"()][^\s,()]*)"""  # quoted, or without spaces
_TOKEN = re.compile(
    rf"""(?P<open>(?P<minus>[-^]?)\()|(?P<close>\))|(?P<field>[-^]?[a-z_]+):(?P<value>(?:=|[\d.]+%?@)?{_ITEM}(?:,{_ITEM})*)"""
    rf"""|(?P<compared>[-^]?[a-z_]+)\s*(?P<number>(?:[<>]=?|=)\s*[\d.:]+)(?=[\s)]|$)"""
    rf"""|(?P<quoted>(?P<no>[-^]?)"[^"]*")|(?P<word>[^\s()]+)""",
    re.IGNORECASE,
)
_DECADE = re.compile(r"(\d{3}0)s")
_CLOCK = re.compile(r"(\d+):([0-5]\d)")
_NEAREST = re.compile(r"([\d.]+)(%?)@(.+)", re.DOTALL)

AllOrAny = Literal["all", "any"]
_Model = TypeVar("_Model", bound=BaseModel)


class Document(BaseModel):
    """A value that is stored as JSON."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class FieldCondition(Document):
    """One condition; a song without a value, such as a year, meets only comparisons with “not”."""

    field: str
    comparison: str
    value: tuple[float, ...] | tuple[str, ...]  # one number; two for a range; names; or words
    songs: tuple[int | str, ...] = ()  # ids or titles of the songs that the condition `similar` compares with

    @model_validator(mode="after")
    def _check(self) -> Self:
        kind = QUERY_FIELDS.get(self.field)
        if kind is None:
            raise ValueError(f"the field {self.field!r} must be one of {', '.join(QUERY_FIELDS)}")
        if self.comparison not in FIELD_COMPARISONS[kind]:
            raise ValueError(f"{self.field} needs one of the comparisons {', '.join(FIELD_COMPARISONS[kind])}")
        problem = self._check_names() if kind in ("names", "choice", "words") else self._check_numbers(kind)
        if problem:
            raise ValueError(f"“{self.field} {self.comparison}” must be followed by {problem}")
        return self

    def _check_names(self) -> str:
        names = [name for name in self.value if isinstance(name, str) and name.strip() and len(name) <= _MAX_TEXT]
        if not names or len(names) != len(self.value):
            return "words" if self.field == "words" else "names"
        choices = FIELD_CHOICES.get(self.field)
        return f"one of {', '.join(choices)}" if choices and not set(names) <= set(choices) else ""

    def _check_numbers(self, kind: Kind) -> str:
        n = 2 if self.comparison == "between" else 1
        numbers = [number for number in self.value if isinstance(number, float) and math.isfinite(number)]
        if len(numbers) != n or len(self.value) != n:
            return "two numbers" if n == 2 else "a number"
        if n == 2 and numbers[0] > numbers[1]:
            return "a lower and an upper bound"
        if kind == "days" and not 0 <= numbers[0] <= MAX_DAYS:
            return "a number of days from 0 to 100,000"
        if kind == "similar":
            largest = 100 if self.comparison == "nearest percent" else MAX_NEAREST
            if not 0 < numbers[0] <= largest:
                return f"a number above 0, at most {largest:,}"
            if not self.songs:
                return "a number, and the ids or titles of songs"
        return ""

    @property
    def is_negative(self) -> bool:
        """Return True if the comparison contains “not”."""
        return self.comparison in _NEGATIVE

    @property
    def is_exact(self) -> bool:
        """Return True if the names are whole names, not parts of names."""
        return "is" in self.comparison.split()

    @property
    def opposite(self) -> Self | None:
        """The condition that the other songs meet, or None if there is none of this field."""
        opposite = _OPPOSITE.get(self.comparison)
        return opposite and self.model_copy(update={"comparison": opposite})  # type: ignore[return-value]

    def __str__(self) -> str:
        """Return the term that :func:`parse_query` reads."""
        kind = QUERY_FIELDS[self.field]
        if kind == "words":
            return f"{'-' * self.is_negative}({self.value[0]})"
        if kind == "number":
            return f"{self.field}:{_write_range(self.comparison, *map(float, self.value))}"
        if kind == "days":
            days = float(self.value[0])
            is_never = days == MAX_DAYS and self.field == "played"
            return f"{'-' * (self.is_negative != is_never)}{self.field}:{_NEVER if is_never else f'{days:.10g}d'}"
        if kind == "similar":
            percent = "%" * (self.comparison == "nearest percent")
            return f"{self.field}:{float(self.value[0]):.10g}{percent}@{_write_list(self.songs)}"
        exact = "=" * (kind == "names" and self.is_exact)
        return f"{'-' * self.is_negative}{self.field}:{exact}{_write_list(self.value)}"

    @property
    def meaning(self) -> str:
        """The condition in words."""
        kind = QUERY_FIELDS[self.field]
        values = [value if isinstance(value, str) else f"{value:.10g}" for value in self.value]
        if kind == "words":
            return f"{'not ' * self.is_negative}{values[0]}"
        if kind == "number":
            descriptor = DESCRIPTORS.get(self.field)
            unit = f" {descriptor.unit}" if descriptor and descriptor.familiar_unit else ""
            compared = COMPARISON_WORDS.get(self.comparison, "")
            return " ".join(filter(None, (self.field, compared, " to ".join(values)))) + unit
        if kind == "days":
            if self.field == "played" and float(self.value[0]) == MAX_DAYS:
                return "never played" if self.is_negative else "played before"
            return f"{self.field} {self.comparison} {values[0]} days"
        if kind == "similar":
            songs = " or ".join(f"“{song}”" if isinstance(song, str) else f"song {song}" for song in self.songs)
            what = f"nearest {values[0]}%" if self.comparison == "nearest percent" else f"{values[0]} nearest songs"
            return f"the {what} to {songs}"
        return f"{self.field} {self.comparison} {' or '.join(f'“{value}”' for value in values)}"


@dataclass(frozen=True, slots=True)
class Text:
    """Words in a row, whose meaning depends on the library; “-” before a word is the word “not”."""

    words: str

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True, slots=True)
class QueryProblem:
    """A term that cannot be read, and one sentence that says why."""

    text: str
    why: str

    def __str__(self) -> str:
        return self.text

    @property
    def sentence(self) -> str:
        """The term, and why it cannot be read."""
        return f"“{self.text}”: {self.why}"


@dataclass(frozen=True, slots=True)
class QueryGroup:
    """Terms of which a song must meet all, or any; with `is_not`, the other songs."""

    match: AllOrAny
    terms: "tuple[QueryTerm, ...]"
    is_not: bool = False

    def __str__(self) -> str:
        return f"{'-' * self.is_not}({join_terms(self.match, self.terms)})"


QueryTerm = Text | FieldCondition | QueryGroup | QueryProblem


def parse_query(text: str) -> QueryGroup:
    """Read a query; any text is one, and terms that cannot be read become problems."""
    return _Parser(text).read_group(0)


def join_terms(match: AllOrAny, terms: Iterable[QueryTerm | str]) -> str:
    """Return the query that a song meets if it meets all terms, or any."""
    return (" " if match == "all" else " or ").join(map(str, terms))


def join_arguments(arguments: Sequence[str]) -> str:
    """Return the query in the arguments of a command; the shell has removed the quotes of ``artist:'Miles Davis'``."""
    return " ".join(_restore_quotes(one) if len(arguments) > 1 or one.count(":") == 1 else one for one in arguments)


def _restore_quotes(argument: str) -> str:
    name, colon, value = argument.partition(":")
    if not colon or _field_of(name) is None or not re.search(r"\s", value) or re.search(r"['\"]|\w:", value):
        return argument
    is_exact = "=" * value.startswith("=")
    return f"{name}:{is_exact}{_quote(value.removeprefix('='))}"


def make_condition(**values: object) -> FieldCondition:
    """Return a condition from the values of its fields; raises ValueError with one sentence if it is not valid."""
    return validate(FieldCondition, values)


def validate(model: type[_Model], values: dict[str, object]) -> _Model:
    """Return a document from the values of its fields; raises ValueError with one sentence."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise ValueError(_sentence(error)) from None


def parse_numbers(kind: Kind, text: str) -> list[float]:
    """Return the numbers in a text such as 120, 3:30, 2w or 110..130; what is not a number becomes nan."""
    return [_number(part, kind) for part in re.split(r"\s*\.\.\s*|\s+to\s+", text.strip())]


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = list(_TOKEN.finditer(text))
        self._at = 0

    def read_group(self, depth: int, *, is_not: bool = False) -> QueryGroup:
        """Read terms up to the end of the parentheses, or of the text."""
        alternatives: list[list[QueryTerm]] = [[]]
        words: list[str] = []

        def end_words() -> None:
            if words:
                alternatives[-1].append(Text(" ".join(words)))
                words.clear()

        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            self._at += 1
            if token["close"]:
                if depth:
                    break
            elif token["open"] is not None:
                # “not” before parentheses excludes the songs of the whole group
                is_no = bool(token["minus"]) or (bool(words) and words[-1] == "not" and bool(words.pop()))
                end_words()
                if depth < _MAX_DEPTH:
                    alternatives[-1].append(self.read_group(depth + 1, is_not=is_no))
            elif (term := _read_field(token)) is not None:
                end_words()
                alternatives[-1].append(term)
            elif token["compared"]:
                words += token[0].split()
            elif token["quoted"]:
                quoted = [one for word in token["quoted"].strip(_MINUS)[1:-1].split() for one in _read_word(word)]
                words += ["not"] * (bool(token["no"]) and quoted[:1] != ["not"]) + quoted
            elif token[0].casefold() in _SEPARATORS and BY_SOUND not in " ".join(words).casefold():
                end_words()
                alternatives.append([])
            else:
                words += _read_word(token[0])
        end_words()
        full = [terms for terms in alternatives if terms]
        if len(full) < 2:
            return QueryGroup("all", tuple(full[0] if full else ()), is_not)
        return QueryGroup("any", tuple(t[0] if len(t) == 1 else QueryGroup("all", tuple(t)) for t in full), is_not)


def _field_of(name: str) -> str | None:
    """Return the field that a name means, also with a minus before it; None if there is no such field."""
    name = name.lstrip(_MINUS).casefold()
    field = _OTHER_NAMES.get(name, name)
    return field if field in QUERY_FIELDS else None


def _read_field(token: re.Match[str]) -> FieldCondition | QueryGroup | QueryProblem | None:
    name = token["field"] or token["compared"]
    return read_term(name, token["value"] or token["number"]) if name else None


def _read_word(word: str) -> list[str]:
    word = word.replace('"', "")
    rest = word.lstrip(_MINUS)
    if rest == word:
        return [word] if word else []
    return ["not", rest] if rest and rest.casefold() not in _SEPARATORS else []


def read_term(name: str, value: str) -> FieldCondition | QueryGroup | QueryProblem | None:
    """Read ``field:value``; None if there is no such field."""
    field = _field_of(name)
    if field is None:
        return None
    is_not = name[0] in _MINUS
    try:
        condition = make_condition(field=field, **_read_value(field, QUERY_FIELDS[field], value))
    except ValueError as error:
        return QueryProblem(f"{'-' * is_not}{name.lstrip(_MINUS).casefold()}:{value}", str(error))
    if not is_not:
        return condition
    return condition.opposite or QueryGroup("all", (condition,), is_not=True)


def _read_value(field: str, kind: Kind, text: str) -> dict[str, object]:
    if kind == "words":
        return {"comparison": "match", "value": [" ".join(_read_list(text))]}
    if kind in ("choice", "names"):
        is_exact = kind == "choice" or text.startswith("=")
        values = [*_read_list(text.removeprefix("="))]
        if kind == "choice":
            known = {choice.casefold(): choice for choice in FIELD_CHOICES[field]}
            values = [known.get(value.casefold(), value) for value in values]
        return {"comparison": "is" if is_exact else "contains", "value": values}
    if kind == "days":
        if text.casefold() == _NEVER and field == "played":
            return {"comparison": "not in the last", "value": [MAX_DAYS]}
        return {"comparison": "in the last", "value": parse_numbers(kind, text)}
    if kind == "similar":
        nearest = _NEAREST.fullmatch(text)
        number, percent, songs = nearest.groups() if nearest else (str(USUAL_NEAREST), "", text)
        ids = [int(song) if song.isdecimal() else song for song in _read_list(songs)]
        comparison = "nearest percent" if percent else "nearest songs"
        return {"comparison": comparison, "value": [_number(number, kind)], "songs": ids}
    return _read_range(kind, text)


def _read_range(kind: Kind, text: str) -> dict[str, object]:
    if decade := _DECADE.fullmatch(text):
        return {"comparison": "between", "value": [float(decade[1]), float(decade[1]) + 9]}
    for comparison in (">=", "<=", ">", "<", "="):
        if text.startswith(comparison):
            return {"comparison": comparison, "value": [_number(text[len(comparison) :], kind)]}
    low, dots, high = text.partition("..")
    if dots and not (low and high):
        return {"comparison": ">=" if low else "<=", "value": [_number(low or high, kind)]}
    return {"comparison": "between" if dots else "=", "value": parse_numbers(kind, text)}


def _write_range(comparison: str, low: float, high: float = math.nan) -> str:
    first, last = f"{low:.10g}", f"{high:.10g}"
    whole = {">=": f"{first}..", "<=": f"..{first}", "=": first, "between": f"{first}..{last}"}
    return whole.get(comparison, f"{comparison}{first}")


def _number(text: str, kind: Kind) -> float:
    text = text.strip()
    if kind == "days" and (days := re.fullmatch(r"([\d.]+) ?([dwmy]?)(?:ays?)?", text)):
        factor = _DAYS[days[2]]
        text = days[1]
    elif clock := _CLOCK.fullmatch(text):
        return int(clock[1]) + int(clock[2]) / 60
    else:
        factor = 1
    try:
        return float(text) * factor
    except ValueError:
        return math.nan


def _read_list(text: str) -> Iterator[str]:
    """Read names that are separated by commas; a quoted name may contain commas, and its own quote doubled."""
    for item in re.findall(_ITEM, text):
        quote = item[0] if item[0] in "'\"" else ""
        yield item[1:-1].replace(quote * 2, quote) if quote else item


def _write_list(values: Sequence[object]) -> str:
    return ",".join(map(_quote, map(str, values)))


def _quote(name: str) -> str:
    if re.fullmatch(r"[^\s,'\"()=][^\s,()]*", name):
        return name
    quote = '"' if "'" in name else "'"
    return quote + name.replace(quote, quote * 2) + quote


def _sentence(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    place = ".".join(map(str, first["loc"]))
    message = first["msg"].removeprefix("Value error, ")
    is_own = first["type"] == "value_error"
    return f"{message}." if is_own else f"{place or 'the rule'} is not valid: {message}."
