"""The trial on the Research page: two models to choose, the result so far, and the names after the end."""

from functools import partial

import streamlit as st

from musicsim.explorer import Snapshot
from musicsim.extensions.blind_radio.results import describe, export_csv, results_of
from musicsim.extensions.blind_radio.store import RadioStore, Trial
from musicsim.ui.base import download, plain, toast_errors


def draw(snapshot: Snapshot, *, busy: bool) -> None:
    """Draw the newest trial, and the form for a new one unless a trial is running."""
    store = RadioStore(snapshot.library)
    st.caption(
        "Two models take turns in the queue of the Listen page and in *Keep playing*. You do not learn which model "
        "chose a song. Skip songs that do not fit, and use the thumbs. You may look at the result at any time."
    )
    trial = store.latest()
    if trial is not None:
        _show(store, trial)
    if trial is None or trial.ended_at is not None:
        _offer(store)


def _show(store: RadioStore, trial: Trial) -> None:
    st.header(" and ".join(sorted((plain(trial.name_a), plain(trial.name_b)))), anchor=False)
    st.markdown("\n".join(f"- {plain(sentence)}" for sentence in describe(results_of(store.library))))
    with st.container(horizontal=True):
        if trial.ended_at is None:
            st.button("Stop", icon=":material/stop:", key="radio_stop", on_click=store.end, args=(trial,))
        if trial.revealed_at is None:
            st.button(
                "Show the names", icon=":material/visibility:", key="radio_reveal",
                on_click=partial(store.end, trial, reveal=True), help="This also ends the trial.",
            )  # fmt: skip
        download("Save as CSV", partial(export_csv, store.library), "blind radio.csv", "text/csv", key="radio_export")


def _offer(store: RadioStore) -> None:
    models = store.library.models
    names = [record.name for record in models.all() if models.is_whole(record)]
    left, right = st.columns(2, gap="medium")
    first = left.selectbox("First model", names, key="radio_first", format_func=plain)
    second = right.selectbox("Second model", names, index=max(0, len(names) - 1), key="radio_second", format_func=plain)

    def start() -> None:
        with toast_errors():
            store.start(str(first), str(second))

    st.button("Start a trial", icon=":material/play_arrow:", key="radio_start", type="primary", on_click=start)
