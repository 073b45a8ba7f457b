"""``/rest``: what players that speak OpenSubsonic ask of an engine for similar songs.

Protocol: https://opensubsonic.netlify.app/docs. Only what finds similar songs is answered, no browsing and no sound.
Whatever is wrong with a request is an error of the protocol, under the status 200.
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
from musicsim.audio import media_type
from musicsim.errors import MusicsimError, NotFoundError
from musicsim.explorer.libraries import open_library
from musicsim.extensions.player_engine.access import PlayerAccess, player_access
from musicsim.extensions.player_engine.answering import MAX_SONGS, Answering, Asked, Match
from musicsim.library import Song

_log = logging.getLogger(__name__)

_VERSION = "1.16.1"  # of Subsonic's protocol
_EXTENSIONS = ("apiKeyAuthentication", "formPost", "sonicSimilarity")  # each in its version 1
_USER = "musicsim"
_MAX_FORM = 1 << 16  # bytes
_N_TRACKS, _N_SONGS, _N_PATH = 10, 50, 25  # where no number is asked for
_GENERIC, _MISSING, _WRONG_PASSWORD, _NO_PASSWORDS, _CONFLICT, _WRONG_KEY, _NOT_FOUND = (0, 10, 40, 42, 43, 44, 70)
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_Content = dict[str, Any]


class _Failure(Exception):
    """An error of the protocol."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


async def subsonic(request: Request) -> Response:
    """Answer a call of the protocol, with or without ``.view``, its parameters in the address or in a form."""
    given = dict(request.query_params)
    if request.method == "POST":
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > _MAX_FORM:
                return _failed(_Failure(_GENERIC, "the form is too long."), given.get("f"))
        given |= parse_qsl(body.decode(errors="replace"), keep_blank_values=True)
    return await run_in_threadpool(_answer, request.path_params["method"], given)


def _answer(method: str, given: Mapping[str, str]) -> Response:
    wanted = given.get("f", "xml")
    try:
        if wanted not in ("json", "xml"):
            raise _Failure(_GENERIC, "f should be json or xml.")
        library = open_library()
        access = player_access(library)
        if access is None:
            return JSONResponse({"error": "players are not answered here: see `musicsim players`."}, 404)
        name = method.removesuffix(".view")
        if name not in _METHODS:
            raise _Failure(_GENERIC, "this server finds similar songs only; it does not know this method.")
        if name != "getOpenSubsonicExtensions":  # which players ask before they know how to log in
            _check(given, access)
        content = _METHODS[name](Answering(library, access.rules), given)
    except _Failure as failure:
        return _failed(failure, wanted)
    except NotFoundError:
        return _failed(_Failure(_NOT_FOUND, "there is no such song, or it has not been analysed yet."), wanted)
    except MusicsimError as error:
        _log.warning("%s", error)
        return _failed(_Failure(_GENERIC, "the library cannot answer now. The app's log says why."), wanted)
    return _response({"status": "ok"}, content, wanted)


def _check(given: Mapping[str, str], access: PlayerAccess) -> None:
    """Raise the protocol's error where a request does not show the token: as an API key, or hashed with a salt."""
    login = [name for name in ("u", "p", "t", "s") if name in given]
    if "apiKey" in given:
        if login:
            raise _Failure(_CONFLICT, "send apiKey alone, without u, p, t and s.")
        if not _same(given["apiKey"], access.token):
            raise _Failure(_WRONG_KEY, "this is not the key that `musicsim players` shows.")
        return
    if "p" in login:
        if "t" in login:
            raise _Failure(_CONFLICT, "send either p, or t and s.")
        raise _Failure(_NO_PASSWORDS, "send t and s, or apiKey: passwords are not taken as they are.")
    _, hashed, salt = (_required(given, name) for name in ("u", "t", "s"))
    salted = hashlib.md5(f"{access.token}{salt}".encode(), usedforsecurity=False).hexdigest()
    if not _same(hashed.lower(), salted):
        raise _Failure(_WRONG_PASSWORD, "wrong password: it is the token that `musicsim players` shows.")


def _same(given: str, known: str) -> bool:
    return secrets.compare_digest(given.encode(), known.encode())


# --- methods ----------------------------------------------------------------------------------


def _ping(_: Answering, __: Mapping[str, str]) -> _Content:
    return {}


def _extensions(_: Answering, __: Mapping[str, str]) -> _Content:
    return {"openSubsonicExtensions": [{"name": name, "versions": [1]} for name in _EXTENSIONS]}


def _token_info(_: Answering, __: Mapping[str, str]) -> _Content:
    return {"tokenInfo": {"username": _USER}}


def _similar_tracks(answering: Answering, given: Mapping[str, str]) -> _Content:
    return _matches(answering.similar(_song(answering, given, "id"), _count(given, _N_TRACKS)))


def _path(answering: Answering, given: Mapping[str, str]) -> _Content:
    first, last = (_song(answering, given, name) for name in ("startSongId", "endSongId"))
    return _matches(answering.path(first, last, _count(given, _N_PATH)))


def _similar_songs(name: str) -> Callable[[Answering, Mapping[str, str]], _Content]:
    """The two methods of Subsonic that differ in the name of their answer: players start a mix from a song by them."""

    def answer(answering: Answering, given: Mapping[str, str]) -> _Content:
        asked = answering.song_or_artist(_required(given, "id"))
        found = answering.similar(asked, _count(given, _N_SONGS))
        return {name: {"song": [_child(match) for match in found]}}

    return answer


_METHODS: dict[str, Callable[[Answering, Mapping[str, str]], _Content]] = {
    "ping": _ping,
    "getOpenSubsonicExtensions": _extensions,
    "tokenInfo": _token_info,
    "getSonicSimilarTracks": _similar_tracks,
    "findSonicPath": _path,
    "getSimilarSongs": _similar_songs("similarSongs"),
    "getSimilarSongs2": _similar_songs("similarSongs2"),
}


def _song(answering: Answering, given: Mapping[str, str], name: str) -> Asked:
    return answering.song(_required(given, name))


def _required(given: Mapping[str, str], name: str) -> str:
    if not given.get(name):
        raise _Failure(_MISSING, f"the parameter {name} is missing.")
    return given[name]


def _count(given: Mapping[str, str], default: int) -> int:
    text = given.get("count") or str(default)
    if not re.fullmatch("[0-9]{1,9}", text, re.ASCII) or not int(text):
        raise _Failure(_GENERIC, "count should be a whole number from 1.")
    return min(int(text), MAX_SONGS)


def _matches(found: list[Match]) -> _Content:
    return {"sonicMatch": [{"entry": _child(match), "similarity": round(match.similarity, 4)} for match in found]}


def _child(match: Match) -> _Content:
    """A song as Subsonic's `Child`; what is not known is left out, but for the fields that OpenSubsonic added."""
    song: Song = match.song
    facts = {
        "id": match.id, "isDir": False, "title": song.title, "album": song.album, "artist": song.artist,
        "track": song.track, "year": song.year, "genre": song.genre, "duration": round(song.duration_s),
        "suffix": song.path.suffix.lstrip(".").lower() or None, "contentType": media_type(song.path),
        "isVideo": False, "type": "music",
    }  # fmt: skip
    known = {name: value for name, value in facts.items() if value is not None}
    added = {"mediaType": "song", "bpm": round(song.tempo or 0), "musicBrainzId": song.mb_recording_id or ""}
    return known | added


# --- responses --------------------------------------------------------------------------------


def _failed(failure: _Failure, wanted: str | None) -> Response:
    error = {"code": failure.code, "message": str(failure)}
    return _response({"status": "failed"}, {"error": error}, wanted)


def _response(status: _Content, content: _Content, wanted: str | None) -> Response:
    about = {"version": _VERSION, "type": "musicsim", "serverVersion": __version__, "openSubsonic": True}
    whole = status | about | content
    if wanted == "json":
        return JSONResponse({"subsonic-response": whole})
    root = _element("subsonic-response", {"xmlns": "http://subsonic.org/restapi"} | whole)
    xml = ElementTree.tostring(root, encoding="UTF-8", xml_declaration=True)
    return Response(xml, media_type="application/xml")


def _element(name: str, content: Mapping[str, Any]) -> ElementTree.Element:
    """Content as an element: texts and numbers are attributes, everything else elements, one for each of a list."""
    element = ElementTree.Element(name)
    for key, value in content.items():
        parts = value if isinstance(value, list) else [value]
        for part in parts:
            if isinstance(part, Mapping):
                element.append(_element(key, part))
            elif isinstance(value, list):
                ElementTree.SubElement(element, key).text = _text(part)
            else:
                element.set(key, _text(part))
    return element


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else _NOT_XML.sub("\ufffd", str(value))
