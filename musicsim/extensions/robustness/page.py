"""Robustness on the Research page: a button that measures the model in use, and the table."""

from collections.abc import Hashable

import pandas as pd
import streamlit as st

from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.extensions.robustness.changes import QUERY_S
from musicsim.extensions.robustness.measuring import COLUMNS, N_SONGS, K, Robustness, measure_robustness
from musicsim.ui.base.desk import desk, task_key, value_of, wait_for
from musicsim.ui.components.downloads import show_table

_DESK = "robustness"  # its own thread, because a measurement takes minutes


def draw(snapshot: Snapshot, *, busy: bool) -> None:
    """Show a button that measures robustness; after a click, show progress, then the table."""
    st.caption(
        f"Takes the middle {QUERY_S:.0f} seconds of {N_SONGS} songs, changes them as a bad copy or another version "
        "would, and searches for them with the model in use."
    )
    key = task_key(snapshot, "robustness")
    task = desk(_DESK).find(key)
    if task is None:
        st.button(
            "Measure robustness",
            icon=":material/science:",
            key="measure_robustness",
            on_click=_start,
            args=(snapshot, key),
        )
        return
    if not task.future.done():
        wait_for([task], n_shown=0)
        st.button("Cancel", icon=":material/close:", key="cancel_robustness", on_click=desk(_DESK).cancel, args=(key,))
        return
    result: Robustness | None = value_of(task)
    if result is not None:
        _show(result)
    st.button("Measure again", icon=":material/refresh:", key="clear_robustness", on_click=_start, args=(snapshot, key))


def _start(snapshot: Snapshot, key: Hashable) -> None:
    desk(_DESK).cancel(key)
    desk(_DESK).ask(key, lambda progress: measure_robustness(snapshot, progress=progress))


def _show(result: Robustness) -> None:
    frame = pd.DataFrame([one.cells for one in result.results], columns=list(COLUMNS))
    show_table(frame, name="robustness", key="evaluate_robustness")
    st.caption(
        f"{result.describe()} *Song is first*: the first result is the song itself. *Kept*: share of the {K} nearest "
        "other songs that are also nearest without the change."
    )
