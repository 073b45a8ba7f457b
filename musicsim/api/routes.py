"""Routes that stand beside Streamlit: ``/songs/{id}/audio``, ``/songs/{id}/peaks`` and ``/api``."""

from functools import cache
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from musicsim.api.waiting import outcome
from musicsim.audio import media_type, plays_in_browser
from musicsim.errors import MusicsimError, NotFoundError
from musicsim.explorer.libraries import open_library
from musicsim.library.decoding import Decoding, decoder
from musicsim.library.playable import PlayableCopies

if TYPE_CHECKING:  # the store takes most of a second to import
    from musicsim.library import Library, Song

__all__ = ["routes"]

_copies = PlayableCopies(decoder())


async def _audio(request: Request) -> Response:
    """The sound of a song, with byte ranges; a copy that browsers play where they cannot play the file."""
    try:
        library, song = await run_in_threadpool(_song, request)
        if not await run_in_threadpool(song.path.is_file):
            return JSONResponse({"error": f"{song.path}: the file has gone. Scan its folder again."}, 410)
        path = song.path
        # a look into a file that was decoded whole by a worker when it became a song
        if not await run_in_threadpool(plays_in_browser, path):
            copy = await run_in_threadpool(_copies.copy_of, library, song)
            path = await outcome(copy, request) if isinstance(copy, Decoding) else copy
        return FileResponse(path, media_type=media_type(path))
    except NotFoundError as error:
        return JSONResponse({"error": str(error)}, 404)
    except (MusicsimError, OSError) as error:
        return JSONResponse({"error": str(error)}, 500)
    except ClientDisconnect:
        return Response(status_code=499)


def _song(request: Request) -> "tuple[Library, Song]":
    library = open_library(request.query_params.get("library"))
    return library, library.song(request.path_params["song_id"])


def _peaks(request: Request) -> Response:
    """The outline of a song: a list of numbers from 0 to 1."""
    song_id = request.path_params["song_id"]
    try:
        outline = open_library(request.query_params.get("library")).outline(song_id)
    except NotFoundError as error:
        return JSONResponse({"error": str(error)}, 404)
    except OverflowError:  # no id is of more than 64 bits
        return JSONResponse({"error": f"there is no song {song_id}."}, 404)
    headers = {"Cache-Control": "max-age=86400"}
    return JSONResponse([round(float(peak), 3) for peak in outline], headers=headers)


@cache
def _interface() -> ASGIApp:
    from musicsim.api.http import http_interface

    return http_interface()


async def _when_first_asked(scope: Scope, receive: Receive, send: Send) -> None:
    """The HTTP interface; made at the first request, so that pages come up without waiting for it."""
    await _interface()(scope, receive, send)


def routes(base: str = "") -> list[BaseRoute]:
    """Routes for ``st.App``.

    Parameters
    ----------
    base : str
        The path the app is served under (``server.baseUrlPath``), which Streamlit adds to its own routes only.
    """
    prefix = f"/{base.strip('/')}" if base.strip("/") else ""
    return [
        Route(prefix + "/songs/{song_id:int}/audio", _audio),
        Route(prefix + "/songs/{song_id:int}/peaks", _peaks),
        Mount(prefix + "/api", _when_first_asked),
    ]
