"""What the link of a listening test leads to: a page of its own, which shows and names nothing but the pairs.

Whoever has the link is the listener that its token names; no other page, song or name can be had by it.
"""

import json
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route

from musicsim.api.routes import sound_of
from musicsim.errors import MusicsimError, NotFoundError, OwnerOnlyError
from musicsim.explorer.libraries import open_library
from musicsim.extensions.listening_tests.taking_part import TakingPart
from musicsim.library import Library
from musicsim.public import visitor_may

_ASSETS = Path(__file__).parent / "assets"
_MAX_BODY = 1_000  # bytes
_HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff"}
_PAGE_HEADERS = _HEADERS | {
    "X-Robots-Tag": "noindex",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; media-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
}


def _part(request: Request) -> tuple[Library, TakingPart]:
    library = open_library(request.query_params.get("library"))
    return library, TakingPart(library, request.path_params["token"])


def _refused(error: Exception) -> JSONResponse:
    if isinstance(error, NotFoundError):
        status, words = 404, "this link leads to no listening test, or to no pair that is to be heard now."
    elif isinstance(error, OwnerOnlyError):
        status, words = 403, str(error)
    elif isinstance(error, ValueError):
        status, words = 422, "this is no grade."
    else:
        status, words = 500, "the test cannot be opened now. Try again later."
    return JSONResponse({"error": words}, status, _HEADERS)


@visitor_may
def _page(request: Request) -> Response:
    return FileResponse(_ASSETS / "listen.html", headers=_PAGE_HEADERS)


@visitor_may
def _state(request: Request) -> Response:
    """What the page shows, at a place of the listener's order or at the first pair without a grade."""
    try:
        place = request.query_params.get("place")
        _, part = _part(request)
        return JSONResponse(part.state(None if place is None else int(place)), headers=_HEADERS)
    except (MusicsimError, ValueError) as error:
        return _refused(error)


@visitor_may
def _consent(request: Request) -> Response:
    try:
        _, part = _part(request)
        part.consent()
        return JSONResponse(part.state(), headers=_HEADERS)
    except MusicsimError as error:
        return _refused(error)


@visitor_may
async def _grade(request: Request) -> Response:
    """Keep a grade, ``{"place", "category", "fine"}``; gives the state after it."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BODY:
            return _refused(ValueError())

    def keep() -> dict[str, Any]:
        place, category, fine = _numbers(json.loads(body))
        _, part = _part(request)
        part.grade(place, category, fine)
        return part.state()

    try:
        return JSONResponse(await run_in_threadpool(keep), headers=_HEADERS)
    except (MusicsimError, ValueError) as error:
        return _refused(error)


def _numbers(said: Any) -> tuple[int, int | None, int | None]:
    """The place and the grade. Raises ValueError for anything else than whole numbers, or null in the grade's place."""
    if not isinstance(said, dict) or type(said.get("place")) is not int:
        raise ValueError("the place of a pair is missing")
    category, fine = said.get("category"), said.get("fine")
    if any(value is not None and type(value) is not int for value in (category, fine)):
        raise ValueError("a grade is two whole numbers")
    return said["place"], category, fine


@visitor_may
async def _sound(request: Request) -> Response:
    """The sound of a song of a pair; what is wrong with it names no song."""
    at = request.path_params

    def find() -> tuple[Library, Any]:
        library, part = _part(request)
        return library, part.song(at["place"], at["side"])

    try:
        library, song = await run_in_threadpool(find)
    except MusicsimError as error:
        return _refused(error)
    found = await sound_of(request, library, song)
    if found.status_code >= 400 and found.status_code != 416:
        return JSONResponse({"error": "this song cannot be played."}, found.status_code, _HEADERS)
    found.headers["Cache-Control"] = "private, no-store"
    return found


@visitor_may
def _asset(request: Request) -> Response:
    return FileResponse(_ASSETS / Path(request.url.path).name, headers={"Cache-Control": "no-cache"})


def listen_routes(prefix: str = "") -> list[BaseRoute]:
    """Routes for ``st.App``.

    Parameters
    ----------
    prefix : str
        The path the app is served under, as :func:`musicsim.api.path_prefix` writes it.
    """
    listener = prefix + "/listen/{token}"
    return [
        *(Route(f"{prefix}/{name}", _asset) for name in ("listen.css", "listen.js")),
        Route(listener, _page),
        Route(listener + "/state", _state),
        Route(listener + "/consent", _consent, methods=["POST"]),
        Route(listener + "/grades", _grade, methods=["POST"]),
        Route(listener + "/sound/{place:song_id}/{side:song_id}", _sound),
    ]
