"""State that survives a page reload, even though Streamlit then starts a new session.

The server keeps a tab's values (draft, request, filters, colors, upload) in memory, under a random 256-bit key that
cannot be guessed. Only the tab stores the key, in its ``sessionStorage``. The key is not part of a URL or a cookie, so
links do not reveal it. After a reload, the tab's new session loads the values under the key that the tab stored.
"""

import secrets
import threading
import time
from collections import OrderedDict
from typing import Any

import streamlit as st

from musicsim.public import is_public
from musicsim.ui.base.keys import Key, persistent_keys
from musicsim.ui.base.scripts import component
from musicsim.ui.base.uploads import EXAMPLE, Upload

MAX_SESSIONS = 64
MAX_AGE_S = 12 * 3600.0
_VISITORS_AGE_S = 1800.0
MAX_UPLOADED_BYTES = 256 << 20
"""Maximum total size of all saved uploads; the uploads of the oldest sessions are dropped first."""

_TAB: Key[str] = Key("tab", lambda: secrets.token_urlsafe(32), "key of the tab's state")
_BEFORE: Key[str] = Key("tab_before", str, "key of the tab's state before the reload; empty until it is loaded")


class Sessions:
    """The saved values of each session, stored under the key of its tab; thread-safe."""

    def __init__(self) -> None:
        # each tab's values, with the time at which they were saved
        self._states: OrderedDict[str, tuple[float, dict[str, Any]]] = OrderedDict()
        self._lock = threading.Lock()

    def save(self, tab: str, values: dict[str, Any]) -> None:
        """Replace the values of a tab."""
        with self._lock:
            self._states[tab] = time.monotonic(), values
            self._states.move_to_end(tab)
            self._drop_old()

    def load(self, tab: str) -> dict[str, Any]:
        """Return a tab's values, or an empty dict if they have expired."""
        with self._lock:
            self._drop_old()
            return dict(self._states[tab][1]) if tab in self._states else {}

    def _drop_old(self) -> None:
        since = time.monotonic() - (_VISITORS_AGE_S if is_public() else MAX_AGE_S)
        for tab in [tab for tab, (saved_at, _) in self._states.items() if saved_at < since]:
            del self._states[tab]
        while len(self._states) > MAX_SESSIONS:
            self._states.popitem(last=False)
        room = MAX_UPLOADED_BYTES
        for _, values in reversed(self._states.values()):
            upload = values.get(EXAMPLE.name)
            room -= len(upload.data) if isinstance(upload, Upload) else 0
            if room < 0:
                values.pop(EXAMPLE.name, None)


@st.cache_resource(show_spinner=False)
def _sessions() -> Sessions:
    return Sessions()


def save_session() -> None:
    """Save this session's persistent values; call this at the end of a page run."""
    state = st.session_state
    _sessions().save(_TAB.get(), {key.name: state[key.name] for key in persistent_keys() if key.name in state})


def follow_reload() -> None:
    """Have the tab store its key, and restore its values from before a reload; call this at the start of a run.

    If the user followed a link instead of reloading, values about one library are not loaded.
    """
    # read in every run, because a callback is lost if the user leaves the page at the same moment
    state = component("reload")(
        key="musicsim_reload", data={"tab": _TAB.get()}, height="content", on_before_change=lambda: None
    )
    sent = state.get("before")
    if not isinstance(sent, dict):
        return
    before, is_reload = sent.get("tab"), sent.get("isReload") is True
    if not isinstance(before, str) or before == _BEFORE.get():
        return
    _BEFORE.set(before)
    values = _sessions().load(before)
    for key in persistent_keys():
        if key.name in values and (is_reload or not key.per_library):
            key.set(values[key.name])
