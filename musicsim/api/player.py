"""Requests of the player other than songs: the songs that continue a queue, and plays and skips."""

import json

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from musicsim.api.responses import status_of
from musicsim.errors import LibraryAwayError, MusicsimError
from musicsim.explorer import PlaylistRequest, open_library, share_walk, snapshot_under
from musicsim.explorer.playlists.queue import continue_queue
from musicsim.explorer.playlists.tracks import make_queue_tracks, render_track
from musicsim.public import safe_message, visitor_may

_N_FOLLOWING = 5


@visitor_may
def _radio(request: Request) -> Response:
    """Return the tracks of a walk from a song, each with its reason, without songs that were played recently."""
    query = request.query_params
    try:
        first, recent = int(query["song"]), [int(song) for song in query.getlist("lately")]
    except (KeyError, ValueError):
        return JSONResponse({"error": "give the id of a song as `song`, and recently played ids as `lately`."}, 422)
    try:
        library = open_library(query.get("library"))
        snapshot = snapshot_under(library, query.get("model"))
        excluded = frozenset(recent[: snapshot.n_indexed // 2])  # the latest songs come first
        asked = PlaylistRequest(length=_N_FOLLOWING + 1, first=first, exclude=excluded)
        items = continue_queue(share_walk(snapshot), asked)
    except MusicsimError as error:
        is_away = isinstance(error, LibraryAwayError)
        message = safe_message(error) if is_away else "no song can follow this one."
        return JSONResponse({"error": message}, status_of(error))
    following = [render_track(track) for track in make_queue_tracks(library, items) if not track.is_missing]
    return Response(json.dumps(following), media_type="application/json")  # folder names may not be UTF-8


def _plays(request: Request) -> Response:
    """Store a play or a skip; ``musicsim/web/player/engine.js`` has the rules for both."""
    query = request.query_params
    song, kind = query.get("song", ""), query.get("kind")
    if not _is_number(song) or kind not in ("play", "skip"):
        return JSONResponse({"error": "give the id of a song as `song`, and play or skip as `kind`."}, 422)
    details = {name: int(query[name]) for name in ("choice", "seconds") if _is_number(query.get(name, ""))}
    try:
        library = open_library(query.get("library"))
        song_id = library.song(int(song)).id
    except MusicsimError as error:
        return JSONResponse({"error": str(error)}, status_of(error))
    if library.settings["keep_plays"]:
        store = library.player_plays
        (store.add_play if kind == "play" else store.add_skip)(song_id, **details)
    return Response(status_code=204)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19


def player_routes(prefix: str) -> list[BaseRoute]:
    """Return the routes below a path."""
    return [Route(prefix + "/radio", _radio), Route(prefix + "/plays", _plays, methods=["POST"])]
