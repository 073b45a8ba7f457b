"""Worker processes that do not depend on the program that starts them.

Python starts a process by importing the caller's main script again, which may have side effects or fail. Our workers
only call functions in this package, so the main script is hidden while a worker starts. Each worker has its own pipe,
so a worker that dies does not block the others. Its pipe then closes, and its first task is the one that killed it.
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

# NUMBA_NUM_THREADS is left out: numba rereads it when it compiles, and cannot change it once its threads run.
_THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_METHOD = "forkserver" if sys.platform == "linux" else "spawn"
_starting = threading.Lock()


@contextmanager
def _worker_environment() -> Iterator[None]:
    """Hide the main script and limit BLAS to one thread; later processes get the old environment."""
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


def _own_variables() -> dict[str, str]:
    """Return musicsim's environment variables, such as the one for a public demonstration."""
    return {name: value for name, value in os.environ.items() if name.startswith("MUSICSIM_")}


class _Process(_plain.Process):  # type: ignore[name-defined]
    """A process with our current environment variables; the fork server's variables may be outdated."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._variables = _own_variables()

    def run(self) -> None:
        for name in _own_variables().keys() - self._variables.keys():
            del os.environ[name]
        os.environ.update(self._variables)
        super().run()

    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802  # name used by multiprocessing
        with _worker_environment():
            return _plain.Process._Popen(process_obj)  # type: ignore[attr-defined]


class _Context(type(_plain)):  # type: ignore[misc]
    Process = _Process


def worker_context(*modules: str) -> BaseContext:
    """Return a context for workers with one BLAS thread each; they share the imported `modules` if possible."""
    context = _Context()
    if _METHOD == "forkserver":
        context.set_forkserver_preload(list(modules))
    return context


@dataclass(frozen=True, slots=True)
class Limits:
    seconds: float  # wall time; a longer task is killed
    memory_mb: int  # memory of its process, including imports; exceeding it raises `MemoryError` (on Linux only)


class OverTimeError(Exception):
    """A task exceeded its time limit."""


class WorkerDied(Exception):
    """A worker died during its task; the exit code is the negative signal number if a signal killed it."""

    def __init__(self, exit_code: int | None) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code

    @property
    def is_crash(self) -> bool:
        """True if the worker crashed; False if it was stopped from outside, for example because memory ran out."""
        code = self.exit_code
        return code is not None and (-code in _CRASHES if code < 0 else code != _UNKNOWN)


_IN_FLIGHT = 2  # tasks per worker: one running, one waiting
TASKS_PER_WORKER = 500  # a worker is replaced after this many tasks, to limit memory leaks in libraries
_TICK_S = 0.5
_JOIN_TIMEOUT_S = 5.0
_MAX_FAILED_STARTS = 3  # maximum number of failed starts per worker since the last result
_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE, signal.SIGILL)
_UNKNOWN = 255  # exit code that multiprocessing reports after its fork server has died


class Crew(Generic[T]):
    """Worker processes that share tasks, and wait for more until :meth:`close` is called.

    The function, or the function in a partial, must be importable by name. If `is_alone` is set, each task gets a new
    worker.
    """

    def __init__(
        self, function: Callable[[T], Any], limits: Limits, preload: tuple[str, ...], n_workers: int,
        is_alone: bool = False,
    ) -> None:  # fmt: skip
        self._function, self._limits, self._preload = function, limits, preload
        self._context = worker_context(getattr(function, "func", function).__module__, *preload)
        self._n_workers, self._in_flight = n_workers, 1 if is_alone else _IN_FLIGHT
        self._tasks_per_worker = 1 if is_alone else TASKS_PER_WORKER
        self._workers: list[Worker[T]] = []
        self._returned: deque[T] = deque()  # tasks of stopped workers
        self._n_failed_starts = 0
        self.n_given = 0  # number of tasks so far

    def outcomes(self, tasks: Iterable[T]) -> Generator[tuple[T, Any] | None, None, None]:
        """Yield results as they arrive; see :class:`musicsim.library.processes.pools.WorkerPool`."""
        suspects: list[T] = []
        for item in self._run(tasks):
            if item is not None and isinstance(item[1], WorkerDied | MemoryError):
                suspects.append(item[0])
            else:
                yield item
        with closing(Crew(self._function, self._limits, self._preload, 1, is_alone=True)) as alone:
            yield from alone._run(suspects)

    def close(self) -> None:
        for worker in self._workers:
            worker.stop()
        self._workers.clear()

    def _run(self, tasks: Iterable[T]) -> Generator[tuple[T, Any] | None, None, None]:
        """Yield results like :meth:`outcomes`, but without a second attempt."""
        rest = iter(tasks)
        while True:
            self._distribute(rest)
            if not self._returned and not any(worker.tasks for worker in self._workers):
                return
            ready = wait([worker.pipe for worker in self._workers], timeout=_TICK_S)
            for worker in [worker for worker in self._workers if worker.pipe in ready]:
                yield from self._receive(worker)
            late = [worker for worker in self._workers if worker.is_late(self._limits.seconds)]
            for worker in late:
                task = worker.tasks.popleft()
                self._dismiss(worker)
                yield task, OverTimeError()
            if not ready and not late:
                yield None

    def _distribute(self, rest: Iterator[T]) -> None:
        """Give tasks to the workers with the fewest tasks, until all are busy."""
        while True:
            free = [w for w in self._workers if w.n_given < self._tasks_per_worker and len(w.tasks) < self._in_flight]
            worker = min(free, key=lambda w: len(w.tasks), default=None)
            needs_worker = len(self._workers) < self._n_workers and (worker is None or len(worker.tasks) > 0)
            if worker is None and not needs_worker:
                return
            try:
                task = self._returned.popleft() if self._returned else next(rest)
            except StopIteration:
                return
            if needs_worker:
                try:
                    worker = Worker(self._context, self._function, partial(_prepare, self._limits.memory_mb))
                except (OSError, EOFError):  # out of memory, or the fork server died
                    self._returned.appendleft(task)
                    self._count_failed_start()
                    return
                self._workers.append(worker)
            assert worker is not None
            worker.give(task)
            self.n_given += 1

    def _receive(self, worker: "Worker[T]") -> Iterator[tuple[T, Any]]:
        """Handle a worker's message (ready, or a result) or its death."""
        was_ready = worker.is_ready
        try:
            result = worker.receive()
        except EOFError:
            if was_ready and worker.tasks:
                task = worker.tasks.popleft()
                self._dismiss(worker)
                yield task, WorkerDied(worker.exit_code)
                return
            self._dismiss(worker)
            if not was_ready:
                self._count_failed_start()
            return
        if was_ready:
            self._n_failed_starts = 0
            task = worker.tasks.popleft()
            if worker.n_given >= self._tasks_per_worker and not worker.tasks:
                self._dismiss(worker)
            yield task, result

    def _dismiss(self, worker: "Worker[T]") -> None:
        worker.stop()
        self._workers.remove(worker)
        self._returned.extendleft(reversed(worker.tasks))

    def _count_failed_start(self) -> None:
        self._n_failed_starts += 1
        if self._n_failed_starts > _MAX_FAILED_STARTS * self._n_workers:
            raise LibraryError(
                "worker processes keep exiting before they start work; the machine may be low on memory. Close other "
                "programs and start the scan again."
            )


class Worker(Generic[T]):
    """A process that ends with this one, the pipe to it, and its tasks in order.

    `prepare` is called once, then `function` for each task; both must be importable by name.
    """

    def __init__(self, context: Any, function: Callable[[T], Any], prepare: Callable[[], object]) -> None:
        self.pipe, worker_end = context.Pipe()
        self.tasks: deque[T] = deque()
        self.n_given = 0
        self.is_ready = False
        self.exit_code: int | None = None
        self._has_ended = False
        self._since = 0.0  # start of its first task
        self.process = context.Process(target=run_worker, args=(worker_end, function, prepare), daemon=True)
        with worker_end:  # the pipe closes with the process only if nobody else has this end open
            self.process.start()

    def give(self, task: T) -> None:
        if not self.tasks:
            self._since = time.monotonic()
        self.tasks.append(task)
        self.n_given += 1
        with contextlib.suppress(OSError):  # the worker has died, which closes the pipe
            self.pipe.send(task)

    def receive(self) -> Any:
        """Receive None once the worker is ready, then a result or error per task. Raises EOFError if it has died."""
        try:
            message = self.pipe.recv()
        except (EOFError, OSError) as error:
            self._has_ended = True
            raise EOFError from error
        except Exception as error:  # an exception that cannot be unpickled
            message = error
        self.is_ready, self._since = True, time.monotonic()
        return message

    def is_late(self, seconds: float) -> bool:
        """Return whether the first task has exceeded `seconds`; a task whose result is in the pipe has not."""
        is_busy = self.is_ready and bool(self.tasks)
        return is_busy and time.monotonic() - self._since > seconds and not self.pipe.poll()

    def stop(self) -> None:
        self.pipe.close()
        if not self._has_ended:  # otherwise its id may belong to another process by now
            self.process.kill()
        self.process.join(_JOIN_TIMEOUT_S)
        self.exit_code = self.process.exitcode


def run_worker(pipe: Connection, function: Callable[[Any], Any], prepare: Callable[[], object]) -> None:
    """Run the tasks that arrive through a pipe, and send their results back; the main function of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal; the program stops its workers itself
    logs.begin()
    prepare()
    with contextlib.suppress(EOFError, OSError):  # the program has ended
        pipe.send(None)
        while True:
            result = _call(function, pipe.recv())
            try:
                pipe.send(result)
            except (AttributeError, TypeError, ValueError, pickle.PicklingError) as error:
                pipe.send(RuntimeError(f"{type(result).__name__} cannot be sent: {error}"))


def _call(function: Callable[[Any], Any], task: Any) -> Any:
    try:
        return function(task)
    except BaseException as error:  # including sys.exit in a decoder
        error.add_note(traceback.format_exc())
        return error


def _prepare(memory_mb: int) -> None:
    lower_priority(10)
    limit_memory(memory_mb)


def lower_priority(niceness: int) -> None:
    """Lower this process's priority, so that other programs come first, unless ``MUSICSIM_NICE`` is 0."""
    if hasattr(os, "nice") and os.environ.get("MUSICSIM_NICE") != "0":
        os.nice(niceness)


def limit_memory(memory_mb: int) -> None:
    """Make this process raise ``MemoryError`` beyond `memory_mb`, if the system supports it (Linux)."""
    with contextlib.suppress(ImportError, ValueError, OSError):  # some systems do not support limits
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (memory_mb << 20, hard))
