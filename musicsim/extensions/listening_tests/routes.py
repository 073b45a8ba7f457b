"""The page of a listening test, which shows only the test's pairs; the token in the link identifies the listener."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route

from musicsim.api import respond_with_song
from musicsim.errors import MusicsimError, NotFoundError, OwnerOnlyError
from musicsim.explorer import open_library
from musicsim.extensions.listening_tests.taking_part import TakingPart
from musicsim.library import Library, Song
from musicsim.public import visitor_may

_ASSETS = Path(__file__).parent / "assets"
_MAX_BODY = 1_000  # bytes
_HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff"}
_PAGE_HEADERS = _HEADERS | {
    "X-Robots-Tag": "noindex",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; media-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
}


def _open(request: Request) -> TakingPart:
    return TakingPart(open_library(request.query_params.get("library")), request.path_params["token"])


def _error_response(error: Exception) -> JSONResponse:
    if isinstance(error, NotFoundError):
        status, text = 404, "this link is not valid, or this pair is not available right now."
    elif isinstance(error, OwnerOnlyError):
        status, text = 403, str(error)
    elif isinstance(error, ValueError):
        status, text = 422, "this grade is not valid."
    else:
        status, text = 500, "the test cannot be opened right now. Try again later."
    return JSONResponse({"error": text}, status, _HEADERS)


def _respond(work: Callable[[], Any]) -> Response:
    try:
        return JSONResponse(work(), headers=_HEADERS)
    except (MusicsimError, ValueError) as error:
        return _error_response(error)


@visitor_may
def _page(request: Request) -> Response:
    return FileResponse(_ASSETS / "listen.html", headers=_PAGE_HEADERS)


@visitor_may
def _state(request: Request) -> Response:
    """Return the page's data for a position in the listener's order, or for the first pair without a grade."""
    place = request.query_params.get("place")
    return _respond(lambda: _open(request).state(None if place is None else int(place)))


@visitor_may
def _consent(request: Request) -> Response:
    return _respond(lambda: _open(request).consent())


@visitor_may
async def _grade(request: Request) -> Response:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BODY:
            return _error_response(ValueError())

    def save() -> dict[str, Any]:
        content = json.loads(body)
        values = [content.get(name) for name in ("place", "category", "fine")] if isinstance(content, dict) else [None]
        if type(values[0]) is not int or any(value is not None and type(value) is not int for value in values):
            raise ValueError("place, category and fine must be integers")
        return _open(request).grade(*values)

    return await run_in_threadpool(_respond, save)


@visitor_may
async def _sound(request: Request) -> Response:
    """Return the audio of one song in a pair; errors do not reveal the song's name."""

    def find() -> tuple[Library, Song]:
        part = _open(request)
        return part.library, part.song(request.path_params["place"], request.path_params["side"])

    try:
        library, song = await run_in_threadpool(find)
    except MusicsimError as error:
        return _error_response(error)
    response = await respond_with_song(request, library, song)
    if response.status_code >= 400 and response.status_code != 416:
        return JSONResponse({"error": "this song cannot be played."}, response.status_code, _HEADERS)
    response.headers["Cache-Control"] = "private, no-store"
    return response


@visitor_may
def _asset(request: Request) -> Response:
    return FileResponse(_ASSETS / Path(request.url.path).name, headers={"Cache-Control": "no-cache"})


def listen_routes(prefix: str = "") -> list[BaseRoute]:
    """Return the routes for ``st.App`` under a path (see :func:`musicsim.api.path_prefix`)."""
    listener = prefix + "/listen/{token}"
    return [
        *(Route(f"{prefix}/{name}", _asset) for name in ("listen.css", "listen.js")),
        Route(listener, _page),
        Route(listener + "/state", _state),
        Route(listener + "/consent", _consent, methods=["POST"]),
        Route(listener + "/grades", _grade, methods=["POST"]),
        Route(listener + "/sound/{place:song_id}/{side:song_id}", _sound),
    ]
