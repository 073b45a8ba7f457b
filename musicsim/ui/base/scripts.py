"""Scripts of the pages, which the browser loads once, from addresses that change with their content.

All scripts, styles and templates in ``musicsim/web`` and in the folders ``assets`` of the pages and the extensions are
served below one folder, ``scripts/HASH/``, with their paths in the package. Scripts can therefore import each other by
relative paths. Browsers keep the files for good, because the hash is that of all files.

Streamlit sends the script of a component to the browser in every run, so that script only loads the real one.
"""

from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import streamlit as st
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from musicsim.public import visitor_may

_PACKAGE = Path(__file__).resolve().parents[2]
_KINDS = {".js": "text/javascript", ".css": "text/css", ".html": "text/html"}
_UNCHANGING = {"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"}
# Streamlit's own script has the app's address under any base path, even if the page's address has changed. Calls wait
# for the same promise, so newer data cannot overtake older data.
_LOADER = r"""
const loaded = performance.getEntriesByType("resource");
const [app] = loaded.flatMap(({ name }) => name.match(/^.*\/(?=static\/js\/index\.)/) ?? []);
const loading = import(new URL("ADDRESS", app ?? document.baseURI));
export default async (component) => (await loading).default(component);
"""


@cache
def _files() -> dict[str, bytes]:
    """Return the content of all files, keyed by their paths in the package."""
    paths = sorted([*_PACKAGE.glob("web/**/*"), *_PACKAGE.glob("**/assets/**/*")])
    paths = [path for path in paths if path.suffix in _KINDS]
    return {path.relative_to(_PACKAGE).as_posix(): path.read_bytes() for path in paths}


@cache
def _folder() -> str:
    """Return the address of all files, relative to the app."""
    content = sha256()
    for name, data in _files().items():
        content.update(f"{name} {len(data)}\n".encode())
        content.update(data)
    return f"scripts/{content.hexdigest()[:16]}"


def loader(path: str) -> str:
    """Return a short script that loads the script at a path in the package, and calls its function."""
    if path not in _files():
        raise ValueError(f"there is no script {path}")
    return _LOADER.replace("ADDRESS", f"{_folder()}/{path}")


def component(path: str, *, isolate_styles: bool = True) -> Callable[..., Any]:
    """Return a component made of the script at a path in the package, such as ``web/songs/list.js``.

    The script applies its styles.
    """
    name = path.removesuffix(".js").replace("/", "_")
    return st.components.v2.component(f"musicsim_{name}", js=loader(path), isolate_styles=isolate_styles)


@visitor_may
async def _file(request: Request) -> Response:
    name = request.path_params["name"]
    data = _files().get(name)
    if data is None:
        return Response(status_code=404)
    return Response(data, media_type=_KINDS[Path(name).suffix], headers=_UNCHANGING)


def script_routes(prefix: str = "") -> list[BaseRoute]:
    """Return the route of the scripts; `prefix` comes from :func:`musicsim.api.path_prefix`."""
    return [Route(f"{prefix}/{_folder()}/{{name:path}}", _file)]
