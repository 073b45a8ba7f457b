"""The files of mixes made on the Playlists page, and the route that plays them."""

import re
import tempfile
import uuid
from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route

from musicsim.audio import media_type
from musicsim.explorer import Track

_MAX_MIXES = 8  # maximum number of files that are kept for all sessions together
_NAME = re.compile(r"[0-9a-f]{32}\.[0-9a-z]{2,5}")


@cache
def _folder() -> "tempfile.TemporaryDirectory[str]":
    """Return the folder for mixes, which is deleted when the program ends."""
    return tempfile.TemporaryDirectory(prefix="musicsim-mixes-")


def new_path(ending: str) -> Path:
    """Return a path for a new mix, and delete the oldest ones."""
    folder = Path(_folder().name)
    for old in sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime)[: -_MAX_MIXES + 1]:
        old.unlink(missing_ok=True)
    return folder / f"{uuid.uuid4().hex}{ending}"


def track_of(path: Path, title: str, duration_s: float) -> Track:
    """Return a mix for the player."""
    return Track(0, title, "", f"/mixes/{path.name}", duration_s=duration_s)


def _mix(request: Request) -> Response:
    name = request.path_params["name"]
    path = Path(_folder().name) / name
    if not _NAME.fullmatch(name) or not path.is_file():
        return JSONResponse({"error": "this mix was deleted. Make it again."}, 404)
    return FileResponse(path, media_type=media_type(path))


def mix_routes(prefix: str = "") -> list[BaseRoute]:
    """Return the route, which only the owner may call."""
    return [Route(prefix + "/mixes/{name}", _mix)]
