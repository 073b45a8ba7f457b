"""Work that survives a reload: of few sessions, for a limited time, and only with the session's key."""

import pytest

from musicsim.ui import client
from musicsim.ui.base import reloads
from musicsim.ui.base.reloads import Sessions
from tests.pages.actions import open_page, press


def test_most_recently_used_sessions_are_kept(monkeypatch):
    monkeypatch.setattr(reloads, "MAX_SESSIONS", 2)
    sessions = Sessions()
    for tab in ("a", "b", "a", "c"):
        sessions.save(tab, {"tab": tab})
    assert [sessions.load(tab) for tab in ("a", "b", "c", "unknown")] == [{"tab": "a"}, {}, {"tab": "c"}, {}]


def test_old_sessions_expire(monkeypatch):
    sessions = Sessions()
    sessions.save("a", {"color": "genre"})
    monkeypatch.setattr(reloads, "MAX_AGE_S", -1.0)
    assert sessions.load("a") == {}


def test_session_keys_are_unique_and_unguessable(full):
    keys = {open_page("listen").session_state["tab"] for _ in range(2)}
    assert len(keys) == 2
    assert all(len(key) == 43 for key in keys), "256 bits"


@pytest.fixture
def drawn(full):
    app = open_page("playlist")
    press(app, "playlist_draw")
    return app


@pytest.mark.parametrize(("is_reload", "is_restored"), [(True, True), (False, False), ("yes", False)])
def test_draft_is_restored_after_a_reload(drawn, is_reload, is_restored, monkeypatch):
    draft = drawn.session_state["playlist"]
    app = open_page("playlist")
    assert app.session_state["playlist"] is None
    sent = {"tab": drawn.session_state["tab"], "isReload": is_reload}
    monkeypatch.setattr(client, "read_event", lambda key, name: sent)
    app.run()
    assert not app.exception
    assert (app.session_state["playlist"] == draft) is is_restored
    app.session_state["playlist"] = None
    assert app.run().session_state["playlist"] is None, "restored only once"


@pytest.mark.parametrize("sent", [{"tab": "unknown", "isReload": True}, {"tab": ["a"]}, {}, "a"])
def test_invalid_keys_restore_nothing(drawn, sent, monkeypatch):
    monkeypatch.setattr(client, "read_event", lambda key, name: sent)
    app = open_page("playlist")
    assert not app.exception
    assert app.session_state["playlist"] is None
