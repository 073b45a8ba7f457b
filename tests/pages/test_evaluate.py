"""The Research page without a browser: empty, and a library with a learned model."""

import re

import pytest
from streamlit.testing.v1 import AppTest

from benchmarks.large_library import write_library
from musicsim.explorer.models.artifacts import save_report
from musicsim.ui.base.frame import PAGES, SHELL
from musicsim.ui.research import search_view
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
    app = AppTest.from_file(SHELL, default_timeout=PATIENCE_S).run()
    return app.switch_page(PAGES["research"]).run()


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


def test_library_is_evaluated(full):
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
    app = open_page()
    return app.selectbox(key="choose_research_Evaluate").set_value("search").run()


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
