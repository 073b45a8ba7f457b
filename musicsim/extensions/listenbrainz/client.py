"""Playlists for ListenBrainz: JSPF documents with MusicBrainz recording ids, sent with a user's token."""

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
from musicsim.library import MBID, Library, Song, jspf, write_private

TOKEN_FILE = "listenbrainz.token"
_ADDRESS = "https://api.listenbrainz.org"
_EXTENSION = "https://musicbrainz.org/doc/jspf#playlist"
_TIMEOUT_S = 30.0
_MAX_ANSWER = 1 << 16  # bytes
_TOKEN = re.compile(r"[!-~]{1,200}")


@dataclass(frozen=True, slots=True)
class Sent:
    address: str
    lacking: tuple[Song, ...]  # songs that were left out because they have no MusicBrainz id


def _token_file(library: Library) -> Path:
    return library.folder / TOKEN_FILE


def has_token(library: Library) -> bool:
    return _token_file(library).exists()


def save_token(library: Library, token: str) -> None:
    """Save a user's token in a file that only its owner can read; an empty token removes the file."""
    token, path = token.strip(), _token_file(library)
    if not token:
        path.unlink(missing_ok=True)
        return
    if not _TOKEN.fullmatch(token):
        raise ServerError("this is not a valid token. Copy the token from your ListenBrainz account's settings.")
    write_private(path, token)


def send_playlist(library: Library, title: str, songs: Sequence[Song], *, public: bool = False) -> Sent:
    """Create a playlist on ListenBrainz; songs without a MusicBrainz id are left out, and file paths are not sent."""
    known = [song for song in songs if song.mb_recording_id]
    if not title.strip():
        raise ServerError("the playlist has no name, but ListenBrainz requires one. Enter a name.")
    if not known:
        raise ServerError(
            "none of these songs has a MusicBrainz id, which ListenBrainz requires. Tag the files with Picard or "
            "beets and scan again, or import beets' library.db."
        )
    playlist = json.loads(jspf(title.strip(), known))["playlist"]
    for track in playlist["track"]:
        track.pop("location", None)
        (track["identifier"],) = track["identifier"]  # the server accepts a string, not a list
    playlist["extension"] = {_EXTENSION: {"public": public}}
    answer = _post(library, "/1/playlist/create", {"playlist": playlist})
    mbid = answer.get("playlist_mbid")
    if not isinstance(mbid, str) or not re.fullmatch(MBID, mbid):
        raise ServerError(
            "ListenBrainz did not return the playlist's address. Check whether it was saved before you send it again."
        )
    return Sent(f"https://listenbrainz.org/playlist/{mbid}", tuple(song for song in songs if not song.mb_recording_id))


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects, so that the token is not sent to a different server."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _post(library: Library, path: str, document: dict[str, Any]) -> dict[str, Any]:
    address = os.environ.get("MUSICSIM_LISTENBRAINZ_URL", "").rstrip("/") or _ADDRESS
    if not address.startswith(("https://", "http://")):
        raise ServerError(f"MUSICSIM_LISTENBRAINZ_URL is {address!r}. Set it to an address that begins with https://.")
    if not has_token(library):
        raise ServerError("this library has no ListenBrainz token. Add one with `musicsim listenbrainz token`.")
    token = _token_file(library).read_text().strip()
    logs.hide(token)
    headers = {"Authorization": f"Token {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(address + path, json.dumps(document).encode(), headers)
    try:
        with urllib.request.build_opener(_NoRedirects).open(request, timeout=_TIMEOUT_S) as response:
            answer = json.loads(response.read(_MAX_ANSWER))
    except urllib.error.HTTPError as error:
        with error:
            reason = _reason(error.read(_MAX_ANSWER)).replace(token, "…")
        raise ServerError(f"ListenBrainz at {address} refused the playlist ({error.code}{reason}).") from None
    except (OSError, ValueError, http.client.HTTPException) as error:  # ValueError: the response is not JSON
        raise ServerError(f"The request to ListenBrainz at {address} failed ({error}). Try again later.") from None
    if not isinstance(answer, dict):
        raise ServerError(f"ListenBrainz at {address} sent an unexpected response. Try again later.")
    return answer


def _reason(body: bytes) -> str:
    try:
        message = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        return ""
    return f": {' '.join(str(message).split())[:200]}"
