"""Plotly for the browser, from the Python package's own file: a route beside Streamlit's.

Streamlit's plotly chart makes a new plot for every change of its figure, and so forgets where one had zoomed to.
The map (:mod:`musicsim.ui.components.map_chart`) keeps its plot and needs the library itself.
"""

from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse
from starlette.routing import BaseRoute, Route

__all__ = ["CHART_SCRIPT", "chart_routes"]

CHART_SCRIPT = f"charts/plotly-{version('plotly')}.min.js"
"""Address of the script, from where the app is served; another version has another one."""


def _script(_: Request) -> FileResponse:
    package = find_spec("plotly")
    assert package is not None
    assert package.origin is not None
    return FileResponse(
        Path(package.origin).parent / "package_data" / "plotly.min.js",
        media_type="text/javascript",
        headers={"Cache-Control": "public, max-age=31536000, immutable"},
    )


def chart_routes(base: str = "") -> list[BaseRoute]:
    """Routes for ``st.App``.

    Parameters
    ----------
    base : str
        The path the app is served under (``server.baseUrlPath``), which Streamlit adds to its own routes only.
    """
    return [Route("/" + "/".join(part for part in (base.strip("/"), CHART_SCRIPT) if part), _script)]
