"""Decoding for a server: one queue of work for a few warm worker processes.

A file that crashes the decoder, or keeps it busy for hours, costs one worker and raises one error. Work is dropped,
even while it is running, if nobody is waiting for it, for example because a page was closed.
"""

import io
import logging
import threading
import time
import wave
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import cache, partial
from typing import Any, Generic, NamedTuple, TypeVar

from musicsim import audio
from musicsim.errors import AudioError, LibraryError, MusicsimError
from musicsim.library.processes.workers import Limits, Worker, limit_memory, lower_priority, worker_context
from musicsim.rounds import Rounds

_log = logging.getLogger(__name__)

T = TypeVar("T")

Run = Callable[..., Any]
"""Calls a function of this package in a worker; the function is the first argument, followed by its arguments."""

_N_WORKERS = 2
_TASKS_PER_WORKER = 1000  # tasks, half of them pings, until a worker is replaced to limit memory leaks
_NICENESS = 5  # lower priority than pages, higher priority than scans
_TICK_S = 0.1
PATIENCE_S = 30.0  # seconds until a request expires; a slow page on a busy server renews it sooner
_ATTEMPTS = 3  # maximum number of workers to try if they exit before they start the work
MAX_START_S = 60.0


class DecodingDroppedError(MusicsimError):
    """The work was dropped because nobody was waiting for it; it can be requested again."""


class Decoding(Generic[T]):
    """Work that is queued, running or done; `future` holds its result, an error, or :class:`DecodingDroppedError`.

    `is_long` is True if `short_work` did not suffice.
    """

    def __init__(
        self,
        work: Callable[[Run], T],
        short_work: Callable[[Run], T | None] | None,
        name: str,
        limits: Limits,
        is_urgent: bool,
        visitor: str,
        decoder: "Decoder",
    ) -> None:
        self.future: Future[T] = Future()
        self.name, self.limits, self.is_urgent, self.visitor = name, limits, is_urgent, visitor
        self.is_long = False
        self._work, self._short_work, self._decoder = work, short_work, decoder
        self._is_dropped = False
        self.keep()

    def keep(self) -> None:
        """Renew the request, which otherwise expires after half a minute."""
        self._wanted_until = time.monotonic() + PATIENCE_S

    def drop(self) -> None:
        self._is_dropped = True

    def wait(self, seconds: float) -> bool:
        """Wait for at most `seconds`; return whether the work is done."""
        self.keep()
        return bool(wait([self.future], seconds).done)

    @property
    def is_wanted(self) -> bool:
        return not self._is_dropped and time.monotonic() < self._wanted_until

    @property
    def n_ahead(self) -> int:
        """Number of running and queued items before this one; 0 if it is running or done."""
        return self._decoder.n_ahead(self)

    def do(self, run: Run) -> None:
        """Do the work; if only the short work is done and did not suffice, the future has no result yet."""
        try:
            if self._short_work is None or self.is_long:
                self.future.set_result(self._work(run))
            elif (result := self._short_work(run)) is not None:
                self.future.set_result(result)
            else:
                self.is_long = True
        except BaseException as error:
            self.future.set_exception(error)


class Decoder:
    """A queue of work for warm worker processes. Visitors take turns, file by file.

    The short work of a file is a turn, and the rest of its work is another. With several workers, one of them is always
    free for other work than such a rest.
    """

    def __init__(self, n_workers: int = _N_WORKERS) -> None:
        self._n_workers = n_workers
        self._waiting: list[Decoding[Any]] = []
        self._running: list[Decoding[Any]] = []
        self._rounds = Rounds()
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._is_closed = False

    def ask(
        self,
        work: Callable[[Run], T],
        *,
        name: str,
        limits: Limits,
        is_urgent: bool = False,
        visitor: str = "",
        short_work: Callable[[Run], T | None] | None = None,
    ) -> Decoding[T]:
        """Queue work: urgent work comes first, then each visitor's first file, then their second file, and so on.

        `work` is called in a thread of this process, and decodes with the :data:`Run` that it receives. Decoding raises
        :class:`AudioError` if the worker crashes or exceeds `limits`. `short_work` does the same for a short file; for
        a long file it returns None after a short time, and `work` goes to the back of the line.
        """
        decoding = Decoding(work, short_work, name, limits, is_urgent, visitor, self)
        self.warm_up()
        with self._changed:
            self._waiting.append(decoding)
            self._changed.notify_all()  # the next thread may have to leave it to another
        return decoding

    def warm_up(self) -> None:
        """Start the workers if they are not running; do not wait for them."""
        with self._changed:
            while len(self._threads) < self._n_workers:
                thread = threading.Thread(target=self._serve, name="decoder", daemon=True)
                self._threads.append(thread)
                thread.start()

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            for decoding in self._waiting:
                decoding.drop()
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def n_ahead(self, decoding: Decoding[Any]) -> int:
        """Return the number of items that are running or queued before this one; 0 if it is not queued."""
        with self._changed:
            if decoding not in self._waiting:
                return 0
            turns = self._turns()
            return len(self._running) + sum(other.is_wanted for other in turns[: turns.index(decoding)])

    def _turns(self) -> list[Decoding[Any]]:
        """Return the queued work in the order in which it will run; requires the lock."""
        unwanted = [decoding for decoding in self._waiting if not decoding.is_wanted]
        wanted = [decoding for decoding in self._waiting if decoding not in unwanted]
        visitors = [decoding.visitor for decoding in wanted]
        ranks = self._rounds.ranks(visitors, [decoding.visitor for decoding in self._running])
        rank_of = dict(zip(wanted, ranks, strict=True))
        # sorting is stable, so equal ranks keep their order
        return unwanted + sorted(wanted, key=lambda decoding: (not decoding.is_urgent, rank_of[decoding]))

    def _next(self) -> Decoding[Any] | None:
        """Wait for the next work that is still wanted; return None if the queue is closed."""
        with self._changed:
            while True:
                is_long_allowed = sum(decoding.is_long for decoding in self._running) < max(1, self._n_workers - 1)
                for decoding in self._turns():
                    if not decoding.is_wanted:
                        self._waiting.remove(decoding)
                        decoding.future.set_exception(_drop_error(decoding))
                    elif is_long_allowed or not decoding.is_long:
                        self._waiting.remove(decoding)
                        self._running.append(decoding)
                        self._rounds.note(decoding.visitor)
                        return decoding
                if self._is_closed:
                    return None
                self._changed.wait()

    def _serve(self) -> None:
        worker = _WarmWorker()
        with suppress(EOFError, OSError):  # the next call will raise the error
            worker.open()
        while self._do_next(worker):
            pass
        worker.close()

    def _do_next(self, worker: "_WarmWorker") -> bool:
        """Run the next work. This is a method so that an idle thread does not keep the last file in memory."""
        decoding = self._next()
        if decoding is None:
            return False
        decoding.do(partial(worker.call, decoding))
        with self._changed:
            self._running.remove(decoding)
            if not decoding.future.done():
                if self._is_closed:
                    decoding.drop()
                self._waiting.append(decoding)
            self._changed.notify_all()
        return True


_lock = threading.Lock()
_shared_decoder = cache(Decoder)


def decoder() -> Decoder:
    with _lock:
        return _shared_decoder()


class _WarmWorker:
    """A worker that is started before it is needed, and replaced after it ends."""

    def __init__(self) -> None:
        self._worker: Worker[_Task | None] | None = None

    def open(self) -> Worker["_Task | None"]:
        """Return the worker, and start it if needed. It imports its modules before anybody waits for it."""
        worker = self._worker
        if worker is None or worker.n_given >= _TASKS_PER_WORKER:
            self.close()
            worker = self._worker = Worker(worker_context(__name__), _run_task, _warm_up)
        return worker

    def close(self) -> None:
        if self._worker is not None:
            self._worker.stop()
            self._worker = None

    def call(self, decoding: Decoding[Any], function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function in the worker, within the limits of the work and as long as it is wanted."""
        for _ in range(_ATTEMPTS):
            with suppress(EOFError, OSError):  # the worker could not be started, or exited before it was ready
                worker = self.open()
                if not worker.is_ready:
                    self._receive(worker, decoding, MAX_START_S)
                worker.give(None)
                self._receive(worker, decoding, MAX_START_S)
                break
            self.close()
        else:
            raise AudioError(f"{decoding.name}: the decoder could not be started. Try again.")
        worker.give(_Task(decoding.name, decoding.limits.memory_mb, function, args, kwargs))
        try:
            result = self._receive(worker, decoding, decoding.limits.seconds)
        except EOFError:
            self.close()
            raise AudioError(
                f"{decoding.name}: the decoder crashed (exit code {worker.exit_code}). Re-encode the file."
            ) from None
        worker.tasks.clear()
        if isinstance(result, BaseException):
            raise result if isinstance(result, MusicsimError) else _wrap_error(decoding.name, result)
        return result

    def _receive(self, worker: Worker["_Task | None"], decoding: Decoding[Any], seconds: float) -> Any:
        """Receive a result from the worker; kill it after `seconds`, or if the work is no longer wanted."""
        deadline = time.monotonic() + seconds
        while not worker.pipe.poll(_TICK_S):
            if not decoding.is_wanted:
                self.close()
                raise _drop_error(decoding)
            if time.monotonic() > deadline:
                self.close()
                raise AudioError(
                    f"{decoding.name}: decoding took more than {seconds:g} s and was stopped. "
                    "Shorten or re-encode the file."
                )
        return worker.receive()


def _drop_error(decoding: Decoding[Any]) -> DecodingDroppedError:
    return DecodingDroppedError(f"{decoding.name}: canceled because nobody was waiting for it. Try again.")


class _Task(NamedTuple):
    name: str
    memory_mb: int
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def _warm_up() -> None:
    lower_priority(_NICENESS)
    silence = io.BytesIO()
    with wave.open(silence, "wb") as file:
        file.setparams((2, 2, 44_100, 0, "NONE", ""))
        file.writeframes(bytes(44_100 * 4))
    with suppress(MusicsimError):
        audio.analyze_sound(silence.getvalue())


def _run_task(task: _Task | None) -> Any:
    """Return the result of a task, or an error; None for a ping."""
    if task is None:
        return None
    limit_memory(task.memory_mb)
    try:
        return task.function(*task.args, **task.kwargs)
    except MusicsimError as error:
        return error
    except MemoryError:
        return AudioError(
            f"{task.name}: decoding took more than {task.memory_mb} MB of memory and was stopped. Re-encode the file."
        )
    except OSError as error:  # a write error; read errors are MusicsimError
        return LibraryError(
            f"{task.name}: the decoded sound cannot be written ({error.strerror or error}). Free some disk space."
        )
    except Exception as error:
        _log.exception("%s: unexpected error", task.name)
        return _wrap_error(task.name, error)


def _wrap_error(name: str, error: BaseException) -> AudioError:
    return AudioError(f"{name}: {type(error).__name__}: {error}")
