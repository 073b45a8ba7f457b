"""Worker processes that need nothing of the program that starts them.

Python's own start of a process imports the caller's main script once more, which runs a script that has
no ``if __name__ == "__main__"`` again, and fails where there is no script (an interactive session, a
page). Our workers only call functions of this package, so the main script is hidden while one is started.

Each worker has a pipe of its own. When its end closes, the worker has died, at work on the first of its tasks, and
nothing that others share is left locked or half written.
"""

import contextlib
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from types import ModuleType
from typing import Any, Generic, TypeVar

from musicsim import logs
from musicsim.errors import LibraryError

T = TypeVar("T")

# Not numba: it reads its number again whenever it compiles, and cannot change it once its threads run.
_THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_METHOD = "forkserver" if sys.platform == "linux" else "spawn"
_starting = threading.Lock()


@contextmanager
def _as_workers_see_it() -> Iterator[None]:
    """No main script, and one BLAS thread: what is said through the environment is not for jobs that start later."""
    with _starting:
        main = sys.modules["__main__"]
        before = {name: os.environ.get(name) for name in _THREAD_LIMITS}
        sys.modules["__main__"] = ModuleType("__main__")
        os.environ.update(dict.fromkeys(_THREAD_LIMITS, "1"))
        try:
            yield
        finally:
            sys.modules["__main__"] = main
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


_plain = multiprocessing.get_context(_METHOD)


def _settings() -> dict[str, str]:
    """What the environment says to this program, such as that its users are visitors."""
    return {name: value for name, value in os.environ.items() if name.startswith("MUSICSIM_")}


class _Process(_plain.Process):  # type: ignore[name-defined]
    """A process with our settings as they are when it is made; a fork server has those of when it was started."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._settings = _settings()

    def run(self) -> None:
        for name in _settings().keys() - self._settings.keys():
            del os.environ[name]
        os.environ.update(self._settings)
        super().run()

    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802  # the name multiprocessing calls
        with _as_workers_see_it():
            return _plain.Process._Popen(process_obj)  # type: ignore[attr-defined]


class _Context(type(_plain)):  # type: ignore[misc]
    Process = _Process


def worker_context(*modules: str) -> BaseContext:
    """A way to start workers, each with one BLAS thread.

    What they will need is imported once, and shared where the system can fork.
    """
    context = _Context()
    if _METHOD == "forkserver":
        context.set_forkserver_preload(list(modules))
    return context


@dataclass(frozen=True, slots=True)
class Limits:
    """What one task may take."""

    seconds: float  # wall time; a task that takes longer is killed
    # memory of its process, imports included; what goes beyond raises `MemoryError` (where the system keeps
    # count: Linux)
    memory_mb: int


class OverTimeError(Exception):
    """A task has taken longer than it may."""


class WorkerDied(Exception):
    """A worker has ended before its task; with its exit code, the negative number of the signal if one ended it."""

    def __init__(self, exit_code: int | None) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code

    @property
    def is_crash(self) -> bool:
        """Whether it ended by what it did; else it was stopped from outside, as a system short of memory does."""
        code = self.exit_code
        return code is not None and (-code in _CRASHES if code < 0 else code != _UNKNOWN)


_IN_FLIGHT = 2  # tasks a worker has waiting: one at work, one to go on with
_TASKS_A_WORKER = 500  # then it makes room for a new one: what libraries leak does not add up
_TICK_S = 0.5
_ENDS_WITHIN_S = 5.0
_MAX_BROKEN = 3  # times that each worker may end before it has begun, with no result in between
_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE, signal.SIGILL)
_UNKNOWN = 255  # what multiprocessing says of processes whose fork server has gone


def outcomes(
    function: Callable[[T], Any], tasks: Iterable[T], *, n_workers: int, limits: Limits, preload: tuple[str, ...] = ()
) -> Generator[tuple[T, Any] | None, None, None]:
    """Call a function of this package for each task in worker processes; yield results as they come.

    The function is importable by name, or a partial of such; the arguments of a partial go to each worker when it
    starts. Tasks are taken only when a worker has room, so that there may be no end of them. A task that crashes its
    process, takes too long or too much memory costs nothing else; if its worker died or ran out of memory, it is done
    a second time at the end, alone in a new worker. Workers share the modules of `preload`.

    Yields (task, result) or (task, exception), or None if half a second has passed without a result. The exception is
    the one of the function, OverTimeError or WorkerDied. Raises LibraryError if no worker can be started.
    """
    with closing(Crew(function, limits, preload, n_workers)) as crew:
        yield from crew.outcomes(tasks)


class Crew(Generic[T]):
    """Some workers, who share tasks among them and wait for more until they are sent home by :meth:`close`.

    The arguments are those of :func:`outcomes`.
    """

    def __init__(
        self,
        function: Callable[[T], Any],
        limits: Limits,
        preload: tuple[str, ...],
        n_workers: int,
        *,
        in_flight: int = _IN_FLIGHT,
        tasks_a_worker: int | None = None,
    ) -> None:
        self._function, self._limits, self._preload = function, limits, preload
        self._context = worker_context(getattr(function, "func", function).__module__, *preload)
        self._n_workers, self._in_flight = n_workers, in_flight
        self._tasks_a_worker = tasks_a_worker or _TASKS_A_WORKER
        self._workers: list[Worker[T]] = []
        self._returned: deque[T] = deque()  # tasks of workers that have gone
        self._n_broken = 0
        self.n_given = 0  # tasks so far

    def outcomes(self, tasks: Iterable[T]) -> Generator[tuple[T, Any] | None, None, None]:
        """Yield what :func:`outcomes` does."""
        suspects: list[T] = []
        for item in self._run(tasks):
            if item is not None and isinstance(item[1], WorkerDied | MemoryError):
                suspects.append(item[0])
            else:
                yield item
        with closing(Crew(self._function, self._limits, self._preload, 1, in_flight=1, tasks_a_worker=1)) as alone:
            yield from alone._run(suspects)

    def close(self) -> None:
        """End the workers, whatever they do."""
        for worker in self._workers:
            worker.stop()
        self._workers.clear()

    def _run(self, tasks: Iterable[T]) -> Generator[tuple[T, Any] | None, None, None]:
        """Yield what :func:`outcomes` does; no task is tried twice."""
        waiting = iter(tasks)
        while True:
            self._hand_out(waiting)
            if not self._returned and not any(worker.tasks for worker in self._workers):
                return
            ready = wait([worker.pipe for worker in self._workers], timeout=_TICK_S)
            for worker in [worker for worker in self._workers if worker.pipe in ready]:
                yield from self._hear(worker)
            late = [worker for worker in self._workers if worker.is_late(self._limits.seconds)]
            for worker in late:
                task = worker.tasks.popleft()
                self._dismiss(worker)
                yield task, OverTimeError()
            if not ready and not late:
                yield None

    def _hand_out(self, waiting: Iterator[T]) -> None:
        """Give tasks to the workers that have the fewest, until none has room."""
        while True:
            open_ = [w for w in self._workers if w.n_given < self._tasks_a_worker and len(w.tasks) < self._in_flight]
            worker = min(open_, key=lambda w: len(w.tasks), default=None)
            is_short = len(self._workers) < self._n_workers and (worker is None or len(worker.tasks) > 0)
            if worker is None and not is_short:
                return
            try:
                task = self._returned.popleft() if self._returned else next(waiting)
            except StopIteration:
                return
            if is_short:
                try:
                    worker = Worker(self._context, self._function, partial(_prepare, self._limits.memory_mb))
                except (OSError, EOFError):  # there is no room for a process, or the fork server has just gone
                    self._returned.appendleft(task)
                    self._note_broken()
                    return
                self._workers.append(worker)
            assert worker is not None
            worker.give(task)
            self.n_given += 1

    def _hear(self, worker: "Worker[T]") -> Iterator[tuple[T, Any]]:
        """Take what a worker has to say: that it is ready, a result, or by its end that it has died."""
        was_ready = worker.is_ready
        try:
            answer = worker.receive()
        except EOFError:
            if was_ready and worker.tasks:
                task = worker.tasks.popleft()
                self._dismiss(worker)
                yield task, WorkerDied(worker.exit_code)
                return
            self._dismiss(worker)
            if not was_ready:
                self._note_broken()
            return
        if was_ready:
            self._n_broken = 0
            task = worker.tasks.popleft()
            if worker.n_given >= self._tasks_a_worker and not worker.tasks:
                self._dismiss(worker)
            yield task, answer

    def _dismiss(self, worker: "Worker[T]") -> None:
        worker.stop()
        self._workers.remove(worker)
        self._returned.extendleft(reversed(worker.tasks))

    def _note_broken(self) -> None:
        self._n_broken += 1
        if self._n_broken > _MAX_BROKEN * self._n_workers:
            raise LibraryError(
                "worker processes end before they have begun; the machine may be short of memory. Close other programs "
                "and start the scan again."
            )


class Worker(Generic[T]):
    """A process that ends with this one, the pipe to it, and the tasks it has been given, in their order.

    The function of a task, and `prepare`, which is called once in the process before it says that it is ready, have
    to be importable by name; `context` is of :func:`worker_context`. Raises OSError or EOFError if the process cannot
    be started.
    """

    def __init__(self, context: Any, function: Callable[[T], Any], prepare: Callable[[], object]) -> None:
        self.pipe, theirs = context.Pipe()
        self.tasks: deque[T] = deque()
        self.n_given = 0
        self.is_ready = False
        self.exit_code: int | None = None
        self._has_ended = False
        self._since = 0.0  # when the first of its tasks began
        self._process = context.Process(target=_work, args=(theirs, function, prepare), daemon=True)
        with theirs:  # the pipe closes with the process only where nobody else holds that end
            self._process.start()

    def give(self, task: T) -> None:
        """Send a task."""
        if not self.tasks:
            self._since = time.monotonic()
        self.tasks.append(task)
        self.n_given += 1
        with contextlib.suppress(OSError):  # it has died: its end of the pipe says so
            self.pipe.send(task)

    def receive(self) -> Any:
        """What the worker has sent: first that it is ready, then a result or exception for each task.

        Raises EOFError if it has died.
        """
        try:
            answer = self.pipe.recv()
        except (EOFError, OSError) as error:
            self._has_ended = True
            raise EOFError from error
        except Exception as error:  # an exception that cannot be made again from its arguments
            answer = error
        self.is_ready, self._since = True, time.monotonic()
        return answer

    def is_late(self, seconds: float) -> bool:
        """Whether the first of its tasks takes longer than that; one that is done may have waited to be asked for."""
        at_work = self.is_ready and bool(self.tasks)
        return at_work and time.monotonic() - self._since > seconds and not self.pipe.poll()

    def stop(self) -> None:
        """End the process, whatever it does."""
        self.pipe.close()
        if not self._has_ended:  # else its number may be another's by now
            self._process.kill()
        self._process.join(_ENDS_WITHIN_S)
        self.exit_code = self._process.exitcode


def _work(pipe: Connection, function: Callable[[Any], Any], prepare: Callable[[], object]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal; the program stops its workers itself
    logs.begin()
    prepare()
    with contextlib.suppress(EOFError, OSError):  # the program has gone
        pipe.send(None)
        while True:
            answer = _answer(function, pipe.recv())
            try:
                pipe.send(answer)
            except (AttributeError, TypeError, ValueError, pickle.PicklingError) as error:
                pipe.send(RuntimeError(f"{type(answer).__name__} cannot be sent: {error}"))


def _answer(function: Callable[[Any], Any], task: Any) -> Any:
    try:
        return function(task)
    except BaseException as error:  # a decoder that leaves by sys.exit, too
        error.add_note(traceback.format_exc())
        return error


def _prepare(memory_mb: int) -> None:
    if hasattr(os, "nice"):
        os.nice(10)
    limit_memory(memory_mb)


def limit_memory(memory_mb: int) -> None:
    """Let what this process takes beyond raise ``MemoryError``, where the system keeps count."""
    with contextlib.suppress(ImportError, ValueError, OSError):  # not every system has limits
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (memory_mb << 20, hard))
