"""The songs that a page offers to begin with when nothing is chosen."""

from datetime import date

import streamlit as st

from musicsim.explorer import Beginning, Snapshot, find_beginnings
from musicsim.public import is_public
from musicsim.ui.base import BY_STATE


def beginnings_of(snapshot: Snapshot) -> list[Beginning]:
    """Return the beginnings of today, which change with each play of the owner."""
    latest = 0 if is_public() else snapshot.library.player_plays.latest()
    return _find(snapshot, date.today(), latest, is_private=is_public())


@st.cache_resource(max_entries=4, show_spinner=False, hash_funcs=BY_STATE)
def _find(snapshot: Snapshot, day: date, latest: int, *, is_private: bool) -> list[Beginning]:
    del latest
    return find_beginnings(snapshot, day, is_private=is_private)
