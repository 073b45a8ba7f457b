"""Requests that wait for a worker without holding a thread of the server."""

import asyncio
from typing import TypeVar

from starlette.requests import ClientDisconnect, Request

from musicsim.library.processes.decoding import Decoding

T = TypeVar("T")

_LOOK_EVERY_S = 1.0


async def outcome(decoding: Decoding[T], request: Request) -> T:
    """What comes of some work, for as long as the client of the request stays.

    Raises
    ------
    ClientDisconnect
        If it has gone; the work is dropped unless somebody else waits for it.
    """
    future = asyncio.wrap_future(decoding.future)
    while not future.done():
        decoding.keep()
        await asyncio.wait([future], timeout=_LOOK_EVERY_S)
        if not future.done() and await request.is_disconnected():
            raise ClientDisconnect
    return future.result()
