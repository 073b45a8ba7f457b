"""The Evaluate page without a browser: empty, one song, a library with a learned model, and the papers."""

import re
import shutil
import threading
import time

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import musicsim.extensions.paper_tables.page as papers
from benchmarks.large_library import write_library
from musicsim.explorer import jobs
from musicsim.explorer.models.artifacts import save_report
from musicsim.explorer.refresh.model_catalogue import add_own_vectors
from musicsim.explorer.refresh.refresh import refresh
from musicsim.extensions.continuation.continuation import MEASURES, Continued
from musicsim.extensions.paper_tables.paper_tables import Experiment, PaperTable
from musicsim.library import Library
from musicsim.ui.base.frame import PAGES, SHELL
from musicsim.ui.evaluate import search_view
from tests.learning import RANKED, hush
from tests.pages import actions
from tests.sounds import write_song
from tests.waiting import until


@pytest.fixture
def full(tiny_library, monkeypatch):
    """The tiny library, one genre for two artists, so that there is something to find."""
    ids = [song.id for song in tiny_library.songs() if song.artist != "Artist noise"]
    tiny_library.edits.edit(ids, {"genre": "Pitched <b>"})
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(tiny_library.folder))
    return tiny_library


def open_page() -> AppTest:
    app = AppTest.from_file(SHELL, default_timeout=60).run()
    return app.switch_page(PAGES["evaluate"]).run()


def worked_out(app: AppTest) -> AppTest:
    """The page once everything that was asked for is there."""
    for _ in range(120):
        assert not app.exception
        if any(s.value.startswith("Orphans") for s in app.subheader) and app.table:
            figures = app.table[0].value
            if "AUC" in figures and figures["AUC"].iloc[0]:
                return app
        time.sleep(0.25)
        app.run()
    raise AssertionError("nothing was worked out within 30 s")


def test_an_empty_library_has_a_next_step(empty):
    app = open_page()
    assert not app.exception
    assert any("No songs yet" in info.value for info in app.info)


def test_one_song_has_nothing_to_be_compared_with(empty, tmp_path):
    empty.add(write_song(tmp_path / "one.flac", title="Only one"))
    refresh(empty)
    app = open_page()
    assert not app.exception
    assert any("A single song" in info.value for info in app.info)


def test_a_library_is_judged(full):
    noise = [song.id for song in full.songs() if song.artist == "Artist noise"]
    clicks = [song.id for song in full.songs() if song.artist == "Artist clicks"]
    full.edits.edit([*noise, *clicks[:2]], {"genre": "Noise"})  # six songs of each
    app = worked_out(open_page())
    table = app.table[0].value
    assert table["Model"].tolist() == ["Sound", "Codewords"]
    assert not any(name.startswith("Held out") for name in table)
    assert " → " in table["Hubness"].iloc[0]
    assert any("Evaluated on the 12 songs" in c.value for c in app.caption)
    assert any("12 query songs" in c.value for c in app.caption)
    assert not any(button.label.startswith("Work out") for button in app.button)
    app.selectbox(key="evaluate_by").select("average precision").run()
    assert not app.exception


def test_a_learned_model_is_flattered_and_the_page_says_so(full):
    lead = {"before": 0.5, "after": 0.7, "mean": 0.2, "low": 0.1, "high": 0.3}
    part = {"songs": 4, "artists": 2}
    report = RANKED | {
        "leads": {"auc": lead, "map": lead},
        "split": dict.fromkeys(("train", "validation", "test"), part),
        "settings": RANKED["settings"] | {"supervision": "tags"},
    }
    save_report(full.models.path(full.models.active().id), report)
    app = worked_out(open_page())
    assert app.table[0].value["Held out: AUC"].iloc[0] == "0.500 → **0.700**"
    said = " ".join(info.value for info in app.info)
    assert "optimistic" in said
    assert "4 songs by 2 artists" in said
    assert "songs with the same tags" in said


def test_without_anything_that_says_similar_hubs_are_still_shown(full):
    for song in full.songs():
        full.edits.edit([song.id], {"genre": "", "artist": f"Someone {song.id}"})
    app = open_page()
    for _ in range(120):
        if any(s.value.startswith("Orphans") for s in app.subheader):
            break
        time.sleep(0.25)
        app.run()
    assert not app.exception
    assert any(s.value.startswith("Hubs") for s in app.subheader)


def show_section(name: str) -> AppTest:
    app = open_page()
    app.session_state["evaluate_section"] = name
    return app.run()


def show_papers() -> AppTest:
    return show_section("The papers")


# --- playlists -------------------------------------------------------------------------------------


def with_lists(library, n_lists):
    """Playlists of seven songs."""
    ids = [song.id for song in library.songs()]
    lists = [(f"list {n}", None, (ids[n % 5 :] + ids)[:7]) for n in range(n_lists)]
    library.add_playlists(lists, source="test")


def test_too_few_lists_have_a_next_step(full):
    with_lists(full, 9)
    app = show_section("Playlists")
    assert not app.exception
    assert any("9 playlists or sittings with 6 songs or more" in info.value for info in app.info)
    assert not [button for button in app.button if button.key == "evaluate_continue"]


@pytest.mark.slow
def test_lists_are_continued_by_a_job_and_what_came_of_it_is_shown(full):
    with_lists(full, 12)
    app = show_section("Playlists")
    app.button(key="evaluate_continue").click().run()
    assert not app.exception
    job = jobs.current(full)
    assert (job.kind, job.arguments) == ("continue", {"lists": "playlists"})
    jobs.cancel(full, job.id)
    until(lambda: jobs.current(full) is None)
    assert not app.run().exception
    assert any("cancelled" in markdown.value for markdown in app.markdown)
    assert not app.table

    scores = {way: dict.fromkeys(MEASURES, (0.25, 0.125, 0.5)) for way in ("item-kNN", "walk")}
    leads = {"item-kNN": (-0.25, -0.5, -0.125)}
    full.jobs.update(job.id, state="done")
    full.jobs.add_trace(job.id, Continued("playlists", 12, 12, 5, 12, scores, leads).as_json())
    app.run()
    assert not app.exception
    first = app.markdown[[m.value.startswith("**By NDCG") for m in app.markdown].index(True)].value
    assert "item-kNN is first" in first
    table = app.table[0].value
    assert table["Method"].tolist() == ["item-kNN", "walk"]
    assert table["NDCG"].iloc[0] == "**0.250** :small[:gray[0.125–0.500]]"
    assert any("12 of 12 playlists" in c.value for c in app.caption)


def test_visitors_are_not_offered_to_continue_lists(full, monkeypatch):
    full.close()
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    app = open_page()
    assert app.segmented_control[0].options == ["Your library", "The papers"]


# --- the papers ------------------------------------------------------------------------------------


def test_papers_stand_beside_our_figures(full, monkeypatch):
    table = PaperTable(
        "small",
        "2026-03-04T00:00:00+00:00",
        {"cores": 2, "cpu": "a CPU"},
        {"protocol": "short", "splits": 5, "seconds": 61.2},
        [{"set": "iris", "error, %": 4.25, "sd": 0.5, "paper": 5.3, "chosen": None}],
        [{"claim": "below the paper's", "value": 4.25, "goal": 5.3, "holds": True}],
        is_own=False,
        commit="0123456789ab",
        inputs={"flowers": "fedcba"},
    )
    monkeypatch.setattr(papers, "experiments", lambda: [Experiment("other", "Other."), Experiment("small", "Small.")])
    monkeypatch.setattr(papers, "load_table", lambda name: table if name == "small" else None)
    app = show_papers()
    assert not app.exception
    rows, claims = (frame.value for frame in app.dataframe)
    assert rows.columns.tolist() == ["set", "error, %", "paper", "chosen"]
    assert rows.iloc[0].tolist() == ["iris", "4.25 ± 0.5", "5.3", ""]
    assert claims.iloc[0].tolist() == [True, "below the paper's", "4.25", "5.3"]
    facts = " ".join(c.value for c in app.caption)
    for words in ("2026", "shipped with the program", "5 splits", "2 cores, a CPU", "61 s", "0123456789ab"):
        assert words in facts
    assert "the full one has not been run" in facts
    assert app.table[0].value.loc["SHA-256 of flowers"].tolist() == ["fedcba"]
    app.session_state["evaluate_experiment"] = "other"
    app.run()
    assert not app.exception
    assert any("no result of this experiment" in info.value for info in app.info)


@pytest.mark.parametrize(("n_failed", "words"), [(0, "All 2 claims hold"), (2, "2 of 4 claims do not hold")])
def test_what_does_not_hold_is_the_first_sentence(full, monkeypatch, n_failed, words):
    ours = {"claim": "below 3 %", "value": 4.0, "goal": 3.0, "holds": False}
    papers_order = {"claim": "A above B (paper's order)", "value": -0.5, "goal": 0.0, "holds": False}
    held = [{"claim": "held", "value": 1.0, "goal": 0.0, "holds": True}] * 2
    claims = [*held, ours, papers_order][: 2 + n_failed]
    table = PaperTable("small", "2026-03-04T00:00:00+00:00", {}, {"seed": 0}, [{"set": "iris"}], claims, is_own=False)
    monkeypatch.setattr(papers, "experiments", lambda: [Experiment("small", "Small.")])
    monkeypatch.setattr(papers, "load_table", lambda name: table)
    app = show_papers()
    said = [markdown.value for markdown in app.markdown]
    sentence = said[said.index("**Small.**") + 1]
    assert words in sentence
    if n_failed:  # the paper's order comes before a goal of ours
        assert sentence.index("(-0.5, goal 0)") < sentence.index("(4, goal 3)")


def test_an_installed_package_says_where_the_experiments_are(full, monkeypatch):
    monkeypatch.setattr(papers, "experiments", list)
    app = show_papers()
    assert not app.exception
    assert any("clone the repository" in info.value for info in app.info)


def test_the_short_run_starts_a_job_of_the_experiment(full, monkeypatch):
    started = []
    monkeypatch.setattr(papers, "start_job", lambda library, kind, **given: started.append((kind, given)))
    app = show_papers()
    app.button(key="evaluate_run").click().run()
    assert not app.exception
    names = [experiment.name for experiment in papers.experiments()]
    with_result = [name for name in names if papers.load_table(name)]
    assert started == [("experiment", {"name": (with_result or names)[0]})]


def test_a_fixed_split_can_be_chosen_and_faults_of_a_data_set_are_named(full):
    ids = [song.id for song in full.songs()]
    full.splits.keep("mine", {song_id: "test" if i % 2 else "train" for i, song_id in enumerate(ids)})
    full.note_dataset("gtzan_genre")
    app = worked_out(open_page())
    assert any("Sturm 2013" in warning.value for warning in app.warning)
    app.selectbox(key="evaluate_split").select("mine").run()
    app = worked_out(app)
    assert not app.exception
    asked = [int(found[1]) for c in app.caption if (found := re.search(r"(\d+) query songs", c.value))]
    assert asked
    assert max(asked) <= 6


def against(library, monkeypatch) -> AppTest:
    """The section for a library."""
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(library))
    app = open_page()
    app.session_state["evaluate_section"] = "Ours against theirs"
    return app.run()


def test_an_embedding_is_compared_with_the_sound(styles_library, tmp_path, monkeypatch):
    monkeypatch.setattr("musicsim.extensions.model_comparison.comparison.learn_ranking", lambda *_: None)  # for time
    shutil.copytree(styles_library, tmp_path / "library")
    with Library.open(tmp_path / "library") as library:
        ids = [song.id for song in library.songs()]
        np.savez(tmp_path / "net.npz", ids=ids, vectors=np.random.default_rng(0).standard_normal((30, 6)))
        add_own_vectors(library, tmp_path / "net.npz", "my_net", hush)
    app = against(tmp_path / "library", monkeypatch)
    assert app.selectbox(key="evaluate_against").options == ["my\\_net", "Codewords"]
    app.selectbox(key="evaluate_kind").select("genre").run()
    app.button(key="evaluate_compare").click().run()
    for _ in range(240):
        assert not app.exception
        if app.table:
            break
        time.sleep(0.25)
        app.run()
    assert app.table[0].value["Model"].tolist() == ["Sound", "Sound, learned", "my\\_net", "my\\_net, learned"]
    verdicts = next(m.value for m in app.markdown if m.value.startswith("- "))
    assert verdicts.startswith("- my\\_net is worse than Sound\\: ")
    assert len(verdicts.splitlines()) == 6
    app.session_state["evaluate_against_by"] = "auc"
    app.run()
    assert not app.exception
    assert any("Gain in AUC" in c.value for c in app.caption)


def test_what_cannot_be_compared_is_said(full, monkeypatch):
    app = against(full.folder, monkeypatch)
    app.button(key="evaluate_compare").click().run()
    for _ in range(120):
        if any("at least 5 artists" in info.value for info in app.info):
            break
        time.sleep(0.1)
        app.run()
    assert not app.exception
    assert any("songs of 3 artists" in info.value for info in app.info)


def test_visitors_have_no_button_that_takes_a_minute(full, monkeypatch):
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    full.close()
    app = against(full.folder, monkeypatch)
    assert not app.exception
    assert not [button for button in app.button if button.key == "evaluate_compare"]
    assert "Ours against theirs" not in app.get("button_group")[0].options


def test_a_small_library_has_no_index_to_measure(full):
    app = show_section("Search")
    assert any("at least 1,000 songs" in info.value for info in app.info)
    assert not any(button.label == "Measure search" for button in app.button)


def test_kinds_of_index_are_measured(tmp_path, monkeypatch):
    write_library(tmp_path / "library", 1200, n_dimensions=20).close()
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(tmp_path / "library"))
    app = show_section("Search")
    app.button(key="measure_search").click().run()

    def is_measured() -> bool:
        assert not app.exception
        return bool(app.run().table)

    until(is_measured)
    table = app.table[0].value
    assert table["Index"].tolist() == ["Partition", "Spill forest", "Spill tree", "Bit codes", "**Exact** (in use)"]
    assert (table["Recall at 10"].astype(float) > 0.9).all()
    assert any("200 query songs" in caption.value for caption in app.caption)


def test_a_measurement_of_search_can_be_cancelled(tmp_path, monkeypatch):
    write_library(tmp_path / "library", 1200, n_dimensions=20).close()
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(tmp_path / "library"))
    begun, ended = threading.Event(), threading.Event()

    def endless(snapshot, tell):
        begun.set()
        try:
            while True:
                tell("searching", 0, 1)
                time.sleep(0.01)
        finally:
            ended.set()

    monkeypatch.setattr(search_view, "measure_search", endless)
    app = show_section("Search")
    app.button(key="measure_search").click().run()
    assert begun.wait(60)
    app.button(key="cancel_search").click().run()
    assert ended.wait(60)
    assert not app.exception
    assert any(button.label == "Measure search" for button in app.button)


def test_the_settings_choose_the_kind_of_index(full):
    app = AppTest.from_file(SHELL, default_timeout=60).run()
    app = actions.show_section(app.switch_page(PAGES["library"]).run(), "settings")
    box = app.selectbox(key="setting_index_kind")
    assert (box.value, box.options[:3]) == ("automatic", ["Automatic", "Partition", "Spill forest"])
    box.set_value("forest").run()
    assert not app.exception
    assert full.settings["index_kind"] == "forest"
