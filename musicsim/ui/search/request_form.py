"""What is asked of a search: how many answers, and which songs may be one."""

from typing import Any

import streamlit as st

from musicsim.explorer.requests.filters import Filters
from musicsim.explorer.requests.options import options_of
from musicsim.explorer.requests.search import SearchRequest
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.ui.base.option_widgets import labelled, limits, option_key
from musicsim.ui.base.state import choices_of
from musicsim.ui.components.filter_widgets import filter_values, filter_widgets
from musicsim.ui.search.examples import show_words

__all__ = ["search_form"]

_HOW = ("k", "per_artist", "hub_reduction")
_KEYS = {
    field: option_key(f"search_{field}", SearchRequest, field, per_library=field not in _HOW)
    for field in (*_HOW, *options_of(Filters))
}
_REDUCED = {None: "as the library is set", True: "on", False: "off"}


def search_form(now: Snapshot, **examples: Any) -> SearchRequest:
    """Widgets for all that can be asked for, and what they ask for; `examples` are the fields that have none."""
    for key in _KEYS.values():
        key.get()  # its default, before its widget
    n, limit, words, narrow = st.columns([2, 2, 4, 2], vertical_alignment="bottom")
    n.segmented_control(**_said("k"), options=(10, 20, 50), required=True)
    limit.number_input(**_said("per_artist") | limits(SearchRequest, "per_artist"))
    words.text_input(**_said("words"), placeholder="slow piano 1960s", max_chars=200)
    with narrow.popover("Filters", icon=":material/filter_alt:", width="stretch"):
        filter_widgets(SearchRequest, _KEYS, choices_of(now))
        st.selectbox(**_said("hub_reduction"), options=list(_REDUCED), format_func=_REDUCED.__getitem__)
    how = {field: _KEYS[field].get() for field in _HOW}
    values = filter_values(_KEYS, choices_of(now))
    return SearchRequest(**how, **values, words=show_words(now), **examples)


def _said(field: str) -> dict[str, Any]:
    return labelled(SearchRequest, field) | {"key": _KEYS[field].name, "persist_state": "session"}
