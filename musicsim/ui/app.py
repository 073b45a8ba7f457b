"""The application: Streamlit's pages with the routes for sound and the HTTP interface beside them."""

import logging
from typing import Any

import streamlit as st
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.routing import Route

from musicsim import __version__, logs
from musicsim.api import Guard, named_hosts, routes
from musicsim.explorer.libraries import default_folder
from musicsim.ui.base.frame import SHELL
from musicsim.ui.base.script_errors import show_error
from musicsim.ui.components.player_routes import player_routes
from musicsim.ui.components.song_map import map_script_routes

_log = logging.getLogger(__name__)


def _explore(request: Request) -> RedirectResponse:
    """Explore is the first page, which Streamlit serves at the root only."""
    root = request.url.path.rstrip("/").removesuffix("explore")
    return RedirectResponse(root + (f"?{request.url.query}" if request.url.query else ""))


def app_options() -> dict[str, Any]:
    """Options of ``st.App`` for the script :data:`SHELL`; what the app logs goes to the library that it opens first."""
    logs.begin()
    logs.keep_in(default_folder())
    _log.info("the app starts, version %s", logs.Public(__version__))
    base = st.get_option("server.baseUrlPath") or ""
    first_page = Route("/" + f"{base}/explore".strip("/"), _explore)
    return {
        "routes": [*routes(base), *map_script_routes(base), *player_routes(base), first_page],
        "middleware": [Middleware(Guard, names=named_hosts())],
        "on_script_error": show_error,
    }


def make_app() -> st.App:
    """The app, for a server of our own."""
    return st.App(SHELL, **app_options())
