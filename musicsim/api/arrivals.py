"""Request bodies, received completely before they are processed.

A slow upload therefore takes up only a socket and a temporary file, and does not block other requests.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import IO

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse, Response
from starlette.types import Message, Receive

GRACE_S = 60.0
LEAST_PER_S = 50_000  # bytes; most uplinks are faster, and a 20 MB file can take seven minutes
_IN_MEMORY = 1 << 17  # bytes per body; larger ones go to a temporary file
_PART = 1 << 18  # bytes per read or write; a thread call per received chunk would take longer than writing it
_RETRY_AFTER_S = 15


class Refused(Exception):
    """A request was refused; `response` is the response to send."""

    def __init__(self, status: int, message: str, wait_s: float = 0.0) -> None:
        super().__init__(message)
        headers = {"Retry-After": str(max(1, round(wait_s)))} if wait_s else {}
        self.response: Response = PlainTextResponse(message, status, headers)


class TooManyFiles(Refused):
    """A file arrived while the server was busy with too many others."""

    def __init__(self) -> None:
        super().__init__(503, "too many files are being uploaded.", _RETRY_AFTER_S)


class ArrivedBody:
    """A request body that has arrived completely."""

    def __init__(self, file: IO[bytes], n_bytes: int, receive: Receive) -> None:
        self._file, self._n_left, self._receive = file, n_bytes, receive
        self._is_finished = False

    async def receive(self) -> Message:
        """Return the next part of the body; after the last part, return later messages from the connection."""
        if self._is_finished:
            return await self._receive()
        data = await run_in_threadpool(self._file.read, _PART) if self._n_left else b""
        self._n_left -= len(data)
        self._is_finished = self._n_left <= 0
        return {"type": "http.request", "body": data, "more_body": not self._is_finished}


class Arrivals:
    """All request bodies that are arriving or waiting to be processed; their total size is at most `max_bytes`."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes, self._n_bytes = max_bytes, 0

    @asynccontextmanager
    async def body(self, receive: Receive, max_bytes: int) -> AsyncIterator[ArrivedBody]:
        """Receive a request body, within one minute plus one second per 50 kB.

        Raises Refused if the body is too slow or too large, or if all bodies together are too large; raises
        ClientDisconnect if the client disconnects.
        """
        n_bytes = 0
        try:
            with tempfile.SpooledTemporaryFile(_IN_MEMORY) as file:
                started, is_open = time.monotonic(), True
                unwritten = bytearray()
                while is_open:
                    message = await _receive_before(receive, started + GRACE_S + n_bytes / LEAST_PER_S)
                    chunk = message.get("body", b"")
                    n_bytes += len(chunk)
                    self._n_bytes += len(chunk)
                    if n_bytes > max_bytes:
                        raise Refused(413, "the file is too large: send a part of it.")
                    if self._n_bytes > self._max_bytes:
                        raise TooManyFiles
                    unwritten += chunk
                    is_open = message.get("more_body", False)
                    if file.tell() + len(unwritten) <= _IN_MEMORY:
                        file.write(unwritten)
                        unwritten.clear()
                    elif len(unwritten) >= _PART or not is_open:
                        await run_in_threadpool(file.write, unwritten)
                        unwritten = bytearray()
                file.seek(0)
                yield ArrivedBody(file, n_bytes, receive)
        finally:
            self._n_bytes -= n_bytes


async def _receive_before(receive: Receive, deadline: float) -> Message:
    try:
        message = await asyncio.wait_for(receive(), max(0.0, deadline - time.monotonic()))
    except TimeoutError:
        refused = Refused(408, "the file arrived too slowly: send a smaller part of it.")
        refused.response.headers["Connection"] = "close"
        raise refused from None
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    return message
