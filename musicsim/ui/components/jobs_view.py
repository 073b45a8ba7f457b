"""The running job, wherever it is shown: a line in the frame, a panel on the Library page."""

from pathlib import Path

import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.explorer import jobs
from musicsim.explorer.refresh.outdated import Upgrade, pending_upgrade
from musicsim.library import Library
from musicsim.library.stores.jobs import Job
from musicsim.public import is_public
from musicsim.ui.base.frame import PAGES
from musicsim.ui.base.keys import Key
from musicsim.ui.base.text import plain
from musicsim.ui.components.song_list import clock

_UPGRADED: Key[set[str]] = Key("upgraded", set, "libraries whose upgrade this session has started")

_ICONS = {
    "done": ":material/check_circle:",
    "failed": ":material/error:",
    "cancelled": ":material/stop_circle:",
    "interrupted": ":material/pause_circle:",
}


def start_job(library: Library, kind: str, **arguments: object) -> None:
    """Start a job; an error is shown where the listener is."""
    try:
        jobs.start(library, kind, arguments)
    except MusicsimError as error:
        st.toast(plain(error), icon=":material/warning:")


@st.cache_resource(max_entries=8, show_spinner=False)
def _pending(folder: Path, revision: int, _library: Library) -> Upgrade | None:
    return pending_upgrade(_library)


@st.cache_resource(max_entries=8, show_spinner=False)
def _counts(folder: Path, revision: int, _library: Library) -> dict[str, float]:
    return _library.counts()  # looks at every play and tag


def upgrade_line(library: Library) -> None:
    """After an update of the program: say what is analysed again and why, and start it, once a session."""
    upgrade = _pending(library.folder, library.revision, library)  # a second, of a million songs
    if upgrade is None:
        return
    st.info(plain(upgrade.words), icon=":material/upgrade:")
    if jobs.current(library) is None and library.name not in _UPGRADED.get():
        _UPGRADED.get().add(library.name)
        start_job(library, "upgrade")


def _share(job: Job) -> float:
    return min(1.0, job.done / job.total) if job.total else 0.0


def _seen_job(library: Library) -> Job | None:
    """The job at work, unless it is none of a visitor's business."""
    return None if is_public() else jobs.current(library)


def library_line(library: Library) -> None:
    """Songs, hours and running job of a library; the page runs again when the model in use or the job change."""
    job, record = _seen_job(library), library.models.active()
    drawn_with = (job and job.id, record and record.id)

    def line() -> None:
        job, record = _seen_job(library), library.models.active()
        if (job and job.id, record and record.id) != drawn_with:
            st.rerun()
        counts = _counts(library.folder, library.revision, library)
        st.caption(f"{counts['songs']:,} songs · {counts['hours']:.1f} hours")
        if record is None:
            st.caption("No model yet")
        if job is not None:
            state = "paused at" if job.state == "paused" else ""
            st.progress(_share(job), text=f"{_title(job)}: {state} {job.done} of {job.total or '…'}")

    if job is None:
        line()
    else:
        st.fragment(line, run_every=1.0)()
        st.page_link(PAGES["library"], label="Show job", icon=":material/library_music:")


def _title(job: Job) -> str:
    return jobs.job_kinds()[job.kind].title


def _counted(job: Job) -> str:
    """What a job counts."""
    return jobs.job_kinds()[job.kind].counts


def _facts(job: Job) -> str:
    facts = [f"{job.done} of {job.total} {_counted(job)}"] if job.total else []
    facts += [f"{job.songs_per_second:.1f} songs/s"] if job.songs_per_second else []
    facts += [f"{clock(job.seconds_left)} left"] if job.seconds_left is not None else []
    facts += [f"{job.failed} failed"] if job.failed else []
    if job.state == "paused":
        return " · ".join([*facts, "paused"])
    return " · ".join([*facts, plain(job.message)]) if job.message else " · ".join(facts)


def _active(library: Library, job: Job) -> None:
    """The job at work: how far it is, and ways to halt it."""
    st.markdown(f"**{_title(job)}**")
    st.progress(_share(job), text=_facts(job))
    if job.cancel_requested:
        st.caption("Stopping after current files…")
        return
    with st.container(horizontal=True):
        if job.pause_requested:
            st.button(
                "Resume", key="resume_paused_job", icon=":material/play_circle:", on_click=jobs.resume,
                args=(library, job.id),
            )  # fmt: skip
            if job.state != "paused":
                st.caption("Pausing after current files…")
        else:
            st.button(
                "Pause", key="pause_job", icon=":material/pause_circle:", on_click=jobs.pause, args=(library, job.id)
            )
        st.button(
            "Cancel", key="cancel_job", icon=":material/stop_circle:", on_click=jobs.cancel, args=(library, job.id)
        )


def job_panel(library: Library, job: Job) -> None:
    """The job at work with its speed, time left and ways to halt it, or how the last one ended."""
    with st.container(border=True):
        if job.is_active:
            _active(library, job)
            return
        n_done = f": {job.done} {_counted(job)}" if job.total else ""
        outcome = f"done{n_done}" if job.state == "done" else job.state
        failed = f", {job.failed} failed" if job.failed else ""
        st.markdown(f"{_ICONS[job.state]} {_title(job)}: {outcome}{failed}.")
        if job.message and job.state != "interrupted":
            st.caption(plain(job.message))
        if job.state != "done":
            st.button(
                "Continue", key="resume_job", icon=":material/play_circle:",
                on_click=start_job, args=(library, job.kind), kwargs=job.arguments,
            )  # fmt: skip
