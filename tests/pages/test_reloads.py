"""What is kept of a session for after a reload: of few sessions, of limited size, and for who knows its key."""

from musicsim.ui.base import reloads
from musicsim.ui.base.reloads import Sessions
from musicsim.ui.base.uploads import EXAMPLE, Upload
from tests.pages.actions import open_page


def upload(n_bytes: int) -> Upload:
    return Upload("song.wav", bytes(n_bytes), "digest")


def test_the_sessions_used_last_are_kept(monkeypatch):
    monkeypatch.setattr(reloads, "MAX_SESSIONS", 2)
    sessions = Sessions()
    for tab in ("a", "b", "a", "c"):
        sessions.keep(tab, {"tab": tab})
    assert [sessions.of(tab) for tab in ("a", "b", "c", "unknown")] == [{"tab": "a"}, {}, {"tab": "c"}, {}]


def test_what_is_too_old_is_forgotten(monkeypatch):
    sessions = Sessions()
    sessions.keep("a", {"colour": "genre"})
    monkeypatch.setattr(reloads, "MAX_AGE_S", -1.0)
    assert sessions.of("a") == {}


def test_uploads_together_are_no_larger_than_their_limit(monkeypatch):
    monkeypatch.setattr(reloads, "MAX_UPLOADED_BYTES", 100)
    sessions = Sessions()
    for tab in "abc":
        sessions.keep(tab, {EXAMPLE.name: upload(40), "tab": tab})
    assert [EXAMPLE.name in sessions.of(tab) for tab in "abc"] == [False, True, True]
    assert sessions.of("a") == {"tab": "a"}


def test_no_two_tabs_share_a_key_and_none_can_be_guessed(full):
    keys = {open_page("explore").session_state["tab"] for _ in range(2)}
    assert len(keys) == 2
    assert all(len(key) == 43 for key in keys), "256 bits"
