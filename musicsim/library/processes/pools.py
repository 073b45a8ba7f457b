"""Pools of workers for independent tasks: processes on this machine, or workers of an extension."""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from itertools import tee
from typing import Any, Protocol, TypeVar

from musicsim.blas import one_blas_thread
from musicsim.library.processes.workers import Crew, Limits

T = TypeVar("T")
R = TypeVar("R")


class WorkerPool(Protocol):
    shares_disk: bool  # whether workers can write to folders on this machine

    def outcomes(
        self, function: Callable[[T], Any], tasks: Iterable[T], *, limits: Limits, preload: tuple[str, ...] = ()
    ) -> Generator[tuple[T, Any] | None, None, None]:
        """Call a function in this package for each task in worker processes, and yield results as they arrive.

        The function, or the function in a partial, must be importable by name; each worker gets the partial's
        arguments only once. Tasks are requested only when a worker is free. If a worker dies or runs out of memory, its
        task is repeated at the end, alone in a new worker.

        Yields (task, result) or (task, exception), or None after half a second without a result.
        """


class LocalPool:
    """Worker processes on this machine; by default, one per core."""

    shares_disk = True

    def __init__(self, n_workers: int | None = None) -> None:
        self._n_workers = n_workers or os.cpu_count() or 1

    def outcomes(
        self, function: Callable[[T], Any], tasks: Iterable[T], *, limits: Limits, preload: tuple[str, ...] = ()
    ) -> Generator[tuple[T, Any] | None, None, None]:
        with closing(Crew(function, limits, preload, self._n_workers)) as crew:
            yield from crew.outcomes(tasks)


def on_all_cores(function: Callable[[T], R], items: Iterable[T]) -> Generator[R, None, None]:
    """Yield results in the order of their items, with one thread per core, for work that mostly releases the GIL."""
    n_threads = os.cpu_count() or 1
    futures: deque[Future[R]] = deque()
    with one_blas_thread(), ThreadPoolExecutor(n_threads, thread_name_prefix="core") as threads:
        try:
            for item in items:
                futures.append(threads.submit(function, item))
                if len(futures) >= 2 * n_threads:
                    yield futures.popleft().result()
            while futures:
                yield futures.popleft().result()
        finally:
            for future in futures:
                future.cancel()


def map_in_order(
    pool: WorkerPool, function: Callable[[T], Any], tasks: Iterable[T], *, limits: Limits
) -> Iterator[Any]:
    """Yield results in the order of their tasks, so each waits for all earlier ones. Exceptions are yielded, too."""
    numbered = partial(_do_numbered, function)
    done: dict[int, Any] = {}
    n_yielded = 0
    with closing(pool.outcomes(numbered, enumerate(tasks), limits=limits)) as items:
        for item in items:
            if item is not None:
                (number, _), done[number] = item
            while n_yielded in done:
                yield done.pop(n_yielded)
                n_yielded += 1


def _do_numbered(function: Callable[[Any], Any], task: tuple[int, Any]) -> Any:
    return function(task[1])


def map_with_retry(
    pool: WorkerPool, function: Callable[[T], Any], tasks: Iterable[T], *, limits: Limits
) -> Iterator[Any]:
    """Yield results in the order of their tasks. Failed tasks are repeated in this process, without limits."""
    here, there = tee(tasks)
    for task, result in zip(here, map_in_order(pool, function, there, limits=limits), strict=True):
        yield function(task) if isinstance(result, BaseException) else result


def map_of(pool: WorkerPool, limits: Limits) -> Callable[..., Iterator[Any]]:
    """Return a function like :func:`map` that makes its calls in a pool, and raises their exceptions."""

    def map_in_pool(function: Callable[[Any], Any], tasks: Iterable[Any]) -> Iterator[Any]:
        for result in map_in_order(pool, function, tasks, limits=limits):
            if isinstance(result, BaseException):
                raise result
            yield result

    return map_in_pool
