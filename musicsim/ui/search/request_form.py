"""What is asked of a search: how many answers, and which songs may be one."""

from typing import Any

import streamlit as st

from musicsim.explorer.requests.options import options_of
from musicsim.explorer.requests.search import SearchRequest
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.ui.base.option_widgets import labelled, limits, option_key
from musicsim.ui.base.state import choices_of
from musicsim.ui.components.filter_widgets import filter_values, filter_widgets

__all__ = ["search_form"]

_HOW = ("k", "per_artist", "hub_reduction")
_KEYS = {
    field: option_key(f"search_{field}", SearchRequest, field, per_library=field not in _HOW)
    for field in options_of(SearchRequest)
}
_REDUCED = {None: "as the library is set", True: "on", False: "off"}


def search_form(now: Snapshot) -> SearchRequest:
    """Widgets for all that can be asked for, and what they ask for."""
    for key in _KEYS.values():
        key.get()  # its default, before its widget
    n, limit, narrow = st.columns([1, 1, 2], vertical_alignment="bottom")
    n.segmented_control(**_said("k"), options=(10, 20, 50), required=True)
    limit.number_input(**_said("per_artist") | limits(SearchRequest, "per_artist"))
    with narrow.popover("Filters", icon=":material/filter_alt:", width="stretch"):
        filter_widgets(SearchRequest, _KEYS, choices_of(now))
        st.selectbox(**_said("hub_reduction"), options=list(_REDUCED), format_func=_REDUCED.__getitem__)
    how = {field: _KEYS[field].get() for field in _HOW}
    return SearchRequest(**how, **filter_values(_KEYS, choices_of(now)))


def _said(field: str) -> dict[str, Any]:
    return labelled(SearchRequest, field) | {"key": _KEYS[field].name, "persist_state": "session"}
