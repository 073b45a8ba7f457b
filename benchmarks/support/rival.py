"""Rivals in separate processes: a crash costs a line of the table, not the benchmark.

A compiled package may be built for another processor, and then end with an illegal instruction. Seconds are measured in
the process that does the work, so they exclude communication.
"""

import multiprocessing
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Self

from threadpoolctl import threadpool_limits

__all__ = ["Answer", "RivalError", "RivalProcess", "timed"]

_PATIENCE_S = 10.0


class RivalError(RuntimeError):
    """Error of a rival that failed or crashed; the message has the details."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The return value of a rival, and the CPU seconds of all its threads."""

    value: Any
    seconds: float


def timed(function: Callable[..., Any], *arguments: Any, clock: Callable[[], float] = time.process_time) -> Answer:
    """Call a function and time it; for a call to another process, use the time measured there."""
    start = clock()
    value = function(*arguments)
    return value if isinstance(value, Answer) else Answer(value, clock() - start)


class RivalProcess:
    """An object of a rival in a separate process with one BLAS and OpenMP thread; a context manager.

    Parameters
    ----------
    make : callable
        Makes the object in that process. A function or class of a module, or a partial of one.
    *arguments
        Arguments of `make`.

    Attributes
    ----------
    seconds : float
        CPU seconds of `make`.

    Raises
    ------
    RivalError
        If `make` fails.
    """

    def __init__(self, make: Callable[..., Any], *arguments: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe()
        self._process = context.Process(target=_serve, args=(there,), daemon=True)
        self._process.start()
        there.close()
        try:
            self.seconds = self._ask(make, *arguments).seconds
        except RivalError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(self, method: str, *arguments: Any) -> Answer:
        """Call a method of the object.

        Raises
        ------
        RivalError
            If it raised an error, or its process ended.
        """
        return self._ask(method, *arguments)

    def close(self) -> None:
        """End the process."""
        self._here.close()
        self._process.join(_PATIENCE_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _ask(self, *request: Any) -> Answer:
        try:
            self._here.send(request)
            answer = self._here.recv()
        except (EOFError, ConnectionError) as error:
            self._process.join(_PATIENCE_S)
            raise RivalError(_ending(self._process.exitcode)) from error
        if isinstance(answer, str):
            raise RivalError(answer)
        return answer


def _ending(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return f"its process was ended by {signal.Signals(-exit_code).name}"
    return f"its process ended with exit code {exit_code}"


def _serve(pipe: Connection) -> None:
    made: Any = None
    while True:
        try:
            what, *arguments = pipe.recv()
        except EOFError:
            return
        try:
            with threadpool_limits(1):
                function = getattr(made, what) if isinstance(what, str) else what
                start = time.process_time()
                value = function(*arguments)
                seconds = time.process_time() - start
        except BaseException as error:  # a panic of Rust is not an Exception
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            pipe.send(f"{type(error).__name__}: {error}".splitlines()[0][:80])
            continue
        if not isinstance(what, str):
            made, value = value, None
        pipe.send(Answer(value, seconds))
