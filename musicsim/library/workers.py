"""Worker processes that need nothing of the program that starts them.

Python's own start of a process imports the caller's main script once more, which runs a script that has
no ``if __name__ == "__main__"`` again, and fails where there is no script (an interactive session, a
page). Our workers only call functions of this package, so the main script is hidden while one is started.
"""

import multiprocessing
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import BaseContext
from types import ModuleType
from typing import Any

__all__ = ["worker_context"]

_THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
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
