"""The HTML that browsers show until the app has started: Streamlit's page with our title, icon and colors."""

from functools import cache
from hashlib import sha256
from importlib.resources import files
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from musicsim.api.responses import is_known
from musicsim.public import visitor_may
from musicsim.ui.base.frame import ICON, PAGES, asset


@cache
def _page() -> tuple[str, str]:
    """Return the page and its ETag; parts that this version of Streamlit does not contain are not replaced."""
    # Streamlit has no option for this: https://github.com/streamlit/streamlit/issues/9058
    html = (files("streamlit") / "static" / "index.html").read_text(encoding="utf-8")
    icon = f"data:image/svg+xml,{quote(ICON)}"
    html = html.replace("<title>Streamlit</title>", f"<title>musicsim</title><style>{asset('first_paint.css')}</style>")
    html = html.replace('href="./favicon.png"', f'href="{icon}"')
    return html, f'"{sha256(html.encode()).hexdigest()[:16]}"'


@visitor_may
def _first_paint(request: Request) -> Response:
    html, tag = _page()
    headers = {"Cache-Control": "no-cache", "ETag": tag}
    if is_known(request, tag):
        return Response(status_code=304, headers=headers)
    return Response(html, media_type="text/html", headers=headers)


def first_paint_routes(prefix: str = "") -> list[Route]:
    """Return a route for each page's address; `prefix` comes from :func:`musicsim.api.path_prefix`."""
    return [Route(f"{prefix}/{name}", _first_paint) for name in ("", *PAGES) if name != "listen"]
