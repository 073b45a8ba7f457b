"""The audio of songs without local files, relayed from a music server."""

import logging
from collections.abc import Collection
from pathlib import PurePath

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from musicsim.api import parse_range, respond_with_sound
from musicsim.audio import BROWSER_EXTENSIONS, media_type
from musicsim.errors import ServerError
from musicsim.extensions.music_servers.client import Subsonic
from musicsim.extensions.music_servers.connections import Connections
from musicsim.extensions.music_servers.server_songs import ServerSongs
from musicsim.library import Library, Song

_log = logging.getLogger(__name__)
_MAX_WHOLE = 256 << 20  # maximum bytes in a response to a request without a byte range; browsers send a range


def songs_with_sound(library: Library, song_ids: Collection[int]) -> set[int]:
    return set(ServerSongs(library).ids_of(song_ids)) if song_ids else set()


def respond(library: Library, song: Song, request: Request) -> Response | None:
    """Return a response with a song's audio from the first server that sends it; None if no server has the song."""
    is_known = False
    for connection in Connections(library).all():
        server_id = ServerSongs(library).ids_of([song.id], connection.name).get(song.id)
        if server_id is None:
            continue
        is_known = True
        form = "raw" if song.path.suffix.lower() in BROWSER_EXTENSIONS else "mp3"
        byte_range = parse_range(request)
        start, stop = byte_range or (0, _MAX_WHOLE)
        try:
            data, n_bytes = Subsonic(connection).sound(server_id, form, start, stop - start)
        except ServerError as error:
            _log.warning("%s", error)
            continue
        return respond_with_sound(
            data, byte_range, n_bytes, media_type(song.path if form == "raw" else PurePath("sound.mp3"))
        )
    if not is_known:
        return None
    problem = f"{song.label} (song {song.id}): the music server did not send the audio. The app's log says why."
    return JSONResponse({"error": problem}, 502)
