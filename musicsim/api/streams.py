"""Rate limits for the WebSockets of visitors' pages, so that one visitor cannot block the app for the others.

Streamlit runs a page's script one run after the other, and merges requests for a run that wait. It therefore suffices
to delay a page's messages: while a message waits, the server stops reading from the connection.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from starlette.types import Message, Receive, Scope, Send

from musicsim.api.budgets import Budget, Budgets

# per session: thirty quick clicks use half of it, and a page that updates itself reruns twice per second
RERUNS, RERUNS_PER_S = 60.0, 3.0
# per address: sixty visitors in a lecture hall click 15 times per second
RERUNS_OF_ALL, RERUNS_OF_ALL_FULL_IN_S = 600.0, 30.0
# limits on messages from a page, because parsing them takes time, too
MESSAGES, _MESSAGES_PER_S = 1_000.0, 500.0
MESSAGES_OF_ALL, _MESSAGES_OF_ALL_FULL_IN_S = 4_000.0, 4.0
_BYTES_PER_MESSAGE = 10_000  # a larger message counts as several
FIRST_S = 10.0  # time for a page to send its first message
TRY_AGAIN_LATER = 1013  # status of a WebSocket


class MessageDialect(NamedTuple):
    """Functions that interpret the messages between pages and the app."""

    is_of_a_page: Callable[[bytes], bool]  # True if pages may send this message; others are dropped
    is_rerun: Callable[[bytes], bool] = lambda message: False
    """Return whether a message asks to run the page's script."""
    filter_message: Callable[[bytes], bytes] = lambda message: message
    """Return a message to a page without data that pages must not see."""
    is_reconnection: Callable[[Scope], bool] = lambda scope: False
    """Return whether a page opens its WebSocket again; it then has nothing to send until the next click."""


class Paces:
    """The limits on the WebSockets of all addresses."""

    def __init__(self) -> None:
        self.reruns = Budgets(RERUNS_OF_ALL, RERUNS_OF_ALL_FULL_IN_S)
        self.messages = Budgets(MESSAGES_OF_ALL, _MESSAGES_OF_ALL_FULL_IN_S)


class Stream:
    """The messages of one WebSocket; `paces` limits reruns for each address, and `requests` limits other messages.

    A page leaves if it does not send its first message in time, unless it `is_reconnected`.

    Attributes
    ----------
    last_heard : float
        Time of the page's last message, or of its arrival.
    """

    def __init__(
        self,
        receive: Receive,
        send: Send,
        dialect: MessageDialect,
        paces: Paces,
        requests: Budgets,
        address: str,
        *,
        is_reconnected: bool = False,
    ) -> None:
        loop = asyncio.get_running_loop()
        self._receive, self._send, self._dialect = receive, send, dialect
        self.last_heard = time.monotonic()
        self._leaving: asyncio.Future[None] = loop.create_future()
        self._first_due = None if is_reconnected else loop.call_later(FIRST_S, self.leave)
        # one budget for the session, one for its address
        self._messages = (Budget(MESSAGES, _MESSAGES_PER_S), paces.messages.get(address))
        self._reruns = (Budget(RERUNS, RERUNS_PER_S), paces.reruns.get(address))
        self._requests = (requests.get(address),)

    @property
    def is_leaving(self) -> bool:
        """True if the page has to leave: the app has seen or will see the end of the connection."""
        return self._leaving.done()

    async def receive(self) -> Message:
        """Return the page's next message when it is due."""
        while (message := await self._read()) is not None:
            if message["type"] != "websocket.receive":
                return message
            kind: Sequence[Budget] = self._requests
            if data := message.get("bytes"):
                self._end_first_wait()
                self.last_heard = time.monotonic()
                await self._pay(self._messages, 1 + len(data) / _BYTES_PER_MESSAGE)
                if not self._dialect.is_of_a_page(data):
                    continue
                kind = self._reruns if self._dialect.is_rerun(data) else self._requests
            await self._pay(kind, 1)
            if not self.is_leaving:
                return message
        return {"type": "websocket.disconnect", "code": TRY_AGAIN_LATER}

    async def send(self, message: Message) -> None:
        """Send a message to the page."""
        if self.is_leaving:
            return
        if data := message.get("bytes"):
            message = {**message, "bytes": self._dialect.filter_message(data)}
        await self._send(message)

    def leave(self) -> None:
        """Let the app see the end of the connection, after which the WebSocket can be closed."""
        if not self.is_leaving:
            self._leaving.set_result(None)

    def close(self) -> None:
        """Stop waiting for the first message."""
        self._end_first_wait()

    def _end_first_wait(self) -> None:
        if self._first_due is not None:
            self._first_due.cancel()
            self._first_due = None

    async def _read(self) -> Message | None:
        """Return the next message, or None if the page has to leave."""
        coming = asyncio.ensure_future(self._receive())
        try:
            waited: set[asyncio.Future[Any]] = {coming, self._leaving}
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            return coming.result() if coming.done() and not self.is_leaving else None
        finally:
            coming.cancel()

    async def _pay(self, budgets: Sequence[Budget], cost: float) -> None:
        """Wait until a cost is affordable, or until the page has to leave, and charge it."""
        while not self.is_leaving and (pause_s := max(budget.wait_s(cost) for budget in budgets)):
            await asyncio.wait({self._leaving}, timeout=pause_s)
        for budget in budgets:
            budget.charge(cost)
