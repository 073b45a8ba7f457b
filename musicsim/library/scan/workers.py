"""Worker processes that need nothing of the program that starts them.

Python's own start of a process imports the caller's main script once more, which runs a script that has
no ``if __name__ == "__main__"`` again, and fails where there is no script (an interactive session, a
page). Our workers only call functions of this package, so the main script is hidden while one is started.
"""

import contextlib
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from multiprocessing.context import BaseContext
from types import ModuleType
from typing import Any, TypeVar

from musicsim.errors import LibraryError

__all__ = ["Limits", "outcomes", "worker_context"]

T = TypeVar("T")

# Not numba: it reads its number again whenever it compiles, and cannot change it once its threads run.
_THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_METHOD = "forkserver" if sys.platform == "linux" else "spawn"
_starting = threading.Lock()


@contextmanager
def _without_main() -> Iterator[None]:
    with _starting:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main


_plain = multiprocessing.get_context(_METHOD)


class _Process(_plain.Process):  # type: ignore[name-defined]
    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802  # the name multiprocessing calls
        with _without_main():
            return _plain.Process._Popen(process_obj)  # type: ignore[attr-defined]


class _Context(type(_plain)):  # type: ignore[misc]
    Process = _Process


def worker_context(*modules: str) -> BaseContext:
    """A way to start workers, each with one BLAS thread.

    Parameters
    ----------
    modules : str
        Names of modules that workers will need; imported once and shared where the system can fork.
    """
    os.environ.update(dict.fromkeys(_THREAD_LIMITS, "1"))  # workers inherit it
    context = _Context()
    if _METHOD == "forkserver":
        context.set_forkserver_preload(list(modules))
    return context


@dataclass(frozen=True, slots=True)
class Limits:
    """What one task may take.

    Attributes
    ----------
    seconds : float
        Wall time; a task that takes longer is killed.
    memory_mb : int
        Memory of its process, imports included; what goes beyond raises ``MemoryError`` (where the system
        keeps count: Linux).
    """

    seconds: float
    memory_mb: int


_IN_FLIGHT = 2  # tasks a worker has waiting: one at work, one to go on with
_TASKS_A_WORKER = 500  # then it makes room for a new one: what libraries leak does not add up
_TICK_S = 0.5
_BROKEN_IN_A_ROW = 3  # pools that may break without one result between them


def _prepare(memory_mb: int) -> None:
    """Make a fresh worker polite and bounded."""
    if hasattr(os, "nice"):
        os.nice(10)
    with contextlib.suppress(ImportError, ValueError, OSError):  # not every system has limits
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (memory_mb << 20, hard))


def outcomes(
    function: Callable[[T], Any],
    tasks: Iterable[T],
    *,
    n_workers: int,
    limits: Limits,
    preload: tuple[str, ...] = (),
) -> Iterator[tuple[T, Any] | None]:
    """Call a function of this package for each task in worker processes; yield results as they come.

    Parameters
    ----------
    function : callable of one task
        Importable by name.
    tasks : iterable
        Taken from only when a worker has room, so that it may be endless.
    n_workers : int
    limits : Limits
        A task that crashes its process, takes too long or too much costs itself and nothing else.
    preload : tuple of str
        Modules that workers share.

    Yields
    ------
    (task, result) or (task, exception), or None when half a second has passed without a result.

    Raises
    ------
    LibraryError
        If no worker can be started.
    """
    modules = (function.__module__, *preload)
    waiting = iter(tasks)
    flying: dict[Any, T] = {}
    n_broken = 0
    pool = _open_pool(n_workers, limits, modules)
    try:
        while True:
            lost: list[T] = []
            for task in islice(waiting, max(0, _IN_FLIGHT * n_workers - len(flying))):
                try:
                    flying[pool.schedule(function, args=(task,), timeout=limits.seconds)] = task
                except RuntimeError:  # the pool has broken
                    lost.append(task)
            if not flying and not lost:
                return
            done, _ = wait(flying, timeout=_TICK_S, return_when=FIRST_COMPLETED)
            for future in done:
                error = future.exception()
                yield flying.pop(future), error if error is not None else future.result()
            if lost or not (done or pool.active):
                # A process that dies at the wrong moment takes pebble's pool along: what flew starts again.
                n_broken = 0 if done else n_broken + 1
                if n_broken > _BROKEN_IN_A_ROW:
                    raise LibraryError("the worker processes have ended: start the scan again.")
                pool.stop()
                pool.join()
                pool = _open_pool(n_workers, limits, modules)
                waiting = chain(lost, flying.values(), waiting)
                flying = {}
            elif not done:
                yield None
    finally:
        pool.stop()
        pool.join()


def _open_pool(n_workers: int, limits: Limits, modules: tuple[str, ...]) -> Any:
    from pebble import ProcessPool

    return ProcessPool(
        max_workers=n_workers,
        max_tasks=_TASKS_A_WORKER,
        initializer=_prepare,
        initargs=(limits.memory_mb,),
        context=worker_context(*modules),
    )
