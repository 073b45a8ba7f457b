"""Rules: groups of conditions, an order and a limit, as JSON documents; conditions are also written as queries.

:mod:`musicsim.explorer.requests.query` has the conditions and their syntax.
"""

from dataclasses import dataclass, replace
from typing import Self

from pydantic import Field, model_validator

from musicsim.audio import DESCRIPTORS
from musicsim.explorer import (
    AllOrAny,
    Document,
    FieldCondition,
    QueryGroup,
    QueryProblem,
    QueryTerm,
    join_terms,
    make_condition,
    option,
    parse_query,
    settle,
    validate,
)

MAX_CONDITIONS = 50
MAX_SONGS = 10_000
MAX_NAME = 100

ORDERS = ("random", "similar", "played", "added", "plays", "rating", "year", "minutes", *DESCRIPTORS)
MATCHES = ("all", "any")


class ConditionGroup(Document):
    """Conditions that a song must meet: all of them, or any."""

    match: AllOrAny = "all"
    conditions: tuple[FieldCondition, ...] = ()

    def __str__(self) -> str:
        return join_terms(self.match, self.conditions)


class Rule(Document):
    """Groups that a song must meet (all or any of them; without any, every song follows), an order and a limit."""

    match: AllOrAny = "all"
    groups: tuple[ConditionGroup, ...] = ()
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
    def conditions(self) -> list[FieldCondition]:
        """The conditions of all groups."""
        return [condition for group in self.groups for condition in group.conditions]

    def __str__(self) -> str:
        """Return all conditions as a query; groups of several conditions are in parentheses."""
        groups = [group for group in self.groups if group.conditions]
        is_plain = len(groups) == 1
        texts = (str(group) if is_plain or len(group.conditions) == 1 else f"({group})" for group in groups)
        return join_terms(self.match, texts) or "all songs"


@dataclass(frozen=True, kw_only=True)
class RuleRequest:
    """A rule as options, for the command line and the HTTP interface."""

    where: tuple[str, ...] = option(
        (), "Conditions that songs must meet, as a query: `tempo:120.. -genre:pop played:never`, `rating:4.. or "
        "tag:=loved`, `similar:100@12`, or words.",
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
        match: AllOrAny = "any" if self.any else "all"
        groups = [parse_group(text, match) for text in self.where]
        alone = tuple(group.conditions[0] for group in groups if len(group.conditions) == 1)
        several = [group for group in groups if len(group.conditions) > 1]
        others = {name: getattr(self, name) for name in ("order", "descending", "songs", "minutes")}
        return make_rule(
            match=match,
            groups=[*([ConditionGroup(match=match, conditions=alone)] if alone else []), *several],
            **others,
        )


def make_rule(**values: object) -> Rule:
    """Return a rule from the values of its fields; raises ValueError with one sentence if a value is not valid."""
    return validate(Rule, values)


def parse_group(text: str, match: AllOrAny = "all") -> ConditionGroup:
    """Return the conditions of a query; words, and what is in parentheses, are one condition. Raises ValueError."""
    parsed = parse_query(text)
    if not parsed.terms:
        raise ValueError(f"{text!r} has no condition: write words, or a field and a value, such as tempo:120..")
    is_joined = len(parsed.terms) > 1
    return ConditionGroup(
        match=parsed.match if is_joined else match, conditions=tuple(map(_condition_of, parsed.terms))
    )


def _condition_of(term: QueryTerm) -> FieldCondition:
    if isinstance(term, FieldCondition):
        return term
    if isinstance(term, QueryProblem):
        raise ValueError(term.sentence)
    comparison, text = "match", str(term)
    if isinstance(term, QueryGroup):
        comparison = "do not match" if term.is_not else "match"
        text = str(replace(term, is_not=False))[1:-1]
    return make_condition(field="words", comparison=comparison, value=[text])
