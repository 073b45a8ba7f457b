"""Tests of the syntax of queries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musicsim.explorer.requests.query import (
    FIELD_CHOICES,
    FIELD_COMPARISONS,
    MAX_DAYS,
    QUERY_FIELDS,
    FieldCondition,
    QueryGroup,
    QueryProblem,
    Text,
    join_arguments,
    make_condition,
    parse_query,
)

_numbers = st.integers(-1000, 1000).map(lambda n: n / 8)
_names = st.text("ab ,\"'é&", min_size=1, max_size=8).map(str.strip).filter(bool)


@st.composite
def conditions(draw):
    field = draw(st.sampled_from(sorted(QUERY_FIELDS)))
    kind = QUERY_FIELDS[field]
    comparison = draw(st.sampled_from(FIELD_COMPARISONS[kind]))
    songs = []
    if kind in ("names", "choice"):
        names = st.sampled_from(FIELD_CHOICES[field]) if field in FIELD_CHOICES else _names
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
        ("TEMPO:>120", [FieldCondition(field="tempo", comparison=">", value=(120.0,))]),
        ("tempo >= 120 a=1", [FieldCondition(field="tempo", comparison=">=", value=(120.0,)), Text("a=1")]),
        ("year:1970s", [FieldCondition(field="year", comparison="between", value=(1970.0, 1979.0))]),
        ("length:3:30..", [FieldCondition(field="minutes", comparison=">=", value=(3.5,))]),
        ("^played:2w", [FieldCondition(field="played", comparison="not in the last", value=(14.0,))]),
        ("artist:miles", [FieldCondition(field="artist", comparison="contains", value=("miles",))]),
        ("artist:='Earth, Wind & Fire',Prince", [
            FieldCondition(field="artist", comparison="is", value=("Earth, Wind & Fire", "Prince"))
        ]),
        ("album:'It''s'", [FieldCondition(field="album", comparison="contains", value=("It's",))]),
        ("-key:f#", [FieldCondition(field="key", comparison="is not", value=("F#",))]),
        ("similar:Tides,12", [
            FieldCondition(field="similar", comparison="nearest songs", value=(100.0,), songs=("Tides", 12))
        ]),
        ("similar:5%@12", [FieldCondition(field="similar", comparison="nearest percent", value=(5.0,), songs=(12,))]),
        ("not (a or b)", [QueryGroup("any", (Text("a"), Text("b")), is_not=True)]),
        ("sounds like rain or wind", [Text("sounds like rain or wind")]),
        ("((", [QueryGroup("all", (QueryGroup("all", ()),))]),
        (" , or ) ", []),
    ],
)  # fmt: skip
def test_query_is_read(text, terms):
    assert parse_query(text) == QueryGroup("all", tuple(terms))


def test_alternatives_are_separated_by_or_and_commas():
    parsed = parse_query("slow piano or tempo:>3 , (a b)")
    assert (parsed.match, [str(term) for term in parsed.terms]) == ("any", ["slow piano", "tempo:>3", "(a b)"])
    assert parse_query("slow, piano") == QueryGroup("all", (Text("slow, piano"),))


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
    assert isinstance(term, QueryProblem)
    assert reason in term.why


def test_arguments_of_commands_keep_spaces_of_values():
    assert join_arguments(["artist:Miles Davis", "-live"]) == "artist:'Miles Davis' -live"
    assert join_arguments(["artist:=Miles Davis"]) == "artist:='Miles Davis'"
    assert join_arguments(["artist:'Miles Davis' year:1960"]) == "artist:'Miles Davis' year:1960"
    assert join_arguments(["Re: Stacks"]) == "Re: Stacks"
