"""Tests of the command, the routes and the page of daily mixes."""

import json

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from musicsim import LIBRARY_FILE
from musicsim.api import filter_routes, routes
from musicsim.explorer import jobs
from musicsim.extensions.daily.mixes import SOURCE, make_daily_mixes
from musicsim.extensions.daily.options import PLAYS_TO_START, DailySettings, read_settings
from musicsim.hooks import Lifespan
from musicsim.library.stores.playlists import OWN_PLAYLISTS
from musicsim.ui.app import app_options
from tests.command import run
from tests.pages.actions import labels, open_page, said
from tests.waiting import until


def test_command_makes_mixes_and_shows_them(full):
    assert "no daily mixes yet" in run("daily", "--status", library=full.folder)[0]
    done = json.loads(run("daily", "--json", "--ignore-battery", library=full.folder)[0])
    assert [mix["name"] for mix in done["run"]["mixes"]] == [one.name for one in full.playlists(source=SOURCE)]
    assert done["run"]["mixes"][0]["songs"][0]["title"]
    assert len(done["run"]["skipped"]) == 2
    shown, _ = run("daily", "--status", library=full.folder)
    assert done["run"]["mixes"][0]["name"][:12] in shown
    assert json.loads(run("daily", "--status", "--json", library=full.folder)[0]) == done
    run("daily", "--undo", library=full.folder)
    assert full.playlists(source=SOURCE) == []


def test_command_changes_settings(full, tmp_path):
    changed = ("--automatic", "--hours", "22-6", "--cpu", "25", "--every", "30", "--write-to", tmp_path)
    out, _ = run("daily", *changed, library=full.folder)
    assert "automatic: on" in out
    assert read_settings(full) == DailySettings(
        automatic=True, watched=(), hours="22-6", cpu=25, every=30, folder=str(tmp_path)
    )
    assert full.playlists(source=SOURCE) == []
    run("daily", "--no-automatic", "--hours", "any", "--write-to", "none", library=full.folder)
    assert read_settings(full) == DailySettings(automatic=False, cpu=25, every=30)
    run("daily", "--watched", tmp_path, library=full.folder)
    assert read_settings(full).watched == (str(tmp_path),)
    run("daily", "--watched", "none", library=full.folder)
    assert read_settings(full).watched == ()
    run("daily", "--hours", "6", library=full.folder, expect=2)
    run("watch", "--hours", "6", library=full.folder, expect=2)


def test_routes_return_and_make_mixes(client, full):
    assert client.get("/api/openapi.json").json()["paths"]["/daily"].keys() == {"get", "post"}
    assert client.get("/api/daily").json()["run"] is None
    made = client.post("/api/daily")
    assert made.status_code == 202
    until(lambda: jobs.current(full) is None)
    assert full.jobs.get(made.json()["job"]).state == "done"
    run = client.get("/api/daily").json()["run"]
    assert [mix["name"] for mix in run["mixes"]] == [one.name for one in full.playlists(source=SOURCE)]


def test_route_explains_why_library_cannot_be_opened(client, full):
    damaged = full.folder.with_name("damaged")
    damaged.mkdir()
    (damaged / LIBRARY_FILE).write_bytes(b"not a database" * 100)
    refused = client.get("/api/daily?library=damaged")
    assert refused.status_code == 409
    assert "damaged" in refused.json()["error"]


def test_visitors_have_neither_routes_nor_automatic_work(full, monkeypatch):
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    allowed = TestClient(Starlette(routes=filter_routes(routes())))
    assert allowed.post("/api/daily").status_code in (404, 405)
    assert allowed.get("/api/daily").status_code == 404
    entered = []
    monkeypatch.setattr("musicsim.ui.app.load_hooks", lambda point: entered.append(point) or [])
    with TestClient(Starlette(lifespan=app_options()["lifespan"])):
        assert entered == []
    monkeypatch.delenv("MUSICSIM_PUBLIC")
    with TestClient(Starlette(lifespan=app_options()["lifespan"])):
        assert entered == [Lifespan]


@pytest.mark.long
def test_page_shows_mixes_and_saves_settings(full):
    make_daily_mixes(full)
    app = open_page("playlist")
    first, *_ = full.playlists(source=SOURCE)
    assert first.name.removeprefix("Daily mix: ").casefold() in " ".join(labels(app)).casefold()
    assert "Not made: Daily mix: around last week. No plays of the last seven days are known." in said(app)
    app.menu_button(key="daily_0_menu").click("Save a copy").run()
    (copy,) = full.playlists(source=OWN_PLAYLISTS)
    assert copy.song_ids == first.song_ids
    app.toggle(key="daily_automatic").set_value(True).run()
    app.text_input(key="daily_hours").set_value("2-6")
    app.number_input(key="daily_cpu").set_value(25)
    app.button(key="daily_save").click().run()
    assert read_settings(full) == DailySettings(automatic=True, watched=(), hours="2-6", cpu=25)
    app.text_input(key="daily_hours").set_value("noon")
    app.button(key="daily_save").click().run()
    assert not app.exception
    assert read_settings(full).hours == "2-6"
    app.button(key="daily_undo").click().run()
    assert full.playlists(source=SOURCE) == []
    assert "Make them now" in labels(app)
    assert "The first mixes are made soon" in said(app)


def test_daily_mix_opens_as_playlist(full):
    make_daily_mixes(full)
    app = open_page("playlist")
    app.button(key="daily_0_open").click().run()
    assert not app.exception
    assert app.session_state["playlist"].song_ids == full.playlists(source=SOURCE)[0].song_ids


def test_mixes_start_after_ten_plays(full):
    song = full.songs()[0].id
    assert "They start by themselves after 10 more plays." in said(open_page("playlist"))
    for n in range(PLAYS_TO_START):
        assert not read_settings(full).has_mixes(full)
        full.player_plays.add_play(song)
        assert full.player_plays.count() == n + 1
    app = open_page("playlist")
    assert app.toggle(key="daily_automatic").value
    app.toggle(key="daily_automatic").set_value(False).run()
    assert not read_settings(full).has_mixes(full)
    assert "start by themselves" not in said(app)


def test_folder_is_watched_by_a_toggle_next_to_it(full, tmp_path):
    folder = tmp_path / "music"
    folder.mkdir()
    full.files.add_roots([folder])
    app = open_page("library", "folders")
    toggle = app.toggle(key=f"daily_watch_{folder}")
    assert not toggle.value
    toggle.set_value(True).run()
    settings = read_settings(full)
    assert [root for root in full.files.roots() if settings.watches(root)] == [folder]
    app.toggle(key=f"daily_watch_{folder}").set_value(False).run()
    assert read_settings(full).watched == ()
