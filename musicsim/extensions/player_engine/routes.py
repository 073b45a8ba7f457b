"""Routes for players of other programs: ``/rest``, and three GETs that plugins of music servers send to an engine.

The plugins of Navidrome, Jellyfin, Ampache and Lyrion ask for ``/api/similar_tracks``, ``/api/find_path`` and
``/api/similar_artists`` at an address that is set in them. They show the token as ``Authorization: Bearer``; a plugin
that cannot do so is given an address with the token in it, ``/players/<token>``.
"""

import logging
import re
import secrets
from collections.abc import Callable, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from musicsim.errors import MusicsimError, NotFoundError
from musicsim.explorer.libraries import open_library
from musicsim.extensions.player_engine.access import player_access
from musicsim.extensions.player_engine.answering import MAX_SONGS, Answering, Match, length_of
from musicsim.extensions.player_engine.subsonic import subsonic

_log = logging.getLogger(__name__)

_N_SONGS, _N_PATH, _N_ARTISTS = 10, 25, 10  # where no number is asked for


class _Refusal(Exception):
    def __init__(self, status: int, error: str) -> None:
        super().__init__(error)
        self.status = status


def _similar_tracks(answering: Answering, asked: Request) -> Any:
    given = asked.query_params
    has_names = given.get("title") and given.get("artist")
    if not (given.get("item_id") or has_names):
        raise _Refusal(400, "say which song by item_id, or by title and artist.")
    try:
        song = answering.song(given.get("item_id", ""))
    except NotFoundError:
        if not has_names:
            raise
        song = answering.song_called(given["title"], given["artist"])
    is_limited = given.get("eliminate_duplicates") != "false"
    found = answering.similar(song, _number(asked, "n", _N_SONGS), is_limited=is_limited)
    return [_track(match) for match in found]


def _find_path(answering: Answering, asked: Request) -> Any:
    given = asked.query_params
    if not (given.get("start_song_id") and given.get("end_song_id")):
        raise _Refusal(400, "say which songs by start_song_id and end_song_id.")
    first, last = (answering.song(given[name]) for name in ("start_song_id", "end_song_id"))
    path = answering.path(first, last, _number(asked, "max_steps", _N_PATH))
    return {"path": [_track(match) for match in path], "total_distance": round(length_of(answering.snapshot, path), 4)}


def _similar_artists(answering: Answering, asked: Request) -> Any:
    given = asked.query_params
    name = given.get("artist") or given.get("artist_id")
    if not name:
        raise _Refusal(400, "say which artist by artist.")
    artist = answering.artist(name)
    found = answering.artists(artist, _number(asked, "n", _N_ARTISTS))
    answer: list[dict[str, Any]] = [{"artist": one.name, "artist_id": ""} for one in found]
    if given.get("include_component_matches") == "true":
        own = _representative(answering.songs_of(artist))
        for entry, one in zip(answer, found, strict=True):
            entry["component_matches"] = [
                {"artist1_representative_songs": own, "artist2_representative_songs": _representative(one.entries)}
            ]
    return answer


def _health(_: Answering, __: Request) -> Any:
    return {"status": "ok"}


def _track(match: Match) -> dict[str, Any]:
    song = match.song
    return {
        "item_id": match.id, "title": song.title, "author": song.artist or "", "album": song.album or "",
        "distance": round(1.0 - match.similarity, 4),
    }  # fmt: skip


def _representative(matches: Sequence[Match]) -> list[dict[str, str]]:
    return [{"item_id": match.id, "title": match.song.title} for match in matches]


def _number(asked: Request, name: str, default: int) -> int:
    text = asked.query_params.get(name) or str(default)
    if not re.fullmatch("[0-9]{1,9}", text, re.ASCII):
        raise _Refusal(400, f"{name} should be a whole number.")
    return min(max(int(text), 1), MAX_SONGS)


def _answered(answer: Callable[[Answering, Request], Any]) -> Callable[[Request], Response]:
    """A route for whoever shows the token."""

    def route(request: Request) -> Response:
        try:
            library = open_library()
            access = player_access(library)
            if access is None:
                raise _Refusal(404, "players are not answered here: see `musicsim players`.")
            shown = request.path_params.get("token") or _bearer(request)
            if not secrets.compare_digest(shown.encode(), access.token.encode()):
                raise _Refusal(401, "send the token that `musicsim players` shows, as Authorization: Bearer.")
            return JSONResponse(answer(Answering(library, access.rules), request))
        except _Refusal as refusal:
            return JSONResponse({"error": str(refusal)}, refusal.status)
        except NotFoundError:
            return JSONResponse({"error": "there is nothing of this id or name here."}, 404)
        except MusicsimError as error:
            _log.warning("%s", error)
            return JSONResponse({"error": "the library cannot answer now. The app's log says why."}, 409)

    return route


def _bearer(request: Request) -> str:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


_BACK_END = {
    "similar_tracks": _similar_tracks,
    "find_path": _find_path,
    "similar_artists": _similar_artists,
    "health": _health,
}


def players_routes(prefix: str = "") -> list[BaseRoute]:
    """The routes below a path that begins with a slash, or at the root; before those of ``/api``."""
    found: list[BaseRoute] = [Route(prefix + "/rest/{method}", subsonic, methods=["GET", "POST"])]
    for address in ("", "/players/{token}"):
        found += [Route(f"{prefix}{address}/api/{name}", _answered(answer)) for name, answer in _BACK_END.items()]
    return found
