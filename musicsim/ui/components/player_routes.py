"""What the player asks the server for besides songs: uploads, and what follows the last song of its queue."""

import json
from dataclasses import replace
from weakref import WeakValueDictionary

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from musicsim.api.ranges import asked_range, sound_response
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
_PLAYED: Key[Upload | None] = Key("player.upload", lambda: None, "the upload that the player may still play")

_held: WeakValueDictionary[str, Upload] = WeakValueDictionary()


def upload_address(upload: Upload) -> str:
    """Where the sound of an upload is for as long as a session has it."""
    _held.setdefault(upload.digest, upload)
    return f"/uploads/{upload.digest}"


def play_upload(upload: Upload, duration_s: float) -> None:
    """Replace the queue by an upload and play."""
    _PLAYED.set(upload)
    player.play([player.Track(0, upload.name, "", upload_address(upload), duration_s=duration_s)])


@visitor_may
def _upload(request: Request) -> Response:
    """The sound of an upload, with byte ranges."""
    upload = _held.get(request.path_params["digest"])
    if upload is None:
        return JSONResponse({"error": "this upload is no longer here: send it again."}, 404)
    asked = asked_range(request)
    data = upload.data if asked is None else upload.data[slice(*asked)]
    return sound_response(data, asked, len(upload.data), media_type(upload.name))


@visitor_may
def _radio(request: Request) -> Response:
    """The tracks that follow a song on a walk from it, each with its reason; those that played lately are left out."""
    asked = request.query_params
    try:
        first, lately = int(asked["song"]), [int(song) for song in asked.getlist("lately")]
    except (KeyError, ValueError):
        return JSONResponse({"error": "name a song and those that played lately by their ids."}, 422)
    try:
        library = open_library(asked.get("library"))
        now = snapshot_under(library, asked.get("model"))
        rested = frozenset(lately[: now.n_indexed // 2])  # the latest come first
        drawn = Walk(now).draw(PlaylistRequest(length=_N_FOLLOWING + 1, first=first, exclude=rested))
    except MusicsimError as error:
        status = 404 if isinstance(error, NotFoundError) else 409
        return JSONResponse({"error": "nothing can follow this song."}, status)
    following = [
        player.as_json(replace(track(library, song), reason=edge.reason if edge else ""))
        for song, edge in zip(drawn.songs[1:], drawn.edges[1:], strict=True)
        if has_sound(library, song)
    ]
    return Response(json.dumps(following), media_type="application/json")  # names of folders may be no UTF-8


def player_routes(prefix: str = "") -> list[BaseRoute]:
    """Routes for ``st.App``.

    Parameters
    ----------
    prefix : str
        The path the app is served under, as :func:`musicsim.api.path_prefix` writes it.
    """
    return [Route(prefix + "/uploads/{digest}", _upload), Route(prefix + "/radio", _radio)]
