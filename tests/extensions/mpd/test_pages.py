"""Tests of MPD on the Library and Playlists pages, without a browser."""

from musicsim.extensions.mpd.client import MpdAddress, is_mpd_set, mpd_address
from tests.extensions.mpd.real_mpd import real_mpd
from tests.pages.actions import open_page, press, said, show_section
from tests.pages.test_playlist import drawn, ids_of, select


def test_mpd_is_saved_after_successful_connection(full, collection, monkeypatch):
    for name in ("MPD_HOST", "MPD_PORT"):
        monkeypatch.delenv(name, raising=False)
    app = show_section(open_page("library"), "servers")
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


def test_playlist_is_queued_and_saved_in_mpd(full, collection, monkeypatch):
    for name in ("MPD_HOST", "MPD_PORT"):
        monkeypatch.delenv(name, raising=False)
    assert "playlist_mpd_queue" not in [button.key for button in drawn().button]
    with real_mpd(collection) as running, running.client() as client:
        monkeypatch.setenv("MPD_HOST", str(running.socket))
        app = select(drawn(), "playlist_name", "My playlist")
        paths = {song.id: song.path for song in full.songs()}
        files = [str(paths[i].relative_to(collection)) for i in ids_of(app)]
        press(app, "playlist_mpd_queue")
        assert [entry["file"] for entry in client.playlistinfo()] == files
        press(app, "playlist_mpd_save")
        assert list(client.listplaylist("My playlist")) == files
        assert not app.error
        press(app, "playlist_mpd_save")
        assert any("already has a playlist “My playlist”" in error.value for error in app.error)
        running.kill()
        press(app, "playlist_mpd_queue")
        assert any("does not respond" in error.value for error in app.error)
