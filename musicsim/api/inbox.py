"""The messages of a WebSocket, for middleware that holds some of them."""

import asyncio

from starlette.types import Message, Receive


class Inbox:
    """Reads the messages of a WebSocket one by one; a wait for the next message can end early."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._coming: asyncio.Task[Message] | None = None
        self._woken: asyncio.Future[None] | None = None

    async def read(self, wait_s: float | None = None, *, is_open: bool = True) -> Message | None:
        """Return the next message, or None after `wait_s` seconds or :meth:`wake`; if not `is_open`, only wait."""
        self._woken = asyncio.get_running_loop().create_future()
        awaited: set[asyncio.Future[Message] | asyncio.Future[None]] = {self._woken}
        if is_open:
            if self._coming is None:
                self._coming = asyncio.ensure_future(self._receive())
            awaited.add(self._coming)
        await asyncio.wait(awaited, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
        if self._coming is None or not self._coming.done():
            return None
        message, self._coming = self._coming.result(), None
        return message

    def wake(self) -> None:
        """End the wait of :meth:`read`."""
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    def close(self) -> None:
        """Stop reading."""
        if self._coming is not None:
            self._coming.cancel()
