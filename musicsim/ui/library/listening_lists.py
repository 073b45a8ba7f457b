"""Playlists of an import on the Library page: what of each is here, and the walk that learns from them."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from musicsim.explorer import jobs
from musicsim.library import Library
from musicsim.library.importing import Absent, SeenList
from musicsim.ui.base.text import shown
from musicsim.ui.components.jobs_view import start_job
from musicsim.ui.components.table_download import table_download

_LISTED = 500  # rows of a table
_NOTES = {0: "left out: none of its songs is here", 1: "one song: nothing to learn from"}


def learn_walk(library: Library) -> bool:
    """Let the walk learn from the playlists as they now are; False where another job is at work."""
    if jobs.current(library) is not None:
        return False
    start_job(library, "walk")
    return True


def show_lists(lists: Sequence[SeenList], key: str, *, is_open: bool) -> None:
    """The playlists: how many of the entries of each are here, and why the others are not.

    With `is_open` the tables are shown before somebody asks for them; `key` is unique on the page.
    """
    part = lists[:_LISTED]
    with st.expander(f"Playlists: {len(lists):,}", expanded=is_open):
        table: dict[str, list[Any]] = {
            "playlist": [shown(entry.name) for entry in part],
            "kind": [shown(entry.category) for entry in part],
            "entries": [entry.n_entries for entry in part],
            "here": [entry.n_found for entry in part],
            "note": [_NOTES.get(entry.n_found, "") for entry in part],
        }
        empty = [name for name in ("kind", "note") if not any(table[name])]
        frame = pd.DataFrame(table).drop(columns=empty)
        st.dataframe(frame, hide_index=True, key=key)
        table_download("playlists", lambda: frame, f"{key}_file")
        absent = [(entry.name, gone) for entry in lists for gone in entry.absent]
        if absent:
            _show_absent(absent, f"{key}_absent")
        if len(lists) > len(part):
            st.caption(f"The first {len(part):,} of {len(lists):,} playlists.")


def _show_absent(absent: Sequence[tuple[str, Absent]], key: str) -> None:
    more = f", the first {_LISTED:,}" if len(absent) > _LISTED else ""
    st.markdown(f"**Not in the library: {len(absent):,} entr{('y' if len(absent) == 1 else 'ies')}**{more}")
    st.dataframe(_absent_table(absent[:_LISTED]), hide_index=True, key=key)
    table_download("not in the library", lambda: _absent_table(absent), f"{key}_file")


def _absent_table(absent: Sequence[tuple[str, Absent]]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "playlist": [shown(name) for name, _ in absent],
            "position": [gone.position for _, gone in absent],
            "song": [shown(gone.label) for _, gone in absent],
            "reason": [gone.reason for _, gone in absent],
        }
    )
