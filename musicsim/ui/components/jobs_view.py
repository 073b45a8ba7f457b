"""The running job in the sidebar and on the Library page, and next steps for an empty library."""

from collections.abc import Collection
from functools import partial
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from musicsim.explorer import Snapshot, jobs
from musicsim.explorer.job_progress import WAITS
from musicsim.explorer.job_views import (
    MAX_FIRST,
    count_units,
    library_facts,
    title_of,
    view_first_map,
    view_job,
    view_library,
    view_training,
)
from musicsim.explorer.refresh.outdated import pending_upgrade
from musicsim.library import Library
from musicsim.library.stores.jobs import Job
from musicsim.progress import View
from musicsim.public import is_public
from musicsim.ui.base import BY_STATE, PAGES, Key, plain, toast_errors
from musicsim.ui.base.watching import watch
from musicsim.ui.components.song_list import row_of, show_song_list

BUSY = "Wait until the current job has ended, or cancel it."
_ALREADY = "This job is already waiting or running, so it was not started again."
_IDLE_S = 3.0  # interval at which a page looks for jobs that other tabs and programs have started
_ENDED: Key[int | None] = Key(
    "ended_job", lambda: None, "id of the last job that had ended when the session began; 0: none", per_library=True
)
_TOLD: Key[int | None] = Key(
    "told_job", lambda: None, "id of the last job that had ended when the page last ran", per_library=True
)
_UPGRADED: Key[set[str]] = Key("upgraded", set, "libraries whose upgrade this session has started")

_ICONS = {
    "done": ":material/check_circle:",
    "failed": ":material/error:",
    "cancelled": ":material/stop_circle:",
    "interrupted": ":material/pause_circle:",
}


def start_job(library: Library, kind: str, **arguments: object) -> None:
    """Start a job. A toast tells the user if the job has to wait, is already in the queue, or cannot start."""
    with toast_errors():
        before = {job.id for job in jobs.active(library)}
        job_id = jobs.start(library, kind, arguments)
        if job_id in before:
            st.toast(_ALREADY, icon=":material/hourglass_top:")
        elif any(job.id == job_id for job in jobs.active(library)[1:]):
            st.toast(WAITS, icon=":material/hourglass_top:")


_cache = st.cache_resource(max_entries=8, show_spinner=False, hash_funcs=BY_STATE)
_pending_upgrade = _cache(pending_upgrade)  # takes a second with a million songs


def upgrade_line(library: Library) -> None:
    """After an update of musicsim, announce what it will analyze again, and start that job once per session."""
    upgrade = _pending_upgrade(library)
    if upgrade is None:
        return
    st.info(plain(upgrade.words), icon=":material/upgrade:")
    if jobs.current(library) is None and library.name not in _UPGRADED.get():
        _UPGRADED.get().add(library.name)
        start_job(library, "upgrade")


def library_line(library: Library, *, has_actions: bool) -> None:
    """Show a library's songs, duration and running job; the page runs again when the jobs or the model in use change.

    This also notices jobs that other tabs and programs start and end. With `has_actions`, the user can cancel the job
    and resume it later.
    """
    if is_public():
        st.caption(library_facts(library))
        if library.models.active() is None:
            st.caption("No model yet")
        return
    view = view_library(library)  # before the jobs are read: if they change in between, the page runs again
    job, last = jobs.current(library), next(iter(library.jobs.recent(1)), None)
    if _ENDED.get() is None:
        _ENDED.set(last.id - last.is_active if last else 0)
    _tell_end(last)
    _watch(library, "library", view, every_s=_IDLE_S if job is None else 1.0)
    if job is None:
        if has_actions:
            _offer_to_resume(library, last)
        return
    if not has_actions:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.page_link(PAGES["library"], label="Show job", icon=":material/library_music:")
        st.button("Cancel", key="cancel_current", type="tertiary", on_click=jobs.cancel, args=(library, job.id))


def _tell_end(last: Job | None) -> None:
    """Show a toast if the last job was done during this session; other outcomes stay on the Library page."""
    ended = 0 if last is None else last.id - last.is_active
    told = _TOLD.get()
    if last is not None and told is not None and ended > told and last.state == "done":
        st.toast(_outcome(last), icon=_ICONS["done"])
    _TOLD.set(ended)


def _watch(library: Library, name: str, view: View, *, query: dict[str, Any] | None = None, **options: Any) -> None:
    """Show one of the views of jobs, and keep it up to date."""
    address = f"api/jobs/views/{name}?{urlencode({'library': library.name} | (query or {}))}"
    watch(view, address, key=f"watch_{name}", **options)


def _offer_to_resume(library: Library, last: Job | None) -> None:
    """If the last job was canceled during this session, here or elsewhere, offer to start it again."""
    if last is not None and last.id > (_ENDED.get() or 0) and last.state == "cancelled":
        st.caption(f"{title_of(last)}: canceled. Resume?")
        _start_again(library, last, "resume_current")


def _start_again(library: Library, job: Job, key: str) -> None:
    st.button(
        "Try again" if job.state == "failed" else "Resume", key=key, icon=":material/play_circle:",
        on_click=start_job, args=(library, job.kind), kwargs=job.arguments,
    )  # fmt: skip


def _show_active(library: Library, job: Job, view: View, revision: int | None) -> None:
    st.markdown(f"**{title_of(job)}**")
    query = {"job": job.id} | ({} if revision is None else {"revision": True})
    _watch(library, "job", view, query=query)
    if job.cancel_requested:
        st.caption("Canceling…")
        return
    update = partial(library.jobs.update, job.id)
    with st.container(horizontal=True):
        if job.pause_requested:
            resume = partial(update, pause_requested=False)
            st.button("Resume", key="resume_paused_job", icon=":material/play_circle:", on_click=resume)
            if job.state != "paused":
                st.caption("Pausing after the current files…")
        else:
            pause = partial(update, pause_requested=True)
            st.button("Pause", key="pause_job", icon=":material/pause_circle:", on_click=pause)
        st.button(
            "Cancel", key="cancel_job", icon=":material/stop_circle:", on_click=jobs.cancel, args=(library, job.id)
        )


def watch_job(library: Library, *, kinds: Collection[str] = (), revision: int | None = None) -> None:
    """Show the current job, or the last one if it was not done; with `kinds`, only one of these kinds.

    The page runs again when the jobs change, or when the library's revision is no longer `revision`.
    """
    line = jobs.active(library)
    job = next(iter(line or library.jobs.recent(1)), None)
    if job is not None and job.state != "done" and (not kinds or job.kind in kinds):
        job_panel(library, job, revision)
    for waiting in line[1:]:
        if not kinds or waiting.kind in kinds:
            _show_waiting(library, waiting)


def latest_training(library: Library) -> Job | None:
    """Return the running training job, else the last one."""
    active = jobs.active(library)  # this also updates the state of a job whose process has ended
    return next((job for job in (*active, *library.jobs.recent()) if job.kind == "train"), None)


def watch_training(library: Library, job: Job) -> None:
    """Show the progress of a training; the page runs again when it ends, or has more points to draw."""
    _watch(library, "training", view_training(library, job.id), query={"job": job.id})


def _show_waiting(library: Library, job: Job) -> None:
    about = ", ".join(job.arguments.get("paths", ())) or job.arguments.get("name", "")
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{title_of(job)}**{': ' * bool(about)}{plain(about)}  \n{WAITS}", width="stretch")
        st.button("Cancel", key=f"cancel_waiting_{job.id}", on_click=jobs.cancel, args=(library, job.id))


def watch_one(library: Library, job_id: int | None) -> bool:
    """Show a job and return True if it is waiting or running. The sidebar reruns the page when the job ends."""
    job = next((job for job in jobs.active(library) if job.id == job_id), None)
    if job is not None:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(WAITS if job.state == "waiting" else f"{title_of(job)}…")
            st.button("Cancel", key="cancel_added", type="tertiary", on_click=jobs.cancel, args=(library, job_id))
    return job is not None


def job_panel(library: Library, job: Job, revision: int | None = None) -> None:
    """Show an active job with its speed, time left and buttons to stop it, or the outcome of a job that has ended.

    The page runs again when the job ends, or when the library's revision is no longer `revision`.
    """
    if job.is_active:
        view = view_job(library, job.id, revision)  # before the job is read: if it changes then, the page runs again
        job = library.jobs.get(job.id)
    if job.is_active:
        with st.container(border=True):
            _show_active(library, job, view, revision)
        return
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.markdown(f"{_ICONS[job.state]} {_outcome(job)}", width="stretch")
        if job.state != "done":
            _start_again(library, job, "resume_job")


def _outcome(job: Job) -> str:
    """Return a sentence about a job's outcome, with the counts that its process stored."""
    if job.state in {"cancelled", "interrupted"}:
        words = "canceled" if job.state == "cancelled" else job.message
        return f"{title_of(job)}: {words}. Resume?"
    counted = f"{count_units(job, job.done)}{f', {job.failed:,} failed' * bool(job.failed)}" if job.total else ""
    about = plain(job.message) or counted
    return f"{title_of(job)}: {job.state}. {about.removesuffix('.')}{'.' * bool(about)}"


def demo_button(snapshot: Snapshot) -> None:
    """Show a button that composes the demo collection."""
    st.button(
        "Load the demo collection", icon=":material/auto_awesome:", on_click=start_job, args=(snapshot.library, "demo"),
        help="Adds 12 short songs by made-up artists, and composes 348 more on this machine in one to two minutes.",
    )  # fmt: skip


def _show_first_songs(library: Library) -> None:
    """Show songs that can already be played, but not compared yet."""
    rows = [row_of(song) for song in library.songs()[:MAX_FIRST]]
    if rows:
        show_song_list(library, rows, key="first_songs", not_similar="No songs to compare with yet.")


def stop_without_songs(snapshot: Snapshot) -> None:
    """If no songs can be compared yet, suggest a next step and stop drawing the page."""
    if snapshot.n_indexed > 1:
        return
    if jobs.current(snapshot.library) is not None:
        _watch(snapshot.library, "first_map", view_first_map(snapshot.library), is_framed=True)
        _show_first_songs(snapshot.library)
    elif snapshot.n_indexed:
        st.info("Only one song can be compared, so no similar songs can be shown.", icon=":material/info:")
        if not is_public():
            st.page_link(PAGES["library"], label="Add more music", icon=":material/create_new_folder:")
        _show_first_songs(snapshot.library)
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
