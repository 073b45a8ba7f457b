"""Slow computations in background threads that all sessions share."""

import ctypes
import secrets
import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode
from weakref import WeakValueDictionary

import streamlit as st
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route

from musicsim.errors import MusicsimError
from musicsim.explorer import Snapshot
from musicsim.library import release_pages
from musicsim.progress import Canceled, Progress, ProgressLine, View
from musicsim.public import visitor_may
from musicsim.rounds import Rounds
from musicsim.ui.base.text import plain
from musicsim.ui.base.watching import SESSION, watch

AT_ONCE_S = 0.5
"""Pages wait this long for a result before they show progress, to avoid flicker."""
MAX_WAITING = 250
"""Maximum number of waiting tasks at a desk; more than the pages that visitors can have open."""
_MAX_DONE, _MAX_UNREAD = 60, 250  # results that are kept; the second limit is for those that a session has not seen yet
_EVERY_S = 0.5  # interval at which a page asks for the progress of its tasks
_MAX_TASKS = 100


def release_memory() -> None:
    """Return freed memory, and the memory of mapped files, to the operating system."""
    release_pages()
    with suppress(OSError, AttributeError, TypeError):  # glibc has this function, others may not
        ctypes.CDLL(None).malloc_trim(0)


class Computation:
    """A computation that is waiting, running or done; `session` asked first."""

    def __init__(self, work: Callable[[Progress], Any], session: str) -> None:
        self.status: dict[str, Any] = {"message": "waiting", "done": 0, "total": 0}
        self.future: Future[Any] = Future()
        self.session = session
        self.wanted_by: set[str] = set()  # sessions that have not seen the result yet
        self.token = secrets.token_urlsafe(16)
        _by_token[self.token] = self
        self._work: Callable[[Progress], Any] | None = work
        self._canceled = threading.Event()

    def _report(self, message: str, done: int = 0, total: int = 0, /, **_: Any) -> None:
        if self._canceled.is_set():
            raise Canceled
        self.status = {"message": message, "done": done, "total": total}

    def do(self) -> None:
        """Compute the result, or note the error."""
        work, self._work = self._work, None  # so that its data can be released
        assert work is not None
        try:
            self.future.set_result(work(self._report))
        except Canceled:
            self.drop()
        except BaseException as error:
            self.future.set_exception(error)

    def cancel(self) -> None:
        """End the work at its next step."""
        self._canceled.set()

    def drop(self) -> None:
        """End without a result."""
        self.future.set_exception(MusicsimError("This was canceled. Try again."))

    def wait(self, seconds: float | None) -> bool:
        """Wait at most `seconds` (None: no limit), and return True if the task is done."""
        return bool(wait([self.future], seconds).done)


_by_token: WeakValueDictionary[str, Computation] = WeakValueDictionary()


class Desk:
    """A thread that computes results for all sessions, which take turns."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._tasks: dict[Hashable, Computation] = {}
        self._waiting: list[Computation] = []
        self._rounds = Rounds()
        self._lock = threading.Lock()

    def ask(
        self,
        key: Hashable,
        work: Callable[[Progress], Any],
        *,
        instead: Computation | None = None,
        session: str | None = None,
    ) -> Computation:
        """Return the task for a key; start one if there is none.

        `instead` is a task that this session no longer needs. It is dropped if it is still waiting and no other session
        needs it. The default `session` is that of the page. Raises MusicsimError if too many tasks are waiting.
        """
        session = session or SESSION.get()
        with self._lock:
            task = self._tasks.get(key)
            if instead is not None and instead is not task:
                self._leave(instead, session)
            if task is None:
                if len(self._waiting) >= MAX_WAITING:
                    raise MusicsimError("The app is busy with other requests. Try again in a moment.")
                self._make_room()
                task = self._tasks[key] = Computation(work, session)
                self._waiting.append(task)
                self._pool.submit(self._do_next)
            task.wanted_by.add(session)
            return _read(task, session)

    def find(self, key: Hashable) -> Computation | None:
        """Return the task for a key, or None."""
        with self._lock:
            task = self._tasks.get(key)
            return None if task is None else _read(task, SESSION.get())

    def cancel(self, key: Hashable) -> None:
        """Cancel and remove the task for a key, so that the next request starts a new one."""
        with self._lock:
            task = self._tasks.get(key)
            if task is not None:
                self._remove(task)

    def _do_next(self) -> None:
        with self._lock:
            if not self._waiting:  # the task of this turn was canceled
                return
            ranks = self._rounds.ranks([task.session for task in self._waiting])
            task = self._waiting.pop(min(range(len(ranks)), key=ranks.__getitem__))
            self._rounds.note(task.session)
        task.do()
        del task  # this thread must not keep the result
        release_memory()  # after the page has the result

    def _leave(self, task: Computation, session: str) -> None:
        task.wanted_by.discard(session)
        if task in self._waiting and not task.wanted_by:
            self._remove(task)

    def _remove(self, task: Computation) -> None:
        self._tasks = {key: other for key, other in self._tasks.items() if other is not task}
        task.cancel()
        if task in self._waiting:
            self._waiting.remove(task)
            task.drop()

    def _make_room(self) -> None:
        """Remove the oldest results."""
        done = [(key, task) for key, task in self._tasks.items() if task.future.done()]
        unread = [key for key, task in done if task.wanted_by]
        read = [key for key, task in done if not task.wanted_by]
        for key in [*read[:-_MAX_DONE], *unread[:-_MAX_UNREAD]]:
            del self._tasks[key]


def _read(task: Computation, session: str) -> Computation:
    if task.future.done():
        task.wanted_by.discard(session)
    return task


@st.cache_resource(show_spinner=False)
def get_desk(name: str = "figures") -> Desk:
    """Return the desk with this name; different desks work in parallel."""
    return Desk(name)


def task_key(snapshot: Snapshot, topic: str) -> Hashable:
    """Return the key for a task about a snapshot."""
    return (snapshot.library.place, snapshot.revision, snapshot.record.id if snapshot.record else None, topic)


def result_of(task: Computation | None) -> Any:
    """Return the result of a task, or None if it failed or is not done."""
    if task is None or not task.future.done() or task.future.exception() is not None:
        return None
    return task.future.result()


def value_of(task: Computation) -> Any:
    """Return the result of a task, or None while it runs. If it failed with a MusicsimError, show the error."""
    if not task.future.done():
        return None
    try:
        return task.future.result()
    except MusicsimError as error:
        st.info(plain(error), icon=":material/info:")
        return None


def count_done(tasks: Sequence[Computation]) -> int:
    """Return the number of tasks that are done."""
    return sum(task.future.done() for task in tasks)


def wait_for(tasks: Sequence[Computation], n_shown: int | None = None) -> None:
    """Show a progress bar, and rerun the page whenever another task ends.

    `n_shown` is the number of tasks that were done when the page read their results; others may have ended since then.
    Omit it if the page reads the results after this call.
    """
    view = _view(tasks)
    if n_shown is not None and view.state != str(n_shown):
        st.rerun()
    if view.parts:
        address = "tasks?" + urlencode([("task", task.token) for task in tasks])
        watch(view, address, key="at_work", every_s=_EVERY_S)


def _view(tasks: Sequence[Computation | None]) -> View:
    """Return how far tasks are; a task that is forgotten is done."""
    running = [task for task in tasks if task is not None and not task.future.done()]
    n_done = len(tasks) - len(running)
    if not running:
        return View(str(n_done))
    status = running[0].status
    share = status["done"] / status["total"] if status["total"] else 0.0
    step = f" ({n_done + 1} of {len(tasks)})" if len(tasks) > 1 else ""
    return View(str(n_done), (ProgressLine(f"{status['message'].capitalize()}…{step}", min(1.0, share)),))


@visitor_may
async def _tasks(request: Request) -> JSONResponse:
    tokens = request.query_params.getlist("task")[:_MAX_TASKS]
    view = _view([_by_token.get(token) for token in tokens])
    return JSONResponse(view.render(), headers={"Cache-Control": "no-store"})


def task_routes(prefix: str = "") -> list[BaseRoute]:
    """Return the route of the tasks, for :func:`wait_for`; only the pages know the random tokens of their tasks."""
    return [Route(f"{prefix}/tasks", _tasks)]
