"""The client of a tab: the frame tells it about the tab, and shows the pages that it asks for."""

import pytest
from streamlit.testing.v1 import AppTest

from musicsim.ui.base.frame import PAGES
from tests.pages.actions import open_page, sent


def context_of(app: AppTest) -> dict:
    (context,) = sent(app, "frame")
    return context


def test_frame_tells_what_is_open_and_what_the_user_may_do(full):
    context = context_of(open_page("library"))
    record = full.models.active()
    assert context.pop("session")["restored"] == ""
    assert context == {
        "library": full.name, "model": record.name, "modelId": record.id, "revision": full.revision, "isOwner": True,
        "keepsPlays": True, "restores": True,
    }  # fmt: skip


def test_visitors_are_no_owners_and_their_plays_are_not_kept(full, monkeypatch):
    full.close()
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    context = context_of(open_page("listen"))
    assert not context["isOwner"]
    assert not context["keepsPlays"]


def test_listen_offers_songs_to_begin_with(full):
    app = open_page("listen")
    assert not context_of(app)["restores"]  # the tab owns what Listen shows
    (data,) = sent(app, "listen/page")
    (offer,) = data["offers"]  # nothing was played, so only this can be offered
    assert offer["label"] == "Something else today"
    assert set(offer["songs"]) <= {song.id for song in full.songs()}
    assert offer["songs"]


def test_queue_opens_as_draft_with_reasons_and_pins(full, monkeypatch):
    ids = [song.id for song in full.songs()][:3]
    shown = []
    monkeypatch.setattr("musicsim.ui.client.st.switch_page", shown.append)
    app = open_page("listen")
    asked = {"page": "playlist", "library": full.name, "songs": [*ids, 999], "pins": [ids[2]]}
    asked["reasons"] = ["", "both fast", "", ""]
    draft = requested(app, monkeypatch, asked)
    assert shown == [PAGES["playlist"]]
    assert draft.song_ids == tuple(ids)
    assert [edge.reason for edge in draft.edges.values()] == ["both fast"]
    assert draft.kept == {ids[2]}


@pytest.mark.parametrize(
    "asked",
    [None, 7, {}, {"page": "nowhere"}, {"page": "playlist", "songs": "all"}, {"page": "playlist", "songs": [{}, "x"]}],
)
def test_invalid_requests_change_nothing(full, monkeypatch, asked):
    shown = []
    monkeypatch.setattr("musicsim.ui.client.st.switch_page", shown.append)
    assert requested(open_page("listen"), monkeypatch, asked) is None
    assert shown in ([], [PAGES["playlist"]])


def requested(app: AppTest, monkeypatch, asked: object):
    """Let the frame carry out a request of the client; return the draft on the Playlists page after it."""
    from musicsim.ui import client
    from musicsim.ui.playlist.draft import PLAYLIST

    monkeypatch.setattr(client, "read_event", lambda *_: asked)

    def script() -> None:
        from musicsim.ui import client

        client.show_page()

    other = AppTest.from_function(script, default_timeout=app.default_timeout).run()
    assert not other.exception
    state = other.session_state
    return state[PLAYLIST.name] if PLAYLIST.name in state else None  # noqa: SIM401  # it has no method `get`
