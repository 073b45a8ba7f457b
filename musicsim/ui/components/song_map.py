"""The map on a page: every song a point, with what is chosen, found and asked for marked.

The browser fetches places, colours and names of regions by itself (:mod:`musicsim.api.maps`); only ids of what is
marked come from here. A click, an outline and a song that is to be heard come back.
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st
from starlette.requests import Request
from starlette.responses import FileResponse
from starlette.routing import BaseRoute, Route

from musicsim._arrays import Float32Array, Int64Array
from musicsim.explorer.snapshot.map_colours import colouring
from musicsim.explorer.snapshot.map_columns import from_unit, to_unit
from musicsim.explorer.snapshot.map_view import map_view
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.public import visitor_may
from musicsim.ui.base.asset import asset

MAX_MARKED = 2_000
"""Songs that get a ring: more of them are one black spot."""
_MAX_CORNERS = 5_000  # of an outline; a hand draws some hundreds
_SCRIPT = "regl-scatterplot-1.16.0.min.js"
_ADDRESS = f"scripts/{_SCRIPT}"  # from where the app is served; another version has another one


@st.fragment
def song_map(
    snapshot: Snapshot,
    *,
    key: str,
    colour_by: str = "genre",
    chosen: int | None = None,
    found: Sequence[int] | Int64Array = (),
    path: Sequence[int] = (),
    query: Float32Array | None = None,
    height: int | None = 480,
    legend: bool = True,
    on_pick: Callable[[int], None] | None = None,
    on_hear: Callable[[int], None] | None = None,
    on_outline: Callable[[Int64Array], None] | None = None,
) -> None:
    """Show the map.

    A fragment: a song that is heard runs nothing else.

    Parameters
    ----------
    key : str
        Unique on the page.
    colour_by : one of :data:`musicsim.explorer.snapshot.map_colours.COLOUR_BY`
    chosen : int, optional
        Id of the song that is marked.
    found : sequence of int
        Ids of songs with a ring: neighbours, or what a search found; the first :data:`MAX_MARKED` of them.
    path : sequence of int
        Ids of songs joined by a line, as a playlist.
    query : float32 ndarray of shape (2,), optional
        Place of a star, in the map's unit.
    height : int or None
        In pixels; None for what is left of the window, with names of regions.
    legend : bool
        Say below the map what the colours mean.
    on_pick : callable of a song id, optional
        A point was clicked. Called as a widget's callback; the page runs again after it.
    on_hear : callable of a song id, optional
        The pointer rests on a song, and the listener wants to hear such songs. Only the map runs after it.
    on_outline : callable of song ids, int64 (n_inside,), optional
        Songs were encircled: the ids of all of them, also of those that are not drawn. Called as `on_pick`.
    """
    view = map_view(snapshot.map)

    def picked() -> None:
        song_id = _song_id(snapshot, st.session_state[key].get("picked"))
        if on_pick is not None and song_id is not None:
            on_pick(song_id)
            st.rerun()

    def heard() -> None:
        song_id = _song_id(snapshot, st.session_state[key].get("heard"))
        if on_hear is not None and song_id is not None:
            on_hear(song_id)

    def encircled() -> None:
        sent = st.session_state[key].get("outline")
        corners = _corners(sent)
        if on_outline is not None and corners is not None:
            rows = view.inside(*from_unit(view.home, *corners))
            on_outline(snapshot.row_ids[_of_entries(snapshot, rows, colour_by, sent.get("only"))])
            st.rerun()

    component = st.components.v2.component(
        "musicsim_map",
        js=asset("save_figure.js") + asset("map_points.js") + asset("map.js"),
        css=asset("map.css"),
        isolate_styles=False,
    )
    model = snapshot.record.id if snapshot.record else ""
    star = None if query is None or not np.isfinite(query).all() else to_unit(view.home, query[None, :])[0]
    component(
        key=key,
        data={
            "map": {"model": model, "library": snapshot.library.name, "revision": snapshot.revision},
            "script": _ADDRESS,
            "colour_by": colour_by,
            "chosen": chosen,
            "found": [int(i) for i in found[:MAX_MARKED]],
            "path": list(path),
            "query": None if star is None else star.tolist(),
            "height": height,
            "legend": legend,
            "can_select": on_outline is not None,
            "can_hear": on_hear is not None,
            "alt": f"Map of {len(view.rows):,} songs. Arrow keys go from song to song, Enter plays.",
        },
        height="content",
        on_picked_change=picked,
        on_heard_change=heard,
        on_outline_change=encircled,
    )


def _song_id(snapshot: Snapshot, sent: Any) -> int | None:
    """A song id as the browser wrote it; None when it is none, or of a song that has gone."""
    return sent if isinstance(sent, int) and len(snapshot.songs_by_id([sent])) else None


def _corners(sent: Any) -> tuple[list[float], list[float]] | None:
    """An outline as the browser wrote it; None when it is none."""
    x, y = (sent.get(axis) for axis in "xy") if isinstance(sent, dict) else (None, None)
    if not (isinstance(x, list) and isinstance(y, list)) or not 3 <= len(x) == len(y) <= _MAX_CORNERS:
        return None
    return (x, y) if all(isinstance(v, int | float) and math.isfinite(v) for v in [*x, *y]) else None


def _of_entries(snapshot: Snapshot, rows: Int64Array, by: str, codes: Any) -> Int64Array:
    """Those of some rows that have one of the codes of a legend; all of them without codes."""
    if not isinstance(codes, list):
        return rows
    return rows[np.isin(colouring(snapshot, by).codes[rows], [c for c in codes if isinstance(c, int)])]


def map_script_routes(prefix: str = "") -> list[BaseRoute]:
    """The address of what draws the points, for ``st.App``.

    Parameters
    ----------
    prefix : str
        The path the app is served under, as :func:`musicsim.api.path_prefix` writes it.
    """
    file = Path(__file__).resolve().parents[1] / "assets" / "vendor" / _SCRIPT

    @visitor_may
    def script(_: Request) -> FileResponse:
        unchanging = {"Cache-Control": "public, max-age=31536000, immutable"}
        return FileResponse(file, media_type="text/javascript", headers=unchanging)

    return [Route(f"{prefix}/{_ADDRESS}", script)]
