"""The section Servers of the Library page, without a browser."""

import pytest

from musicsim.explorer.progress import silent
from musicsim.extensions.mpd.client import MpdAddress, is_mpd_set, mpd_address
from musicsim.extensions.music_servers.connections import Connections
from musicsim.extensions.music_servers.server_songs import ServerSongs
from musicsim.extensions.music_servers.sync import sync
from tests.extensions.mpd.real_mpd import real_mpd
from tests.extensions.music_servers.serving import having, scripted
from tests.pages.actions import labels, open_page, said, show_section


@pytest.fixture
def server(full):
    first = full.songs()[0]
    listed = [
        {"id": "so-1", "title": first.title, "artist": first.artist, "duration": first.duration_s + 60},
        {"id": "so-2", "title": "Elsewhere", "artist": "Nobody"},
    ]
    alive = having(listed)

    def answer(call, values):
        return alive(call, values) if values.get("u") == "anna" else (40, "Wrong username or password")

    with scripted(answer) as server:
        yield server


def section():
    return show_section(open_page("library"), "servers")


def fill(app, address, user):
    values = {"name": "home", "address": address, "user": user, "secret_0": "red apple"}
    for key, value in values.items():
        app.text_input(key=f"server_{key}").set_value(value)
    return next(button for button in app.button if button.label == "Connect").click().run()


def test_a_server_is_connected_once_it_knows_the_user_and_its_password_is_nowhere_on_the_page(full, server):
    app = fill(section(), server.address, "somebody")
    assert "check the user and the password" in said(app)
    assert Connections(full).all() == []
    app = fill(app, server.address, "anna")
    assert not app.exception
    assert not app.error
    assert Connections(full).get("home").user == "anna"
    assert "not synced yet" in said(app)
    assert app.text_input(key="server_secret_1").value == ""
    assert "red apple" not in said(section())


def test_mpd_is_kept_once_it_answers_and_removed(full, collection, monkeypatch):
    for name in ("MPD_HOST", "MPD_PORT"):
        monkeypatch.delenv(name, raising=False)
    app = section()
    with real_mpd(collection) as running:
        for password, works in (("wr0ng", False), ("secret", True)):
            app.text_input(key="mpd_host").set_value("127.0.0.1")
            app.number_input(key="mpd_port").set_value(running.port)
            app.text_input(key="mpd_password").set_value(password)
            app = app.button(key="mpd_connect").click().run()
            assert not app.exception
            assert is_mpd_set(full) == works
            assert ("incorrect password" in said(app)) != works
        assert mpd_address(full) == MpdAddress("127.0.0.1", running.port, "secret")
        assert f".0.0.1:{running.port}" in said(app)
        assert "secret" not in said(app)
    app = app.button(key="mpd_remove").click().run()
    assert not app.exception
    assert not is_mpd_set(full)


def test_where_a_match_is_unclear_a_person_chooses(full, server):
    Connections(full).put(server.connection())
    sync(full, Connections(full).get("home"), silent)
    app = section()
    assert "2 songs · 0 matched · 1 to choose" in said(app)
    assert "Fetch 1 songs" in labels(app)
    app = app.button(key="server_choose_0").click().run()
    assert not app.exception
    assert ServerSongs(full).song_of("so-1") == full.songs()[0].id
    assert "Which song is it?" not in [s.value for s in app.subheader]
    app = app.button(key="server_remove_home").click().run()
    assert not app.exception
    assert Connections(full).all() == []
