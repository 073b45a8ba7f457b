"""Slow computations in background threads that all sessions share."""

import ctypes
import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from typing import Any

import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library.disk.arrays import release_pages
from musicsim.progress import Canceled, Progress
from musicsim.ui.base.text import plain

AT_ONCE_S = 0.5
"""Pages wait this long for a result before they show progress, to avoid flicker."""
_MAX_TASKS = 60


def release_memory() -> None:
    """Return freed memory, and the memory of mapped files, to the operating system."""
    release_pages()
    with suppress(OSError, AttributeError):  # not every C library has this function
        ctypes.CDLL(None).malloc_trim(0)


class Task:
    """A computation that is waiting, running or done."""

    def __init__(self, pool: ThreadPoolExecutor, work: Callable[[Progress], Any]) -> None:
        self.status: dict[str, Any] = {"message": "waiting", "done": 0, "total": 0}
        self._canceled = threading.Event()
        self.future = pool.submit(work, self._report)
        self.future.add_done_callback(lambda _: release_memory())  # so that pages get the result first

    def _report(self, message: str, done: int = 0, total: int = 0, /, **_: Any) -> None:
        if self._canceled.is_set():
            raise Canceled
        self.status = {"message": message, "done": done, "total": total}

    def cancel(self) -> None:
        """End the work at its next step."""
        self.future.cancel()
        self._canceled.set()

    def wait(self, seconds: float | None) -> bool:
        """Wait at most `seconds` (None: no limit), and return True if the task is done."""
        try:
            self.future.exception(timeout=seconds)
        except NotYet:
            return False
        return True


class Desk:
    """A thread that computes results for all sessions, in the order requested."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._tasks: dict[Hashable, Task] = {}
        self._lock = threading.Lock()

    def ask(self, key: Hashable, work: Callable[[Progress], Any]) -> Task:
        """Return the task for a key; start one if there is none."""
        with self._lock:
            if key not in self._tasks:
                while len(self._tasks) >= _MAX_TASKS:
                    self._tasks.pop(next(iter(self._tasks))).future.cancel()
                self._tasks[key] = Task(self._pool, work)
            return self._tasks[key]

    def find(self, key: Hashable) -> Task | None:
        """Return the task for a key, or None."""
        return self._tasks.get(key)

    def cancel(self, key: Hashable) -> None:
        """Cancel and remove the task for a key, so that the next request starts a new one."""
        with self._lock:
            task = self._tasks.pop(key, None)
        if task is not None:
            task.cancel()


@st.cache_resource(show_spinner=False)
def desk(name: str = "figures") -> Desk:
    """Return the desk with this name; different desks work in parallel."""
    return Desk(name)


def task_key(snapshot: Snapshot, topic: str) -> Hashable:
    """Return the key for a task about a snapshot."""
    return (snapshot.library.folder, snapshot.revision, snapshot.record.id if snapshot.record else None, topic)


def result_of(task: Task | None) -> Any:
    """Return the result of a task, or None if it failed or is not done."""
    if task is None or not task.future.done() or task.future.cancelled() or task.future.exception() is not None:
        return None
    return task.future.result()


def value_of(task: Task) -> Any:
    """Return the result of a task, or None while it runs. If it failed with a MusicsimError, show the error."""
    if not task.future.done():
        return None
    try:
        return task.future.result()
    except MusicsimError as error:
        st.info(plain(error), icon=":material/info:")
        return None


def count_done(tasks: Sequence[Task]) -> int:
    """Return the number of tasks that are done."""
    return sum(task.future.done() for task in tasks)


def wait_for(tasks: Sequence[Task], n_shown: int | None = None) -> None:
    """Show a progress bar, and rerun the page whenever another task ends.

    `n_shown` is the number of tasks that were done when the page read their results; others may have ended since then.
    Omit it if the page reads the results after this call.
    """
    n_done = count_done(tasks)
    if n_shown is not None and n_shown != n_done:
        st.rerun()
    if n_done == len(tasks):
        return

    @st.fragment(run_every=0.5)
    def bar() -> None:
        running = [task for task in tasks if not task.future.done()]
        if len(tasks) - len(running) != n_done:
            st.rerun()
        status = running[0].status
        share = status["done"] / status["total"] if status["total"] else 0.0
        step = f" ({n_done + 1} of {len(tasks)})" if len(tasks) > 1 else ""
        with st.container(key="at_work"):
            st.progress(min(1.0, share), text=f"{status['message'].capitalize()}…{step}")

    bar()
