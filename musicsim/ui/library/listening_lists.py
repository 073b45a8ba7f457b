"""Playlists of an import: their entries in the library, and the walk that learns from them."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from musicsim.explorer import jobs
from musicsim.library import Library
from musicsim.library.importing import Absent, SeenList
from musicsim.ui.base.text import clean
from musicsim.ui.components.jobs_view import start_job
from musicsim.ui.components.table_download import table_download

_MAX_LISTED = 500  # rows of a table
_NOTES = {0: "left out: its songs are not in the library", 1: "one song: too few to learn from"}


def learn_walk(library: Library) -> bool:
    """Start fitting the walk to the playlists; return False if another job is running."""
    if jobs.current(library) is not None:
        return False
    start_job(library, "walk")
    return True


def show_lists(lists: Sequence[SeenList], key: str, *, is_open: bool) -> None:
    """Show the number of entries of each playlist that are in the library, and the reasons for the others.

    `is_open` expands the tables; `key` is unique on the page.
    """
    part = lists[:_MAX_LISTED]
    with st.expander(f"Playlists: {len(lists):,}", expanded=is_open):
        table: dict[str, list[Any]] = {
            "playlist": [clean(entry.name) for entry in part],
            "kind": [clean(entry.category) for entry in part],
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
            more = f", the first {_MAX_LISTED:,}" if len(absent) > _MAX_LISTED else ""
            st.markdown(f"**Not in the library: {len(absent):,} entr{'y' if len(absent) == 1 else 'ies'}**{more}")
            st.dataframe(_absent_table(absent[:_MAX_LISTED]), hide_index=True, key=f"{key}_absent")
            table_download("not in the library", lambda: _absent_table(absent), f"{key}_absent_file")
        if len(lists) > len(part):
            st.caption(f"The first {len(part):,} of {len(lists):,} playlists.")


def _absent_table(absent: Sequence[tuple[str, Absent]]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "playlist": [clean(name) for name, _ in absent],
            "position": [gone.position for _, gone in absent],
            "song": [clean(gone.label) for _, gone in absent],
            "reason": [gone.reason for _, gone in absent],
        }
    )
