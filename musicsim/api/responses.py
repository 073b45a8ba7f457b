"""Helpers shared by several routes: permissions, byte ranges of audio, ETags, errors, and waiting for a worker."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, TypeVar, cast

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from musicsim.errors import AudioError, LibraryAwayError, LibraryError, MusicsimError, NotFoundError, OwnerOnlyError
from musicsim.library.processes.decoding import Decoding
from musicsim.public import is_allowed, safe_message

T = TypeVar("T")


class Refusal(HTTPException):
    """A refused request; its response has an `error` instead of a `detail`."""


_log = logging.getLogger(__name__)
_POLL_S = 1.0
_MAX_BYTES = 4 << 20  # bytes per response, because browsers request the entire rest of a file
_RANGE = re.compile(r"bytes=([0-9]{1,15})-([0-9]{0,15})")


def filter_routes(routes: Sequence[BaseRoute]) -> list[BaseRoute]:
    """Return the routes that the current user may call; for visitors, those marked with `visitor_may`."""
    return [route for route in routes if is_allowed(getattr(route, "endpoint", None) or getattr(route, "app", None))]


def parse_range(request: Request) -> tuple[int, int] | None:
    """Return the first requested byte and the end (exclusive), or None if no range is requested."""
    match = _RANGE.fullmatch(request.headers.get("Range", ""))
    if match is None:
        return None
    start = int(match[1])
    return start, min(int(match[2]) + 1 if match[2] else start + _MAX_BYTES, start + _MAX_BYTES)


def respond_with_sound(data: bytes, span: tuple[int, int] | None, n_bytes: int, kind: str) -> Response:
    """Return a response with a whole file or its range `span`; if `data` is empty, the range is past the end."""
    headers = {"Accept-Ranges": "bytes", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    if span is None:
        return Response(data, media_type=kind, headers=headers)
    if not data:
        return Response(status_code=416, headers={"Content-Range": f"bytes */{n_bytes}"})
    headers["Content-Range"] = f"bytes {span[0]}-{span[0] + len(data) - 1}/{n_bytes}"
    return Response(data, 206, headers, kind)


def is_known(request: Request, tag: str) -> bool:
    """Return whether the browser already has the content with this ETag, which a proxy may have made weak."""
    known = request.headers.get("If-None-Match", "").split(",")
    return tag in [known_tag.strip().removeprefix("W/") for known_tag in known]


def status_of(error: MusicsimError) -> int:
    """Return the HTTP status for an error."""
    kinds = {NotFoundError: 404, AudioError: 422, OwnerOnlyError: 403, LibraryAwayError: 503}
    return next((status for kind, status in kinds.items() if isinstance(error, kind)), 409)


def convert_errors(endpoint: Callable[[Request], Any]) -> Callable[[Request], Awaitable[Response]]:
    """Make an endpoint respond with an error if a library or song does not exist, or the library cannot be opened."""

    @wraps(endpoint)
    async def respond(request: Request) -> Response:
        try:
            answer = endpoint(request) if iscoroutinefunction(endpoint) else run_in_threadpool(endpoint, request)
            return cast(Response, await answer)
        except (NotFoundError, LibraryAwayError) as error:
            return JSONResponse({"error": safe_message(error)}, status_of(error))
        except LibraryError as error:
            _log.warning("%s", error)
            return JSONResponse({"error": "the library cannot be opened. The app's log says why."}, 500)
        except ClientDisconnect:
            return Response(status_code=499)

    return respond


async def wait_for(decoding: Decoding[T], request: Request) -> T:
    """Return the result of a decoding task; raise ClientDisconnect if the client disconnects first."""
    future = asyncio.wrap_future(decoding.future)
    while not future.done():
        decoding.keep()
        await asyncio.wait([future], timeout=_POLL_S)
        if not future.done() and await request.is_disconnected():
            raise ClientDisconnect
    return future.result()
