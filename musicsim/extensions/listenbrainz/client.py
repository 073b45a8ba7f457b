"""ListenBrainz: playlists that are sent with a user's token, as JSPF that names recordings by their MusicBrainz ids."""

import http.client
import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from musicsim import logs
from musicsim.errors import ServerError
from musicsim.library import Library, Song
from musicsim.library.disk.arrays import private_path
from musicsim.library.media.playlist_files import jspf
from musicsim.library.tags.file_tags import MBID

TOKEN_FILE = "listenbrainz.token"
_ADDRESS = "https://api.listenbrainz.org"
_EXTENSION = "https://musicbrainz.org/doc/jspf#playlist"
_TIMEOUT_S = 30.0
_MAX_ANSWER = 1 << 16  # bytes
_TOKEN = re.compile(r"[!-~]{1,200}")


@dataclass(frozen=True, slots=True)
class Sent:
    """Where a playlist is now, and the songs that are not in it as they have no MusicBrainz id."""

    address: str
    lacking: tuple[Song, ...]


def _token_file(library: Library) -> Path:
    return library.folder / TOKEN_FILE


def has_token(library: Library) -> bool:
    """Whether a token is kept in the library's folder."""
    return _token_file(library).exists()


def keep_token(library: Library, token: str) -> None:
    """Keep a user's token in a file that only the owner can read; an empty one removes it.

    Raises ServerError if it cannot be a token.
    """
    token, path = token.strip(), _token_file(library)
    if not token:
        path.unlink(missing_ok=True)
        return
    if not _TOKEN.fullmatch(token):
        raise ServerError("this is no token: copy it from the settings of your account at ListenBrainz.")
    with private_path(path) as temporary:
        temporary.write_text(token)


def send_playlist(library: Library, title: str, songs: Sequence[Song], *, public: bool = False) -> Sent:
    """Make a playlist at ListenBrainz, private unless it is to be public; songs without an id are left out.

    Paths of files are not sent. ``MUSICSIM_LISTENBRAINZ_URL`` names another server than ListenBrainz's own.

    Raises ServerError if there is no token, no title or no song with an id, or if the server refuses or fails.
    """
    known = [song for song in songs if song.mb_recording_id]
    if not title.strip():
        raise ServerError("ListenBrainz needs a name for the playlist: give it one.")
    if not known:
        raise ServerError(
            "none of these songs has a MusicBrainz id, by which ListenBrainz knows songs: tag the files with Picard or "
            "beets and scan again, or import the library.db of beets."
        )
    playlist = json.loads(jspf(title.strip(), known))["playlist"]
    for track in playlist["track"]:
        track.pop("location", None)
        (track["identifier"],) = track["identifier"]  # the server takes one
    playlist["extension"] = {_EXTENSION: {"public": public}}
    answer = _post(library, "/1/playlist/create", {"playlist": playlist})
    mbid = answer.get("playlist_mbid")
    if not isinstance(mbid, str) or not re.fullmatch(MBID, mbid):
        raise ServerError("ListenBrainz did not say where the playlist is: look for it there before sending it again.")
    return Sent(f"https://listenbrainz.org/playlist/{mbid}", tuple(song for song in songs if not song.mb_recording_id))


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The token goes where the user wants it, and nowhere else."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _post(library: Library, path: str, document: dict[str, Any]) -> dict[str, Any]:
    address = os.environ.get("MUSICSIM_LISTENBRAINZ_URL", "").rstrip("/") or _ADDRESS
    if not address.startswith(("https://", "http://")):
        raise ServerError(f"MUSICSIM_LISTENBRAINZ_URL is {address!r}: set it to an address that begins with https://.")
    if not has_token(library):
        raise ServerError("there is no ListenBrainz token in this library: `musicsim listenbrainz token` keeps one.")
    token = _token_file(library).read_text().strip()
    logs.hide(token)
    headers = {"Authorization": f"Token {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(address + path, json.dumps(document).encode(), headers)
    try:
        with urllib.request.build_opener(_NoRedirects).open(request, timeout=_TIMEOUT_S) as answer:
            said = json.loads(answer.read(_MAX_ANSWER))
    except urllib.error.HTTPError as error:
        with error:
            reason = _reason(error.read(_MAX_ANSWER)).replace(token, "…")
        raise ServerError(f"ListenBrainz at {address} refuses the playlist ({error.code}{reason}).") from None
    except (OSError, ValueError, http.client.HTTPException) as error:  # ValueError: what is no JSON
        raise ServerError(
            f"ListenBrainz at {address} does not answer as it should ({error}). Try again later."
        ) from None
    if not isinstance(said, dict):
        raise ServerError(f"ListenBrainz at {address} does not answer as it should. Try again later.")
    return said


def _reason(body: bytes) -> str:
    """What the server says of an error, in one line."""
    try:
        said = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        return ""
    return f": {' '.join(str(said).split())[:200]}"
