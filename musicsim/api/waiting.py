"""Requests that wait for a worker without holding a thread of the server."""

import asyncio
from typing import TypeVar

from starlette.requests import ClientDisconnect, Request

from musicsim.library.processes.decoding import Decoding

T = TypeVar("T")

_POLL_S = 1.0


async def wait_for(decoding: Decoding[T], request: Request) -> T:
    """Return the result of some work.

    Raises ClientDisconnect if the client leaves first; the work is dropped unless another request waits for it.
    """
    future = asyncio.wrap_future(decoding.future)
    while not future.done():
        decoding.keep()
        await asyncio.wait([future], timeout=_POLL_S)
        if not future.done() and await request.is_disconnected():
            raise ClientDisconnect
    return future.result()
