"""Exported files in a library's folder, and the route to download them."""

from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route

from musicsim.api import convert_errors
from musicsim.explorer import open_library
from musicsim.library import Library

_FOLDER = "exports"


def export_path(library: Library, kind: str, ending: str) -> Path:
    """Return the path of an export from the Research page; a new export replaces the previous one."""
    return library.folder / _FOLDER / f"{library.name} {kind}{ending}"


def exports_of(library: Library) -> list[Path]:
    """Return the exports in a library's folder, newest first; links, which can lead out of it, are left out."""
    folder, real = library.folder / _FOLDER, library.folder.resolve() / _FOLDER
    names = [path.name for path in folder.glob("*") if path.suffix and not path.name.startswith(".")]
    files = [folder / name for name in names if (folder / name).resolve() == real / name]
    return sorted(files, key=lambda path: path.stat().st_mtime_ns, reverse=True)


@convert_errors
def _download(request: Request) -> Response:
    files = exports_of(open_library(request.query_params.get("library")))
    name = request.path_params["name"]
    path = next((path for path in files if path.name == name), None)
    if path is None:
        return JSONResponse({"error": f"there is no export named {name!r}. Export it on the Research page."}, 404)
    return FileResponse(path, filename=path.name)


def routes(prefix: str = "") -> list[BaseRoute]:
    return [Route(prefix + "/exports/{name}", _download)]
