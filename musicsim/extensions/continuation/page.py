"""How well held-out lists of the library are continued, by the walk and by other ways."""

import pandas as pd
import streamlit as st

from musicsim.explorer import jobs
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.extensions.continuation.continuation import LISTS, MEASURES, MIN_LISTS, Continued, n_long_lists, too_few
from musicsim.library import Library
from musicsim.library.stores.jobs import Job
from musicsim.ui.base.desk import AT_ONCE_S, desk, task_key, value_of, wait_for
from musicsim.ui.base.frame import PAGES
from musicsim.ui.base.keys import Key
from musicsim.ui.base.text import interval, plain
from musicsim.ui.components.jobs_view import job_panel, start_job
from musicsim.ui.components.table_download import saved_table

_CHOSEN: Key[str] = Key("evaluate_lists", lambda: LISTS[0], "what is continued: playlists or sittings")
_PLACES = {"clicks": 2}  # decimal places, where it is not three


def draw(now: Snapshot, *, busy: bool) -> None:
    """What came of continuing the library's own lists, and the button that does so."""
    counts = desk().ask(task_key(now, "long lists"), lambda _tell: n_long_lists(now))
    if not counts.within(AT_ONCE_S):
        wait_for([counts])
        return
    n_long = value_of(counts)
    if n_long is None:
        return
    able = [kind for kind in LISTS if n_long[kind] >= MIN_LISTS]
    if not able:
        st.info(too_few(max(n_long.values()), " or ".join(LISTS)), icon=":material/info:")
        st.page_link(PAGES["library"], label="Import playlists or plays", icon=":material/library_music:")
        return
    kind = _choose(able, n_long)
    st.caption(
        "The first half of each held-out list is given, and the songs of the second half have to be found: by the walk "
        "that generates playlists, and by other methods."
    )
    found = _last_found(now.library, kind)
    if found is not None:
        _show(found)
    _start(now.library, kind)


def _choose(able: list[str], n_long: dict[str, int]) -> str:
    """Which lists; a question only where there are both."""
    if _CHOSEN.get() not in able:
        _CHOSEN.set(able[0])
    if len(able) > 1:
        _CHOSEN.keep()
        st.segmented_control(
            "Lists", able, key=_CHOSEN.name, required=True,
            format_func=lambda kind: f"{kind.capitalize()} ({n_long[kind]:,})",
        )  # fmt: skip
    return _CHOSEN.get()


def _runs(library: Library, kind: str) -> list[Job]:
    recent = library.jobs.recent(jobs.MAX_KEPT)
    return [job for job in recent if job.kind == "continue" and job.arguments == {"lists": kind}]


def _last_found(library: Library, kind: str) -> Continued | None:
    """What came of the last run that was finished and whose result is still kept."""
    traces = (library.jobs.trace(job.id) for job in _runs(library, kind) if job.state == "done")
    return next((Continued(**points[-1]) for points in traces if points), None)


def _start(library: Library, kind: str) -> None:
    """The button that starts a run, and how far the last one is or what has stopped it."""
    running = jobs.current(library)
    st.button(
        f"Evaluate {kind}", icon=":material/calculate:", key="evaluate_continue", disabled=running is not None,
        on_click=start_job, args=(library, "continue"), kwargs={"lists": kind},
    )  # fmt: skip
    last = next(iter(_runs(library, kind)), None)
    if last is None or last.state == "done":
        return

    @st.fragment(run_every=1.0 if last.is_active else None)
    def panel() -> None:
        jobs.current(library)  # notices a process that has gone
        job = library.jobs.get(last.id)
        if job.is_active != last.is_active:
            st.rerun()
        job_panel(library, job)

    panel()


def _show(found: Continued) -> None:
    st.markdown(f"**{plain(found.words)}**")
    lines = [
        {"Method": way} | {name: interval(*scores[of], places=_PLACES.get(of, 3)) for of, name in MEASURES.items()}
        for way, scores in found.scores.items()
    ]
    saved_table(pd.DataFrame(lines), name="continuation", key="evaluate_continuation")
    st.caption(
        f"{found.method} In grey the 95 % interval over lists. NDCG, R-precision and the hit rate range from 0 to 1, "
        f"higher is better. Clicks: how often ten more songs have to be asked for until one is right, 51 if none of "
        f"500 is; lower is better."
    )
