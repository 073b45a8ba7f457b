"""The application: Streamlit pages, routes for audio, and the HTTP interface."""

import gc
import logging
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import streamlit as st
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.routing import Route

from musicsim import __version__, logs
from musicsim.api import Guard, TokenGate, Visitors, filter_routes, path_prefix, read_allowed_hosts, routes
from musicsim.api.streams import MessageDialect
from musicsim.api.token_gate import VARIABLE
from musicsim.blas import one_blas_thread
from musicsim.explorer import default_folder
from musicsim.explorer.search.uploads import VISITORS_MB
from musicsim.hooks import Lifespan
from musicsim.parsing import parse_in_turn
from musicsim.public import is_public, visitor_may
from musicsim.registry import load_hooks
from musicsim.ui.base.desk import release_memory, task_routes
from musicsim.ui.base.first_paint import first_paint_routes
from musicsim.ui.base.frame import SHELL
from musicsim.ui.base.offered_files import file_routes
from musicsim.ui.base.page_messages import (
    STORED_RUNS,
    MessageCache,
    filter_message,
    is_of_a_page,
    is_reconnection,
    is_rerun,
)
from musicsim.ui.base.runtime import set_options, uploads_of
from musicsim.ui.base.scripts import script_routes
from musicsim.ui.base.text import show_error
from musicsim.ui.base.watching import run_routes

_log = logging.getLogger(__name__)
# With fast reruns, a rerun of the page would end the run of the last click, even before it has processed the click.
# Each message from a page would also start a thread, and the event loop would wait for it.
_OPTIONS = {"runner.fastReruns": False, "global.maxCachedMessageAge": STORED_RUNS}
_VISITOR_OPTIONS = {
    "server.headless": True,
    "server.maxUploadSize": VISITORS_MB,
    "server.disconnectedSessionTTL": 30,  # seconds
    "client.showErrorDetails": "none",
    "logger.enableRich": False,  # rich prints errors past the log, with their messages
    "runner.postScriptGC": False,  # with twenty sessions, it took longer than the script; Python still collects garbage
}
_MAX_FORM_BYTES = 1 << 20  # maximum size of the multipart request, excluding the uploaded file


_MOVED = {
    "listen": ("", ""),  # Streamlit serves the first page only at the root
    "explore": ("", ""),
    "search": ("", ""),
    "compare": ("train", "section=compare"),
    "evaluate": ("research", ""),
}
"""The new page and query for each former address."""


@visitor_may
def _redirect(request: Request) -> RedirectResponse:
    root, _, name = request.url.path.rstrip("/").rpartition("/")
    page, section = _MOVED[name]
    query = "&".join(filter(None, (section, request.url.query)))
    return RedirectResponse(f"{root}/{page}" + (f"?{query}" if query else ""))


def _collect_garbage() -> None:
    """Collect garbage and release memory; it takes a tenth of a second, so this waits until all visitors have left."""
    gc.collect()
    release_memory()


@asynccontextmanager
async def _lifespan(_app: st.App) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        # After each product, idle BLAS threads keep a core busy for a while; with two cores, pages became slower.
        stack.enter_context(one_blas_thread())
        for enter in [] if is_public() else load_hooks(Lifespan):
            await stack.enter_async_context(enter())
        yield


def app_options() -> dict[str, Any]:
    """Return the options of ``st.App`` for the script :data:`SHELL`, and start logging in the default library."""
    parse_in_turn()
    logs.begin()
    logs.keep_log(default_folder())
    _log.info("the app is starting, version %s", logs.Public(__version__))
    prefix = path_prefix(st.get_option("server.baseUrlPath") or "")
    pages = first_paint_routes(prefix)
    set_options(_OPTIONS | (_VISITOR_OPTIONS if is_public() else {}))
    moved = [Route(f"{prefix}/{name}", _redirect) for name in _MOVED]
    answered = filter_routes(
        [
            *routes(prefix),
            *script_routes(prefix),
            *file_routes(prefix),
            *run_routes(prefix),
            *task_routes(prefix),
            *moved,
            *pages,
        ]
    )
    middleware = [Middleware(Guard, names=read_allowed_hosts())]
    if is_public():
        limits = Middleware(
            Visitors, dialect=MessageDialect(is_of_a_page, is_rerun, filter_message, is_reconnection),
            uploads_of=uploads_of, when_left=_collect_garbage, max_file=(VISITORS_MB << 20) + _MAX_FORM_BYTES,
            page_paths=frozenset(route.path for route in pages),
        )  # fmt: skip
        middleware.append(limits)
    elif token := os.environ.get(VARIABLE):
        middleware.append(Middleware(TokenGate, token=token, routes=answered))
    middleware.append(Middleware(MessageCache))  # after the limits, which delay requests
    return {"routes": answered, "middleware": middleware, "on_script_error": show_error, "lifespan": _lifespan}


def make_app() -> st.App:
    """Return the app for :mod:`musicsim.cli.app`."""
    return st.App(SHELL, **app_options())
