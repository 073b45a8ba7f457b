"""Data that the page sends to its map: ids of marked songs, never the songs."""

import json

from musicsim.ui.base.keys import read_event
from tests.pages.actions import open_page, press, sent


def test_page_sends_only_ids_of_the_playlist(full):
    app = press(open_page("playlist"), "playlist_draw")
    (data,) = sent(app, "map/page_map")
    ids = list(app.session_state["playlist"].song_ids)
    assert (data["path"], data["chosen"]) == (ids, ids[0])
    assert data["map"] == {
        "model": full.models.active().id, "library": full.name, "revision": full.revision,
    }  # fmt: skip
    assert not any(song.title in json.dumps(data) for song in full.songs())
    assert data["alt"].startswith("Map of 12 songs")


def test_event_of_component_that_has_left_page_is_none():
    assert read_event("no_such_component", "picked") is None
