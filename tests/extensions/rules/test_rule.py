"""Tests of rules as texts, options and JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musicsim.extensions.rules.form import Form, Line, LineGroup
from musicsim.extensions.rules.rule import (
    CHOICES,
    COMPARISONS,
    FIELDS,
    MAX_CONDITIONS,
    Condition,
    RuleRequest,
    make_condition,
    make_rule,
    parse_condition,
)

_numbers = st.integers(-1000, 1000).map(lambda n: n / 8)
_names = st.text("ab ,\"'é&", min_size=1, max_size=8).map(str.strip).filter(bool)


@st.composite
def conditions(draw):
    field = draw(st.sampled_from(sorted(FIELDS)))
    kind = FIELDS[field]
    comparison = draw(st.sampled_from(COMPARISONS[kind]))
    songs = []
    if kind == "names":
        names = st.sampled_from(CHOICES[field]) if field in CHOICES else _names
        value = draw(st.lists(names, min_size=1, max_size=3))
    elif kind == "words":
        value = [draw(st.sampled_from(["slow piano", "not rock", "about rain"]))]
    elif kind == "number":
        value = sorted(draw(st.lists(_numbers, min_size=2, max_size=2)))[: 2 if comparison == "between" else 1]
    else:
        value = [draw(st.integers(1, 100))]
        songs = draw(st.lists(st.integers(1, 99), min_size=1, max_size=3)) if kind == "similar" else []
    return make_condition(field=field, comparison=comparison, value=value, songs=songs)


@given(condition=conditions())
def test_condition_is_read_from_its_text_and_json(condition):
    assert parse_condition(str(condition)) == condition
    assert make_condition(**json.loads(condition.model_dump_json())) == condition


@given(conditions=st.lists(conditions(), max_size=6), split=st.integers(0, 6))
def test_form_keeps_rule(conditions, split):
    parts = [part for part in (conditions[:split], conditions[split:]) if part]
    rule = make_rule(match="any", groups=[{"conditions": part} for part in parts], order="tempo", songs=7, minutes=5)
    assert Form.from_rule("x", rule).rule() == (rule, [])


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("TEMPO>120", "tempo > 120"),
        ("year between 1970..1979", "year between 1970 and 1979"),
        ("played in the last 1 day", "played in the last 1"),
        ("similar nearest percent 5% to 12,40", "similar nearest percent 5 to 12, 40"),
        ('artist is "Earth, Wind & Fire", Prince', 'artist is "Earth, Wind & Fire",Prince'),
    ],
)
def test_spellings_of_conditions_are_equal(text, same):
    assert parse_condition(text) == parse_condition(same)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("tempo", "is not a condition"),
        ("speed > 3", "is not a condition"),
        ("tempo > fast", "must be followed by a number."),
        ("tempo > nan", "must be followed by a number."),
        ("year between 1980 and 1970", "a lower and an upper bound"),
        ("key is H", "one of C, C#"),
        ("artist is", "names"),
        ("similar nearest songs 10", "the ids of songs"),
        ("similar nearest percent 101 to 3", "at most 100"),
        ("played in the last -1", "a number of days"),
    ],
)
def test_invalid_condition_is_explained(text, reason):
    with pytest.raises(ValueError, match=reason):
        parse_condition(text)


def test_options_group_conditions():
    rule = RuleRequest(where=("tempo > 120", "genre is Jazz or year < 1980", "mode is minor"), songs=5).rule()
    assert str(rule) == "(tempo > 120 and mode is minor) and (genre is Jazz or year < 1980)"
    assert str(RuleRequest(where=("tempo > 120", "mode is minor"), any=True).rule()) == "tempo > 120 or mode is minor"
    assert str(RuleRequest().rule()) == "all songs"
    for wrong in ({"where": ("tempo > 1 or year < 2 and mode is minor",)}, {"order": "similar"}, {"songs": 0}):
        with pytest.raises(ValueError, match=r"mixes|needs a condition|songs=0"):
            RuleRequest(**wrong)


def test_document_with_unknown_content_is_refused():
    one = {"field": "tempo", "comparison": ">", "value": [1]}
    for wrong in (
        {"color": "red"},
        {"groups": [{"conditions": [one | {"field": "color"}]}]},
        {"groups": [{"conditions": [one] * (MAX_CONDITIONS + 1)}]},
    ):
        with pytest.raises(ValueError, match=r"color|at most 50 conditions"):
            make_rule(**wrong)


def test_unfinished_lines_are_left_out():
    lines = (Line(), Line("year", "between", "1970"), Line("genre", "is", names=("Jazz",)))
    form = Form(groups=(LineGroup(lines=lines),))
    rule, problems = form.rule()
    assert rule.conditions == [Condition(field="genre", comparison="is", value=("Jazz",))]
    assert problems == ["“year between” must be followed by two numbers."]
    for line in lines:
        form = form.drop_line(line.id)
    assert [group.lines[0].text for group in form.groups] == [""]
