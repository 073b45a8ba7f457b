"""Limit BLAS to one thread. The number of BLAS threads is a setting of the whole process."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits


class _Keeper:
    """A thread that holds the limit for other threads, because only the thread that set a limit can undo it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_users = 0

    def enter(self) -> None:
        with self._lock:
            if not self._n_users:
                self._done, is_set = threading.Event(), threading.Event()
                self._thread = threading.Thread(target=self._hold, args=(is_set, self._done), daemon=True)
                self._thread.start()
                is_set.wait()
            self._n_users += 1

    def leave(self) -> None:
        with self._lock:
            self._n_users -= 1
            if not self._n_users:
                self._done.set()
                self._thread.join()

    @staticmethod
    def _hold(is_set: threading.Event, done: threading.Event) -> None:
        try:
            with threadpool_limits(1, "blas"):
                is_set.set()
                done.wait()
        finally:
            is_set.set()


class _Nesting(threading.local):
    """Nesting depth of a thread's blocks, and the thread's own limit."""

    depth = 0
    limit: threadpool_limits


_keeper = _Keeper()
_nesting = _Nesting()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread in the whole process until the last of these blocks ends.

    If threadpoolctl limits overlap in two threads, each thread restores the other's limit when it ends; this function
    avoids that. Entering a block takes about 15 ms to look up the loaded libraries, but nested blocks are free.
    """
    if not _nesting.depth:
        _keeper.enter()
        # the keeper cannot change a limit that the caller itself holds
        _nesting.limit = threadpool_limits(1, "blas")
    _nesting.depth += 1
    try:
        yield
    finally:
        _nesting.depth -= 1
        if not _nesting.depth:
            _nesting.limit.restore_original_limits()
            _keeper.leave()
