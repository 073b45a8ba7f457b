"""Work that goes on between two runs of a page's script: the browser asks for it, and draws it.

The component ``web/watch/watch.js`` asks an address for a :class:`~musicsim.progress.View`. It asks for a run of the
page if the state of the work has changed. It waits while the user does something or a run is in progress: Streamlit
would end that run, or the callback of a click.
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route

from musicsim.progress import View
from musicsim.public import visitor_may
from musicsim.ui.base.keys import Key
from musicsim.ui.base.scripts import component

SESSION: Key[str] = Key("session", lambda: secrets.token_urlsafe(16), "name of the session, in addresses")
_running: set[str] = set()  # tokens of sessions whose scripts run now
_numbers = count()


@contextmanager
def note_run() -> Iterator[None]:
    """Let browsers know that the session's script runs."""
    token = SESSION.get()
    _running.add(token)
    try:
        yield
    finally:
        _running.discard(token)


def watch(view: View, address: str, *, key: str, every_s: float = 1.0, is_framed: bool = False) -> None:
    """Show a view, and ask `address` for newer ones; run the page when the state of the view has changed."""
    data = view.render() | {
        "address": address, "every": every_s, "isFramed": is_framed,
        "runs": f"runs/{SESSION.get()}", "run": next(_numbers),
    }  # fmt: skip
    component("web/watch/watch.js")(key=key, data=data, height="content", on_changed_change=lambda: None)


@visitor_may
async def _run(request: Request) -> JSONResponse:
    is_running = request.path_params["token"] in _running
    return JSONResponse({"is_running": is_running}, headers={"Cache-Control": "no-store"})


def run_routes(prefix: str = "") -> list[BaseRoute]:
    """Return the route that tells whether a session's script runs now."""
    return [Route(f"{prefix}/runs/{{token}}", _run)]
