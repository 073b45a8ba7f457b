"""Tests of the syntax of queries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musicsim.explorer.requests.query import (
    CHOICES,
    COMPARISONS,
    FIELDS,
    MAX_DAYS,
    Condition,
    Group,
    Problem,
    Text,
    join_arguments,
    make_condition,
    parse_query,
)

_numbers = st.integers(-1000, 1000).map(lambda n: n / 8)
_names = st.text("ab ,\"'é&", min_size=1, max_size=8).map(str.strip).filter(bool)


@st.composite
def conditions(draw):
    field = draw(st.sampled_from(sorted(FIELDS)))
    kind = FIELDS[field]
    comparison = draw(st.sampled_from(COMPARISONS[kind]))
    songs = []
    if kind in ("names", "choice"):
        names = st.sampled_from(CHOICES[field]) if field in CHOICES else _names
        value = draw(st.lists(names, min_size=1, max_size=3))
    elif kind == "words":
        value = [draw(st.sampled_from(["slow piano", "not rock", "about rain"]))]
    elif kind == "number":
        value = sorted(draw(st.lists(_numbers, min_size=2, max_size=2)))[: 2 if comparison == "between" else 1]
    else:
        value = [draw(st.integers(1, 100) | st.just(MAX_DAYS) if kind == "days" else st.integers(1, 100))]
        songs = draw(st.lists(st.integers(1, 99), min_size=1, max_size=3)) if kind == "similar" else []
    return make_condition(field=field, comparison=comparison, value=value, songs=songs)


@given(text=st.text("ab:-^'\"()., =~x0", max_size=40))
def test_any_text_is_a_query_and_is_read_again(text):
    written = str(parse_query(text))[1:-1]
    again = str(parse_query(written))[1:-1]
    assert str(parse_query(again))[1:-1] == again


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("slow  piano -rock", [Text("slow piano not rock")]),
        ("Re: Stacks foo:bar", [Text("Re: Stacks foo:bar")]),
        ("TEMPO:>120", [Condition(field="tempo", comparison=">", value=(120.0,))]),
        ("tempo >= 120 a=1", [Condition(field="tempo", comparison=">=", value=(120.0,)), Text("a=1")]),
        ("year:1970s", [Condition(field="year", comparison="between", value=(1970.0, 1979.0))]),
        ("length:3:30..", [Condition(field="minutes", comparison=">=", value=(3.5,))]),
        ("^played:2w", [Condition(field="played", comparison="not in the last", value=(14.0,))]),
        ("artist:miles", [Condition(field="artist", comparison="contains", value=("miles",))]),
        ("artist:='Earth, Wind & Fire',Prince", [
            Condition(field="artist", comparison="is", value=("Earth, Wind & Fire", "Prince"))
        ]),
        ("album:'It''s'", [Condition(field="album", comparison="contains", value=("It's",))]),
        ("-key:f#", [Condition(field="key", comparison="is not", value=("F#",))]),
        ("similar:Tides,12", [
            Condition(field="similar", comparison="nearest songs", value=(100.0,), songs=("Tides", 12))
        ]),
        ("similar:5%@12", [Condition(field="similar", comparison="nearest percent", value=(5.0,), songs=(12,))]),
        ("not (a or b)", [Group("any", (Text("a"), Text("b")), is_not=True)]),
        ("sounds like rain or wind", [Text("sounds like rain or wind")]),
        ("((", [Group("all", (Group("all", ()),))]),
        (" , or ) ", []),
    ],
)  # fmt: skip
def test_query_is_read(text, terms):
    assert parse_query(text) == Group("all", tuple(terms))


def test_alternatives_are_separated_by_or_and_commas():
    parsed = parse_query("slow piano or tempo:>3 , (a b)")
    assert (parsed.match, [str(term) for term in parsed.terms]) == ("any", ["slow piano", "tempo:>3", "(a b)"])
    assert parse_query("slow, piano") == Group("all", (Text("slow, piano"),))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("tempo:fast", "must be followed by a number."),
        ("tempo:nan", "must be followed by a number."),
        ("year:1980..1970", "a lower and an upper bound"),
        ("key:H", "one of C, C#"),
        ("similar:101%@3", "at most 100"),
        ("played:x", "must be followed by a number."),
        ("added:200000d", "a number of days"),
    ],
)
def test_term_that_cannot_be_read_is_explained(text, reason):
    (term,) = parse_query(text).terms
    assert isinstance(term, Problem)
    assert reason in term.why


def test_arguments_of_commands_keep_spaces_of_values():
    assert join_arguments(["artist:Miles Davis", "-live"]) == "artist:'Miles Davis' -live"
    assert join_arguments(["artist:=Miles Davis"]) == "artist:='Miles Davis'"
    assert join_arguments(["artist:'Miles Davis' year:1960"]) == "artist:'Miles Davis' year:1960"
    assert join_arguments(["Re: Stacks"]) == "Re: Stacks"
