"""WebSockets of pages: reruns of a page's script at a pace that the server can hold.

A page asks for a rerun with every click. Streamlit keeps one request that its script has not taken up yet: a newer
request replaces it, and a second click on the same component replaces the first. So a request waits here until the
script has seen the clicks of the last one. Requests that wait are joined if no click is lost.
"""

import asyncio
import enum
import time
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple, Protocol
from weakref import WeakValueDictionary

from starlette.types import Message, Receive, Send

from musicsim.api.budgets import Budget, Budgets

# of a session: thirty clicks in a row are half of it, and a page that updates itself does so twice per second
_RERUNS, _RERUNS_PER_S = 60.0, 3.0
# of an address: a lecture hall of sixty visitors clicks 15 times per second
_RERUNS_OF_ALL, _RERUNS_OF_ALL_FULL_IN_S = 600.0, 30.0
# of messages that are read, as joining them takes time, too
_MESSAGES, _MESSAGES_PER_S = 1_000.0, 500.0
_MESSAGES_OF_ALL, _MESSAGES_OF_ALL_FULL_IN_S = 4_000.0, 4.0
_BYTES_PER_MESSAGE = 10_000  # larger ones count as several
_MAX_HELD, _MAX_HELD_BYTES = 64, 256_000
_MAX_RUNS = 16  # of an address at once; others of its pages wait in line
_RUN_S = 2.0  # a run that takes longer, as one that waits for a file, gives its place to another
_TAKEN_S = 2.0  # a request that is not taken up by then was for a part of the page that has gone
_UNTIL_WOKEN_S = 3600.0
_CLICK_S = 1.0  # time for a run to act on its clicks before the next request may end it


class Rerun(Protocol):
    """A request to run the script again."""

    @property
    def has_clicks(self) -> bool:
        """Return whether it tells of clicks, which no later request repeats."""

    @property
    def n_bytes(self) -> int:
        """Return the size of the message."""

    def join(self, newer: Any) -> "Rerun | None":
        """Return one request that does as both; None if it would lose something."""

    def to_bytes(self) -> bytes:
        """Return the message."""


class Said(enum.Enum):
    """The part of a message to a page that tells of its run."""

    BEGUN = "begun"
    FINISHED = "finished"
    OTHER = "other"


class Dialect(NamedTuple):
    """The language of pages and the app."""

    is_of_a_page: Callable[[bytes], bool]
    """Whether a page may send such a message; others are dropped."""
    rerun_of: Callable[[bytes], Rerun | None] = lambda message: None
    """Gives the request for a rerun that a message is; None for other messages."""
    filter_message: Callable[[bytes], tuple[bytes, Said]] = lambda message: (message, Said.OTHER)
    """Gives a message to a page as visitors may see it, and its part in a run."""


class _Turns:
    """The pages of an address that take turns with their runs."""

    def __init__(self) -> None:
        self._n_running = 0
        self._waiting: dict[Stream, None] = {}  # in the order in which they came

    def is_free(self, page: "Stream") -> bool:
        """Return whether a page may run now; if not, it is in line, and is woken."""
        self._waiting[page] = None
        return page in self._next()

    def take(self, page: "Stream") -> None:
        """Begin a run."""
        self._waiting.pop(page, None)
        self._n_running += 1

    def give_back(self) -> None:
        """End a run, and wake the page whose turn it is."""
        self._n_running -= 1
        for page in self._next():
            page.wake()

    def leave(self, page: "Stream") -> None:
        """Leave the line."""
        if page in self._waiting:
            del self._waiting[page]
            for other in self._next():
                other.wake()

    def _next(self) -> "list[Stream]":
        return list(islice(self._waiting, max(0, _MAX_RUNS - self._n_running)))


class Paces:
    """The allowances of addresses for their WebSockets."""

    def __init__(self) -> None:
        self._turns: WeakValueDictionary[str, _Turns] = WeakValueDictionary()
        self._reruns = Budgets(_RERUNS_OF_ALL, _RERUNS_OF_ALL_FULL_IN_S)
        self._messages = Budgets(_MESSAGES_OF_ALL, _MESSAGES_OF_ALL_FULL_IN_S)

    def reruns(self, address: str) -> tuple[Budget, Budget]:
        """Return the allowances of a new session for reruns: its own, and that of its address."""
        return Budget(_RERUNS, _RERUNS_PER_S), self._reruns.get(address)

    def turns(self, address: str) -> _Turns:
        """Return the turns of all pages of an address."""
        found = self._turns.get(address)
        if found is None:
            found = self._turns[address] = _Turns()
        return found

    def messages(self, address: str) -> tuple[Budget, Budget]:
        """Return the allowances of a new session for messages: its own, and that of its address."""
        return Budget(_MESSAGES, _MESSAGES_PER_S), self._messages.get(address)


class Stream:
    """The messages of one WebSocket.

    Parameters
    ----------
    receive, send : callable
        Of the connection.
    dialect : Dialect
        The language of the page.
    paces : Paces
        The allowances of all addresses.
    requests : Budgets
        Allowances for all other messages.
    address : str
        The address of the visitor.
    """

    def __init__(
        self, receive: Receive, send: Send, dialect: Dialect, paces: Paces, requests: Budgets, address: str
    ) -> None:
        self._receive, self._send, self._dialect = receive, send, dialect
        self._requests, self._address = requests, address
        self._reruns, self._messages = paces.reruns(address), paces.messages(address)
        self._turns = paces.turns(address)
        self._coming: asyncio.Task[Message] | None = None
        self._others: deque[Message] = deque()
        self._held: deque[Rerun] = deque()
        self._n_held_bytes = 0
        self._has_clicks = False  # the last request, which the script has not finished
        self._is_taken, self._since = False, 0.0
        self._changed: asyncio.Future[None] | None = None
        self._turn_ends: asyncio.TimerHandle | None = None

    async def receive(self) -> Message:
        """Return the next message of the page, when its time has come."""
        while True:
            if self._others:
                return await self._other()
            wait_s = self._wait_s()
            if wait_s == 0:
                return self._rerun()
            await self._read(wait_s)

    async def send(self, message: Message) -> None:
        """Send a message to the page, and note if it tells of the run."""
        if message.get("bytes"):
            shown, said = self._dialect.filter_message(message["bytes"])
            message = {**message, "bytes": shown}
            if said is Said.BEGUN:
                self._is_taken, self._since = True, time.monotonic()
            elif said is Said.FINISHED and self._is_taken:  # an earlier run may end after the last request
                self._has_clicks = False
                self._end_turn()
            if said is not Said.OTHER:
                self.wake()
        await self._send(message)

    def wake(self) -> None:
        """Look again if a request may go on."""
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)

    def close(self) -> None:
        """Stop to read, and leave the line."""
        if self._coming is not None:
            self._coming.cancel()
        self._turns.leave(self)
        self._end_turn()

    def _end_turn(self) -> None:
        if self._turn_ends is not None:
            self._turn_ends.cancel()
            self._turn_ends = None
            self._turns.give_back()

    async def _other(self) -> Message:
        message = self._others.popleft()
        while message["type"] == "websocket.receive" and (wait_s := self._requests.spend(self._address, 1)):
            await asyncio.sleep(wait_s)
        return message

    def _wait_s(self) -> float | None:
        """Return in how many seconds the first held request may go on; None if none is held."""
        if not self._held:
            return None
        clicks_s = 0.0
        if self._has_clicks:
            clicks_s = self._since + (_CLICK_S if self._is_taken else _TAKEN_S) - time.monotonic()
        wait_s = max(0.0, clicks_s, *(budget.wait_s(1) for budget in self._reruns))
        if wait_s == 0 and self._turn_ends is None and not self._turns.is_free(self):
            return _UNTIL_WOKEN_S
        return wait_s

    def _rerun(self) -> Message:
        rerun = self._held.popleft()
        self._n_held_bytes -= rerun.n_bytes
        for budget in self._reruns:
            budget.charge(1)
        if self._turn_ends is None:
            self._turns.take(self)
        else:
            self._turn_ends.cancel()
        self._turn_ends = asyncio.get_running_loop().call_later(_RUN_S, self._end_turn)
        self._has_clicks, self._is_taken, self._since = rerun.has_clicks, False, time.monotonic()
        return {"type": "websocket.receive", "bytes": rerun.to_bytes()}

    async def _read(self, wait_s: float | None) -> None:
        """Wait for a message, for a change of the run, or for some seconds."""
        self._changed = asyncio.get_running_loop().create_future()
        waited_for: set[asyncio.Future[Message] | asyncio.Future[None]] = {self._changed}
        pause_s = max(budget.wait_s(1) for budget in self._messages)
        # a client that does not wait for its clicks waits to send more of them
        if len(self._held) < _MAX_HELD and self._n_held_bytes < _MAX_HELD_BYTES:
            if pause_s:
                wait_s = pause_s if wait_s is None else min(wait_s, pause_s)
            else:
                if self._coming is None:
                    self._coming = asyncio.ensure_future(self._receive())
                waited_for.add(self._coming)
        await asyncio.wait(waited_for, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
        if self._coming is not None and self._coming.done():
            message, self._coming = self._coming.result(), None
            self._take(message)

    def _take(self, message: Message) -> None:
        data = message.get("bytes")
        if not data:
            self._others.append(message)
            return
        for budget in self._messages:
            budget.charge(1 + len(data) / _BYTES_PER_MESSAGE)
        if not self._dialect.is_of_a_page(data):
            return
        rerun = self._dialect.rerun_of(data)
        if rerun is None:
            self._others.append(message)
            return
        joined = self._held[-1].join(rerun) if self._held else None
        if joined is not None:
            self._n_held_bytes -= self._held.pop().n_bytes
        self._held.append(joined or rerun)
        self._n_held_bytes += self._held[-1].n_bytes
