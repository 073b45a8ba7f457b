"""Tests of model descriptions: anything the schema accepts can be shown, and anything else is one line."""

import json
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from musicsim.explorer.learning.verdict import VERDICT_MEASURES
from musicsim.explorer.models.artifacts import read_report
from musicsim.explorer.models.schema import MAX_JSON, AboutFile, AboutModel, AboutSources, Report, read_json
from musicsim.explorer.refresh.model_text import describe_split, figures, headline, path_rows, source_rows
from tests.learning import RANKED

MODEL = {
    "format_version": 2, "feature_version": 5, "musicsim": "0.1", "representation": "ppk", "n_codewords": 16, "tau": 4,
    "variance": 0.95, "random_state": 0, "n_songs": 12,
}  # fmt: skip
CLOSED = RANKED | {"C": None, "setting": "t 0.1, reg 1", "path": [{"setting": "t 0.1, reg 1", "quality": 0.5}]}
ANSWERED = {name: value for name, value in RANKED.items() if name not in ("split", "n_artists")} | {
    "answers": {"n": 9, "questions": 8, "comparisons": 18, "songs": 7}
}
REPORTS = {"ranked": RANKED, "closed": CLOSED, "answered": ANSWERED}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)


def places(value, at=()):
    """Yield every place in a JSON value."""
    yield at
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[key], (*at, key))


def replaced(value, at, other):
    """Return the value with another one at a place."""
    if not at:
        return other
    copy = value.copy()
    copy[at[0]] = replaced(value[at[0]], at[1:], other)
    return copy


@pytest.mark.parametrize("kind", REPORTS)
def test_reports_round_trip(kind, tmp_path):
    (tmp_path / "report.json").write_text(json.dumps(REPORTS[kind]))
    assert json.dumps(read_report(tmp_path / "report.json"), sort_keys=True) == json.dumps(
        REPORTS[kind], sort_keys=True
    )


@given(st.data())
def test_readable_reports_can_be_shown(data):
    report = REPORTS[data.draw(st.sampled_from(sorted(REPORTS)))]
    at = data.draw(st.sampled_from(list(places(report))))
    text = json.dumps(replaced(report, at, data.draw(JSON)))
    try:
        read = read_json(Report, text).model_dump(exclude_unset=True)
    except ValueError:
        return
    if read["leads"].keys() <= VERDICT_MEASURES.keys():  # it is not shown otherwise
        headline(read), figures(read)
    describe_split(read), path_rows(read), source_rows(read)


@given(
    st.builds(
        AboutModel, format_version=st.integers(), feature_version=st.integers(), musicsim=st.text(max_size=100),
        representation=st.text(max_size=100), n_codewords=st.integers(1, 2**20), tau=st.integers(1, 2**20),
        variance=st.floats(0, 1, exclude_min=True), random_state=st.none() | st.integers(0, 2**63 - 1),
        n_songs=st.integers(0, 2**40),
    )
)  # fmt: skip
def test_description_round_trips(about):
    assert read_json(AboutModel, about.model_dump_json()) == about


@given(st.sampled_from([AboutFile, AboutModel, AboutSources, Report]), JSON.map(json.dumps) | st.binary())
@example(AboutModel, "[" * 100_000)
@example(AboutModel, '{"tau": ' + "9" * 10_000 + "}")
@example(AboutFile, '{"name": "\\ud800"}')
@example(AboutFile, '{"name": "' + "x" * MAX_JSON + '"}')
@example(Report, json.dumps(RANKED | {"leads": {"x" * MAX_JSON: 1}}))
def test_invalid_json_gives_short_error(schema, text):
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # whatever pydantic says
        read_json(schema, text)
    assert len(str(refused.value).splitlines()) == 1
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("tau", "x", "tau: .* integer"), ("tau", True, "tau: .* integer"), ("tau", 0, "tau: .* greater"),
        ("n_songs", None, "n_songs: .* integer"), ("representation", [], "representation: .* string"),
        ("variance", "x", "variance: .* number"), ("variance", math.nan, "variance"), ("variance", 1.5, "variance"),
        ("random_state", -1, "random_state"), ("random_state", 2**63, "random_state"),
    ],
)  # fmt: skip
def test_description_fields_are_validated(name, value, why):
    with pytest.raises(ValueError, match=why):
        read_json(AboutModel, json.dumps(MODEL | {name: value}))


def test_fields_of_later_version_are_ignored():
    assert read_json(AboutModel, json.dumps(MODEL | {"mood": 1})) == AboutModel(**MODEL)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"answers": ANSWERED["answers"]}, "either a split or answers"),
        ({"setting": "t 1"}, "either C or another setting"),
        ({"path": [{"quality": 1.0}]}, "each entry of its path must have C, gap"),
        ({"split": None}, "split"), ({"untrained": math.inf}, "out of range"), ({"seconds": math.nan}, "seconds"),
        ({"changed": [{"query": 1, "before": [1] * 2_000, "after": []}]}, "at most 1000"),
    ],
)  # fmt: skip
def test_report_kind_and_scores_are_validated(change, why):
    with pytest.raises(ValueError, match=why):
        read_json(Report, json.dumps(RANKED | change))
