"""The rule that a person edits on the page: like a rule, but its conditions may be unfinished."""

import csv
from collections.abc import Callable
from dataclasses import dataclass, replace
from dataclasses import field as made
from itertools import count

from musicsim.explorer import (
    FIELD_CHOICES,
    FIELD_COMPARISONS,
    QUERY_FIELDS,
    AllOrAny,
    FieldCondition,
    make_condition,
    parse_numbers,
)
from musicsim.extensions.rules.rule import ConditionGroup, Rule, make_rule

CHOSEN = {"artist": "artists", "genre": "genres", "tag": "tags", "folder": "folders"}
"""Fields whose names are chosen from lists, and these lists."""
_numbers = count(1)


def _new_id() -> int:
    return next(_numbers)


@dataclass(frozen=True, slots=True)
class FormLine:
    """One condition in the form; `text` or `names` is its value."""

    field: str = "tempo"
    comparison: str = ">="
    text: str = ""
    names: tuple[str, ...] = ()
    songs: tuple[int, ...] = ()
    id: int = made(default_factory=_new_id)  # part of the keys of its widgets

    @property
    def is_empty(self) -> bool:
        """True if the line has no value yet, so that it is not a condition."""
        return not (self.names if self.is_chosen else self.text.strip())

    @property
    def is_chosen(self) -> bool:
        """True if the value is chosen from a list of names."""
        return self.field in FIELD_CHOICES or (self.field in CHOSEN and "contain" not in self.comparison)

    def condition(self) -> FieldCondition:
        """Return the condition; raises ValueError if the value is not valid."""
        kind = QUERY_FIELDS[self.field]
        text = self.text.strip()
        value: list[str] | list[float]
        if self.is_chosen:
            value = list(self.names)
        elif kind == "words":
            value = [text]
        elif kind == "names":
            value = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), []) if name.strip()]
        else:
            value = parse_numbers(kind, text.removesuffix("%"))
        songs = self.songs if kind == "similar" else ()
        return make_condition(field=self.field, comparison=self.comparison, value=value, songs=songs)

    def use_field(self, name: str) -> "FormLine":
        """Return the line with a different field; only a number is kept as the value."""
        if name == self.field:
            return self
        comparisons = FIELD_COMPARISONS[QUERY_FIELDS[name]]
        comparison = self.comparison if self.comparison in comparisons else comparisons[0]
        text = self.text if QUERY_FIELDS[name] == QUERY_FIELDS[self.field] == "number" else ""
        return FormLine(name, comparison, text, id=self.id)


@dataclass(frozen=True, slots=True)
class LineGroup:
    match: AllOrAny = "all"
    lines: tuple[FormLine, ...] = made(default_factory=lambda: (FormLine(),))
    id: int = made(default_factory=_new_id)


@dataclass(frozen=True, slots=True)
class Form:
    """The form; its methods return changed copies."""

    match: AllOrAny = "all"
    groups: tuple[LineGroup, ...] = made(default_factory=lambda: (LineGroup(),))
    order: str = "random"
    descending: bool = False
    songs: int = 100
    minutes: float | None = None
    name: str = ""  # name of the saved rule
    id: int = made(default_factory=_new_id)

    @property
    def is_untouched(self) -> bool:
        """True for a new form without values, which would be a rule for all songs."""
        no_lines = replace(self, groups=())
        return no_lines == Form(groups=(), id=self.id) and all(line.is_empty for g in self.groups for line in g.lines)

    @classmethod
    def from_rule(cls, name: str, rule: Rule) -> "Form":
        """Return a form with the values of a rule."""
        groups = tuple(LineGroup(group.match, tuple(map(_line_of, group.conditions))) for group in rule.groups)
        return cls(rule.match, groups or (LineGroup(),), rule.order, rule.descending, rule.songs, rule.minutes, name)

    def rule(self) -> tuple[Rule, list[str]]:
        """Return the rule of all valid lines, and a sentence about each line with an invalid value."""
        problems: list[str] = []
        groups = []
        for group in self.groups:
            conditions = []
            for line in group.lines:
                try:
                    conditions += [] if line.is_empty else [line.condition()]
                except ValueError as error:
                    problems.append(str(error))
            if conditions:
                groups.append(ConditionGroup(match=group.match, conditions=tuple(conditions)))
        others = {"descending": self.descending, "songs": self.songs, "minutes": self.minutes}
        try:
            return make_rule(match=self.match, groups=groups, order=self.order, **others), problems
        except ValueError as error:
            return make_rule(match=self.match, groups=groups, **others), [*problems, str(error)]

    def add_group(self) -> "Form":
        return replace(self, groups=(*self.groups, LineGroup()))

    def add_line(self, group_id: int) -> "Form":
        return self._change_lines(lambda group: (*group.lines, *([FormLine()] if group.id == group_id else [])))

    def drop_line(self, line_id: int) -> "Form":
        """Remove a line, and its group if it is empty then; a form has at least one line."""
        form = self._change_lines(lambda group: tuple(line for line in group.lines if line.id != line_id))
        return replace(form, groups=tuple(group for group in form.groups if group.lines) or (LineGroup(),))

    def set_songs(self, line_id: int, songs: tuple[int, ...]) -> "Form":
        """Replace the songs of a line."""
        return self._change_lines(
            lambda group: tuple(replace(line, songs=songs) if line.id == line_id else line for line in group.lines)
        )

    def _change_lines(self, change: Callable[[LineGroup], tuple[FormLine, ...]]) -> "Form":
        return replace(self, groups=tuple(replace(group, lines=change(group)) for group in self.groups))


def _line_of(condition: FieldCondition) -> FormLine:
    songs = tuple(song for song in condition.songs if isinstance(song, int))  # a saved rule has no titles
    line = FormLine(condition.field, condition.comparison, songs=songs)
    if line.is_chosen:
        return replace(line, names=tuple(map(str, condition.value)))
    if QUERY_FIELDS[condition.field] == "names":
        return replace(line, text=", ".join(_quote(str(name)) for name in condition.value))
    texts = (value if isinstance(value, str) else f"{value:.10g}" for value in condition.value)
    return replace(line, text=" to ".join(texts))


def _quote(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"' if "," in name or '"' in name else name
