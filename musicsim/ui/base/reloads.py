"""Work that survives a page reload, even though Streamlit then starts a new session.

The server keeps the values of the keys with ``is_kept`` in memory, under a random 256-bit key of the session that
cannot be guessed. Only the tab stores this key, in its ``sessionStorage`` (``musicsim/web/reload.js``). It is not part
of a URL or a cookie, so links do not reveal it. After a reload, the tab sends the key of the session before.
"""

import secrets
import threading
import time
from collections import OrderedDict
from typing import Any

import streamlit as st

from musicsim.public import is_public
from musicsim.ui.base.keys import Key, persistent_keys

MAX_SESSIONS = 64
MAX_AGE_S = 12 * 3600.0
_VISITORS_AGE_S = 1800.0

_TAB: Key[str] = Key("tab", lambda: secrets.token_urlsafe(32), "key of the session's values")
_BEFORE: Key[str] = Key("tab_before", str, "key of the session before the reload; empty until its values are loaded")


class Sessions:
    """The saved values of each session, stored under its key; thread-safe."""

    def __init__(self) -> None:
        # each session's values, with the time at which they were saved
        self._states: OrderedDict[str, tuple[float, dict[str, Any]]] = OrderedDict()
        self._lock = threading.Lock()

    def save(self, tab: str, values: dict[str, Any]) -> None:
        """Replace the values of a session."""
        with self._lock:
            self._states[tab] = time.monotonic(), values
            self._states.move_to_end(tab)
            self._drop_old()

    def load(self, tab: str) -> dict[str, Any]:
        """Return a session's values, or an empty dict if they have expired."""
        with self._lock:
            self._drop_old()
            return dict(self._states[tab][1]) if tab in self._states else {}

    def _drop_old(self) -> None:
        since = time.monotonic() - (_VISITORS_AGE_S if is_public() else MAX_AGE_S)
        for tab in [tab for tab, (saved_at, _) in self._states.items() if saved_at < since]:
            del self._states[tab]
        while len(self._states) > MAX_SESSIONS:
            self._states.popitem(last=False)


@st.cache_resource(show_spinner=False)
def _sessions() -> Sessions:
    return Sessions()


def save_session() -> None:
    """Save this session's values; call this at the end of a page run."""
    state = st.session_state
    _sessions().save(_TAB.get(), {key.name: state[key.name] for key in persistent_keys() if key.name in state})


def follow_reload(sent: object) -> dict[str, str]:
    """Restore the values of the session before, and return what the tab must know; call this before a page's run.

    `sent` is what the tab sent, or None. If the user followed a link instead of reloading, values about one library are
    not loaded.
    """
    before, is_reload = (sent.get("tab"), sent.get("isReload") is True) if isinstance(sent, dict) else (None, False)
    if isinstance(before, str) and before != _BEFORE.get():
        _BEFORE.set(before)
        values = _sessions().load(before)
        for key in persistent_keys():
            if key.name in values and (is_reload or not key.per_library):
                key.set(values[key.name])
    return {"tab": _TAB.get(), "restored": _BEFORE.get()}
