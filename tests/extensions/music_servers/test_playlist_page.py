"""Tests of saving playlists to music servers from the Playlists page, without a browser."""

import pytest

from musicsim.extensions.music_servers.connections import Connections
from musicsim.extensions.music_servers.server_songs import ServerSong, ServerSongs
from tests.extensions.music_servers.serving import scripted, store_playlists
from tests.pages.actions import press
from tests.pages.test_playlist import drawn, ids_of, select


@pytest.mark.long
def test_playlist_is_managed_on_server(full):
    there = {}

    def kept():
        return ServerSongs(full).lists("home")

    assert "playlist_server_save" not in [button.key for button in drawn().button]
    with scripted(store_playlists(there)) as server:
        Connections(full).put(server.connection())
        songs = full.songs()
        ServerSongs(full).write("home", [ServerSong(f"so-{song.id}", song_id=song.id) for song in songs])
        app = select(drawn(), "playlist_name", "My playlist")
        assert app.button(key="playlist_server_save").label == "Save “My playlist” on home"
        press(app, "playlist_server_save")
        assert kept()["My playlist"].request is None
        app.run()
        assert app.button(key="playlist_server_save").label == "Update “My playlist” on home"
        assert "playlist_server_refresh" not in [button.key for button in app.button]
        app.toggle(key="playlist_keep_home_My playlist").set_value(True).run()
        press(app, "playlist_server_save")
        assert there == {"pl-My playlist": "My playlist"}
        assert kept()["My playlist"].request is not None
        calls = len(server.asked)
        press(app, "playlist_close")  # the lists are below the sentence, without an open playlist
        press(app, "playlist_server_refresh")
        assert not app.error
        assert [call for call, _, _ in server.asked[calls:]] == ["createPlaylist", "updatePlaylist"]
        press(app, "playlist_undo")
        app.number_input(key="playlist_around_home_My playlist").set_value(3).run()
        press(app, "playlist_server_save")
        assert any("no song of this library was played there" in error.value for error in app.error)
        press(app, "playlist_close")
        press(app, "playlist_server_delete_it")
        assert (there, kept()) == ({}, {})
        assert "playlist_server_delete_it" not in [button.key for button in app.button]
        press(app, "playlist_undo")
        assert len(ids_of(app)) == 12, "This library does not change"


def test_songs_unknown_to_server_are_named(full):
    with scripted(lambda *_: {"playlist": {"id": "pl"}, "playlists": {"playlist": []}}) as server:
        Connections(full).put(server.connection())
        app = press(drawn(), "playlist_server_save")
        assert any("has none of the songs" in error.value for error in app.error)
