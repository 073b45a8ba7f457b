"""What is asked of a search: how many answers, and which songs may be one."""

from typing import Any

import streamlit as st

from musicsim.explorer.requests.filters import Filters
from musicsim.explorer.requests.options import options_of
from musicsim.explorer.requests.search import SearchRequest
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.explorer.snapshot.words import understood
from musicsim.ui.base.openers import choices_of
from musicsim.ui.base.option_widgets import labelled, limits, option_key
from musicsim.ui.components.filter_widgets import filter_values, filter_widgets
from musicsim.ui.components.search_examples import chosen_part, signed
from musicsim.ui.search.examples import WORDS, show_asked

_HOW = ("k", "per_artist", "hub_reduction")
_KEYS = {
    field: option_key(f"search_{field}", SearchRequest, field, per_library=field not in _HOW)
    for field in (*_HOW, *options_of(Filters))
    if field != "words"
}
_REDUCED = {None: "as the library is set", True: "on", False: "off"}


def search_form(now: Snapshot, name: str) -> SearchRequest:
    """Widgets for all that can be asked for, and what they ask for; examples and a part are kept under `name`."""
    for key in (WORDS, *_KEYS.values()):
        key.get()  # its default, before its widget
    n, limit, words, narrow = st.columns([2, 3, 4, 2], vertical_alignment="bottom")
    n.segmented_control(**_said("k"), options=(10, 20, 50), required=True)
    limit.number_input(**_said("per_artist") | limits(SearchRequest, "per_artist"))
    words.text_input(
        **labelled(SearchRequest, "words"), key=WORDS.name, persist_state="session", placeholder="slow piano 1960s",
        max_chars=200,
    )  # fmt: skip
    choices = choices_of(now)
    filters = filter_values(_KEYS, choices)
    # a dozen lists of names, which are sent where they are looked at only
    shown = narrow.popover(
        "Filters", icon=":material/filter_alt:", width="stretch", key="search_filters", on_change="rerun"
    )
    if shown.open:
        with shown:
            filter_widgets(SearchRequest, _KEYS, choices)
            st.selectbox(**_said("hub_reduction"), options=list(_REDUCED), format_func=_REDUCED.__getitem__)
    said, songs = understood(now, WORDS.get()), signed(name)
    show_asked(now, name, said)
    here = {i for i, row in zip(songs, now.rows_of(songs).tolist(), strict=True) if row >= 0}
    like, unlike = (tuple(i for i in songs if i in here and songs[i] == side) for side in (1, -1))
    return SearchRequest(
        **{field: _KEYS[field].get() for field in _HOW}, **filters,
        words=said.known, like=like, unlike=unlike, part=chosen_part(name),
    )  # fmt: skip


def _said(field: str) -> dict[str, Any]:
    return labelled(SearchRequest, field) | {"key": _KEYS[field].name, "persist_state": "session"}
