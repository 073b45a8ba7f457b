"""The application: Streamlit's pages with the routes for sound and the HTTP interface beside them."""

import logging
from typing import Any, cast

import streamlit as st
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.routing import Route
from streamlit import config
from streamlit.runtime import get_instance
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager

from musicsim import __version__, logs
from musicsim._parsing import parse_in_turn
from musicsim.api import Guard, Visitors, named_hosts, offered, path_prefix, routes
from musicsim.explorer.libraries import default_folder
from musicsim.explorer.search.uploads import VISITORS_MB
from musicsim.public import is_public, visitor_may
from musicsim.ui.base.frame import SHELL
from musicsim.ui.base.memory import tidy_up
from musicsim.ui.base.page_messages import filter_message, is_of_a_page, rerun_of
from musicsim.ui.base.script_errors import show_error
from musicsim.ui.components.player_routes import player_routes
from musicsim.ui.components.song_map import map_script_routes

_log = logging.getLogger(__name__)
_FOR_VISITORS = {
    "server.headless": True,
    "server.maxUploadSize": VISITORS_MB,
    "server.disconnectedSessionTTL": 30,  # seconds
    "client.showErrorDetails": "none",
    "runner.fastReruns": False,  # else each message of a page starts a thread, and the event loop waits for it
    "runner.postScriptGC": False,  # with twenty sessions it took longer than the run; Python collects by itself
}
_FRAME_OF_A_FILE = 1 << 20  # bytes around a file that a page sends, at most


@visitor_may
def _explore(request: Request) -> RedirectResponse:
    """Explore is the first page, which Streamlit serves at the root only."""
    root = request.url.path.rstrip("/").removesuffix("explore")
    return RedirectResponse(root + (f"?{request.url.query}" if request.url.query else ""))


def uploads_of(session: str) -> tuple[int, int]:
    """How many files a session of Streamlit holds, and how many bytes all sessions hold together."""
    held = cast(MemoryUploadedFileManager, get_instance().uploaded_file_mgr).file_storage
    n_bytes = sum(len(file.data) for files in list(held.values()) for file in list(files.values()))
    return len(held.get(session, ())), n_bytes


def app_options() -> dict[str, Any]:
    """Options of ``st.App`` for the script :data:`SHELL`; what the app logs goes to the library that it opens first."""
    parse_in_turn()
    logs.begin()
    logs.keep_in(default_folder())
    _log.info("the app starts, version %s", logs.Public(__version__))
    prefix = path_prefix(st.get_option("server.baseUrlPath") or "")
    visits = is_public()
    if visits:
        for option, value in _FOR_VISITORS.items():
            config.set_option(option, value)
    limits = Middleware(
        Visitors,
        is_of_a_page=is_of_a_page,
        rerun_of=rerun_of,
        filter_message=filter_message,
        uploads_of=uploads_of,
        when_left=tidy_up,
        max_file=(VISITORS_MB << 20) + _FRAME_OF_A_FILE,
    )
    first_page = Route(f"{prefix}/explore", _explore)
    return {
        "routes": offered([*routes(prefix), *map_script_routes(prefix), *player_routes(prefix), first_page]),
        "middleware": [Middleware(Guard, names=named_hosts()), *([limits] if visits else [])],
        "on_script_error": show_error,
    }


def make_app() -> st.App:
    """The app, for a server of our own."""
    return st.App(SHELL, **app_options())
