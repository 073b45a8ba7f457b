"""Rate limits for pages' WebSockets: a page's script is rerun at a pace that the server can handle.

With every click, a page requests a rerun of its script. Until the rerun starts, Streamlit stores only the last request,
and a second click on the same component replaces the first click. Therefore, this module holds each request until the
script has processed the clicks of the previous one. It merges waiting requests if no click would be lost.
"""

import asyncio
import enum
import time
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple, Protocol
from weakref import WeakValueDictionary

from starlette.types import Message, Receive, Scope, Send

from musicsim.api.budgets import Budget, Budgets
from musicsim.api.inbox import Inbox

# per session: thirty quick clicks use half of it, and a page that updates itself reruns twice per second
RERUNS, RERUNS_PER_S = 60.0, 3.0
# per address: sixty visitors in a lecture hall click 15 times per second
RERUNS_OF_ALL, RERUNS_OF_ALL_FULL_IN_S = 600.0, 30.0
# limits on messages from a page, because merging requests also takes time
MESSAGES, _MESSAGES_PER_S = 1_000.0, 500.0
MESSAGES_OF_ALL, _MESSAGES_OF_ALL_FULL_IN_S = 4_000.0, 4.0
_BYTES_PER_MESSAGE = 10_000  # a larger message counts as several
MAX_HELD, _MAX_HELD_BYTES = 64, 256_000
MAX_RUNS = 4  # simultaneous runs per address; its other pages wait in a queue
RUN_S = 2.0  # a longer run, such as one that waits for a file, gives up its turn
TAKEN_S = 2.0  # if a request has not started a run by then, its part of the page no longer exists
_UNTIL_WOKEN_S = 3600.0
CLICK_S = 1.0  # time for a run to process clicks before the next request may interrupt it
FIRST_S = 10.0  # time for a page to send its first message
TRY_AGAIN_LATER = 1013  # status of a WebSocket


class Rerun(Protocol):
    """A page's request to run its script again."""

    @property
    def has_clicks(self) -> bool: ...  # True if it contains clicks, which later requests do not repeat
    @property
    def n_bytes(self) -> int: ...

    def join(self, newer: Any) -> "Rerun | None":
        """Return one request equivalent to both, or None if a click would be lost."""

    def to_bytes(self) -> bytes:
        """Return the request as a message for Streamlit."""


class RunEvent(enum.Enum):
    """An event in a run of the script, as reported by a message to the page."""

    BEGUN = "begun"
    FINISHED = "finished"
    OTHER = "other"


class Dialect(NamedTuple):
    """Functions that interpret the messages between pages and the app."""

    is_of_a_page: Callable[[bytes], bool]  # True if pages may send this message; others are dropped
    rerun_of: Callable[[bytes], Rerun | None] = lambda message: None
    """Parse a request for a rerun; return None for other messages."""
    filter_message: Callable[[bytes], tuple[bytes, RunEvent]] = lambda message: (message, RunEvent.OTHER)
    """Return a message to a page without data that pages must not see, and the event that it reports."""
    is_reconnection: Callable[[Scope], bool] = lambda scope: False
    """Return whether a page opens its WebSocket again; it then has nothing to send until the next click."""


class _Turns:
    def __init__(self) -> None:
        self._n_running = 0
        self._waiting: dict[Stream, None] = {}  # pages in order of arrival

    def is_free(self, page: "Stream") -> bool:
        """Return whether a page may run now; if not, it is queued and woken later."""
        self._waiting[page] = None
        return page in self._next()

    def take(self, page: "Stream") -> None:
        self._waiting.pop(page, None)
        self._n_running += 1

    def give_back(self) -> None:
        self._n_running -= 1
        self._wake_next()

    def leave(self, page: "Stream") -> None:
        self._waiting.pop(page, None)
        self._wake_next()

    def _next(self) -> "list[Stream]":
        return list(islice(self._waiting, max(0, MAX_RUNS - self._n_running)))

    def _wake_next(self) -> None:
        for page in self._next():
            page.wake()


class Paces:
    """The limits on the WebSockets of all addresses."""

    def __init__(self) -> None:
        self.turns: WeakValueDictionary[str, _Turns] = WeakValueDictionary()
        self.reruns = Budgets(RERUNS_OF_ALL, RERUNS_OF_ALL_FULL_IN_S)
        self.messages = Budgets(MESSAGES_OF_ALL, _MESSAGES_OF_ALL_FULL_IN_S)


class Stream:
    """The messages of one WebSocket; `paces` limits reruns for each address, and `requests` limits other messages.

    A page leaves if it does not send its first message in time, unless it `is_reconnected`.

    Attributes
    ----------
    last_heard : float
        Time of the page's last message, or of its arrival.
    is_leaving : bool
        True if the page has to leave: the app has seen or will see the end of the connection.
    """

    def __init__(
        self,
        receive: Receive,
        send: Send,
        dialect: Dialect,
        paces: Paces,
        requests: Budgets,
        address: str,
        *,
        is_reconnected: bool = False,
    ) -> None:
        self._inbox, self._send, self._dialect = Inbox(receive), send, dialect
        self.last_heard, self.is_leaving = time.monotonic(), False
        self._first_due = None if is_reconnected else asyncio.get_running_loop().call_later(FIRST_S, self.leave)
        self._requests = requests.get(address)
        # one budget for the session, one for its address
        self._reruns = (Budget(RERUNS, RERUNS_PER_S), paces.reruns.get(address))
        self._messages = (Budget(MESSAGES, _MESSAGES_PER_S), paces.messages.get(address))
        self._turns = paces.turns.setdefault(address, _Turns())
        self._others: deque[Message] = deque()
        self._held: deque[Rerun] = deque()
        self._n_held_bytes = 0
        self._has_clicks = False  # True if the last request had clicks and its run is not finished
        self._is_taken, self._since = False, 0.0
        self._turn_ends: asyncio.TimerHandle | None = None

    async def receive(self) -> Message:
        """Return the page's next message when it is due."""
        while not self.is_leaving:
            if self._others:
                message = self._others.popleft()
                while message["type"] == "websocket.receive" and (pause_s := self._requests.spend(1)):
                    await asyncio.sleep(pause_s)
                return message
            wait_s = self._wait_s()
            if wait_s == 0:
                return self._next_rerun()
            await self._read(wait_s)
        return {"type": "websocket.disconnect", "code": TRY_AGAIN_LATER}

    async def send(self, message: Message) -> None:
        """Send a message to the page, and track the state of the script's run."""
        if self.is_leaving:
            return
        if message.get("bytes"):
            shown, event = self._dialect.filter_message(message["bytes"])
            message = {**message, "bytes": shown}
            if event is RunEvent.BEGUN:
                self._is_taken, self._since = True, time.monotonic()
            elif event is RunEvent.FINISHED and self._is_taken:  # an earlier run may end after the last request
                self._has_clicks = False
                self._end_turn()
            if event is not RunEvent.OTHER:
                self.wake()
        await self._send(message)

    def wake(self) -> None:
        """Make :meth:`receive` check again whether a request is due."""
        self._inbox.wake()

    def leave(self) -> None:
        """Let the app see the end of the connection, after which the WebSocket can be closed."""
        self.is_leaving = True
        self.wake()

    def close(self) -> None:
        """Stop reading, and leave the queue of waiting pages."""
        self._end_first_wait()
        self._inbox.close()
        self._turns.leave(self)
        self._end_turn()

    def _end_first_wait(self) -> None:
        if self._first_due is not None:
            self._first_due.cancel()
            self._first_due = None

    def _end_turn(self) -> None:
        if self._turn_ends is not None:
            self._turn_ends.cancel()
            self._turn_ends = None
            self._turns.give_back()

    def _wait_s(self) -> float | None:
        """Return the seconds until the first held request is due, or None if no request is held."""
        if not self._held:
            return None
        clicks_s = 0.0
        if self._has_clicks:
            clicks_s = self._since + (CLICK_S if self._is_taken else TAKEN_S) - time.monotonic()
        wait_s = max(0.0, clicks_s, *(budget.wait_s(1) for budget in self._reruns))
        if wait_s == 0 and self._turn_ends is None and not self._turns.is_free(self):
            return _UNTIL_WOKEN_S
        return wait_s

    def _next_rerun(self) -> Message:
        rerun = self._held.popleft()
        self._n_held_bytes -= rerun.n_bytes
        for budget in self._reruns:
            budget.charge(1)
        if self._turn_ends is None:
            self._turns.take(self)
        else:
            self._turn_ends.cancel()
        self._turn_ends = asyncio.get_running_loop().call_later(RUN_S, self._end_turn)
        self._has_clicks, self._is_taken, self._since = rerun.has_clicks, False, time.monotonic()
        return {"type": "websocket.receive", "bytes": rerun.to_bytes()}

    async def _read(self, wait_s: float | None) -> None:
        """Wait for a message or a change in the run, but no longer than `wait_s`."""
        pause_s = max(budget.wait_s(1) for budget in self._messages)
        # if too many requests are held, the client has to wait before it can send more
        has_room = len(self._held) < MAX_HELD and self._n_held_bytes < _MAX_HELD_BYTES
        if has_room and pause_s:
            wait_s = pause_s if wait_s is None else min(wait_s, pause_s)
        message = await self._inbox.read(wait_s, is_open=has_room and not pause_s)
        if message is not None:
            self._hold(message)

    def _hold(self, message: Message) -> None:
        data = message.get("bytes")
        if not data:
            self._others.append(message)
            return
        self._end_first_wait()
        self.last_heard = time.monotonic()
        for budget in self._messages:
            budget.charge(1 + len(data) / _BYTES_PER_MESSAGE)
        if not self._dialect.is_of_a_page(data):
            return
        rerun = self._dialect.rerun_of(data)
        if rerun is None:
            self._others.append(message)
            return
        if self._held and (joined := self._held[-1].join(rerun)) is not None:
            self._n_held_bytes -= self._held.pop().n_bytes
            rerun = joined
        self._held.append(rerun)
        self._n_held_bytes += rerun.n_bytes
