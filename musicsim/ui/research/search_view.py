"""The recall and speed of each kind of search index."""

from collections.abc import Hashable

import pandas as pd
import streamlit as st

from musicsim.explorer.evaluation.search_speed import TOO_FEW, K, SearchSpeed, measure_search
from musicsim.explorer.snapshot.neighbours import CHOSEN_FROM
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.ui.base.desk import desk, task_key, value_of, wait_for
from musicsim.ui.components.downloads import show_table

_DESK = "search speed"


def show_search(snapshot: Snapshot, *, busy: bool) -> None:
    """Show a button that measures every kind of index; after a click, show progress, then the table."""
    if snapshot.n_indexed < CHOSEN_FROM:
        st.info(TOO_FEW.format(CHOSEN_FROM, snapshot.n_indexed), icon=":material/info:")
        return
    st.caption(
        "Builds each kind of search index in memory for the songs in this library, and measures it. To choose a kind, "
        "go to Library > Settings."
    )
    key = task_key(snapshot, "search speed")
    task = desk(_DESK).find(key)
    if task is None:
        st.button(
            "Measure search", icon=":material/speed:", key="measure_search", on_click=_restart, args=(snapshot, key)
        )
        return
    if not task.future.done():
        wait_for([task], n_shown=0)
        st.button("Cancel", icon=":material/close:", key="cancel_search", on_click=desk(_DESK).cancel, args=(key,))
        return
    result: SearchSpeed | None = value_of(task)
    if result is not None:
        titles = [f"**{r.title}** (in use)" if r.is_chosen else r.title for r in result.rows]
        figures = [(f"{r.recall:.3f}", f"{r.ms:.3f}", f"{r.build_s:.1f}", f"{r.mb:,.1f}") for r in result.rows]
        frame = pd.DataFrame(figures, columns=[f"Recall at {K}", "ms per query", "Build (s)", "Memory (MB)"])
        frame.insert(0, "Index", titles)
        show_table(frame, name="search", key="evaluate_search")
        st.caption(result.caption)
    st.button("Measure again", icon=":material/refresh:", key="clear_search", on_click=_restart, args=(snapshot, key))


def _restart(snapshot: Snapshot, key: Hashable) -> None:
    desk(_DESK).cancel(key)
    desk(_DESK).ask(key, lambda progress: measure_search(snapshot, progress=progress))
