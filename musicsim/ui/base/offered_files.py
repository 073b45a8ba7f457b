"""Files that pages offer, at addresses of our own: Streamlit replaces a button's file with each run of the page."""

import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote
from weakref import WeakValueDictionary

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from musicsim.api import status_of
from musicsim.errors import MusicsimError
from musicsim.public import safe_message, visitor_may
from musicsim.ui.base.keys import Key
from musicsim.ui.base.scripts import component

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _File:
    make: Callable[[], bytes | str]
    name: str
    mime: str


@dataclass(slots=True, weakref_slot=True, eq=False)
class _Link:
    """The address of a button's file, with the file of the latest run."""

    token: str
    file: _File


# a button keeps its link in all runs of a session, so that a click during a run gets a file
_LINKS: Key[dict[str, _Link]] = Key("downloads", dict, "links of this session's files, keyed by the button's key")
_offered: WeakValueDictionary[str, _Link] = WeakValueDictionary()  # by token; a link ends with its session


def download(
    label: str, make: Callable[[], bytes | str], file_name: str, mime: str, *, key: str,
    type: Literal["primary", "secondary", "tertiary"] = "secondary", disabled: bool = False, help: str | None = None,
) -> None:  # fmt: skip
    """Show a button that calls `make` in a thread without a session, and downloads the result as `file_name`.

    `key` must be unique in the session.
    """
    file = _File(make, file_name, mime)
    link = _LINKS.get().setdefault(key, _Link(secrets.token_urlsafe(24), file))
    link.file = file
    _offered[link.token] = link
    data = {
        "label": label, "address": f"files/{link.token}", "name": file_name, "type": type, "isOff": disabled,
        "help": help or "",
    }  # fmt: skip
    component("ui/assets/download.js")(key=key, data=data, width="content", height="content")


@visitor_may  # the token is the permission
def _send_file(request: Request) -> Response:
    link = _offered.get(request.path_params["token"])
    if link is None:
        return JSONResponse({"error": "this file is no longer offered: reload the page."}, 404)
    file = link.file
    try:
        content = file.make()
    except MusicsimError as error:
        return JSONResponse({"error": safe_message(error)}, status_of(error))
    except Exception:
        _log.exception("a file for a download could not be made")
        return JSONResponse({"error": "the file could not be made. The app's log says why."}, 500)
    headers = {
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(file.name, safe='')}",
        "Cache-Control": "no-store",
    }
    return Response(content, media_type=file.mime, headers=headers)


def file_routes(prefix: str = "") -> list[BaseRoute]:
    """Return the route of the files; `prefix` comes from :func:`musicsim.api.path_prefix`."""
    return [Route(f"{prefix}/files/{{token}}", _send_file)]
