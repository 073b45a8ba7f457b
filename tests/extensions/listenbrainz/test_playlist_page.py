"""Tests of sending playlists to ListenBrainz from the Playlists page, without a browser."""

from musicsim.extensions.listenbrainz.client import save_token
from tests.pages.actions import press
from tests.pages.test_playlist import drawn


def test_token_enables_sending_playlists(full):
    assert "playlist_listenbrainz" not in [button.key for button in drawn().button]
    save_token(full, "a-token")
    app = press(drawn(), "playlist_listenbrainz")
    assert any("none of these songs has a MusicBrainz id" in error.value for error in app.error)
