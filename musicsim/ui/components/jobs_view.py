"""The running job in the sidebar and on the Library page, and next steps for an empty library."""

from collections.abc import Collection

import streamlit as st

from musicsim.explorer import jobs
from musicsim.explorer.refresh.outdated import pending_upgrade
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Library
from musicsim.library.stores.jobs import Job
from musicsim.public import is_public
from musicsim.ui.base.frame import PAGES
from musicsim.ui.base.keys import Key
from musicsim.ui.base.openers import BY_STATE
from musicsim.ui.base.text import plain, toast_errors
from musicsim.ui.components.song_list import clock

_UPGRADED: Key[set[str]] = Key("upgraded", set, "libraries whose upgrade this session has started")

_ICONS = {
    "done": ":material/check_circle:",
    "failed": ":material/error:",
    "cancelled": ":material/stop_circle:",
    "interrupted": ":material/pause_circle:",
}


def start_job(library: Library, kind: str, **arguments: object) -> None:
    """Start a job; if that fails, show the error in a toast."""
    with toast_errors():
        jobs.start(library, kind, arguments)


_cache = st.cache_resource(max_entries=8, show_spinner=False, hash_funcs=BY_STATE)
_pending_upgrade = _cache(pending_upgrade)  # takes a second with a million songs
_counts = _cache(Library.counts)  # reads every play and tag


def upgrade_line(library: Library) -> None:
    """After an update of musicsim, announce what it will analyze again, and start that job once per session."""
    upgrade = _pending_upgrade(library)
    if upgrade is None:
        return
    st.info(plain(upgrade.words), icon=":material/upgrade:")
    if jobs.current(library) is None and library.name not in _UPGRADED.get():
        _UPGRADED.get().add(library.name)
        start_job(library, "upgrade")


def _share(job: Job) -> float:
    return min(1.0, job.done / job.total) if job.total else 0.0


def library_line(library: Library) -> None:
    """Show a library's songs, hours and running job; rerun the page when the job or the model in use changes."""

    def current_job() -> Job | None:
        return None if is_public() else jobs.current(library)

    job, record = current_job(), library.models.active()
    drawn_with = (job and job.id, record and record.id)

    def line() -> None:
        job, record = current_job(), library.models.active()
        if (job and job.id, record and record.id) != drawn_with:
            st.rerun()
        counts = _counts(library)
        st.caption(f"{counts['songs']:,} songs · {counts['hours']:.1f} hours")
        if record is None:
            st.caption("No model yet")
        if job is not None:
            state = "paused at" if job.state == "paused" else ""
            title = jobs.job_kinds()[job.kind].title
            st.progress(_share(job), text=f"{title}: {state} {job.done} of {job.total or '…'}")

    if job is None:
        line()
    else:
        st.fragment(line, run_every=1.0)()
        st.page_link(PAGES["library"], label="Show job", icon=":material/library_music:")


def _facts(job: Job) -> str:
    facts = [f"{job.done} of {job.total} {jobs.job_kinds()[job.kind].counts}"] if job.total else []
    facts += [f"{job.songs_per_second:.1f} songs/s"] if job.songs_per_second else []
    facts += [f"{clock(job.seconds_left)} left"] if job.seconds_left is not None else []
    facts += [f"{job.failed} failed"] if job.failed else []
    if job.state == "paused":
        facts += ["paused"]
    elif job.message:
        facts += [plain(job.message)]
    return " · ".join(facts)


def _show_active(library: Library, job: Job) -> None:
    st.markdown(f"**{jobs.job_kinds()[job.kind].title}**")
    st.progress(_share(job), text=_facts(job))
    if job.cancel_requested:
        st.caption("Stopping after the current files…")
        return
    args = (library, job.id)
    with st.container(horizontal=True):
        if job.pause_requested:
            st.button("Resume", key="resume_paused_job", icon=":material/play_circle:", on_click=jobs.resume, args=args)
            if job.state != "paused":
                st.caption("Pausing after the current files…")
        else:
            st.button("Pause", key="pause_job", icon=":material/pause_circle:", on_click=jobs.pause, args=args)
        st.button("Cancel", key="cancel_job", icon=":material/stop_circle:", on_click=jobs.cancel, args=args)


def watch_job(library: Library, *, kinds: Collection[str] = (), revision: int | None = None) -> None:
    """Show the running or last job; with `kinds`, only a job of these kinds that is not done.

    Reruns the page when the job ends, or when the library's revision is no longer `revision`.
    """
    busy = jobs.current(library) is not None

    @st.fragment(run_every=1.0 if busy else None)
    def watch() -> None:
        running = jobs.current(library)
        if busy and (running is None or revision not in (None, library.revision)):
            st.rerun()
        job = running or next(iter(library.jobs.recent(1)), None)
        if job is not None and (not kinds or (job.kind in kinds and job.state != "done")):
            job_panel(library, job)

    watch()


def job_panel(library: Library, job: Job) -> None:
    """Show an active job with its speed, time left and buttons to stop it, or the outcome of a job that has ended."""
    with st.container(border=True):
        if job.is_active:
            _show_active(library, job)
            return
        kind = jobs.job_kinds()[job.kind]
        n_done = f": {job.done} {kind.counts}" if job.total else ""
        outcome = f"done{n_done}" if job.state == "done" else job.state
        failed = f", {job.failed} failed" if job.failed else ""
        st.markdown(f"{_ICONS[job.state]} {kind.title}: {outcome}{failed}.")
        if job.message and job.state != "interrupted":
            st.caption(plain(job.message))
        if job.state != "done":
            st.button(
                "Continue", key="resume_job", icon=":material/play_circle:",
                on_click=start_job, args=(library, job.kind), kwargs=job.arguments,
            )  # fmt: skip


def demo_button(snapshot: Snapshot) -> None:
    """Show a button that composes the demo collection."""
    st.button(
        "Load the demo collection", icon=":material/auto_awesome:", on_click=start_job, args=(snapshot.library, "demo"),
        help="Composes 360 short songs by made-up artists on this machine; takes one to two minutes.",
    )  # fmt: skip


def stop_without_songs(snapshot: Snapshot) -> None:
    """If no song can be compared yet, suggest a next step and stop drawing the page."""
    if snapshot.n_indexed:
        return
    job = jobs.current(snapshot.library)
    if job is not None:
        st.info(
            f"{jobs.job_kinds()[job.kind].title}: the first songs will appear here in a moment.",
            icon=":material/hourglass:",
        )

        @st.fragment(run_every=1.0)
        def wait() -> None:
            if snapshot.library.models.active() is not None or jobs.current(snapshot.library) is None:
                st.rerun()

        wait()
    elif is_public():
        st.info("This library is empty.", icon=":material/info:")
    elif snapshot.n_songs:
        st.info("These songs are not in a model yet, so they cannot be compared.", icon=":material/info:")
        st.button("Compare songs", on_click=start_job, args=(snapshot.library, "refresh"))
    else:
        st.info("No songs yet: add a folder of music or load the demo collection.", icon=":material/info:")
        st.page_link(PAGES["library"], label="Add a folder", icon=":material/create_new_folder:")
        demo_button(snapshot)
    st.stop()
