"""The Research page without a browser: empty, and a library with a learned model."""

import re

import pytest
from streamlit.testing.v1 import AppTest

from benchmarks.large_library import write_library
from musicsim.explorer.models.artifacts import save_report
from musicsim.hooks import Section
from musicsim.ui.base import sections
from musicsim.ui.base.frame import PAGES, SHELL
from musicsim.ui.research import quality_view, search_view
from tests.learning import RANKED
from tests.pages import actions
from tests.waiting import PATIENCE_S


@pytest.fixture
def full(tiny_library, monkeypatch):
    """The tiny library, with one genre for two artists, so that there is something to find."""
    ids = [song.id for song in tiny_library.songs() if song.artist != "Artist noise"]
    tiny_library.edits.edit(ids, {"genre": "Pitched <b>"})
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(tiny_library.folder))
    return tiny_library


def open_page() -> AppTest:
    return actions.open_page("research", "quality")


def worked_out(app: AppTest) -> AppTest:
    """Run the page until everything is computed."""

    def is_computed() -> bool:
        if not any(s.value.startswith("Orphans") for s in app.header) or not app.table:
            return False
        figures = app.table[0].value
        return "AUC" in figures and bool(figures["AUC"].iloc[0])

    return actions.run_until(app, is_computed)


def test_empty_library_has_next_step(empty):
    app = open_page()
    assert not app.exception
    assert any("No songs yet" in info.value for info in app.info)
    app = actions.press(app, "research_back")
    assert "There are no songs to compare yet." in actions.said(app)
    assert "Exports" in actions.labels(app)


def test_overview_leads_to_each_sub_page_and_back(full):
    app = actions.open_page("research")
    actions.run_until(app, lambda: "similar songs." in actions.said(app))
    assert [header.value for header in app.header] == ["The papers", "This library"]
    labels = actions.labels(app)
    first = labels.index("More like this (thesis, 2012)")
    assert labels[first + 5 : first + 8] == ["Evaluate", "Listening tests", "Exports"]
    assert not app.main.selectbox, "the sub-pages are a list"
    app = actions.press(app, "research_to_exports")
    assert (app.title[0].value, app.session_state["research_section"]) == ("Exports", "exports")
    app = actions.press(app, "research_back")
    assert app.title[0].value == "Research"


def test_sub_page_of_an_extension_without_a_sentence_is_listed(full, monkeypatch):
    found = sections.sections_of("research")
    section = Section("research", "page:draw", title="Playlist walk", tab="walk")
    exports = next(extension for extension, _ in found if extension.name == "exports")
    monkeypatch.setattr(
        sections, "sections_of", lambda page: [*found, (exports, section)] if page == "research" else []
    )
    app = actions.press(actions.open_page("research"), "research_to_walk")
    assert app.title[0].value == "Playlist walk"


def test_groups_below_twenty_songs_have_no_chart(full):
    ids = [song.id for song in full.songs()]
    full.edits.edit(ids[:6], {"genre": "Noise"})
    full.edits.edit(ids[6:], {"genre": "Pitched"})
    app = worked_out(open_page())
    assert not app.get("plotly_chart")
    assert actions.said(app).count("2 genres left out: fewer than 20 songs.") == 1
    assert not any(header.value == "By genre" for header in app.header)


def test_terms_are_explained_at_first_use(full):
    said = actions.said(worked_out(open_page()))
    for words in ("19 of 20 such ranges contain the true value", "Hubness is 0 if", "Coverage is the share of"):
        assert said.count(words) == 1


def test_library_is_evaluated(full, monkeypatch):
    monkeypatch.setattr(quality_view, "MIN_SONGS", 5)
    noise = [song.id for song in full.songs() if song.artist == "Artist noise"]
    clicks = [song.id for song in full.songs() if song.artist == "Artist clicks"]
    full.edits.edit([*noise, *clicks[:2]], {"genre": "Noise"})  # six songs of each
    app = worked_out(open_page())
    table = app.table[0].value
    assert table["Model"].tolist() == ["Sound"]
    (verdict,) = (box.value for box in [*app.success, *app.info])
    assert re.search(r"They rank above other songs in \d+% of all cases .* Similar songs here: songs of the", verdict)
    assert re.fullmatch(r"\*\*\d\.\d\d\*\* .*", table["AUC"].iloc[0]), "two digits"
    assert not any(name.startswith("Held out") for name in table)
    assert " → " in table["Hubness"].iloc[0]
    assert any("Evaluated on the 12 songs" in c.value for c in app.caption)
    assert any("12 query songs" in c.value for c in app.caption)
    assert not any(button.label.startswith("Work out") for button in app.button)
    app.selectbox(key="evaluate_by").select("average precision").run()
    assert not app.exception
    app.button(key="evaluate_all_models").click().run()
    actions.run_until(app, lambda: app.table[0].value["Model"].tolist() == ["Sound", "Codewords"])


def test_page_warns_about_optimistic_training_scores(full):
    lead = {"before": 0.5, "after": 0.7, "mean": 0.2, "low": 0.1, "high": 0.3}
    part = {"songs": 4, "artists": 2}
    report = RANKED | {
        "leads": {"auc": lead, "map": lead},
        "split": dict.fromkeys(("train", "validation", "test"), part),
        "settings": RANKED["settings"] | {"supervision": "tags"},
    }
    save_report(full.models.path(full.models.active().id), report)
    app = worked_out(open_page())
    assert app.table[0].value["Held out: AUC"].iloc[0] == "0.50 → **0.70**"
    said = " ".join(info.value for info in app.info)
    assert "optimistic" in said
    assert "4 songs by 2 artists" in said
    assert "songs with the same tags" in said


def test_hubs_are_shown_without_ground_truth(full):
    for song in full.songs():
        full.edits.edit([song.id], {"genre": "", "artist": f"Someone {song.id}"})
    app = open_page()
    actions.run_until(app, lambda: any(s.value.startswith("Orphans") for s in app.header))
    assert any(s.value.startswith("Hubs") for s in app.header)


def test_fixed_split_can_be_chosen(full):
    ids = [song.id for song in full.songs()]
    full.splits.keep("mine", {song_id: "test" if i % 2 else "train" for i, song_id in enumerate(ids)})
    app = worked_out(open_page())
    app.selectbox(key="evaluate_split").select("mine").run()
    app = worked_out(app)
    assert not app.exception
    asked = [int(found[1]) for c in app.caption if (found := re.search(r"(\d+) query songs", c.value))]
    assert asked
    assert max(asked) <= 6


def open_search() -> AppTest:
    return actions.open_page("research", "search")


def test_small_library_has_no_index_to_measure(full):
    app = open_search()
    assert any("at least 1,000 songs" in info.value for info in app.info)
    assert not any(button.label == "Measure search" for button in app.button)


@pytest.mark.long
def test_all_index_types_are_measured(tmp_path, monkeypatch):
    write_library(tmp_path / "library", 1200, n_dimensions=20).close()
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(tmp_path / "library"))
    app = open_search()
    app.button(key="measure_search").click().run()
    actions.run_until(app, lambda: bool(app.table))
    table = app.table[0].value
    assert table["Index"].tolist() == ["Partition", "**Exact** (in use)"]
    assert (table["Recall at 10"].astype(float) > 0.9).all()
    assert any("200 query songs" in caption.value for caption in app.caption)


@pytest.mark.long
def test_search_measurement_can_be_canceled(tmp_path, monkeypatch):
    write_library(tmp_path / "library", 1200, n_dimensions=20).close()
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(tmp_path / "library"))
    actions.check_cancel(open_search(), monkeypatch, search_view, "measure_search", "search")


def test_index_type_is_chosen_in_settings(full):
    app = AppTest.from_file(SHELL, default_timeout=PATIENCE_S).run()
    app = actions.show_section(app.switch_page(PAGES["library"]).run(), "settings")
    box = app.selectbox(key="setting_index_kind")
    assert (box.value, box.options) == ("automatic", ["Automatic", "Partition", "Exact"])
    box.set_value("partition").run()
    assert not app.exception
    assert full.settings["index_kind"] == "partition"
