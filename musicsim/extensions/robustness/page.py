"""Robustness on the Research page: a button that measures the model in use, and the table."""

import pandas as pd
import streamlit as st

from musicsim.explorer import Snapshot
from musicsim.extensions.robustness.changes import QUERY_S
from musicsim.extensions.robustness.measuring import COLUMNS, N_SONGS, K, Robustness, measure_robustness
from musicsim.ui.components import show_measurement, show_table


def draw(snapshot: Snapshot, *, busy: bool) -> None:
    """Show a button that measures robustness; after a click, show progress, then the table."""
    st.caption(
        f"Takes the middle {QUERY_S:.0f} seconds of {N_SONGS} songs, changes them as a bad copy or another version "
        "would, and searches for them with the model in use. This takes about two minutes on two cores."
    )
    show_measurement(
        snapshot, "robustness", label="Measure robustness", icon=":material/science:",
        measure=lambda progress: measure_robustness(snapshot, progress=progress), show=_show,
    )  # fmt: skip


def _show(result: Robustness) -> None:
    frame = pd.DataFrame([one.cells for one in result.results], columns=list(COLUMNS))
    show_table(frame, name="robustness", key="evaluate_robustness")
    st.caption(
        f"{result.describe()} *Song is first*: the first result is the song itself. *Kept*: share of the {K} nearest "
        "other songs that are also nearest without the change."
    )
