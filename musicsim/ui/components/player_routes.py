"""Routes of the player besides songs: the sound of uploads, and songs that continue the queue."""

import json
from dataclasses import replace
from weakref import WeakValueDictionary

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from musicsim.api.responses import parse_range, respond_with_sound
from musicsim.audio import media_type
from musicsim.errors import MusicsimError, NotFoundError
from musicsim.explorer.libraries import open_library
from musicsim.explorer.playlists.walk import Walk
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.snapshot.snapshot import snapshot_under
from musicsim.library.media.sound import has_sound
from musicsim.public import visitor_may
from musicsim.ui.base.keys import Key
from musicsim.ui.base.uploads import Upload
from musicsim.ui.components import player
from musicsim.ui.components.listening import track

_N_FOLLOWING = 5
_PLAYED: Key[Upload | None] = Key("player.upload", lambda: None, "the upload in the player's queue")

_uploads: WeakValueDictionary[str, Upload] = WeakValueDictionary()


def upload_address(upload: Upload) -> str:
    """Return the address of an upload's sound, which is valid while a session holds the upload."""
    _uploads.setdefault(upload.digest, upload)
    return f"/uploads/{upload.digest}"


def play_upload(upload: Upload, duration_s: float) -> None:
    """Replace the queue by an upload and play."""
    _PLAYED.set(upload)
    player.play([player.Track(0, upload.name, "", upload_address(upload), duration_s=duration_s)])


@visitor_may
def _upload(request: Request) -> Response:
    """Return the sound of an upload, or a range of its bytes."""
    upload = _uploads.get(request.path_params["digest"])
    if upload is None:
        return JSONResponse({"error": "this upload is no longer here: send it again."}, 404)
    byte_range = parse_range(request)
    data = upload.data if byte_range is None else upload.data[slice(*byte_range)]
    return respond_with_sound(data, byte_range, len(upload.data), media_type(upload.name))


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
        excluded = frozenset(recent[: snapshot.n_indexed // 2])  # the latest come first
        drawn = Walk(snapshot).draw(PlaylistRequest(length=_N_FOLLOWING + 1, first=first, exclude=excluded))
    except MusicsimError as error:
        status = 404 if isinstance(error, NotFoundError) else 409
        return JSONResponse({"error": "no song can follow this one."}, status)
    following = [
        player.as_json(replace(track(library, song), reason=edge.reason if edge else ""))
        for song, edge in zip(drawn.songs[1:], drawn.edges[1:], strict=True)
        if has_sound(library, song)
    ]
    return Response(json.dumps(following), media_type="application/json")  # folder names may not be UTF-8


def player_routes(prefix: str = "") -> list[BaseRoute]:
    """Return the routes for ``st.App``; `prefix` is the app's path as :func:`musicsim.api.path_prefix` writes it."""
    return [Route(prefix + "/uploads/{digest}", _upload), Route(prefix + "/radio", _radio)]
