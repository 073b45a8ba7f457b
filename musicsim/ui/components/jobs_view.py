"""The running job in the sidebar and on the Library page, and next steps for an empty library."""

from collections.abc import Callable, Collection
from functools import partial

import streamlit as st

from musicsim.explorer import jobs
from musicsim.explorer.job_progress import WAITS
from musicsim.explorer.refresh.add_music import FIRST_MAP
from musicsim.explorer.refresh.outdated import pending_upgrade
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Library
from musicsim.library.stores.jobs import Job
from musicsim.library.stores.models import ModelRecord
from musicsim.public import is_public
from musicsim.ui.base.frame import PAGES
from musicsim.ui.base.keys import Key
from musicsim.ui.base.openers import BY_STATE
from musicsim.ui.base.text import plain, toast_errors
from musicsim.ui.components.listening import enqueue_songs, play_songs
from musicsim.ui.components.song_list import Action, row_of, song_list
from musicsim.wording import count, duration, speed, time_left

_MAX_FIRST = 60  # number of songs that are listed before the first map
BUSY = "Wait until the current job has ended, or cancel it."
_ALREADY = "This job is already waiting or running, so it was not started again."
_IDLE_S = 3.0  # interval at which a page looks for jobs that other tabs and programs have started
_SEEN: Key[int | None] = Key("seen_job", lambda: None, "id of the last job in the sidebar", per_library=True)
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


def library_line(library: Library, *, has_actions: bool) -> None:
    """Show a library's songs, duration and running job; rerun the page when the job or the model in use changes.

    This also notices jobs that other tabs and programs start and end. With `has_actions`, the user can cancel the job
    and resume it later.
    """

    def read() -> tuple[Job | None, int, ModelRecord | None, tuple[object, ...]]:
        active = [] if is_public() else jobs.active(library)
        job, record = next(iter(active), None), library.models.active()
        last = next(iter([] if is_public() else library.jobs.recent(1)), None)  # a short job may already have ended
        state = (job and job.id, record and record.id, last and (last.id, last.is_active))
        return job, len(active[1:]), record, state

    job, _, _, drawn_with = read()

    def line() -> None:
        job, n_waiting, record, state = read()
        if state != drawn_with:
            st.rerun()
        counts = _counts(library)
        st.caption(f"{count(int(counts['songs']), 'song')} · {duration(counts['hours'] * 3600)}")
        if record is None:
            st.caption("No model yet")
        if job is not None:
            stage = ": canceling" if job.cancel_requested else ": paused" if job.state == "paused" else ""
            is_counting = job.done < job.total or not job.message
            now = _counted(job) if is_counting else [plain(job.message)]
            st.progress(job.share, text=" · ".join([_title(job) + stage, *now]))
            if n_waiting:
                st.caption(f"{count(n_waiting, 'job')} waiting")

    if is_public():
        line()
        return
    st.fragment(line, run_every=_IDLE_S if job is None else 1.0)()
    if job is None:
        if has_actions:
            _offer_to_resume(library)
        return
    _SEEN.set(job.id)
    if not has_actions:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.page_link(PAGES["library"], label="Show job", icon=":material/library_music:")
        st.button("Cancel", key="cancel_current", type="tertiary", on_click=jobs.cancel, args=(library, job.id))


def _offer_to_resume(library: Library) -> None:
    """If the last job was in the sidebar and was canceled, offer to start it again."""
    last = next(iter(library.jobs.recent(1)), None)
    if last is not None and last.id == _SEEN.get() and last.state == "cancelled":
        st.caption(f"{_title(last)}: canceled. Resume?")
        _start_again(library, last, "resume_current")


def _start_again(library: Library, job: Job, key: str) -> None:
    st.button(
        "Try again" if job.state == "failed" else "Resume", key=key, icon=":material/play_circle:",
        on_click=start_job, args=(library, job.kind), kwargs=job.arguments,
    )  # fmt: skip


def _title(job: Job) -> str:
    return jobs.job_kinds()[job.kind].title


def _count_units(job: Job, n: int) -> str:
    return count(n, jobs.job_kinds()[job.kind].unit)


def _counted(job: Job) -> list[str]:
    return [f"{job.done:,} of {_count_units(job, job.total)}"] if job.total else []


def _facts(job: Job) -> str:
    facts = _counted(job)
    facts += [speed(job.songs_per_second)] if job.songs_per_second else []
    facts += [time_left(job.seconds_left)] if job.seconds_left is not None else []
    facts += [f"{job.failed} failed"] if job.failed else []
    if job.state == "paused":
        facts += ["paused"]
    elif job.message:
        facts += [plain(job.message)]
    return " · ".join(facts)


def _show_active(library: Library, job: Job) -> None:
    st.markdown(f"**{_title(job)}**")
    st.progress(job.share, text=_facts(job))
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
    """Show the current or last job; with `kinds`, show only an unfinished job of one of these kinds.

    Reruns the page when the job ends, or when the library's revision is no longer `revision`.
    """
    busy = jobs.current(library) is not None

    @st.fragment(run_every=1.0 if busy else None)
    def watch() -> None:
        line = jobs.active(library)
        if busy and (not line or revision not in (None, library.revision)):
            st.rerun()
        job = next(iter(line or library.jobs.recent(1)), None)
        if job is not None and (not kinds or (job.kind in kinds and job.state != "done")):
            job_panel(library, job)
        for waiting in line[1:]:
            if not kinds or waiting.kind in kinds:
                _show_waiting(library, waiting)

    watch()


def _show_waiting(library: Library, job: Job) -> None:
    about = ", ".join(job.arguments.get("paths", ())) or job.arguments.get("name", "")
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{_title(job)}**{': ' * bool(about)}{plain(about)}  \n{WAITS}", width="stretch")
        st.button("Cancel", key=f"cancel_waiting_{job.id}", on_click=jobs.cancel, args=(library, job.id))


def watch_one(library: Library, job_id: int | None) -> bool:
    """Show a job and return True if it is waiting or running. The sidebar reruns the page when the job ends."""
    job = next((job for job in jobs.active(library) if job.id == job_id), None)
    if job is not None:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(WAITS if job.state == "waiting" else f"{_title(job)}…")
            st.button("Cancel", key="cancel_added", type="tertiary", on_click=jobs.cancel, args=(library, job_id))
    return job is not None


def job_panel(library: Library, job: Job) -> None:
    """Show an active job with its speed, time left and buttons to stop it, or the outcome of a job that has ended."""
    if job.is_active:
        with st.container(border=True):
            _show_active(library, job)
        return
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.markdown(f"{_ICONS[job.state]} {_outcome(job)}", width="stretch")
        if job.state != "done":
            _start_again(library, job, "resume_job")


def watch_until_end(library: Library, job: Job, show: Callable[[Library, Job], None] = job_panel) -> None:
    """Show the current state of a job with the function `show`, and rerun the page when the job ends."""

    @st.fragment(run_every=1.0 if job.is_active else None)
    def watch() -> None:
        jobs.current(library)  # updates the state of a job whose process has died
        current = library.jobs.get(job.id)
        if current.is_active != job.is_active:
            st.rerun()
        show(library, current)

    watch()


def _outcome(job: Job) -> str:
    """Return a sentence about a job's outcome, with the counts that its process stored."""
    if job.state in {"cancelled", "interrupted"}:
        words = "canceled" if job.state == "cancelled" else job.message
        return f"{_title(job)}: {words}. Resume?"
    counted = f"{_count_units(job, job.done)}{f', {job.failed:,} failed' * bool(job.failed)}" if job.total else ""
    about = plain(job.message) or counted
    return f"{_title(job)}: {job.state}. {about.removesuffix('.')}{'.' * bool(about)}"


def demo_button(snapshot: Snapshot) -> None:
    """Show a button that composes the demo collection."""
    st.button(
        "Load the demo collection", icon=":material/auto_awesome:", on_click=start_job, args=(snapshot.library, "demo"),
        help="Composes 360 short songs by made-up artists on this machine; takes one to two minutes.",
    )  # fmt: skip


def _show_first_songs(library: Library) -> None:
    """Show songs that can already be played, but not compared yet."""
    songs = library.songs()[:_MAX_FIRST]

    def act(action: Action) -> None:
        if action.kind == "enqueue":
            enqueue_songs(library, [songs[action.index]])
        else:
            play_songs(library, songs, action.index)

    if songs:
        rows = [row_of(song) for song in songs]
        song_list(rows, key="first_songs", on_action=act, not_similar="No songs to compare with yet.")


def _await_first_map(job: Job) -> str:
    """Return words about what the page waits for: songs, or the model of the first ones."""
    is_early = job.kind in ("add", "scan", "demo") and job.total >= 2 * FIRST_MAP
    if job.total and job.done >= (FIRST_MAP if is_early else job.total):
        step = f" ({plain(job.message)})" if job.message else ""
        return f"the first map is being computed{step}. This takes up to a minute; you can already play the songs."
    when = f"after the first {FIRST_MAP} songs" if is_early else "when the job has finished"
    return f"you can play each song as soon as it appears here. Similar songs follow {when}."


def stop_without_songs(snapshot: Snapshot) -> None:
    """If no songs can be compared yet, suggest a next step and stop drawing the page."""
    if snapshot.n_indexed > 1:
        return
    if jobs.current(snapshot.library) is not None:

        @st.fragment(run_every=1.0)
        def wait() -> None:
            job, is_new = jobs.current(snapshot.library), snapshot.library.models.active() is not None
            if job is None or (is_new and not snapshot.n_indexed):
                st.rerun()
            st.info(f"{_title(job)}: {_await_first_map(job)}", icon=":material/hourglass:")
            _show_first_songs(snapshot.library)

        wait()
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
