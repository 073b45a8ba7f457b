"""Tests of the section Servers of the Library page, without a browser."""

import pytest

from musicsim.extensions.music_servers.connections import Connections
from musicsim.extensions.music_servers.server_songs import ServerSongs
from musicsim.extensions.music_servers.sync import sync
from musicsim.progress import no_progress
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


@pytest.mark.long
def test_server_is_connected_without_exposing_password(full, server):
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


@pytest.mark.long
def test_unclear_match_can_be_chosen(full, server):
    Connections(full).put(server.connection())
    sync(full, Connections(full).get("home"), no_progress)
    app = section()
    assert "2 songs · 0 matched · 1 to match" in said(app)
    assert "Fetch 1 song" in labels(app)
    app = app.button(key="server_choose_0").click().run()
    assert not app.exception
    assert ServerSongs(full).find_song("so-1") == ("home", full.songs()[0].id)
    assert "Which song is it?" not in [s.value for s in app.header]
    app = app.button(key="server_remove_home").click().run()
    assert not app.exception
    assert Connections(full).all() == []
