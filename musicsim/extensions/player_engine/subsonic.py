"""``/rest``: similar songs for players that use OpenSubsonic (https://opensubsonic.netlify.app/docs).

Errors are sent as the protocol requires: with HTTP status 200 and an error code.
"""

import hashlib
import logging
import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl
from xml.etree import ElementTree

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from musicsim import __version__
from musicsim.api import checks_token
from musicsim.audio import media_type
from musicsim.errors import MusicsimError, NotFoundError
from musicsim.explorer import open_library
from musicsim.extensions.player_engine.access import PlayerAccess, player_access
from musicsim.extensions.player_engine.answering import MAX_SONGS, Answering, ForeignMatch
from musicsim.library import Song

_log = logging.getLogger(__name__)

_VERSION = "1.16.1"  # version of the Subsonic protocol
_EXTENSIONS = ("apiKeyAuthentication", "formPost", "sonicSimilarity")  # supported extensions, all version 1
_USER = "musicsim"
_MAX_FORM = 1 << 16  # bytes
_N_TRACKS, _N_SONGS, _N_PATH = 10, 50, 25  # default numbers of results
_GENERIC, _MISSING, _WRONG_PASSWORD, _NO_PASSWORDS, _CONFLICT, _WRONG_KEY, _NOT_FOUND = (0, 10, 40, 42, 43, 44, 70)
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_Content = dict[str, Any]
_Parameters = Mapping[str, str]


class _ProtocolError(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@checks_token
async def subsonic(request: Request) -> Response:
    """Respond to a protocol call, with or without ``.view``; its parameters may be in the query string or in a form."""
    parameters = dict(request.query_params)
    if request.method == "POST":
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > _MAX_FORM:
                return _error_response(_ProtocolError(_GENERIC, "the form is too long."), parameters.get("f"))
        parameters |= parse_qsl(body.decode(errors="replace"), keep_blank_values=True)
    return await run_in_threadpool(respond, request.path_params["method"], parameters)


def respond(method: str, parameters: _Parameters) -> Response:
    form = parameters.get("f", "xml")
    try:
        if form not in ("json", "xml"):
            raise _ProtocolError(_GENERIC, "f must be json or xml.")
        library = open_library()
        access = player_access(library)
        if access is None:
            return JSONResponse({"error": "access for players is off. Run `musicsim players` to turn it on."}, 404)
        name = method.removesuffix(".view")
        if name not in _METHODS:
            raise _ProtocolError(_GENERIC, "this method is not supported: this server only finds similar songs.")
        if name != "getOpenSubsonicExtensions":  # players call this method before they know how to log in
            _check_login(parameters, access)
        player = (access.token, parameters.get("u"), parameters.get("c"))
        content = _METHODS[name](Answering(library, access.rules, player), parameters)
        return _response({"status": "ok"} | content, form)
    except _ProtocolError as error:
        problem = error
    except NotFoundError:
        problem = _ProtocolError(_NOT_FOUND, "this song is not in the library, or has not been analyzed yet.")
    except MusicsimError as error:
        _log.warning("%s", error)
        problem = _ProtocolError(_GENERIC, "the library cannot be searched right now. The app's log says why.")
    return _error_response(problem, form)


def _check_login(parameters: _Parameters, access: PlayerAccess) -> None:
    login = [name for name in ("u", "p", "t", "s") if name in parameters]
    if "apiKey" in parameters:
        if login:
            raise _ProtocolError(_CONFLICT, "send apiKey without u, p, t and s.")
        if not secrets.compare_digest(parameters["apiKey"].encode(), access.token.encode()):
            raise _ProtocolError(_WRONG_KEY, "this is not the key that `musicsim players` shows.")
        return
    if "p" in login:
        if "t" in login:
            raise _ProtocolError(_CONFLICT, "send either p, or t and s.")
        raise _ProtocolError(_NO_PASSWORDS, "plain passwords are not accepted. Send t and s, or apiKey.")
    _, token, salt = (_get(parameters, name) for name in ("u", "t", "s"))
    expected = hashlib.md5(f"{access.token}{salt}".encode(), usedforsecurity=False).hexdigest()
    if not secrets.compare_digest(token.lower().encode(), expected.encode()):
        raise _ProtocolError(_WRONG_PASSWORD, "wrong password: use the token that `musicsim players` shows.")


def _similar_tracks(answering: Answering, parameters: _Parameters) -> _Content:
    seed = answering.song(_get(parameters, "id"))
    return _sonic_matches(answering.similar(seed, _count(parameters, _N_TRACKS)))


def _path(answering: Answering, parameters: _Parameters) -> _Content:
    first, last = (answering.song(_get(parameters, name)) for name in ("startSongId", "endSongId"))
    return _sonic_matches(answering.path(first, last, _count(parameters, _N_PATH)))


def _similar_songs(name: str) -> Callable[[Answering, _Parameters], _Content]:
    """Return one of Subsonic's two methods for similar songs, which differ only in the name of their result."""

    def method(answering: Answering, parameters: _Parameters) -> _Content:
        seed = answering.song_or_artist(_get(parameters, "id"))
        return {name: {"song": [_child(match) for match in answering.similar(seed, _count(parameters, _N_SONGS))]}}

    return method


_METHODS: dict[str, Callable[[Answering, _Parameters], _Content]] = {
    "ping": lambda *_: {},
    "getOpenSubsonicExtensions": lambda *_: {
        "openSubsonicExtensions": [{"name": name, "versions": [1]} for name in _EXTENSIONS]
    },
    "tokenInfo": lambda *_: {"tokenInfo": {"username": _USER}},
    "getSonicSimilarTracks": _similar_tracks,
    "findSonicPath": _path,
    "getSimilarSongs": _similar_songs("similarSongs"),
    "getSimilarSongs2": _similar_songs("similarSongs2"),
}


def _get(parameters: _Parameters, name: str) -> str:
    if not parameters.get(name):
        raise _ProtocolError(_MISSING, f"the parameter {name} is missing.")
    return parameters[name]


def _count(parameters: _Parameters, default: int) -> int:
    text = parameters.get("count") or str(default)
    if not re.fullmatch("[0-9]{1,9}", text, re.ASCII) or not int(text):
        raise _ProtocolError(_GENERIC, "count must be an integer of at least 1.")
    return min(int(text), MAX_SONGS)


def _sonic_matches(matches: list[ForeignMatch]) -> _Content:
    return {"sonicMatch": [{"entry": _child(match), "similarity": round(match.similarity, 4)} for match in matches]}


def _child(match: ForeignMatch) -> _Content:
    """Return a song as a Subsonic ``Child``; unknown fields are omitted, except those that OpenSubsonic added."""
    song: Song = match.song
    facts = {
        "id": match.id, "isDir": False, "title": song.title, "album": song.album, "artist": song.artist,
        "track": song.track, "year": song.year, "genre": song.genre, "duration": round(song.duration_s),
        "suffix": song.path.suffix.lstrip(".").lower() or None, "contentType": media_type(song.path),
        "isVideo": False, "type": "music",
    }  # fmt: skip
    added = {"mediaType": "song", "bpm": round(song.tempo or 0), "musicBrainzId": song.mb_recording_id or ""}
    return {name: value for name, value in facts.items() if value is not None} | added


def _error_response(error: _ProtocolError, form: str | None) -> Response:
    return _response({"status": "failed", "error": {"code": error.code, "message": str(error)}}, form)


def _response(content: _Content, form: str | None) -> Response:
    content = {
        "status": content["status"], "version": _VERSION, "type": "musicsim", "serverVersion": __version__,
        "openSubsonic": True, **content,
    }  # fmt: skip
    if form == "json":
        return JSONResponse({"subsonic-response": content})
    root = _element("subsonic-response", {"xmlns": "http://subsonic.org/restapi"} | content)
    xml = ElementTree.tostring(root, encoding="UTF-8", xml_declaration=True)
    return Response(xml, media_type="application/xml")


def _element(name: str, content: Mapping[str, Any]) -> ElementTree.Element:
    """Convert content to an element: strings and numbers become attributes, and each list entry becomes an element."""
    element = ElementTree.Element(name)
    for key, value in content.items():
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, Mapping):
                element.append(_element(key, part))
            elif isinstance(value, list):
                ElementTree.SubElement(element, key).text = _text(part)
            else:
                element.set(key, _text(part))
    return element


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else _NOT_XML.sub("\ufffd", str(value))
