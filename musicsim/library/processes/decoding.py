"""Decoding for a program that stays: work waits in one line before a few warm worker processes.

Sound from outside is decoded in none of the server's own threads: a file that crashes the decoder, or keeps it busy for
hours, costs a worker and gives one sentence. Whoever waits for work keeps saying so; work that nobody
waits for any more, because a page was left or a request was broken off, is dropped, also while it is at work.
"""

import io
import logging
import os
import threading
import time
import wave
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import cache, partial
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar

from musicsim import audio
from musicsim.errors import AudioError, LibraryError, MusicsimError
from musicsim.library.processes.workers import Limits, Worker, limit_memory, worker_context

_log = logging.getLogger(__name__)

T = TypeVar("T")

Run = Callable[..., Any]
"""Calls a function of this package, named first, in a worker, with the arguments behind it."""

_N_WORKERS = 2
# Half of them ask whether it is there. Then it makes room for a new one: what libraries leak does not add up.
_TASKS_A_WORKER = 1000
_NICENESS = 5  # behind the pages, before a scan
_TICK_S = 0.1
_PATIENCE_S = 30.0  # a page that a busy server keeps waiting has not been left
_ATTEMPTS = 3  # with a new worker each, where one ends before it has begun
_MAX_START_S = 60.0
_MAX_KNOWN = 1000  # visitors whose last turn is remembered


class DecodingDroppedError(MusicsimError):
    """Nobody waited for the work any more: who wants it after all asks again."""


class Decoding(Generic[T]):
    """Work that stands in line, is at work, or is done.

    `future` is its result, or an error in words; :class:`DecodingDroppedError` if nobody waited for it. `name` is how
    messages call the source, `visitor` who sent it; empty for work of the app itself.
    """

    def __init__(
        self, work: Callable[[Run], T], name: str, limits: Limits, is_urgent: bool, visitor: str, line: "Decoder"
    ) -> None:
        self.future: Future[T] = Future()
        self.name, self.limits, self.is_urgent, self.visitor = name, limits, is_urgent, visitor
        self._work, self._line = work, line
        self._is_dropped = False
        self.keep()

    def keep(self) -> None:
        """Say that somebody waits; to be said again within half a minute."""
        self._wanted_until = time.monotonic() + _PATIENCE_S

    def drop(self) -> None:
        """Say that nobody will wait any more."""
        self._is_dropped = True

    def within(self, seconds: float) -> bool:
        """Wait for so many seconds at most; whether it is done."""
        self.keep()
        return bool(wait([self.future], seconds).done)

    @property
    def is_wanted(self) -> bool:
        """Whether somebody waits for it."""
        return not self._is_dropped and time.monotonic() < self._wanted_until

    @property
    def n_ahead(self) -> int:
        """How many others come before it; 0 when it is at work."""
        return self._line.n_ahead(self)

    def do(self, run: Run) -> None:
        """Work, and keep what comes of it."""
        try:
            self.future.set_result(self._work(run))
        except BaseException as error:
            self.future.set_exception(error)


class Decoder:
    """One line of work before worker processes that are kept warm; they start with the first work.

    Visitors take turns: each one's second file comes after the first files of the others.
    """

    def __init__(self, n_workers: int = _N_WORKERS) -> None:
        self._n_workers = n_workers
        self._waiting: list[Decoding[Any]] = []
        self._at_work: list[Decoding[Any]] = []
        self._n_turns = 0
        self._served: dict[str, int] = {}  # the last turn of each visitor, the longest ago first
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._is_closed = False

    def ask(
        self, work: Callable[[Run], T], *, name: str, limits: Limits, is_urgent: bool = False, visitor: str = ""
    ) -> Decoding[T]:
        """Put work in the line, behind what came before and behind the first files of other visitors.

        It is called in a thread of this process when its turn comes; urgent work goes before all that is not. What
        decodes goes through the :data:`Run` that it is given, each call within `limits`, which raises
        :class:`AudioError` in words where that crashes, takes too long or too much. `name` is what sentences call the
        source.
        """
        decoding = Decoding(work, name, limits, is_urgent, visitor, self)
        self.warm_up()
        with self._changed:
            self._waiting.append(decoding)
            self._changed.notify()
        return decoding

    def warm_up(self) -> None:
        """Start the workers, unless they run; does not wait for them."""
        with self._changed:
            while len(self._threads) < self._n_workers:
                thread = threading.Thread(target=self._serve, name="decoder", daemon=True)
                self._threads.append(thread)
                thread.start()

    def close(self) -> None:
        """End the workers after what they are at; what waits is dropped."""
        with self._changed:
            self._is_closed = True
            for decoding in self._waiting:
                decoding.drop()
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def n_ahead(self, decoding: Decoding[Any]) -> int:
        """How many are at work or come before this one; 0 when it does not wait any more."""
        with self._changed:
            if decoding not in self._waiting:
                return 0
            turns = self._turns()
            before = islice(turns, turns.index(decoding))
            return len(self._at_work) + sum(other.is_wanted for other in before)

    def _turns(self) -> list[Decoding[Any]]:
        """List the work that waits in the order of its turns; to be called with the lock."""
        n_before = Counter(decoding.visitor for decoding in self._at_work)
        ranked = []
        for decoding in self._waiting:
            visitor = decoding.visitor
            rank = n_before[visitor], self._served.get(visitor, 0)
            ranked.append((not decoding.is_urgent, *(rank if visitor else (0, 0))))
            n_before[visitor] += decoding.is_wanted
        order = sorted(range(len(ranked)), key=ranked.__getitem__)  # equal ones as they came
        return [self._waiting[i] for i in order]

    def _next(self) -> Decoding[Any] | None:
        """The first that somebody still waits for; None when the line is closed."""
        with self._changed:
            while True:
                for decoding in self._turns():
                    self._waiting.remove(decoding)
                    if decoding.is_wanted:
                        self._at_work.append(decoding)
                        self._note_turn(decoding.visitor)
                        return decoding
                    decoding.future.set_exception(_dropped(decoding))
                if self._is_closed:
                    return None
                self._changed.wait()

    def _note_turn(self, visitor: str) -> None:
        self._n_turns += 1
        self._served.pop(visitor, None)
        self._served[visitor] = self._n_turns
        if len(self._served) > _MAX_KNOWN:
            del self._served[next(iter(self._served))]

    def _serve(self) -> None:
        worker = _Warm()
        with suppress(EOFError, OSError):  # whoever asks for work gets the error
            worker.open()
        while self._do_next(worker):
            pass
        worker.close()

    def _do_next(self, worker: "_Warm") -> bool:
        """Do what comes next; a method, so that an idle thread does not hold the file it did last."""
        decoding = self._next()
        if decoding is None:
            return False
        decoding.do(partial(worker.call, decoding))
        with self._changed:
            self._at_work.remove(decoding)
        return True


@cache
def _shared() -> Decoder:
    return Decoder()


def decoder() -> Decoder:
    """The one line of this process."""
    with _making:
        return _shared()


_making = threading.Lock()


class _Warm:
    """A worker that is there before it is needed; when it ends, the next call gets another."""

    def __init__(self) -> None:
        self._worker: Worker[_Task | None] | None = None

    def open(self) -> Worker["_Task | None"]:
        """The worker, started unless there is one; it imports what it needs while nobody waits for it."""
        worker = self._worker
        if worker is None or worker.n_given >= _TASKS_A_WORKER:
            self.close()
            worker = self._worker = Worker(worker_context(__name__), _answer, _get_warm)
        return worker

    def close(self) -> None:
        """End the process at once."""
        if self._worker is not None:
            self._worker.stop()
            self._worker = None

    def call(self, decoding: Decoding[Any], function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function in the process, within the limits of a work and as long as it is wanted."""
        for _ in range(_ATTEMPTS):
            with suppress(EOFError, OSError):  # it cannot be started, or ended before it could begin
                worker = self.open()
                if not worker.is_ready:
                    self._received(worker, decoding, _MAX_START_S)
                worker.give(None)
                self._received(worker, decoding, _MAX_START_S)
                break
            self.close()
        else:
            raise AudioError(f"{decoding.name}: the decoder could not be started. Try again.")
        worker.give(_Task(decoding.name, decoding.limits.memory_mb, function, args, kwargs))
        try:
            answer = self._received(worker, decoding, decoding.limits.seconds)
        except EOFError:
            self.close()
            raise AudioError(
                f"{decoding.name}: the decoder crashed (exit code {worker.exit_code}). Re-encode the file."
            ) from None
        worker.tasks.clear()
        if isinstance(answer, BaseException):
            raise answer if isinstance(answer, MusicsimError) else _unexpected(decoding.name, answer)
        return answer

    def _received(self, worker: Worker["_Task | None"], decoding: Decoding[Any], seconds: float) -> Any:
        """What the process sends within so many seconds, while the work is wanted; else the process ends."""
        given_up = time.monotonic() + seconds
        while not worker.pipe.poll(_TICK_S):
            if not decoding.is_wanted:
                self.close()
                raise _dropped(decoding)
            if time.monotonic() > given_up:
                self.close()
                raise AudioError(
                    f"{decoding.name}: decoding took more than {seconds:g} s and was stopped. "
                    "Shorten or re-encode the file."
                )
        return worker.receive()


def _dropped(decoding: Decoding[Any]) -> DecodingDroppedError:
    return DecodingDroppedError(f"{decoding.name}: nobody was waiting for it any more. Try again.")


# --- in the worker --------------------------------------------------------------------------------


class _Task(NamedTuple):
    name: str
    memory_mb: int
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def _get_warm() -> None:
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    silence = io.BytesIO()
    with wave.open(silence, "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(44_100)
        file.writeframes(bytes(44_100 * 4))
    with suppress(MusicsimError):
        audio.analyse_sound(silence.getvalue())


def _answer(task: _Task | None) -> Any:
    """The result of a task, or an error in one sentence; nothing where it is only asked whether somebody is there."""
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
    except OSError as error:  # not of reading, which has words already
        return LibraryError(
            f"{task.name}: what was decoded cannot be written ({error.strerror or error}). Make room in the library."
        )
    except Exception as error:
        _log.exception("%s: unexpected error", task.name)
        return _unexpected(task.name, error)


def _unexpected(name: str, error: BaseException) -> AudioError:
    return AudioError(f"{name}: {type(error).__name__}: {error}")
