"""Bodies of requests, received whole before anything else is done for them.

A slow body costs a socket and a temporary file, and no place that others wait for.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import IO

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive

_GRACE_S = 60.0
_LEAST_PER_S = 50_000  # bytes: below what the slowest uplinks do; 20 MB have seven minutes
_IN_MEMORY = 1 << 17  # bytes per body; larger ones go to a temporary file
_PART = 1 << 18  # bytes that are read or written at once: a thread for each chunk takes longer than the disk


class TooSlowError(Exception):
    """A body did not arrive in time."""


class TooLargeError(Exception):
    """A body is larger than the limit."""


class TooManyError(Exception):
    """All bodies together have reached their limit."""


class Body:
    """A body that has arrived."""

    def __init__(self, file: IO[bytes], n_bytes: int, receive: Receive) -> None:
        self._file, self._n_left, self._receive = file, n_bytes, receive
        self._is_told = False

    async def receive(self) -> Message:
        """Give the body part by part, then what the connection tells."""
        if self._is_told:
            return await self._receive()
        data = await run_in_threadpool(self._file.read, _PART) if self._n_left else b""
        self._n_left -= len(data)
        self._is_told = self._n_left <= 0
        return {"type": "http.request", "body": data, "more_body": not self._is_told}


class Arrivals:
    """All bodies that arrive or wait to be processed.

    Parameters
    ----------
    max_bytes : int
        That they have together.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes, self._n_bytes = max_bytes, 0

    @asynccontextmanager
    async def body(self, receive: Receive, max_bytes: int) -> AsyncIterator[Body]:
        """Receive the body of a request.

        It has a minute, and longer for as long as 50 kB come per second.

        Raises
        ------
        TooSlowError
            If it takes longer.
        TooLargeError
            If it has more than `max_bytes`.
        TooManyError
            If all bodies together have too many bytes.
        ClientDisconnect
            If the client leaves.
        """
        n_bytes = 0
        try:
            with tempfile.SpooledTemporaryFile(_IN_MEMORY) as file:
                started, is_open = time.monotonic(), True
                waiting = bytearray()
                while is_open:
                    message = await _receive_before(receive, started + _GRACE_S + n_bytes / _LEAST_PER_S)
                    chunk = message.get("body", b"")
                    n_bytes += len(chunk)
                    self._n_bytes += len(chunk)
                    if n_bytes > max_bytes:
                        raise TooLargeError
                    if self._n_bytes > self._max_bytes:
                        raise TooManyError
                    waiting += chunk
                    is_open = message.get("more_body", False)
                    if len(waiting) >= _PART or not is_open:
                        await _write(file, waiting)
                        waiting = bytearray()
                file.seek(0)
                yield Body(file, n_bytes, receive)
        finally:
            self._n_bytes -= n_bytes


async def _receive_before(receive: Receive, deadline: float) -> Message:
    try:
        message = await asyncio.wait_for(receive(), max(0.0, deadline - time.monotonic()))
    except TimeoutError:
        raise TooSlowError from None
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    return message


async def _write(file: IO[bytes], data: bytes | bytearray) -> None:
    if file.tell() + len(data) <= _IN_MEMORY:
        file.write(data)
    else:
        await run_in_threadpool(file.write, data)
