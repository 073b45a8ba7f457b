"""Every page runs without a browser: empty, with one song, and with a library."""

import ast
import os
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from musicsim.audio import FEATURE_VERSION
from musicsim.explorer import job_process, jobs
from musicsim.explorer.libraries import create_library, demo_folder, open_library
from musicsim.explorer.refresh.fitting import RepresentationSettings
from musicsim.explorer.refresh.model_catalogue import add_representation
from musicsim.explorer.refresh.refresh import refresh
from musicsim.library.db import schema
from musicsim.library.stores.duplicates import SamePair
from musicsim.ui.base.frame import PAGES, SHELL
from musicsim.ui.components import jobs_view
from musicsim.ui.components.song_list import row_of
from tests.pages.actions import labels, model_choice, open_page, said, sent, show_section, watched
from tests.sounds import write_song
from tests.waiting import PATIENCE_S, until


@pytest.mark.parametrize("page", PAGES)
def test_empty_library_has_next_step(empty, page):
    app = open_page(page)
    assert not app.exception
    assert any("No songs yet" in info.value for info in app.info)
    assert any("demo" in button.label for button in app.button)


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES)
def test_library_of_one_song_has_next_step(empty, tmp_path, page):
    empty.add(write_song(tmp_path / "one.flac", title="Only one"))
    refresh(empty)
    app = open_page(page)
    assert not app.exception
    assert not app.error
    if page != "library":
        assert ["Only one song" in info.value for info in app.info] == [True]
        assert "Add more music" in [link.proto.label for link in app.get("page_link")]
        assert not sent(app, "listen/page")
        assert not sent(app, "map/page_map")
        assert not app.main.button or page == "research", "the papers need no songs"


@pytest.mark.parametrize("page", PAGES)
def test_every_page_opens(full, page):
    app = open_page(page)
    assert not app.exception
    assert not app.error
    assert app.title[0].value


def test_error_names_nonexistent_folder(full):
    app = open_page("library")
    app.text_input(key="library_folder").set_value("/nowhere/music").run()
    app.button[[b.label for b in app.button].index("Add the folder")].click().run()
    assert not app.exception
    assert any("/nowhere/music" in e.value for e in app.error)
    assert full.jobs.recent() == []


def test_disabled_widgets_give_the_reason():
    package = Path(SHELL).parents[1]
    files = [*package.glob("ui/**/*.py"), *package.glob("extensions/*/*page.py")]
    silent = [
        f"{file.relative_to(package)}:{call.lineno}"
        for file in files
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and "disabled" in (names := {word.arg for word in call.keywords})
        and "help" not in names and file.parent.name != "train"  # options that the method does not have
    ]  # fmt: skip
    assert silent == []


@pytest.fixture
def busy(full):
    """A library in which another process trains a model."""
    job_id = full.jobs.create("train", {"name": "x", "settings": {}}, pid=os.getpid())
    full.jobs.update(job_id, state="running", done=1, total=8)
    return full


def test_folder_waits_for_running_job_and_can_be_canceled(busy, tmp_path):
    app = open_page("library")
    app.text_input(key="library_folder").set_value(str(tmp_path)).run()
    app.button[labels(app).index("Add the folder")].click().run()
    assert not app.exception
    job = busy.jobs.recent()[0]
    assert (job.kind, job.state, job.arguments) == ("add", "waiting", {"paths": [str(tmp_path)]})
    assert "Waiting for the current job. This one starts afterwards." in said(app)
    assert any("1 of 8 attempts" in line for line in watched(app))
    assert "1 job waiting" in watched(app)
    app.button(key=f"cancel_waiting_{job.id}").click().run()
    assert busy.jobs.get(job.id).state == "cancelled"
    assert "Waiting" not in said(app)


def test_canceled_job_can_be_resumed_from_every_page(busy, monkeypatch):
    started = []
    monkeypatch.setattr(jobs, "start", lambda library, kind, arguments: started.append((kind, arguments)))
    app = open_page("listen")
    app.sidebar.button(key="cancel_current").click().run()
    (job,) = busy.jobs.recent()
    assert job.cancel_requested
    busy.jobs.update(job.id, state="cancelled")
    app.run()
    assert "Training a model: canceled. Resume?" in [caption.value for caption in app.sidebar.caption]
    assert "Training a model: canceled. Resume?" in said(open_page("library"))
    app.sidebar.button(key="resume_current").click().run()
    assert not app.exception
    assert started == [(job.kind, job.arguments)]


def test_job_that_began_and_was_canceled_between_two_runs_can_be_resumed(full):
    app = open_page("listen")
    job = full.jobs.create("refresh", {})
    full.jobs.update(job, state="cancelled")
    app.run()
    said_in_sidebar = [caption.value for caption in app.sidebar.caption]
    assert "Updating the models: canceled. Resume?" in said_in_sidebar
    old = [caption.value for caption in open_page("listen").sidebar.caption]
    assert not any("Resume" in caption for caption in old), "it ended before this session"


@pytest.mark.parametrize(
    ("page", "view", "change", "button"),
    [
        ("listen", "view_library", {"state": "cancelled"}, "cancel_current"),
        ("library", "view_job", {"pause_requested": True}, "pause_job"),
    ],
)
def test_page_runs_again_if_a_job_changes_while_it_is_drawn(busy, monkeypatch, page, view, change, button):
    (job,) = busy.jobs.recent()
    assert button in [shown.key for shown in open_page(page).button]
    states = []
    draw = getattr(jobs_view, view)

    def draw_and_change(*arguments):
        drawn = draw(*arguments)
        busy.jobs.update(job.id, **change)
        states.append((drawn.state, draw(*arguments).state))
        return drawn

    monkeypatch.setattr(jobs_view, view, draw_and_change)
    app = open_page(page)
    assert not app.exception
    ((drawn, newest),) = states
    assert drawn != newest, "the browser sees that the state has changed"
    assert button not in [shown.key for shown in app.button]


def test_songs_can_be_played_before_the_first_map(full):
    with full.write() as connection:
        connection.execute(schema.models.delete())
    job_id = full.jobs.create("demo", {}, pid=os.getpid())
    full.jobs.update(job_id, state="running", total=24)
    app = open_page("listen")
    assert not app.exception
    (data,) = sent(app, "songs/component")
    assert [row["song_id"] for row in data["rows"]] == [song.id for song in full.songs()]
    assert data["notSimilar"] == "No songs to compare with yet."
    assert any("Similar songs follow after the first 12 songs." in line for line in watched(app))
    full.jobs.update(job_id, done=12, message="finding clusters", seconds_left=0.4)
    assert any("the first map is being computed (finding clusters)" in line for line in watched(app.run()))
    assert any("almost done" in line for line in watched(open_page("library")))
    full.jobs.update(job_id, total=23, done=22)
    assert any("Similar songs follow when the job has finished." in line for line in watched(app.run()))


@pytest.mark.long
@pytest.mark.parametrize("address", ["reference://x", "https://host/x::data:y", "sftp://me:S3CRET@host/music"])
def test_refused_address_starts_no_job(full, address):
    app = open_page("library")
    app.text_input(key="library_folder").set_value(address).run()
    app.button[[b.label for b in app.button].index("Add the folder")].click().run()
    assert not app.exception
    assert len(app.error) == 1
    assert "S3CRET" not in app.error[0].value
    assert full.jobs.recent() == []


def test_new_library_is_created_and_shown(full):
    app = open_page("library", "settings")
    app.text_input(key="library_new").set_value("Jazz").run()
    assert not app.exception
    assert app.sidebar.selectbox[0].value == "Jazz"
    assert any("No songs yet" in info.value for info in app.info)


@pytest.mark.long
def test_own_music_goes_to_library_separate_from_demo(full, tmp_path):
    full.files.add_roots([demo_folder(full.folder)])
    write_song(tmp_path / "mine" / "one.flac", title="Only one", seconds=25)
    app = open_page("library")
    app.text_input(key="library_folder").set_value(str(tmp_path / "mine")).run()
    app.button[[b.label for b in app.button].index("Add the folder")].click().run()
    assert not app.exception
    assert app.sidebar.selectbox[0].value == "My music"
    own = open_library("My music")
    until(lambda: jobs.current(own) is None)
    assert ([song.title for song in own.songs()], full.jobs.recent()) == (["Only one"], [])


def test_more_own_music_goes_to_existing_library(full, tmp_path):
    full.files.add_roots([demo_folder(full.folder)])
    demo_folder(full.folder).mkdir()
    own = open_library(create_library("My music").name)
    own.jobs.update(own.jobs.create("refresh", {}, pid=os.getpid()), state="running")  # so that the new job waits
    app = open_page("library")
    assert app.sidebar.selectbox[0].options == ["Demo", "My music"]
    assert not app.toggle(key="library_mix").value
    app.text_input(key="library_folder").set_value(str(tmp_path)).run()
    app.button[labels(app).index("Add the folder")].click().run()
    assert not app.exception
    assert not app.error
    assert app.sidebar.selectbox[0].value == "My music"
    assert own.jobs.recent()[0].arguments == {"paths": [str(tmp_path)]}
    assert full.jobs.recent() == []


def test_own_music_is_mixed_with_demo_on_request(full, tmp_path):
    full.files.add_roots([demo_folder(full.folder)])
    full.jobs.update(full.jobs.create("refresh", {}, pid=os.getpid()), state="running")  # so that the new job waits
    app = open_page("library")
    app.toggle(key="library_mix").set_value(True).run()
    app.text_input(key="library_folder").set_value(str(tmp_path)).run()
    app.button[labels(app).index("Add the folder")].click().run()
    assert not app.exception
    assert full.jobs.recent()[0].arguments == {"paths": [str(tmp_path)]}


def test_folder_is_chosen_by_clicks(full, tmp_path):
    music = tmp_path / "music"
    for name in ("Rock", "jazz", "Jamaica", ".hidden"):
        (music / name / "inner").mkdir(parents=True)
    (music / "file").touch()
    app = open_page("library")
    assert app.button[labels(app).index("Add the folder")].disabled

    def offered():
        return [b.label for b in app.button if (b.key or "").startswith("library_folder_")]

    app.text_input(key="library_folder").set_value(str(music)).run()
    assert offered() == ["Up", "Jamaica", "jazz", "Rock"]
    app.text_input(key="library_folder").set_value(str(music / "ja")).run()
    assert offered() == ["Up", "Jamaica", "jazz"]
    app.button(key="library_folder_1").click().run()
    assert app.text_input(key="library_folder").value == str(music / "jazz")
    assert offered() == ["Up", "inner"]
    app.button(key="library_folder_up").click().run()
    assert app.text_input(key="library_folder").value == str(music)
    assert not app.button[labels(app).index("Add the folder")].disabled


def test_empty_library_sections_have_messages(full):
    app = open_page("library")
    for section, words in (
        ("failed", "No failed files."),
        ("missing", "No missing files."),
        ("same", "No duplicates found."),
        ("artists", "No artist seems to have more than one spelling."),
        ("settings", "This library is stored in"),
    ):
        show_section(app, section)
        assert not app.exception
        assert any(words in caption.value for caption in app.caption), section


def test_songs_table_has_lengths_and_folders(full):
    song = full.songs()[0]
    table = open_page("library").dataframe[0].value
    assert table["length"].str.strip().tolist() == ["0:04"] * len(full)
    assert table["folder"][0] == song.place == song.path.parent.name


def test_folder_stands_in_for_unknown_artist(full, monkeypatch):
    song = full.songs()[0]
    full.edits.edit([song.id], {"artist": ""})
    song = full.song(song.id)
    assert row_of(song).sub.startswith(f"{song.path.parent.name} · ")
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    assert row_of(song).sub.startswith(f"in “{song.path.parent.name}” · ")


def test_tidy_up_opens_first_tab_with_something_to_do(full):
    full.files.mark(missing=[full.songs()[0].path], back=[])
    app = open_page("library")
    app.button_group(key="choose_library_Section").set_value("Tidy up").run()
    assert app.session_state["library_section"] == "missing"
    assert "11 songs · Failed files: 0 · Missing songs: 1" in said(app)


def test_missing_songs_are_shown_and_removed(full, tmp_path):
    song = full.songs()[0]
    full.files.mark(missing=[song.path], back=[])
    app = show_section(open_page("library"), "missing")
    assert app.dataframe[0].value["title"].tolist() == [song.title]
    app.button[labels(app).index("Remove them")].click().run()
    assert not app.exception
    assert song.id not in {s.id for s in full.songs(missing=True)}


def test_exact_copies_are_listed_with_duplicates(full, tmp_path):
    song = full.songs()[0]
    copy = tmp_path / "copy.flac"
    with full.write() as connection:
        file = {"path": copy, "song_id": song.id, "folder": tmp_path, "size": 1, "mtime_ns": 1}
        connection.execute(schema.files.insert().values(**file))
    app = show_section(open_page("library"), "same")
    assert not app.exception
    assert any("1 file is an exact copy" in text.value for text in app.markdown)
    assert {str(song.path), str(copy)} == set(app.dataframe[0].value["file"])
    assert any("Duplicates: 1" in caption.value for caption in app.caption)


def test_duplicates_are_separated_and_joined_again(full):
    first, second = full.songs()[:2]
    full.duplicates.enter([SamePair(first.id, second.id, 0.99, 0.0)], [])
    app = show_section(open_page("library"), "same")
    assert any("shown for the group" in text.value for text in app.markdown)
    app.button[labels(app).index("These are different songs")].click().run()
    assert not app.exception
    assert not full.duplicates.pairs()[0].is_same
    app.button[[label.startswith("Duplicates after all") for label in labels(app)].index(True)].click().run()
    assert full.duplicates.pairs()[0].is_same


def test_artist_spellings_are_merged_and_separated(full):
    ids = [song.id for song in full.songs()]
    full.edits.edit(ids[:2], {"artist": "The Beatles"})
    full.edits.edit(ids[2:3], {"artist": "Beatles, The"})
    app = show_section(open_page("library"), "artists")
    app.button[labels(app).index("Merge 2 spellings")].click().run()
    assert not app.exception
    assert full.edits.aliases() == {"Beatles, The": "The Beatles"}
    app.button[[label.startswith("Separate The Beatles") for label in labels(app)].index(True)].click().run()
    assert full.edits.aliases() == {}


def test_folder_is_removed_with_its_songs(full, collection):
    app = show_section(open_page("library"), "folders")
    assert any(str(collection) in text.value.replace("\\", "") for text in app.markdown)
    app.button[labels(app).index("Remove folder")].click().run()
    assert not app.exception
    assert len(full) == 0


def test_setting_is_saved(full):
    app = show_section(open_page("library"), "settings")
    app.number_input(key="setting_shortest_s").set_value(33).run()
    assert not app.exception
    assert full.settings["shortest_s"] == 33


def test_backup_and_small_copy_are_shown(full, monkeypatch):
    started = []
    monkeypatch.setattr(jobs, "start", lambda library, kind, arguments: started.append((kind, arguments)))
    app = show_section(open_page("library"), "settings")
    assert "The latest backup" not in said(app)
    app.button(key="back_up").click().run()
    ((kind, arguments),) = started
    assert job_process.run(full, full.jobs.create(kind, arguments)) == "done"
    full.add_playlists([("mine", None, [1])], "saved")
    full.copies.keep_now()
    app = show_section(open_page("library"), "settings")
    assert not app.exception
    assert f"The latest backup is {arguments['path']}" in said(app)
    assert full.copies.latest().name in said(app)


@pytest.mark.long
def test_outdated_songs_are_analyzed_again_with_notice(full):
    with full.write() as connection:
        connection.execute(schema.songs.update().values(feature_version=FEATURE_VERSION - 1))
    app = AppTest.from_file(SHELL, default_timeout=PATIENCE_S).run()
    assert not app.exception
    (told,) = [info.value for info in app.info if "analyzes songs better" in info.value]
    assert "12 songs will be analyzed again" in told
    (job,) = full.jobs.recent()
    assert job.kind == "upgrade"
    until(lambda: jobs.current(full) is None)
    assert full.files.find_outdated() == []


@pytest.fixture
def two_models(full):
    add_representation(full, RepresentationSettings("histogram"), "plain counts", lambda *_: None)
    return full


def test_sidebar_model_is_used_on_every_page(two_models):
    song = two_models.songs()[0]
    other = two_models.models.find("plain counts")
    app = AppTest.from_file(SHELL, default_timeout=PATIENCE_S)
    app.query_params["song"] = str(song.id)
    app.run()
    assert model_choice(app).value == two_models.models.native().id
    assert len(sent(app, "listen/page")) == 1
    model_choice(app).select(other.id).run()
    assert not app.exception
    assert app.query_params["model"] == "plain counts"
    assert two_models.models.active().kind == "native", "looking through a model does not put it into use"
    app = app.switch_page(PAGES["listen"]).run()
    assert app.session_state["model"] == other.id


def test_session_without_choice_follows_model_in_use(two_models):
    other = two_models.models.find("plain counts")
    following, choosing = (AppTest.from_file(SHELL, default_timeout=PATIENCE_S).run() for _ in range(2))
    model_choice(choosing).select(other.id).run()
    model_choice(choosing).select(two_models.models.native().id).run()
    two_models.models.activate(other.id)
    for app, used in ((following, other), (choosing, two_models.models.native())):
        app.run()
        assert not app.exception
        assert model_choice(app).value == used.id
    assert [toast.value for toast in following.toast] == ["plain counts is now in use."]
    assert not choosing.toast


def test_link_selects_model(two_models):
    app = AppTest.from_file(SHELL, default_timeout=PATIENCE_S)
    app.query_params["model"] = "plain counts"
    app.run()
    assert model_choice(app).value == two_models.models.find("plain counts").id
    unknown = AppTest.from_file(SHELL, default_timeout=PATIENCE_S)
    unknown.query_params["model"] = "never made"
    unknown.run()
    assert not unknown.exception
    assert model_choice(unknown).value == two_models.models.native().id


def test_genre_spellings_are_merged_and_undone(full):
    songs = [song for song in full.songs() if song.genre == full.songs()[0].genre]
    genre, odd = songs[0].genre, songs[-1]
    full.edits.edit([odd.id], {"genre": genre.upper()})
    app = open_page("library")
    app.session_state["library_section"] = "genres"
    app.run()
    app.button(key="genre_merge_0").click().run()
    assert not app.exception
    assert full.song(odd.id).genre == genre
    assert any("No genre has more than one spelling" in c.value for c in app.caption)
    app.button(key="genres_part").click().run()
    assert full.song(odd.id).genre == genre.upper()


def test_tags_are_edited_in_dialog_that_stays_open(full):
    song = full.songs()[0]
    app = open_page("library")
    app.session_state["dialog"] = ("edit tags", [song.id])  # AppTest cannot select rows
    app.run()
    app.run()  # as at the end of a job
    app.text_input(key="edit_genre").set_value("Fado")
    next(button for button in app.button if button.label == "Save").click().run()
    assert not app.exception
    assert full.song(song.id).genre == "Fado"
    assert not app.get("dialog")
