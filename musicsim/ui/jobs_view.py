"""The running job, wherever it is shown: a line in the frame, a panel on the Library page."""

import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.explorer import jobs
from musicsim.library import Library
from musicsim.library.job_store import Job
from musicsim.ui.frame import PAGES
from musicsim.ui.song_list import clock
from musicsim.ui.text import plain

__all__ = ["TITLES", "job_panel", "library_line", "start_job"]

TITLES = {"add": "Adding songs", "demo": "Composing the demo collection", "refresh": "Fitting the model"}
_ICONS = {"done": "✅", "failed": "⚠️", "cancelled": "⏹️", "interrupted": "⏸️"}


def start_job(library: Library, kind: str, **arguments: object) -> None:
    """Start a job; an error is shown where the listener is."""
    try:
        jobs.start(library, kind, arguments)
    except MusicsimError as error:
        st.toast(plain(error), icon="⚠️")


def _share(job: Job) -> float:
    return min(1.0, job.done / job.total) if job.total else 0.0


def library_line(library: Library) -> None:
    """Songs, hours, model and running job of a library; the page runs anew when model or job change."""
    job, record = jobs.current(library), library.models.active()
    drawn_with = (job and job.id, record and record.id)

    @st.fragment(run_every=1.0 if job else None)
    def line() -> None:
        job, record = jobs.current(library), library.models.active()
        if (job and job.id, record and record.id) != drawn_with:
            st.rerun()
        counts = library.counts()
        st.caption(f"{counts['songs']:,} songs · {counts['hours']:.1f} hours")
        st.caption(f"Model: {record.name}, {record.n_codewords:,} codewords" if record else "No model yet")
        if job is not None:
            st.progress(_share(job), text=f"{TITLES[job.kind]}: {job.done} of {job.total or '…'}")

    line()
    if job is not None:
        st.page_link(PAGES["library"], label="Show the job", icon=":material/library_music:")


def _facts(job: Job) -> str:
    facts = [f"{job.done} of {job.total} files"] if job.total else []
    facts += [f"{job.songs_per_second:.1f} songs/s"] if job.songs_per_second else []
    facts += [f"{clock(job.seconds_left)} left"] if job.seconds_left is not None else []
    facts += [f"{job.failed} failed"] if job.failed else []
    return " · ".join([*facts, plain(job.message)]) if job.message else " · ".join(facts)


def job_panel(library: Library, job: Job) -> None:
    """The job at work with its speed, time left and a way to stop it, or how the last one ended."""
    with st.container(border=True):
        if job.is_active:
            st.markdown(f"**{TITLES[job.kind]}**")
            st.progress(_share(job), text=_facts(job))
            if job.cancel_requested:
                st.caption("Stopping after the songs in work…")
            elif st.button("Cancel", key="cancel_job", icon=":material/stop_circle:"):
                jobs.cancel(library, job.id)
                st.rerun(scope="fragment")
            return
        outcome = job.state if job.state != "done" else f"done: {job.done} files" if job.total else "done"
        failed = f", {job.failed} not added" if job.failed else ""
        st.markdown(f"{_ICONS[job.state]} {TITLES[job.kind]}: {outcome}{failed}.")
        if job.state != "done":
            if job.state == "failed":
                st.caption(plain(job.message))
            st.button(
                "Go on where it stopped", key="resume_job", icon=":material/play_circle:",
                on_click=start_job, args=(library, job.kind), kwargs=job.arguments,
            )  # fmt: skip
