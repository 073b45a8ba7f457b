"""Tests of the papers on the Research page."""

import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from musicsim.extensions.paper_tables import page, paper_tables, papers
from musicsim.extensions.paper_tables.paper_tables import PaperTable
from musicsim.wording import count
from tests.pages.actions import open_page, said


def make_table(rows=(), claims=()) -> PaperTable:
    return PaperTable(
        "small",
        "2026-03-04T00:00:00+00:00",
        {"cores": 2, "cpu": "a CPU"},
        {"protocol": "short", "splits": 5, "seconds": 61.2},
        list(rows),
        list(claims),
        is_own=False,
        commit="0123456789ab",
        inputs={"flowers": "fedcba"},
    )


def make_claim(words: str, value: float, goal: float, *, holds: bool) -> dict:
    return {"claim": words, "value": value, "goal": goal, "holds": holds}


def open_small(monkeypatch, table: PaperTable, *, is_open: bool = True) -> AppTest:
    """Open the sub-page with an experiment that has this result, and one without a result."""
    monkeypatch.setattr(
        paper_tables, "experiments", lambda: {"other": "Other.", "small": "Flowers: can they be told apart?"}
    )
    monkeypatch.setattr(paper_tables, "load_table", lambda name: table if name == "small" else None)
    monkeypatch.setattr(paper_tables, "short_form", {"small": "5 of 50 splits", "other": ""}.get)
    unfolded = ["paper_small", "paper_other"] if is_open else []
    app = open_page("research", "beyond", *unfolded)
    assert not app.exception
    return app


def test_paper_scores_appear_next_to_ours(full, monkeypatch):
    rows = [{"set": "iris", "error, %": 4.25, "sd": 0.5, "paper": 5.3, "chosen": None}]
    claims = [make_claim("error (paper: 5.3)", 4.25, 5.3, holds=True)]
    app = open_small(monkeypatch, make_table(rows, claims))
    rows, claims = (frame.value for frame in app.dataframe)
    assert rows.columns.tolist() == ["set", "error, %", "paper", "chosen"]
    assert rows.iloc[0].tolist() == ["iris", "4.25 ± 0.5", "5.3", ""]
    assert claims.iloc[0].tolist() == ["error", "5.3", "at most 5.3", "4.25", "yes"]
    assert [expander.label for expander in app.expander] == [
        ":blue[:material/check_circle:] **Flowers**: its claim holds",
        ":gray[:material/hourglass_empty:] **Other**: no result yet",
    ]
    words = said(app)
    assert "Can they be told apart?" in words
    for part in ("2026", "shipped with the program", "5 splits", "2 cores, a CPU", "61 s", "0123456789ab"):
        assert part in words
    assert "5 of 50 splits" in words
    assert app.table[0].value.loc["SHA-256 of flowers"].tolist() == ["fedcba"]
    assert any("has no result" in info.value for info in app.info)


def test_failed_claims_say_what_was_expected_and_measured(full, monkeypatch):
    claims = [
        make_claim("held", 1.0, 0.0, holds=True),
        make_claim("below 3 %", 4.0, 3.0, holds=False),
        make_claim("A above B (thesis: 9.9)", -0.5, 0.0, holds=False),
    ]
    words = said(open_small(monkeypatch, make_table([{"set": "iris"}], claims)))
    assert "1 of 3 claims hold in 2 tables" in words
    assert "2 claims do not hold" in words
    first = words.index("A above B. **Expected:** at least 0 (the thesis found 9.9). **Measured:** -0.5.")
    assert first < words.index("Below 3 %. **Expected:** at most 3. **Measured:** 4."), "papers' claims first"


def test_deviation_larger_than_the_mean_is_put_in_words(full, monkeypatch):
    rows = [{"method": "ADMM", "projections": 2609.0, "projections sd": 4533.2}]
    app = open_small(monkeypatch, make_table(rows))
    assert app.dataframe[0].value["projections"].iloc[0] == "2,609, varies widely (± 4,533)"
    assert "the runs have no typical value" in said(app)


def test_tables_are_folded_at_first(full, monkeypatch):
    assert not open_small(monkeypatch, make_table([{"set": "iris"}]), is_open=False).dataframe


def test_overview_has_a_dot_per_table(full):
    app = open_page("research")
    rows = [html.proto.body for html in app.get("html") if "claims hold" in html.proto.body]
    assert len(rows) == 5
    for name, row in zip((*papers.PAPERS, papers.BEYOND), rows, strict=True):
        entries = papers.entries_of(name)
        assert row.count("title=") == len(entries)
        assert f'role="img" aria-label="{count(len(entries), "table")}: ' in row
        shares = [entry.n_held / entry.n_claims for entry in entries if entry.n_claims]
        assert shares == sorted(shares)


def test_experiments_of_papers_are_those_of_the_documentation():
    text = (Path(__file__).parents[3] / "docs" / "research" / "coverage.md").read_text(encoding="utf-8")
    parts = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    shown = [paper.experiments for paper in papers.PAPERS.values()]
    names = paper_tables.experiments()
    for part, experiments in zip(parts, shown, strict=True):
        rows = [line for line in part.splitlines() if "not in the thesis" not in line]
        listed = set(re.findall(r"experiments\.(\w+)", "\n".join(rows)))
        assert set(experiments) <= listed
        assert listed <= set().union(*shown)
        assert set(experiments) <= set(names)


def test_installed_package_points_to_repository(full, monkeypatch):
    monkeypatch.setattr(paper_tables, "experiments", dict)
    app = open_page("research", "thesis")
    assert not app.exception
    assert any("Clone the repository" in info.value for info in app.info)


@pytest.mark.long
def test_short_run_starts_experiment_job(full, monkeypatch):
    started = []
    monkeypatch.setattr(page, "start_job", lambda library, kind, **given: started.append((kind, given)))
    app = open_page("research", "icml2010", "paper_uci")
    app.button(key="evaluate_run_uci").click().run()
    assert not app.exception
    assert started == [("experiment", {"name": "uci"})]
