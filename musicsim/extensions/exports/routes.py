"""Downloads of exported files."""

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route

from musicsim.api.routes import refused
from musicsim.errors import LibraryError
from musicsim.explorer.libraries import open_library
from musicsim.extensions.exports.made import exports_of


def _export(request: Request) -> Response:
    try:
        made = exports_of(open_library(request.query_params.get("library")))
    except LibraryError as error:
        return refused(error)
    name = request.path_params["name"]
    path = next((path for path in made if path.name == name), None)
    if path is None:
        return JSONResponse({"error": f"there is no export {name!r}. Export it on the Library page."}, 404)
    return FileResponse(path, filename=path.name)


def routes(prefix: str = "") -> list[BaseRoute]:
    """Return the routes, under the path that the app is served at."""
    return [Route(prefix + "/exports/{name}", _export)]
