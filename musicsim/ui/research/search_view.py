"""The recall and speed of each kind of search index."""

import pandas as pd
import streamlit as st

from musicsim.explorer import Snapshot
from musicsim.explorer.evaluation.search_speed import TOO_FEW, K, SearchSpeed, measure_search
from musicsim.explorer.snapshot.neighbors import CHOSEN_FROM
from musicsim.ui.components import show_measurement, show_table


def show_search(snapshot: Snapshot, *, busy: bool) -> None:
    """Show a button that measures every kind of index; after a click, show progress, then the table."""
    if snapshot.n_indexed < CHOSEN_FROM:
        st.info(TOO_FEW.format(CHOSEN_FROM, snapshot.n_indexed), icon=":material/info:")
        return
    st.caption(
        "Builds each kind of search index in memory for the songs in this library, and measures it. To choose a kind, "
        "go to Library > Settings."
    )
    show_measurement(
        snapshot, "search", label="Measure search", icon=":material/speed:",
        measure=lambda progress: measure_search(snapshot, progress=progress), show=_show,
    )  # fmt: skip


def _show(result: SearchSpeed) -> None:
    titles = [f"**{r.title}** (in use)" if r.is_chosen else r.title for r in result.rows]
    figures = [(f"{r.recall:.3f}", f"{r.ms:.3f}", f"{r.build_s:.1f}", f"{r.mb:,.1f}") for r in result.rows]
    frame = pd.DataFrame(figures, columns=[f"Recall at {K}", "ms per query", "Build (s)", "Memory (MB)"])
    frame.insert(0, "Index", titles)
    show_table(frame, name="search", key="evaluate_search")
    st.caption(result.caption)
