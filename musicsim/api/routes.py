"""Routes in addition to Streamlit's: songs, maps, the player's, ``/api``, and those of extensions."""

import gzip
import logging
import threading
from collections import OrderedDict
from functools import cache
from hashlib import blake2b

from starlette.concurrency import run_in_threadpool
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from musicsim import api, audio
from musicsim.api.player import player_routes
from musicsim.api.responses import convert_errors, is_known, wait_for
from musicsim.audio import media_type
from musicsim.errors import MusicsimError
from musicsim.explorer import Snapshot, open_library, take_snapshot
from musicsim.explorer.snapshot.drawn_covers import draw_cover
from musicsim.explorer.snapshot.map_encoding import map_column
from musicsim.hooks import RemoteSound
from musicsim.library import Library, Song
from musicsim.library.media.covers import Covers
from musicsim.library.media.playable import PlayableCopies
from musicsim.library.processes.decoding import Decoding, decoder
from musicsim.public import is_public, visitor_may
from musicsim.registry import load_each, load_hooks

_log = logging.getLogger(__name__)
_MAX_COLUMNS = 8
_GZIP_LEVEL = 4  # higher levels barely help; a million songs take 0.4 s


class _SongId(IntegerConvertor):
    regex = "[0-9]{1,1000}"  # Python refuses to parse more than 4,300 digits


register_url_convertor("song_id", _SongId())

_copies = PlayableCopies(decoder())
_covers = Covers(decoder())


@visitor_may
@convert_errors
async def _audio(request: Request) -> Response:
    """Return the audio of a song, as a converted copy if browsers cannot play the file; supports byte ranges."""
    library, song = await run_in_threadpool(_song, request)
    return await respond_with_song(request, library, song)


async def respond_with_song(request: Request, library: Library, song: Song) -> Response:
    """Respond with the audio of a song; errors contain the song's name, but no paths on this machine."""
    name = f"{song.label} (song {song.id})"
    try:
        if not await run_in_threadpool(song.path.is_file):
            if is_public():  # visitors may not use the owner's music servers
                return JSONResponse({"error": f"{name}: this demonstration does not include its audio."}, 410)
            for sound in load_hooks(RemoteSound):
                response: Response | None = await run_in_threadpool(sound.respond, library, song, request)
                if response is not None:
                    return response
            return JSONResponse({"error": f"{name}: the file is missing. Scan its folder again."}, 410)
        path = song.path
        # safe in this process: a worker decoded the whole file when it was added
        if not await run_in_threadpool(audio.plays_in_browser, path):
            copy = await run_in_threadpool(_copies.copy_of, library, song)
            path = await wait_for(copy, request) if isinstance(copy, Decoding) else copy
        return FileResponse(path, media_type=media_type(path))
    except (MusicsimError, OSError) as error:
        _log.warning("%s: %s", name, error)
        return JSONResponse({"error": f"{name}: the file cannot be played. The app's log says why."}, 500)
    except ClientDisconnect:
        return Response(status_code=499)


def _song(request: Request) -> tuple[Library, Song]:
    library = open_library(request.query_params.get("library"))
    return library, library.song(request.path_params["song_id"])


@visitor_may
@convert_errors
def _peaks(request: Request) -> Response:
    """Return the waveform outline of a song, a list of numbers from 0 to 1."""
    library, song = _song(request)
    return JSONResponse(
        [round(float(peak), 3) for peak in library.outline(song.id)], headers={"Cache-Control": "max-age=86400"}
    )


@visitor_may
@convert_errors
async def _cover(request: Request) -> Response:
    """Return the cover of a song: its picture, or a drawing of its sound."""
    library, song = await run_in_threadpool(_song, request)
    tag = await run_in_threadpool(_covers.tag_of, song)
    headers = {"Cache-Control": "private, max-age=3600", "ETag": f'"{tag}"'}
    if is_known(request, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    data = await _read_cover(request, library, song, tag) if tag else b""
    if data:
        return Response(data, media_type="image/jpeg", headers=headers)
    data = await run_in_threadpool(lambda: draw_cover(song, library.outline(song.id)))
    headers["ETag"] = f'"{blake2b(data, digest_size=12).hexdigest()}"'
    is_same = is_known(request, headers["ETag"])
    return Response(b"" if is_same else data, 304 if is_same else 200, headers, "image/svg+xml")


async def _read_cover(request: Request, library: Library, song: Song, tag: str) -> bytes:
    try:
        cover = await run_in_threadpool(_covers.cover_of, library, song, tag)
        return await wait_for(cover, request) if isinstance(cover, Decoding) else cover
    except MusicsimError as error:
        _log.warning("the cover of song %s cannot be read: %s", song.id, error)
        return b""


class _Columns:
    """A thread-safe cache of compressed map columns and their ETags."""

    def __init__(self) -> None:
        self._columns: OrderedDict[tuple[object, ...], tuple[str, bytes]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, snapshot: Snapshot, name: str) -> tuple[str, bytes]:
        """Return a column's ETag and compressed content."""
        key = (snapshot.library.place, snapshot.revision, snapshot.model_id, name)
        with self._lock:
            if key not in self._columns:
                content = map_column(snapshot, name)
                tag = f'"{blake2b(content, digest_size=12).hexdigest()}"'
                self._columns[key] = tag, gzip.compress(content, _GZIP_LEVEL, mtime=0)
            self._columns.move_to_end(key)
            while len(self._columns) > _MAX_COLUMNS:
                self._columns.popitem(last=False)
            return self._columns[key]


_columns = _Columns()


@visitor_may
@convert_errors
def _column(request: Request) -> Response:
    library = open_library(request.query_params.get("library"))
    snapshot = take_snapshot(library, library.models.get(request.path_params["model"]).id)
    tag, packed = _columns.get(snapshot, request.path_params["column"])
    headers = {"ETag": tag, "Cache-Control": "private, no-cache", "Vary": "Accept-Encoding"}
    if is_known(request, tag):
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        headers["Content-Encoding"] = "gzip"
    else:
        packed = gzip.decompress(packed)
    return Response(packed, media_type="application/octet-stream", headers=headers)


@visitor_may
@convert_errors
def _label(request: Request) -> Response:
    _, song = _song(request)
    return JSONResponse({"title": song.title, "by": song.by}, headers={"Cache-Control": "private, max-age=60"})


@cache
def _interface(_public: bool) -> ASGIApp:
    return api.http_interface()


@visitor_may
async def _lazy_interface(scope: Scope, receive: Receive, send: Send) -> None:
    """Create the HTTP interface on the first request, so that pages do not wait for it."""
    await _interface(is_public())(scope, receive, send)


def path_prefix(base: str) -> str:
    """Return a base path with a leading slash and no trailing slash; the root becomes an empty string."""
    return f"/{base.strip('/')}" if base.strip("/") else ""


def routes(base: str = "") -> list[BaseRoute]:
    """Return the routes for ``st.App``, below `base`: Streamlit adds ``server.baseUrlPath`` only to its own routes."""
    prefix = path_prefix(base)
    makers = load_each(lambda extension: extension.routes)
    return [
        *(route for make_routes in makers for route in make_routes(prefix)),
        Route(prefix + "/songs/{song_id:song_id}/audio", _audio),
        Route(prefix + "/songs/{song_id:song_id}/peaks", _peaks),
        Route(prefix + "/songs/{song_id:song_id}/cover", _cover),
        Route(prefix + "/songs/{song_id:song_id}/label", _label),
        Route(prefix + "/maps/{model}/{column}", _column),
        *player_routes(prefix),
        Mount(prefix + "/api", _lazy_interface),
    ]
