"""The Teach page without a browser: teachers, options, and the display of a job, a verdict and the models."""

import json
import os
import re
import shutil
from dataclasses import asdict

import pytest

from musicsim.errors import NotFoundError
from musicsim.explorer import jobs
from musicsim.explorer.models.artifacts import load_report, save_report
from musicsim.explorer.models.files import save_model_file
from musicsim.explorer.refresh.fitting import RepresentationSettings
from musicsim.explorer.refresh.joined_model import join_models
from musicsim.explorer.refresh.learned_model import learn
from musicsim.explorer.refresh.model_catalogue import add_representation
from musicsim.explorer.refresh.refresh import refresh
from musicsim.explorer.requests.training import LearningSettings
from musicsim.explorer.search.why_groups import GROUPS, REST
from musicsim.explorer.search.why_sides import explain_result
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import Library
from musicsim.library.stores.duplicates import SamePair
from musicsim.library.stores.judgments import JudgmentStore
from tests.learning import Watcher, hush
from tests.pages.actions import model_choice, said, watched
from tests.pages.actions import open_page as open_closed
from tests.sounds import write_song


def open_page(name: str, section: str = ""):
    """Open a page; on Teach, open the other teachers with everything that they hide at first."""
    if name != "train" or section:
        return open_closed(name, section)
    return open_closed(name, "train", "train_details")


@pytest.fixture(scope="module")
def learned_folder(styles_library, tmp_path_factory):
    """A library of fifteen artists of three genres, with a model learned from genres."""
    folder = shutil.copytree(styles_library, tmp_path_factory.mktemp("learned") / "library")
    with Library.open(folder) as library:
        learn(library, LearningSettings("genre", C=100.0), "Genres", Watcher())
    return folder


@pytest.fixture
def learned(learned_folder, tmp_path, monkeypatch):
    """A copy of it that the test may change."""
    folder = tmp_path / "libraries" / "library"
    shutil.copytree(learned_folder, folder)
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(folder))
    with Library.open(folder) as library:
        yield library


def press(app, label: str, n: int = 0):
    """Click the n-th button with this label."""
    [button for button in app.button if button.label == label][n].click().run()
    assert not app.exception
    return app


def captions(app) -> str:
    return "\n".join(caption.value for caption in app.caption)


def test_empty_library_has_next_step(store, monkeypatch):
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(store.folder))
    app = open_page("train")
    assert not app.exception
    assert any("No songs yet" in info.value for info in app.info)


def test_two_songs_cannot_be_trained_on(store, tmp_path, monkeypatch):
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(store.folder))
    for kind in ("noise", "clicks"):
        store.add(write_song(tmp_path / f"{kind}.flac", kind))
    refresh(store)
    app = open_page("train")
    assert not app.exception
    assert any("This library has no data about similar songs yet" in info.value for info in app.info)
    assert app.button(key="train_start").disabled


def test_insufficient_supervision_cannot_be_chosen(learned):
    app = open_page("train")
    assert not app.exception
    choice = app.selectbox(key="train_supervision")
    assert choice.value == "genre"
    assert choice.options == ["Genres (30 songs)", "Artists (30 songs)", "Folders (30 songs)"]
    (lacking,) = [caption for caption in app.caption if "need data" in caption.value]
    assert lacking.value == "5 more need data: listeners, sittings, playlists, tags, thumbs."
    assert "Artists that the same people listen to" in lacking.help
    assert any("Import plays, tags or playlists" in button.label for button in app.button)


def test_training_starts_with_chosen_settings(learned, monkeypatch):
    started = []
    monkeypatch.setattr(jobs, "start", lambda library, kind, arguments: started.append((kind, arguments)))
    app = open_page("train")
    app.selectbox(key="train_supervision").set_value("artist").run()
    assert app.text_input(key="train_name").placeholder == "Artists"
    app.selectbox(key="train_method").set_value("ranking").run()
    app.selectbox(key="train_loss").set_value("ndcg")
    app.toggle(key="train_by_hand").set_value(True).run()
    app.select_slider(key="train_C").set_value(100.0)
    app.number_input(key="train_k").set_value(3)
    app.radio(key="train_structure").set_value("diagonal").run()
    press(app, "Train")
    wanted = LearningSettings("artist", ("Sound",), "ndcg", 100.0, 3, structure="diagonal")
    assert started == [("train", {"name": "Artists", "settings": asdict(wanted), "use": False})]


def test_existing_model_name_gets_number(learned, monkeypatch):
    started = []
    monkeypatch.setattr(jobs, "start", lambda library, kind, arguments: started.append(arguments["name"]))
    app = open_page("train")
    press(app, "Train")
    app.text_input(key="train_name").set_value("Sound").run()
    press(app, "Train")
    assert started == ["Genres 2", "Sound 2"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("failed", "2 artists are too few"),
        ("cancelled", "nothing was saved"),
        ("interrupted", "because its process ended"),
    ],
)
def test_failed_training_is_reported_and_can_restart(learned, monkeypatch, state, words):
    # as read back from the database
    arguments = json.loads(json.dumps({"name": "mine", "settings": asdict(LearningSettings("genre"))}))
    job_id = learned.jobs.create("train", arguments)
    learned.jobs.update(job_id, state=state, message="2 artists are too few to hold some out.")
    app = open_page("train")
    assert not app.exception
    assert any(words in box.value for box in [*app.error, *app.info])
    started = []
    monkeypatch.setattr(jobs, "start", lambda library, kind, arguments: started.append((kind, arguments)))
    press(app, "Start again")
    assert started == [("train", arguments)]


@pytest.mark.long
def test_running_training_shows_curves_and_can_be_stopped(learned):
    job_id = learned.jobs.create(
        "train", {"name": "mine", "settings": asdict(LearningSettings("genre", method="ranking"))}
    )
    learned.jobs.update(job_id, state="running", message="trying C = 1", done=2, total=8)
    learned.jobs.log_path(job_id).parent.mkdir(exist_ok=True)  # as starting a job does
    for cut in (1, 2):
        learned.jobs.add_trace(
            job_id,
            {"C": 1.0, "cut": cut, "objective": 1.0, "dual_bound": -0.5 * cut, "gap": 0.125, "seconds": 0.1,
             "quality": 0.7, "untrained": 0.6},
        )  # fmt: skip
    learned.jobs.add_trace(
        job_id, {"C": None, "cut": 1, "objective": 2.0, "dual_bound": 1.0, "gap": 0.25, "seconds": 0.1}
    )
    app = open_page("train")
    assert not app.exception
    assert any(line.endswith("3 cuts · gap 25.0%") for line in watched(app))
    objective, quality = (json.loads(chart.proto.spec) for chart in app.get("plotly_chart"))
    # cuts are numbered across the fits, with a gap between two; a bound below 0 cannot be shown on a log scale
    assert objective["data"][0]["x"] == [1, 2, None, 3, None]
    assert objective["data"][1]["y"] == [None, None, None, 1.0, None]
    assert [trace["name"] for trace in quality["data"]] == ["held-out artists", "untrained"]
    assert quality["data"][1]["y"] == [0.6, 0.6]
    assert app.button(key="train_start").disabled
    press(app, "Stop and keep the best")
    assert learned.jobs.get(job_id).finish_requested
    assert "Keeping the best metric so far…" in captions(app)


def test_verdict_has_scores_and_interval(learned):
    app = open_page("train")
    assert not app.exception
    (verdict,) = [box.value for box in [*app.success, *app.info, *app.warning] if "held-out artists" in box.value]
    assert "Genres" in verdict
    assert "95% interval" in verdict
    table = app.table[0].value
    assert list(table["measure"]) == ["AUC", "MAP", "MRR", "P@10", "hubness"]
    assert "No artist is in more than one of these groups" in captions(app)


def test_model_is_used_renamed_and_deleted(learned):
    app = open_page("train")
    press(app, "Use it")
    assert learned.models.active().name == "Genres"
    assert model_choice(app).value == learned.models.active().id
    model_id = learned.models.active().id
    app = open_page("train", "models")
    app.text_input(key=f"card_name_{model_id}").set_value("better")
    app.button(key=f"card_rename_{model_id}").click().run()
    assert learned.models.active().name == "better"
    app.button(key=f"card_delete_{model_id}").click().run()
    assert learned.models.active().name == "Sound"
    with pytest.raises(NotFoundError):
        learned.models.find("better")


def test_built_in_model_cannot_be_renamed(learned):
    native = learned.models.native()
    app = open_page("train", "models")
    assert app.button(key=f"card_use_{native.id}").disabled
    press(app, "Rename it")  # on the card of the built-in model, whose popover hides it
    assert learned.models.native().name == "Sound"


def test_representation_job_has_chosen_settings(learned, monkeypatch):
    started = []
    monkeypatch.setattr(jobs, "start", lambda library, kind, arguments: started.append((kind, arguments)))
    app = open_page("train", "models")
    app.selectbox(key="model_representation").set_value("tfidf").run()
    press(app, "Compute")
    settings = {"representation": "tfidf", "n_codewords": 1024, "tau": 4, "vectors": "", "label": ""}
    assert started == [("represent", {"name": "tfidf, 1024 codewords, tau 4", "settings": settings})]


def test_uploaded_model_file_starts_import_job(learned, monkeypatch, tmp_path):
    record = learned.models.find("Genres")
    save_model_file(learned, record.id, tmp_path / "sent.musicsim")
    started = []
    monkeypatch.setattr(jobs, "start", lambda library, kind, arguments: started.append((kind, arguments)))
    app = open_page("train", "models")
    data = (tmp_path / "sent.musicsim").read_bytes()
    app.get("file_uploader")[0].set_value(("sent.musicsim", data, "application/zip")).run()
    press(app, "Import")
    assert started == [("take_model", {"path": str(learned.folder / "uploads" / "sent.musicsim")})]
    assert (learned.folder / "uploads" / "sent.musicsim").read_bytes() == data


def test_training_can_combine_several_models(learned, monkeypatch):
    add_representation(learned, RepresentationSettings("rhythm"), "rhythm", hush)
    started = []
    monkeypatch.setattr(jobs, "start", lambda library, kind, arguments: started.append(arguments))
    app = open_page("train")
    chosen = app.multiselect(key="train_on")
    assert (chosen.options, chosen.value) == (["Sound", "Codewords", "rhythm"], ["Sound", "Codewords"])
    chosen.set_value(["Sound", "rhythm"]).run()
    press(app, "Train")
    assert started[0]["settings"]["on"] == ("Sound", "rhythm")
    app.multiselect(key="train_on").set_value([]).run()
    assert app.multiselect(key="train_on").value == ["Sound", "Codewords"], "something is learned on"
    app.selectbox(key="train_method").set_value("ranking").run()
    assert app.multiselect(key="train_on").value == ["Sound"]


def test_training_starts_from_model_in_use(learned, monkeypatch):
    started = []
    monkeypatch.setattr(jobs, "start", lambda library, kind, arguments: started.append(arguments))
    join_models(learned, ["Sound", "Codewords"], "Both", hush)
    app = open_page("train")
    assert app.multiselect(key="train_on").value == ["Sound", "Codewords"]
    learned.models.activate(learned.models.find("Both").id)
    chosen = app.run().multiselect(key="train_on")
    assert (chosen.options, chosen.value) == (["Sound", "Codewords", "Both"], ["Both"])
    press(app, "Train")
    app.multiselect(key="train_on").set_value(["Codewords"]).run()
    press(app, "Train")
    assert [each["settings"]["on"] for each in started] == [("Both",), ("Codewords",)]


@pytest.mark.long
def test_combined_model_shows_weights_on_every_page(learned):
    add_representation(learned, RepresentationSettings("rhythm"), "rhythm", hush)
    settings = LearningSettings("genre", ("Sound", "rhythm"), C=100.0)
    model_id = learn(learned, settings, "of both", Watcher())
    learned.models.activate(model_id)
    app = open_page("train", "models")
    assert not app.exception
    words = captions(app)
    assert "on “Sound” and “rhythm”, full metric" in words
    assert "Contributions to the distance\\: " in words
    app = open_page("train")
    sources = next(table.value for table in app.table if "source" in table.value)
    assert list(sources["source"]) == ["Sound", "rhythm"]
    assert sum(int(share.rstrip("%")) for share in sources["of the distances"]) == pytest.approx(100, abs=1)
    for name in ("listen", "playlist", "research"):
        page = open_page(name)
        assert not page.exception, name
        assert model_choice(page).value == model_id
    seen = take_snapshot(learned)
    first, second = seen.row_ids[:2].tolist()
    assert {part.words for part in explain_result(seen, first, second)[2].parts} - {REST} <= {"rhythm", *GROUPS}


@pytest.mark.long
@pytest.mark.parametrize("report", ["no json", "[]", '{"version": 1}', '{"leads": {"auc": 3}}'])
def test_invalid_report_does_not_break_page(learned, report):
    record = learned.models.find("Genres")
    (learned.models.path(record.id) / "report.json").write_text(report, encoding="utf-8")
    app = open_page("train", "models")
    assert not app.exception
    assert "learned from songs of the same genre" in captions(app)


def test_scores_by_answers_are_updated_after_answer(learned):
    """On Evaluate: answers do not change the library's revision, they have their own."""
    from musicsim.ui.research.quality_view import scores_key

    seen = take_snapshot(learned)
    before = {kind: scores_key(seen, kind) for kind in ("answers", "genre")}
    learned.judgments.add("Ann", "odd", seen.row_ids[:3].tolist(), 0)
    again = take_snapshot(learned)
    assert again.revision == seen.revision
    assert scores_key(again, "answers") != before["answers"]
    assert scores_key(again, "genre") == before["genre"]


@pytest.mark.long
def test_closed_form_metric_has_no_strength_option(learned, monkeypatch):
    started = []
    app = open_page("train")
    app.selectbox(key="train_method").set_value("local").run()
    assert app.toggle(key="train_by_hand").disabled
    assert app.select_slider(key="train_C").disabled
    with monkeypatch.context() as patched:
        patched.setattr(jobs, "start", lambda library, kind, arguments: started.append(arguments))
        press(app, "Train")
    assert started[0]["settings"]["method"] == "local"
    assert started[0]["settings"]["C"] is None
    learn(learned, LearningSettings(supervision="genre", method="mean"), "closed", Watcher())
    app = open_page("train")
    assert not app.exception
    assert any("t 0.5, reg 0.1" in str(table.value) for table in app.table)
    job_id = learned.jobs.create("train", {**started[0], "name": "by region"})
    learned.jobs.update(job_id, state="running", message="trying 2 regions", done=1, total=17)
    learned.jobs.log_path(job_id).parent.mkdir(exist_ok=True)
    learned.jobs.add_trace(job_id, {"quality": 0.7, "untrained": 0.6, "setting": "2 regions, t 0.1, reg 0.1"})
    app = open_page("train")
    assert not app.exception
    assert any(line.endswith("1 tried") for line in watched(app))
    (chart,) = app.get("plotly_chart")
    assert json.loads(chart.proto.spec)["data"][0]["x"] == [0.7]


def test_conflicting_thumbs_on_duplicates_do_not_break_page(learned):
    first, second, other = (song.id for song in learned.songs()[:3])
    learned.duplicates.enter([SamePair(first, second, 0.99, 0.0)], [])
    learned.judgments.rate_results(first, {other: 1})
    learned.judgments.rate_results(second, {other: -1})
    app = open_page("train")
    assert not app.exception
    assert app.selectbox(key="train_supervision").value == "genre"


def test_unreadable_supervision_shows_error_next_to_others(learned, monkeypatch):
    def broken(*_, **_options):
        raise ValueError("thumb 3 makes no sense.")

    monkeypatch.setattr(JudgmentStore, "all", broken)
    app = open_page("train")
    assert not app.exception
    assert any("thumb 3 makes no sense." in caption.help for caption in app.caption)
    assert not app.button(key="train_start").disabled


@pytest.mark.parametrize(("fell", "shown", "kind"), [(False, "success", "primary"), (True, "warning", "secondary")])
def test_worse_model_is_reported_and_not_recommended(learned, fell, shown, kind):
    record = learned.models.find("Genres")
    folder = learned.models.path(record.id)
    report = load_report(folder)
    up = {"before": 0.5, "after": 0.6, "mean": 0.1, "low": 0.05, "high": 0.2}
    down = {"before": 0.5, "after": 0.4, "mean": -0.1, "low": -0.2, "high": -0.05}
    save_report(folder, report | {"leads": {"auc": up, "mrr": down if fell else up}, "is_better": not fell})
    app = open_page("train")
    assert not app.exception
    box = next(box for box in getattr(app, shown) if "held-out artists" in box.value)
    assert ("MRR 0.400 vs 0.500 before training" in box.value) == fell
    assert app.button(key=f"verdict_use_{record.id}").proto.type == kind


def test_first_result_can_be_continued(learned, monkeypatch):
    started = []
    monkeypatch.setattr(jobs, "start", lambda library, kind, arguments: started.append((kind, arguments)))
    app = open_page("train")
    press(app, "Train")
    assert started[-1][1]["settings"]["quick"]
    record = learned.models.find("Genres")
    folder = learned.models.path(record.id)
    report = load_report(folder)
    save_report(folder, report | {"untried": 66, "settings": report["settings"] | {"quick": True}})
    app = open_page("train")
    assert any("**Genres, first result.** " in box.value for box in [*app.success, *app.info, *app.warning])
    press(app, "Try 66 more settings")
    assert started[-1] == ("train", {"name": "Genres", "settings": report["settings"] | {"quick": False}})


def test_first_screen_has_a_line_per_teacher_and_no_measures(learned):
    learned.models.delete(learned.models.find("Genres").id)
    app = open_closed("train", "train")
    assert not app.exception
    main = app.main
    assert [button.label for button in main.button] == ["Measure", "Import plays, tags or playlists"]
    assert not [*main.radio, *main.toggle, *main.number_input, *main.text_input, *main.select_slider, *main.selectbox]
    assert [box.label for box in main.expander] == ["Details"]
    assert "**Genres** · songs of the same genre, 30 songs  \nNot measured yet." in said(app)
    assert not re.search("AUC|MAP|MRR|[Hh]ubness|NDCG", said(app))


def test_all_teachers_are_measured_with_one_click(learned, monkeypatch):
    started = []
    monkeypatch.setattr(jobs, "start", lambda library, kind, arguments: started.append((kind, arguments)))
    press(open_closed("train", "train"), "Measure")
    quick = [LearningSettings(kind, quick=True) for kind in ("artist", "folder")]  # genres were measured before
    assert started == [
        ("train", {"name": name, "settings": asdict(settings), "use": False})
        for name, settings in zip(("Artists", "Folders"), quick, strict=True)
    ]


@pytest.mark.parametrize(("n_answers", "more"), [(0, "25 answers would"), (3, "22 more answers would")])
def test_teacher_without_gain_names_next_step(learned, n_answers, more):
    songs = [song.id for song in learned.songs()]
    for first in range(n_answers):
        learned.judgments.add("me", "odd", songs[first : first + 3], 0)
    folder = learned.models.path(learned.models.find("Genres").id)
    even = {"before": 0.5, "after": 0.51, "mean": 0.01, "low": -0.05, "high": 0.07}
    save_report(folder, load_report(folder) | {"leads": {"auc": even}, "is_better": False})
    app = open_closed("train", "train")
    assert f"Genres do not teach more than the sound knows. {more}." in said(app)
    assert "Use it" not in [button.label for button in app.main.button]


def test_teacher_without_enough_data_says_so(learned):
    arguments = {"name": "Folders", "settings": asdict(LearningSettings("folder", quick=True))}
    learned.jobs.update(learned.jobs.create("train", arguments), state="failed", message="2 folders are too few.")
    app = open_closed("train", "train")
    assert "Folders could not be measured: *Details* say why." in said(app)
    assert not app.error
    assert any("2 folders are too few." in box.value for box in open_page("train").error)


def test_teacher_that_helps_can_be_used(learned):
    record = learned.models.find("Genres")
    up = {"before": 0.5, "after": 0.6, "mean": 0.1, "low": 0.05, "high": 0.2}
    report = load_report(learned.models.path(record.id))
    save_report(learned.models.path(record.id), report | {"leads": {"auc": up}, "is_better": True})
    app = open_closed("train", "train")
    assert "Genres teach something: similar songs rank higher than with the sound alone." in said(app)
    assert app.button(key=f"teacher_use_{record.id}").proto.type == "primary"


def test_running_training_shows_attempts_and_time_left(learned):
    # with the id of a process, because the app starts a waiting job that has none
    arguments = {"name": "mine", "settings": asdict(LearningSettings("genre"))}
    job_id = learned.jobs.create("train", arguments, pid=os.getpid())
    learned.jobs.log_path(job_id).parent.mkdir(exist_ok=True)
    assert not open_page("train").exception, "the process has not reported anything"
    learned.jobs.update(job_id, state="running", message="comparing methods", done=11, total=49, seconds_left=170.0)
    app = open_closed("train", "train")
    assert not app.exception
    assert "mine · Attempt 12 of 49 · about 3 minutes left" in watched(app)
