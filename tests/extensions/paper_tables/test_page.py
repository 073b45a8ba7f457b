"""Tests of the papers on the Research page."""

import pytest

import musicsim.extensions.paper_tables.page as papers
from musicsim.extensions.paper_tables import paper_tables
from musicsim.extensions.paper_tables.paper_tables import PaperTable
from tests.pages.actions import open_page


def test_paper_scores_appear_next_to_ours(full, monkeypatch):
    table = PaperTable(
        "small",
        "2026-03-04T00:00:00+00:00",
        {"cores": 2, "cpu": "a CPU"},
        {"protocol": "short", "splits": 5, "seconds": 61.2},
        [{"set": "iris", "error, %": 4.25, "sd": 0.5, "paper": 5.3, "chosen": None}],
        [{"claim": "error (paper: 5.3)", "value": 4.25, "goal": 5.3, "holds": True}],
        is_own=False,
        commit="0123456789ab",
        inputs={"flowers": "fedcba"},
    )
    monkeypatch.setattr(
        paper_tables, "experiments", lambda: {"other": "Other.", "small": "Flowers: can they be told apart?"}
    )
    monkeypatch.setattr(paper_tables, "load_table", lambda name: table if name == "small" else None)
    monkeypatch.setattr(paper_tables, "short_form", {"small": "5 of 50 splits"}.get)
    app = open_page("research", "papers")
    assert not app.exception
    claims, rows = (frame.value for frame in app.dataframe)
    assert rows.columns.tolist() == ["set", "error, %", "paper", "chosen"]
    assert rows.iloc[0].tolist() == ["iris", "4.25 ± 0.5", "5.3", ""]
    assert claims.iloc[0].tolist() == ["error", "5.3", "at most 5.3", "4.25", "yes"]
    assert [header.value for header in app.header] == ["Flowers"]
    assert "Can they be told apart?" in [markdown.value for markdown in app.markdown]
    facts = " ".join(c.value for c in app.caption)
    for words in ("2026", "shipped with the program", "5 splits", "2 cores, a CPU", "61 s", "0123456789ab"):
        assert words in facts
    assert "5 of 50 splits" in facts
    assert app.table[0].value.loc["SHA-256 of flowers"].tolist() == ["fedcba"]
    app.session_state["evaluate_experiment"] = "other"
    app.run()
    assert not app.exception
    assert any("has no result" in info.value for info in app.info)


@pytest.mark.long
@pytest.mark.parametrize(("n_failed", "words"), [(0, "All 2 claims hold"), (2, "2 of 4 claims hold")])
def test_summary_starts_with_failed_claims(full, monkeypatch, n_failed, words):
    ours = {"claim": "below 3 %", "value": 4.0, "goal": 3.0, "holds": False}
    papers_order = {"claim": "A above B (paper's order)", "value": -0.5, "goal": 0.0, "holds": False}
    held = [{"claim": "held", "value": 1.0, "goal": 0.0, "holds": True}] * 2
    claims = [*held, ours, papers_order][: 2 + n_failed]
    table = PaperTable("small", "2026-03-04T00:00:00+00:00", {}, {"seed": 0}, [{"set": "iris"}], claims, is_own=False)
    monkeypatch.setattr(paper_tables, "experiments", lambda: {"small": "Small."})
    monkeypatch.setattr(paper_tables, "load_table", lambda name: table)
    monkeypatch.setattr(paper_tables, "short_form", lambda name: "5 of 50 splits")
    app = open_page("research", "papers")
    (sentence,) = [markdown.value for markdown in app.markdown if words in markdown.value]
    if n_failed:  # the order of the paper takes precedence over our goals
        assert sentence.index("-0.5 instead of at least 0") < sentence.index("4 instead of at most 3")


def test_installed_package_points_to_repository(full, monkeypatch):
    monkeypatch.setattr(paper_tables, "experiments", dict)
    app = open_page("research", "papers")
    assert not app.exception
    assert any("Clone the repository" in info.value for info in app.info)


@pytest.mark.long
def test_short_run_starts_experiment_job(full, monkeypatch):
    started = []
    monkeypatch.setattr(papers, "start_job", lambda library, kind, **given: started.append((kind, given)))
    app = open_page("research", "papers")
    app.button(key="evaluate_run").click().run()
    assert not app.exception
    names = list(paper_tables.experiments())
    with_result = [name for name in names if paper_tables.load_table(name)]
    assert started == [("experiment", {"name": (with_result or names)[0]})]
