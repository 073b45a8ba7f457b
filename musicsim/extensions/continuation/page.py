"""The evaluation of playlists on the Research page."""

import pandas as pd
import streamlit as st

from musicsim.explorer import Snapshot, jobs
from musicsim.extensions.continuation.continuation import LISTS, MEASURES, MIN_LISTS, Continued, n_long_lists, too_few
from musicsim.ui.base import (
    AT_ONCE_S,
    EXPLAINED_INTERVAL,
    PAGES,
    get_desk,
    interval,
    kept,
    plain,
    task_key,
    value_of,
    wait_for,
)
from musicsim.ui.components import job_panel, show_table, start_job

_PLACES = {"clicks": 2}  # decimal places; 3 by default


def draw(snapshot: Snapshot, *, busy: bool) -> None:
    library = snapshot.library
    counts = get_desk().ask(task_key(snapshot, "long lists"), lambda _progress: n_long_lists(snapshot))
    if not counts.wait(AT_ONCE_S):
        wait_for([counts], n_shown=0)
        return
    n_long = value_of(counts)
    if n_long is None:
        return
    kinds = [kind for kind in LISTS if n_long[kind] >= MIN_LISTS]
    if not kinds:
        st.info(too_few(max(n_long.values()), " or ".join(LISTS)), icon=":material/info:")
        st.page_link(PAGES["library"], label="Import playlists or plays", icon=":material/library_music:")
        return
    kind = kinds[0]
    if len(kinds) > 1:
        kind = st.segmented_control(
            "Lists", kinds, default=kind, **kept("evaluate_lists"), required=True,
            format_func=lambda kind: f"{kind.capitalize()} ({n_long[kind]:,})",
        )  # fmt: skip
    st.caption(
        "Each method sees the first half of a held-out list and predicts the second half. The walk, which generates "
        "playlists, is compared with other methods."
    )
    recent = library.jobs.recent(jobs.MAX_KEPT)
    runs = [job for job in recent if job.kind == "continue" and job.arguments == {"lists": kind}]
    traces = (library.jobs.trace(job.id) for job in runs if job.state == "done")
    last_trace = next(filter(None, traces), None)
    if last_trace:
        _show(Continued(**last_trace[-1]))
    st.button(
        f"Evaluate {kind}", icon=":material/calculate:", key="evaluate_continue",
        on_click=start_job, args=(library, "continue"), kwargs={"lists": kind},
    )  # fmt: skip
    if runs and runs[0].state != "done":
        job_panel(library, runs[0])


def _show(result: Continued) -> None:
    st.markdown(f"**{plain(result.summary)}**")
    lines = [
        {"Method": way} | {label: interval(*scores[key], places=_PLACES.get(key, 3)) for key, label in MEASURES.items()}
        for way, scores in result.scores.items()
    ]
    show_table(pd.DataFrame(lines), name="continuation", key="evaluate_continuation")
    st.caption(
        f"{result.method} {EXPLAINED_INTERVAL} NDCG, R-precision and the hit rate range from 0 to "
        "1; higher is better. Clicks: pages of ten songs to skip before the first correct song (51 if none of the 500 "
        "songs is correct); lower is better."
    )
