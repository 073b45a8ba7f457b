"""What outlives a reload of the page, for which Streamlit begins a new session.

What a listener has made in a tab (a draft, wishes, filters, colours, an upload) is kept in the server's memory under a
key of 256 random bits. Only the tab knows it, by its ``sessionStorage``: it stands in no address and no cookie, so a
link gives nothing away and nobody can guess it. A new session whose tab remembers a key takes over what is kept.
"""

import secrets
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from musicsim.public import is_public
from musicsim.ui.base.asset import asset
from musicsim.ui.base.keys import Key, kept_keys
from musicsim.ui.base.uploads import EXAMPLE, Upload

MAX_SESSIONS = 64
MAX_AGE_S = 12 * 3600.0
_VISITORS_AGE_S = 1800.0
MAX_UPLOADED_BYTES = 256 << 20
"""Of uploads that are kept, of all sessions together; those of the session that rests the longest go first."""

_COMPONENT = "musicsim_reload"
_ABSENT = object()
_TAB: Key[str] = Key("tab", lambda: secrets.token_urlsafe(32), "under which key the tab finds its state again")
_BEFORE: Key[str] = Key("tab_before", str, "under which key the tab's state before the reload was taken over")


@dataclass(slots=True)
class _Kept:
    values: dict[str, Any]
    at: float = field(default_factory=time.monotonic)


class Sessions:
    """What sessions keep, by the keys of their tabs; safe in several threads."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, tab: str, values: dict[str, Any]) -> None:
        """Keep the values of a tab in place of those before."""
        with self._lock:
            self._kept[tab] = _Kept(values)
            self._kept.move_to_end(tab)
            self._forget()

    def of(self, tab: str) -> dict[str, Any]:
        """What is kept for a tab; nothing where that is too old."""
        with self._lock:
            self._forget()
            return dict(self._kept[tab].values) if tab in self._kept else {}

    def _forget(self) -> None:
        since = time.monotonic() - (_VISITORS_AGE_S if is_public() else MAX_AGE_S)
        for tab in [tab for tab, kept in self._kept.items() if kept.at < since]:
            del self._kept[tab]
        while len(self._kept) > MAX_SESSIONS:
            self._kept.popitem(last=False)
        room = MAX_UPLOADED_BYTES
        for kept in reversed(self._kept.values()):
            upload = kept.values.get(EXAMPLE.name)
            room -= len(upload.data) if isinstance(upload, Upload) else 0
            if room < 0:
                kept.values.pop(EXAMPLE.name, None)


@st.cache_resource(show_spinner=False)
def _sessions() -> Sessions:
    return Sessions()


def keep() -> None:
    """Keep what the listener has made; at the end of a run of the page."""
    values = {key.name: st.session_state.get(key.name, _ABSENT) for key in kept_keys()}
    _sessions().keep(_TAB.get(), {name: value for name, value in values.items() if value is not _ABSENT})


def follow_reload() -> None:
    """Have the tab remember its key, and take over what it had before a reload; first in a run, by the shell.

    Where a link was followed instead, what the address shows is not replaced by what the tab showed.
    """
    component = st.components.v2.component(_COMPONENT, js=asset("reload.js"))
    # read in every run: a callback is lost where the page is left in the same moment
    said = component(key=_COMPONENT, data={"tab": _TAB.get()}, height="content", on_before_change=lambda: None).get(
        "before"
    )
    if not isinstance(said, dict):
        return
    before, is_reload = said.get("tab"), said.get("isReload") is True
    if not isinstance(before, str) or before == _BEFORE.get():
        return
    _BEFORE.set(before)
    kept = _sessions().of(before)
    for key in kept_keys():
        if key.name in kept and (is_reload or not key.per_library):
            key.set(kept[key.name])
