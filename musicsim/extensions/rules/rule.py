"""Rules: groups of conditions, an order and a limit, as JSON documents; conditions are also written as short texts.

Examples of conditions: ``tempo >= 120``, ``year between 1970 and 1979``, ``genre is Jazz, Soul``, ``words match slow
piano``, ``played not in the last 30 days``, ``similar nearest songs 100 to 12, 40``.
"""

import csv
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from musicsim.audio import DESCRIPTORS, KEYS, MODES
from musicsim.explorer.requests.options import option, settle

MAX_CONDITIONS = 50
MAX_SONGS = 10_000
MAX_NAME = 100
MAX_NEAREST = 10_000
_MAX_TEXT = 1_000

Kind = Literal["number", "names", "words", "days", "similar"]

FIELDS: dict[str, Kind] = {
    **dict.fromkeys(DESCRIPTORS, "number"),
    **dict.fromkeys(("minutes", "year", "rating", "plays"), "number"),
    **dict.fromkeys(("key", "mode", "artist", "genre", "tag", "thumb"), "names"),
    "words": "words", "played": "days", "added": "days", "similar": "similar",
}  # fmt: skip
"""Kind of each field, in the order of menus."""
COMPARISONS: dict[Kind, tuple[str, ...]] = {
    "number": (">=", "<=", ">", "<", "=", "between"),
    "names": ("is", "is not"),
    "words": ("match", "do not match"),
    "days": ("in the last", "not in the last"),
    "similar": ("nearest songs", "nearest percent"),
}
CHOICES: dict[str, tuple[str, ...]] = {"key": KEYS, "mode": MODES, "thumb": ("up", "down")}
"""Possible names of fields that have few."""
ORDERS = ("random", "similar", "played", "added", "plays", "rating", "year", "minutes", *DESCRIPTORS)
MATCHES = ("all", "any")

_FIELD = "|".join(FIELDS)
_COMPARISON = "|".join(map(re.escape, sorted(chain.from_iterable(COMPARISONS.values()), key=len, reverse=True)))
_CONDITION = re.compile(rf"({_FIELD})\s*({_COMPARISON})\s*(.*)", re.IGNORECASE | re.DOTALL)
_JOINTS = {"or": "any", "and": "all"}
_JOINT = re.compile(rf"\s+({'|'.join(_JOINTS)})\s+(?=(?:{_FIELD})\s*(?:{_COMPARISON}))", re.IGNORECASE)
_SIMILAR = re.compile(r"(\S+)\s+to\s+(.+)", re.DOTALL)
_BETWEEN = re.compile(r"\s+(?:and|to)\s+|\.\.")

Match = Literal["all", "any"]
_Model = TypeVar("_Model", bound=BaseModel)


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Condition(_Document):
    """One condition; a song without a value, such as a year, meets only comparisons with “not”."""

    field: str
    comparison: str
    value: tuple[float, ...] | tuple[str, ...]  # one number; two for a range; names; or words
    songs: tuple[int, ...] = ()  # ids of the songs that the condition `similar` compares with

    @model_validator(mode="after")
    def _check(self) -> Self:
        kind = FIELDS.get(self.field)
        if kind is None:
            raise ValueError(f"the field {self.field!r} must be one of {', '.join(FIELDS)}")
        if self.comparison not in COMPARISONS[kind]:
            raise ValueError(f"{self.field} needs one of the comparisons {', '.join(COMPARISONS[kind])}")
        problem = self._check_names() if kind in ("names", "words") else self._check_numbers(kind)
        if problem:
            raise ValueError(f"“{self.field} {self.comparison}” must be followed by {problem}")
        return self

    def _check_names(self) -> str:
        names = [name for name in self.value if isinstance(name, str) and name.strip() and len(name) <= _MAX_TEXT]
        if not names or len(names) != len(self.value):
            return "words" if self.field == "words" else "names"
        choices = CHOICES.get(self.field)
        return f"one of {', '.join(choices)}" if choices and not set(names) <= set(choices) else ""

    def _check_numbers(self, kind: Kind) -> str:
        n = 2 if self.comparison == "between" else 1
        numbers = [number for number in self.value if isinstance(number, float) and math.isfinite(number)]
        if len(numbers) != n or len(self.value) != n:
            return "two numbers" if n == 2 else "a number"
        if n == 2 and numbers[0] > numbers[1]:
            return "a lower and an upper bound"
        if kind == "days" and not 0 <= numbers[0] <= 1e5:
            return "a number of days from 0 to 100,000"
        if kind == "similar":
            largest = 100 if self.comparison == "nearest percent" else MAX_NEAREST
            if not 0 < numbers[0] <= largest:
                return f"a number above 0, at most {largest:,}"
            if not self.songs:
                return "a number, “to” and the ids of songs"
        return ""

    def __str__(self) -> str:
        """Return the text that :func:`parse_condition` reads."""
        kind = FIELDS[self.field]
        if kind == "names":
            value = ", ".join(_quote(str(name)) for name in self.value)
        elif kind == "words":
            value = str(self.value[0])
        else:
            value = " and ".join(f"{number:.10g}" for number in self.value) + (" days" if kind == "days" else "")
        songs = f" to {', '.join(map(str, self.songs))}" if self.songs else ""
        return f"{self.field} {self.comparison} {value}{songs}"


class Group(_Document):
    """Conditions that a song must meet: all of them, or any."""

    match: Match = "all"
    conditions: tuple[Condition, ...] = ()

    def __str__(self) -> str:
        joint = " and " if self.match == "all" else " or "
        return joint.join(map(str, self.conditions))


class Rule(_Document):
    """Groups that a song must meet (all or any of them; without any, every song follows), an order and a limit."""

    match: Match = "all"
    groups: tuple[Group, ...] = ()
    order: str = "random"
    descending: bool = False  # True: the largest value, or the latest date, comes first
    songs: int = Field(100, ge=1, le=MAX_SONGS)  # maximum number of songs
    minutes: float | None = Field(None, gt=0, le=1e6)  # maximum length in minutes

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.order not in ORDERS:
            raise ValueError(f"the order must be one of {', '.join(ORDERS)}")
        conditions = self.conditions
        if len(conditions) > MAX_CONDITIONS:
            raise ValueError(f"a rule has at most {MAX_CONDITIONS} conditions")
        if self.order == "similar" and not any(one.field == "similar" for one in conditions):
            raise ValueError("the order “similar” needs a condition “similar”")
        return self

    @property
    def conditions(self) -> list[Condition]:
        """The conditions of all groups."""
        return [condition for group in self.groups for condition in group.conditions]

    def __str__(self) -> str:
        """Return all conditions in one line; groups of several conditions are in parentheses."""
        groups = [group for group in self.groups if group.conditions]
        joint = " and " if self.match == "all" else " or "
        is_plain = len(groups) == 1
        return joint.join(f"{g}" if is_plain or len(g.conditions) == 1 else f"({g})" for g in groups) or "all songs"


@dataclass(frozen=True, kw_only=True)
class RuleRequest:
    """A rule as options, for the command line and the HTTP interface."""

    where: tuple[str, ...] = option(
        (), "A condition, such as `tempo >= 120`, `genre is Jazz, Soul`, `played not in the last 30 days` or "
        "`similar nearest songs 100 to 12`. Join several by “or”, or by “and”. "
        f"Fields: {', '.join(FIELDS)}.",
        label="Conditions",
    )  # fmt: skip
    any: bool = option(False, "Songs need to meet only one of the conditions.", label="Any condition")
    order: str = option(
        "random", "Order of the songs. “random” gives a new order every day.", label="Order", choices=ORDERS
    )
    descending: bool = option(False, "Start with the largest values, or the latest dates.", label="Descending")
    songs: int = option(100, "Max. number of songs.", label="Max. songs", min=1, max=MAX_SONGS)
    minutes: float | None = option(None, "Max. length in minutes.", label="Max. minutes", above=0, max=1e6)

    def __post_init__(self) -> None:
        settle(self)
        self.rule()  # raises ValueError

    def rule(self) -> Rule:
        """Return the rule."""
        match: Match = "any" if self.any else "all"
        groups = [parse_group(text, match) for text in self.where]
        alone = tuple(group.conditions[0] for group in groups if len(group.conditions) == 1)
        several = [group for group in groups if len(group.conditions) > 1]
        others = {name: getattr(self, name) for name in ("order", "descending", "songs", "minutes")}
        return make_rule(
            match=match, groups=[*([Group(match=match, conditions=alone)] if alone else []), *several], **others
        )


def make_rule(**values: object) -> Rule:
    """Return a rule from the values of its fields; raises ValueError with one sentence if a value is not valid."""
    return _validated(Rule, values)


def make_condition(**values: object) -> Condition:
    """Return a condition from the values of its fields; raises ValueError with one sentence if it is not valid."""
    return _validated(Condition, values)


def parse_group(text: str, match: Match = "all") -> Group:
    """Return the conditions in a text, which are all joined by “or”, or all by “and”; raises ValueError."""
    parts = _JOINT.split(text)
    joints = {_JOINTS[word.lower()] for word in parts[1::2]}
    if len(joints) > 1:
        raise ValueError(f"{text!r} mixes “and” with “or”: write two conditions.")
    return Group(match=joints.pop() if joints else match, conditions=tuple(map(parse_condition, parts[::2])))  # type: ignore[arg-type]


def parse_condition(text: str) -> Condition:
    """Return the condition in a text such as ``tempo >= 120``; raises ValueError with one sentence."""
    match = _CONDITION.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a condition: write a field, a comparison and a value, such as tempo >= 120.")
    field, comparison, value = match[1].lower(), match[2].lower(), match[3].strip()
    songs: Sequence[str] = ()
    kind = FIELDS[field]
    if kind == "similar" and (parts := _SIMILAR.fullmatch(value)):
        value, songs = parts[1], [song.strip() for song in parts[2].split(",")]
    values = split_value(kind, comparison, value)
    return make_condition(field=field, comparison=comparison, value=values, songs=songs)


def split_value(kind: Kind, comparison: str, text: str) -> list[str] | list[float]:
    """Return the values in a text that a person wrote; a number that cannot be read becomes nan."""
    if kind == "names":
        return [name.strip() for name in next(csv.reader([text], skipinitialspace=True), []) if name.strip()]
    if kind == "words":
        return [text]
    parts = _BETWEEN.split(text) if comparison == "between" else [text]
    return [_number(part, kind) for part in parts]


def _number(text: str, kind: Kind) -> float:
    text = text.strip().removesuffix("%")
    if kind == "days":
        text = re.sub(r"\s*days?$", "", text)
    try:
        return float(text)
    except ValueError:
        return math.nan


def _quote(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"' if "," in name or '"' in name else name


def _validated(model: type[_Model], values: dict[str, object]) -> _Model:
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise ValueError(_sentence(error)) from None


def _sentence(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    place = ".".join(map(str, first["loc"]))
    message = first["msg"].removeprefix("Value error, ")
    is_own = first["type"] == "value_error"
    return f"{message}." if is_own else f"{place or 'the rule'} is not valid: {message}."
