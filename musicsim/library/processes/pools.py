"""Where many independent tasks are done: in worker processes of this machine, or on a Dask cluster.

Both take tasks of any number and give results as they come; who uses a pool does not ask which it is.
"""

import os
import re
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import Any, Protocol, TypeVar

from musicsim._blas import one_blas_thread
from musicsim.library.processes.workers import Limits, outcomes

T = TypeVar("T")
R = TypeVar("R")

LOCAL = re.compile(r"local:([1-9]\d{0,2})")
# one plain host: of user@host, programs disagree which part is the host
SCHEDULER = re.compile(r"(?P<protocol>tcp|tls|ws|wss)://(\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<host>[\w.-]+)):\d{1,5}/?")


class Pool(Protocol):
    """Workers that are given tasks."""

    shares_disk: bool  # whether workers can write into folders of this machine

    def outcomes(
        self, function: Callable[[T], Any], tasks: Iterable[T], *, limits: Limits, preload: tuple[str, ...] = ()
    ) -> Generator[tuple[T, Any] | None, None, None]:
        """Do as :func:`musicsim.library.processes.workers.outcomes`.

        What a :func:`functools.partial` holds, such as a codebook, each worker is given once.
        """


class LocalPool:
    """Worker processes of this machine."""

    shares_disk = True

    def __init__(self, n_workers: int | None = None) -> None:
        self._n_workers = n_workers or os.cpu_count() or 1

    def outcomes(
        self, function: Callable[[T], Any], tasks: Iterable[T], *, limits: Limits, preload: tuple[str, ...] = ()
    ) -> Generator[tuple[T, Any] | None, None, None]:
        """See :class:`Pool`."""
        return outcomes(function, tasks, n_workers=self._n_workers, limits=limits, preload=preload)


def on_all_cores(function: Callable[[T], R], items: Iterable[T]) -> Generator[R, None, None]:
    """Results in the order of their items, by a thread a core: for work that seldom holds Python's lock.

    No more than two items for each thread are begun before they are asked for. Until the end, matrix products of the
    process use one thread each. Raises what a call raises.
    """
    n_threads = os.cpu_count() or 1
    begun: deque[Future[R]] = deque()
    # matrix products are divided among cores by their items
    with one_blas_thread(), ThreadPoolExecutor(n_threads, thread_name_prefix="core") as threads:
        try:
            for item in items:
                begun.append(threads.submit(function, item))
                if len(begun) >= 2 * n_threads:
                    yield begun.popleft().result()
            while begun:
                yield begun.popleft().result()
        finally:
            for future in begun:  # nobody wants them any more
                future.cancel()


def in_order(
    pool: Pool, function: Callable[[T], Any], tasks: Iterable[T], *, limits: Limits, preload: tuple[str, ...] = ()
) -> Iterator[Any]:
    """Results in the order of their tasks; an exception is a result, as of :class:`Pool`.

    Results that wait for one before them are held.
    """
    numbered = partial(_do_numbered, function)
    done: dict[int, Any] = {}
    n_given = 0
    with closing(pool.outcomes(numbered, enumerate(tasks), limits=limits, preload=preload)) as items:
        for item in items:
            if item is not None:
                (number, _), done[number] = item
            while n_given in done:
                yield done.pop(n_given)
                n_given += 1


def _do_numbered(function: Callable[[Any], Any], task: tuple[int, Any]) -> Any:
    return function(task[1])


def done_by(pool: Pool, function: Callable[[T], Any], tasks: Iterable[T], *, limits: Limits) -> Iterator[Any]:
    """Results in the order of their tasks; this process does those that the pool could not do.

    So it raises what a call raises, and a task may take here what no worker may.
    """
    given: deque[T] = deque()

    def noted() -> Iterator[T]:
        for task in tasks:
            given.append(task)
            yield task

    for found in in_order(pool, function, noted(), limits=limits):
        task = given.popleft()
        yield function(task) if isinstance(found, BaseException) else found


def map_of(pool: Pool, limits: Limits) -> Callable[..., Iterator[Any]]:
    """A function like :func:`map` whose calls are done by a pool; it raises what a call raises."""

    def mapped(function: Callable[[Any], Any], tasks: Iterable[Any]) -> Iterator[Any]:
        for result in in_order(pool, function, tasks, limits=limits):
            if isinstance(result, BaseException):
                raise result
            yield result

    return mapped


def check_address(address: str) -> str:
    """The address of a cluster, without blanks around it; ValueError if it is none."""
    address = address.strip()
    if not (LOCAL.fullmatch(address) or SCHEDULER.fullmatch(address)):
        raise ValueError(
            f"cluster={address!r} should be the address of a Dask scheduler, such as tcp://10.0.0.5:8786, or local:4 "
            "for four workers on this machine."
        )
    return address
