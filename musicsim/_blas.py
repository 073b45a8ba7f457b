"""Fits on one thread of the library of matrix products, whose number of threads belongs to the whole process."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from threadpoolctl import threadpool_limits


class _Keeper:
    """A thread that holds the limit while any other needs it: only who has set a limit can take it back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_inside = 0

    def enter(self) -> None:
        with self._lock:
            if not self._n_inside:
                self._done, is_set = threading.Event(), threading.Event()
                self._thread = threading.Thread(target=_hold, args=(is_set, self._done), daemon=True)
                self._thread.start()
                is_set.wait()
            self._n_inside += 1

    def leave(self) -> None:
        with self._lock:
            self._n_inside -= 1
            if not self._n_inside:
                self._done.set()
                self._thread.join()


def _hold(is_set: threading.Event, done: threading.Event) -> None:
    try:
        with threadpool_limits(1, "blas"):
            is_set.set()
            done.wait()
    finally:
        is_set.set()


class _Inside(threading.local):
    """How deep a thread is inside, and what ends its limit."""

    depth = 0
    limit = ExitStack()


_keeper = _Keeper()
_inside = _Inside()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let matrix products of the process use one thread until the last that asked for it is done.

    Notes
    -----
    Limits of threadpoolctl alone, begun and ended in turn by two threads, leave behind what the first had set. Where
    another thread holds a limit of its own meanwhile, that one may be in force instead. Entering takes some 15 ms, as
    the libraries that are loaded are looked for; inside itself nothing.
    """
    if not _inside.depth:
        _inside.limit = ExitStack()
        _keeper.enter()
        _inside.limit.callback(_keeper.leave)
        # for a caller that holds a limit itself, which the keeper cannot change
        _inside.limit.enter_context(threadpool_limits(1, "blas"))
    _inside.depth += 1
    try:
        yield
    finally:
        _inside.depth -= 1
        if not _inside.depth:
            _inside.limit.close()
