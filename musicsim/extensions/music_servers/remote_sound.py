"""The sound of songs without a file here, as the music server has it that they were found on."""

import logging
from pathlib import PurePath

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from musicsim.api.ranges import asked_range, sound_response
from musicsim.audio import BROWSER_EXTENSIONS, media_type
from musicsim.errors import ServerError
from musicsim.extensions.music_servers.client import Subsonic
from musicsim.extensions.music_servers.connections import Connections
from musicsim.extensions.music_servers.server_songs import ServerSongs
from musicsim.library import Library, Song

_log = logging.getLogger(__name__)
_MAX_WHOLE = 256 << 20  # bytes of an answer to who asks for no range; browsers ask for one


def remote_sound(library: Library, song: Song, request: Request) -> Response | None:
    """A song's sound from the first server that has it and answers; None where no server has it.

    Bytes pass through here: neither the server's address nor its secret reaches the browser.
    """
    is_known = False
    for connection in Connections(library).all():
        server_id = ServerSongs(library).id_of(song.id, connection.name)
        if server_id is None:
            continue
        is_known = True
        is_raw = song.path.suffix.lower() in BROWSER_EXTENSIONS
        try:
            return _part(Subsonic(connection), server_id, "raw" if is_raw else "mp3", song, request)
        except ServerError as error:
            _log.warning("%s", error)
    if not is_known:
        return None
    problem = f"{song.label} (song {song.id}): the music server did not send its sound. The app's log says why."
    return JSONResponse({"error": problem}, 502)


def _part(client: Subsonic, server_id: str, form: str, song: Song, request: Request) -> Response:
    asked = asked_range(request)
    start, stop = asked or (0, _MAX_WHOLE)
    data, n_bytes = client.sound(server_id, form, start, stop - start)
    kind = media_type(PurePath(f"sound.{form}") if form != "raw" else song.path)
    return sound_response(data, asked, n_bytes, kind)
