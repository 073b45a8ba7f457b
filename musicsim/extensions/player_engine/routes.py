"""Routes for players in other programs: ``/rest``, and GET requests from music-server plugins.

The plugins send the token as ``Authorization: Bearer``, or in the address: ``/players/<token>``.
"""

import logging
import re
import secrets
from collections.abc import Callable, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from musicsim.api import checks_token, status_of
from musicsim.errors import MusicsimError, NotFoundError
from musicsim.explorer import open_library
from musicsim.extensions.player_engine.access import player_access
from musicsim.extensions.player_engine.answering import MAX_SONGS, Answering, ForeignMatch, length_of
from musicsim.extensions.player_engine.subsonic import subsonic

_log = logging.getLogger(__name__)

_N_SONGS, _N_PATH, _N_ARTISTS = 10, 25, 10  # default numbers of results


class _RequestError(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def _similar_tracks(answering: Answering, request: Request) -> Any:
    parameters = request.query_params
    has_names = parameters.get("title") and parameters.get("artist")
    if not (parameters.get("item_id") or has_names):
        raise _RequestError(400, "send item_id, or title and artist.")
    try:
        song = answering.song(parameters.get("item_id", ""))
    except NotFoundError:
        if not has_names:
            raise
        song = answering.song_called(parameters["title"], parameters["artist"])
    is_limited = parameters.get("eliminate_duplicates") != "false"
    matches = answering.similar(song, _number(request, "n", _N_SONGS), is_limited=is_limited)
    return [_track(match) for match in matches]


def _find_path(answering: Answering, request: Request) -> Any:
    parameters = request.query_params
    if not (parameters.get("start_song_id") and parameters.get("end_song_id")):
        raise _RequestError(400, "send start_song_id and end_song_id.")
    first, last = (answering.song(parameters[name]) for name in ("start_song_id", "end_song_id"))
    path = answering.path(first, last, _number(request, "max_steps", _N_PATH))
    return {"path": [_track(match) for match in path], "total_distance": round(length_of(answering.snapshot, path), 4)}


def _similar_artists(answering: Answering, request: Request) -> Any:
    name = request.query_params.get("artist") or request.query_params.get("artist_id")
    if not name:
        raise _RequestError(400, "send artist or artist_id.")
    seed = answering.artist(name)
    artists = answering.artists(seed, _number(request, "n", _N_ARTISTS))
    entries: list[dict[str, Any]] = [{"artist": artist.name, "artist_id": ""} for artist in artists]
    if request.query_params.get("include_component_matches") == "true":
        own = _representative(answering.songs_of(seed))
        for entry, artist in zip(entries, artists, strict=True):
            entry["component_matches"] = [
                {"artist1_representative_songs": own, "artist2_representative_songs": _representative(artist.entries)}
            ]
    return entries


def _track(match: ForeignMatch) -> dict[str, Any]:
    song = match.song
    return {
        "item_id": match.id, "title": song.title, "author": song.artist or "", "album": song.album or "",
        "distance": round(1.0 - match.similarity, 4),
    }  # fmt: skip


def _representative(matches: Sequence[ForeignMatch]) -> list[dict[str, str]]:
    return [{"item_id": match.id, "title": match.song.title} for match in matches]


def _number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name) or str(default)
    if not re.fullmatch("[0-9]{1,9}", text, re.ASCII):
        raise _RequestError(400, f"{name} must be an integer.")
    return min(max(int(text), 1), MAX_SONGS)


def _check_token(respond: Callable[[Answering, Request], Any]) -> Callable[[Request], Response]:
    """Return an endpoint that checks the token and converts errors to responses."""

    @checks_token
    def route(request: Request) -> Response:
        try:
            library = open_library()
            access = player_access(library)
            if access is None:
                raise _RequestError(404, "access for players is off. Run `musicsim players` to turn it on.")
            scheme, _, bearer = request.headers.get("Authorization", "").partition(" ")
            token = request.path_params.get("token") or (bearer.strip() if scheme.lower() == "bearer" else "")
            if not secrets.compare_digest(token.encode(), access.token.encode()):
                raise _RequestError(401, "send the token that `musicsim players` shows, as Authorization: Bearer.")
            return JSONResponse(respond(Answering(library, access.rules, (access.token,)), request))
        except _RequestError as error:
            return JSONResponse({"error": str(error)}, error.status)
        except NotFoundError:
            return JSONResponse({"error": "this id or name is not in the library."}, 404)
        except MusicsimError as error:
            _log.warning("%s", error)
            message = "the library cannot be searched right now. The app's log says why."
            return JSONResponse({"error": message}, status_of(error))

    return route


_BACK_END: dict[str, Callable[[Answering, Request], Any]] = {
    "similar_tracks": _similar_tracks,
    "find_path": _find_path,
    "similar_artists": _similar_artists,
    "health": lambda *_: {"status": "ok"},
}


def players_routes(prefix: str = "") -> list[BaseRoute]:
    """Return the routes under `prefix`, which begins with a slash or is empty; list them before the ``/api`` routes."""
    routes: list[BaseRoute] = [Route(prefix + "/rest/{method}", subsonic, methods=["GET", "POST"])]
    for address in ("", "/players/{token}"):
        routes += [Route(f"{prefix}{address}/api/{name}", _check_token(respond)) for name, respond in _BACK_END.items()]
    return routes
