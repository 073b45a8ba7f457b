"""The routes ``GET /api/daily`` and ``POST /api/daily``, for the owner only."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from musicsim.api.responses import convert_errors
from musicsim.explorer.libraries import open_library
from musicsim.extensions.daily.jobs import start_mixes
from musicsim.extensions.daily.rendering import render_daily


@convert_errors
def _read(request: Request) -> Response:
    """Return the settings and the last mixes."""
    return JSONResponse(render_daily(open_library(request.query_params.get("library"))))


@convert_errors
def _make(request: Request) -> Response:
    """Start the job that makes today's mixes; ``/api/jobs/{job}`` returns its progress."""
    return JSONResponse({"job": start_mixes(open_library(request.query_params.get("library")))}, 202)


def routes(prefix: str = "") -> list[BaseRoute]:
    address = prefix + "/api/daily"
    return [Route(address, _read, methods=["GET"]), Route(address, _make, methods=["POST"])]
