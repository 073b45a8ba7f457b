"""Columns of maps for browsers: compressed, and sent again only after a change."""

import gzip
import threading
from collections import OrderedDict
from hashlib import blake2b

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from musicsim.api.responses import is_known, respond_to_error
from musicsim.errors import LibraryError, NotFoundError
from musicsim.explorer.libraries import open_library
from musicsim.explorer.snapshot.map_columns import map_column
from musicsim.explorer.snapshot.snapshot import Snapshot, take_snapshot
from musicsim.public import visitor_may

_LEVEL = 4  # higher levels barely help; a million songs take 0.4 s
_MAX_CACHED = 8


class _Columns:
    """A thread-safe cache of compressed columns with their ETags."""

    def __init__(self) -> None:
        self._columns: OrderedDict[tuple[object, ...], tuple[str, bytes]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, snapshot: Snapshot, name: str) -> tuple[str, bytes]:
        """Return a column's ETag and compressed content."""
        key = (snapshot.library.folder, snapshot.revision, snapshot.model_id, name)
        with self._lock:
            if key not in self._columns:
                content = map_column(snapshot, name)
                tag = f'"{blake2b(content, digest_size=12).hexdigest()}"'
                self._columns[key] = tag, gzip.compress(content, _LEVEL, mtime=0)
            self._columns.move_to_end(key)
            while len(self._columns) > _MAX_CACHED:
                self._columns.popitem(last=False)
            return self._columns[key]


_columns = _Columns()


@visitor_may
def _column(request: Request) -> Response:
    """Return a column of a model's map; 304 if the browser has it."""
    try:
        library = open_library(request.query_params.get("library"))
        snapshot = take_snapshot(library, library.models.get(request.path_params["model"]).id)
        tag, packed = _columns.get(snapshot, request.path_params["column"])
    except LibraryError as error:
        return respond_to_error(error)
    headers = {"ETag": tag, "Cache-Control": "private, no-cache", "Vary": "Accept-Encoding"}
    if is_known(request, tag):
        return Response(status_code=304, headers=headers)
    if "gzip" not in request.headers.get("Accept-Encoding", ""):
        return Response(gzip.decompress(packed), media_type="application/octet-stream", headers=headers)
    return Response(packed, media_type="application/octet-stream", headers=headers | {"Content-Encoding": "gzip"})


@visitor_may
def _label(request: Request) -> Response:
    try:
        library = open_library(request.query_params.get("library"))
        song = library.song(request.path_params["song_id"])
    except (NotFoundError, OverflowError):  # ids have at most 64 bits
        return JSONResponse({"error": "song not found."}, 404)
    except LibraryError as error:
        return respond_to_error(error)
    return JSONResponse({"title": song.title, "by": song.by}, headers={"Cache-Control": "private, max-age=60"})


def map_routes(prefix: str = "") -> list[Route]:
    """Return the routes of map columns and song labels; `prefix` begins with a slash or is empty."""
    return [Route(prefix + "/maps/{model}/{column}", _column), Route(prefix + "/songs/{song_id:song_id}/label", _label)]
