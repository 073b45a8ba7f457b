"""Figures that take seconds, worked out beside the page by one thread that all sessions share."""

import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.progress import Canceled, Progress
from musicsim.ui.base.memory import give_back
from musicsim.ui.base.text import plain

AT_ONCE_S = 0.5
"""Work that is done so soon is waited for: nothing flickers."""
_MAX_KEPT = 60


@dataclass(slots=True)
class Task:
    """Something being worked out: how far it is, and what came of it."""

    future: "Future[Any]"
    said: dict[str, Any] = field(default_factory=lambda: {"message": "waiting", "done": 0, "total": 0})
    cancelled: threading.Event = field(default_factory=threading.Event)

    def cancel(self) -> None:
        """End the work at its next step."""
        self.future.cancel()
        self.cancelled.set()

    def within(self, seconds: float | None) -> bool:
        """Whether it is done, or is done in so many seconds; None waits until it is."""
        try:
            self.future.exception(timeout=seconds)
        except NotYet:
            return False
        return True


class Desk:
    """One thread that works figures out for all sessions, in the order in which they were asked for."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._tasks: dict[Hashable, Task] = {}
        self._lock = threading.Lock()

    def ask(self, key: Hashable, work: Callable[[Progress], Any]) -> Task:
        """The task of this key, begun if there is none yet."""
        with self._lock:
            if key not in self._tasks:
                while len(self._tasks) >= _MAX_KEPT:
                    self._tasks.pop(next(iter(self._tasks))).future.cancel()
                said: dict[str, Any] = {"message": "waiting", "done": 0, "total": 0}
                cancelled = threading.Event()

                def progress(message: str, done: int = 0, total: int = 0, /, **_: Any) -> None:
                    if cancelled.is_set():
                        raise Canceled
                    said.update(message=message, done=done, total=total)

                self._tasks[key] = Task(self._pool.submit(_done, work, progress), said, cancelled)
            return self._tasks[key]

    def known(self, key: Hashable) -> Task | None:
        """The task of this key, if it has been asked for."""
        return self._tasks.get(key)

    def cancel(self, key: Hashable) -> None:
        """Cancel the task of this key, and forget it: the next request begins a new one."""
        with self._lock:
            task = self._tasks.pop(key, None)
        if task is not None:
            task.cancel()


def _done(work: Callable[[Progress], Any], progress: Progress) -> Any:
    """What comes of work; memory that it has freed or read goes back to the system."""
    try:
        return work(progress)
    finally:
        give_back()


@st.cache_resource(show_spinner=False)
def desk(name: str = "figures") -> Desk:
    """The desk of a name: what is asked of one does not wait for another."""
    return Desk(name)


def task_key(of: Snapshot, what: str) -> Hashable:
    """The key of a task about a snapshot."""
    return (of.library.folder, of.revision, of.record.id if of.record else None, what)


def result_of(task: Task | None) -> Any:
    """What came of a task; None before it is done, or where nothing came of it."""
    if task is None or not task.future.done() or task.future.cancelled() or task.future.exception() is not None:
        return None
    return task.future.result()


def value_of(task: Task) -> Any:
    """What came of a task; None while it runs. Errors of ours are shown where the figures would stand."""
    if not task.future.done():
        return None
    try:
        return task.future.result()
    except MusicsimError as error:
        st.info(plain(error), icon=":material/info:")
        return None


def done_of(tasks: Sequence[Task]) -> int:
    """How many of some tasks are done."""
    return sum(task.future.done() for task in tasks)


def wait_for(tasks: Sequence[Task], n_shown: int | None = None) -> None:
    """A bar while something is worked out; the page runs again when one of them is done.

    `n_shown` is how many were done before what came of them was drawn, where that is above the bar.
    """
    n_done = done_of(tasks)
    if n_shown is not None and n_shown != n_done:
        st.rerun()
    if n_done == len(tasks):
        return

    @st.fragment(run_every=0.5)
    def bar() -> None:
        if done_of(tasks) != n_done:
            st.rerun()
        said = next(task.said for task in tasks if not task.future.done())
        share = said["done"] / said["total"] if said["total"] else 0.0
        step = f" ({n_done + 1} of {len(tasks)})" if len(tasks) > 1 else ""
        with st.container(key="at_work"):
            st.progress(min(1.0, share), text=f"{said['message'].capitalize()}…{step}")

    bar()
