"""Tests of rules as queries, options and JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musicsim.explorer.requests.query import FieldCondition, make_condition
from musicsim.extensions.rules.form import Form, FormLine, LineGroup
from musicsim.extensions.rules.rule import MAX_CONDITIONS, RuleRequest, make_rule, parse_group
from tests.explorer.test_query import conditions


@given(condition=conditions())
def test_condition_is_read_from_its_text_and_json(condition):
    assert parse_group(str(condition)).conditions == (condition,)
    assert make_condition(**json.loads(condition.model_dump_json())) == condition


@given(conditions=st.lists(conditions(), max_size=6), split=st.integers(0, 6))
def test_form_keeps_rule(conditions, split):
    parts = [part for part in (conditions[:split], conditions[split:]) if part]
    rule = make_rule(match="any", groups=[{"conditions": part} for part in parts], order="tempo", songs=7, minutes=5)
    assert Form.from_rule("x", rule).rule() == (rule, [])


def test_options_group_conditions():
    rule = RuleRequest(where=("tempo:>120", "genre:=Jazz or year:<1980", "mode:minor"), songs=5).rule()
    assert str(rule) == "(tempo:>120 mode:minor) (genre:=Jazz or year:<1980)"
    assert str(RuleRequest(where=("tempo:>120", "mode:minor"), any=True).rule()) == "tempo:>120 or mode:minor"
    assert str(RuleRequest().rule()) == "all songs"
    nested = RuleRequest(where=("slow tempo:>1 or -(year:<2 rock)",)).rule().conditions
    assert [str(one) for one in nested] == ["(slow tempo:>1)", "-(year:<2 rock)"]
    for wrong in ({"where": (" , ",)}, {"where": ("slow tempo:fast",)}, {"order": "similar"}, {"songs": 0}):
        with pytest.raises(ValueError, match=r"has no condition|by a number|needs a condition|songs=0"):
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
    lines = (FormLine(), FormLine("year", "between", "1970"), FormLine("genre", "is", names=("Jazz",)))
    form = Form(groups=(LineGroup(lines=lines),))
    rule, problems = form.rule()
    assert rule.conditions == [FieldCondition(field="genre", comparison="is", value=("Jazz",))]
    assert problems == ["“year between” must be followed by two numbers."]
    for line in lines:
        form = form.drop_line(line.id)
    assert [group.lines[0].text for group in form.groups] == [""]
