"""Session data that survives a reload: of few sessions, of limited size, and only with the session's key."""

from musicsim.ui.base import reloads
from musicsim.ui.base.reloads import Sessions
from musicsim.ui.base.uploads import EXAMPLE, Upload
from tests.pages.actions import open_page


def upload(n_bytes: int) -> Upload:
    return Upload("song.wav", bytes(n_bytes), "digest")


def test_most_recently_used_sessions_are_kept(monkeypatch):
    monkeypatch.setattr(reloads, "MAX_SESSIONS", 2)
    sessions = Sessions()
    for tab in ("a", "b", "a", "c"):
        sessions.save(tab, {"tab": tab})
    assert [sessions.load(tab) for tab in ("a", "b", "c", "unknown")] == [{"tab": "a"}, {}, {"tab": "c"}, {}]


def test_old_sessions_expire(monkeypatch):
    sessions = Sessions()
    sessions.save("a", {"colour": "genre"})
    monkeypatch.setattr(reloads, "MAX_AGE_S", -1.0)
    assert sessions.load("a") == {}


def test_total_upload_size_is_limited(monkeypatch):
    monkeypatch.setattr(reloads, "MAX_UPLOADED_BYTES", 100)
    sessions = Sessions()
    for tab in "abc":
        sessions.save(tab, {EXAMPLE.name: upload(40), "tab": tab})
    assert [EXAMPLE.name in sessions.load(tab) for tab in "abc"] == [False, True, True]
    assert sessions.load("a") == {"tab": "a"}


def test_session_keys_are_unique_and_unguessable(full):
    keys = {open_page("listen").session_state["tab"] for _ in range(2)}
    assert len(keys) == 2
    assert all(len(key) == 43 for key in keys), "256 bits"
