"""The map on a page: it keeps its zoom through reruns, and tells what is looked at, clicked and encircled."""

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import streamlit as st

from musicsim.explorer.snapshot.map_view import Shown, Window, map_view
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.ui.base.asset import asset
from musicsim.ui.components.chart_script import CHART_SCRIPT
from musicsim.ui.components.song_map import map_name, map_spec

__all__ = ["map_chart"]

_MAX_CORNERS = 5_000  # of an outline; a hand draws some hundreds


@st.fragment
def map_chart(
    snapshot: Snapshot,
    *,
    key: str,
    colour_by: str = "genre",
    chosen: int | None = None,
    found: Sequence[int] = (),
    query: npt.NDArray[np.float32] | None = None,
    height: int = 600,
    legend: bool = True,
    on_pick: Callable[[int], None] | None = None,
    on_outline: Callable[[npt.NDArray[np.int64]], None] | None = None,
) -> None:
    """Show the map, with words on what is drawn where that is a sample.

    A fragment: where the listener zooms or moves a large map, only it is drawn anew, with the songs there.

    Parameters
    ----------
    key : str
        Unique on the page.
    colour_by, chosen, found, query, height, legend
        As :func:`musicsim.ui.components.song_map.map_spec` takes them.
    on_pick : callable of a song id, optional
        A point was clicked. Called as a widget's callback; the page runs anew after it.
    on_outline : callable of song ids, int64 (n_inside,), optional
        Songs were encircled: the ids of all of them, also of those that are not drawn, in the order of the sample.
        Called as `on_pick`.
    """
    window = _window(st.session_state.get(key, {}).get("window"), snapshot)
    spec = map_spec(
        snapshot, colour_by, chosen=chosen, found=found, query=query, window=window, height=height, legend=legend
    )  # fmt: skip

    def picked() -> None:
        song_id = st.session_state[key].get("picked")
        if on_pick is not None and isinstance(song_id, int) and len(snapshot.songs_by_id([song_id])):
            on_pick(song_id)
            st.rerun()

    def encircled() -> None:
        corners = _corners(st.session_state[key].get("outline"))
        if on_outline is not None and corners is not None:
            on_outline(snapshot.row_ids[map_view(snapshot.map).inside(*corners)])
            st.rerun()

    component = st.components.v2.component(
        "musicsim_map", js=asset("map_chart.js"), css=asset("map_chart.css"), isolate_styles=False
    )
    view = map_view(snapshot.map)
    component(
        key=key,
        data={
            "figure": json.dumps(spec),
            "name": map_name(snapshot),
            "script": CHART_SCRIPT,
            "height": height,
            "has_lasso": on_outline is not None,
            "is_sampled": view.is_sampled,
            "alt": f"Map of {len(view.rows):,} songs",
        },
        height="content",
        on_window_change=lambda: None,
        on_picked_change=picked,
        on_outline_change=encircled,
    )
    if view.is_sampled:
        st.caption(_words(view.shown(window), len(view.rows)))


def _words(shown: Shown, n_songs: int) -> str:
    n_points, n_here = len(shown.rows), shown.n_here
    if n_points == n_here:
        return f"All {n_here:,} songs in view are shown as points." if n_here else "No songs in view."
    where = "" if n_here == n_songs else " in view"
    return (
        f"{n_points:,} of the {n_here:,} songs{where} are shown as points; darker areas hold more "
        "songs. Zoom in to see the rest."
    )


def _window(sent: Any, snapshot: Snapshot) -> Window | None:
    """What the browser says it looks at; None for the whole map, and where it speaks of another map."""
    if not isinstance(sent, dict) or sent.get("name") != map_name(snapshot):
        return None
    limits: list[Any] = [sent.get(side) for side in ("left", "right", "bottom", "top")]
    if not _are_numbers(limits):
        return None
    window = Window(*map(float, limits))
    return window if window.left < window.right and window.bottom < window.top else None


def _corners(sent: Any) -> tuple[list[float], list[float]] | None:
    """An outline as the browser wrote it; None when it is none."""
    x, y = (sent.get(axis) for axis in "xy") if isinstance(sent, dict) else (None, None)
    if not (isinstance(x, list) and isinstance(y, list)) or not 3 <= len(x) == len(y) <= _MAX_CORNERS:
        return None
    return (x, y) if _are_numbers(x) and _are_numbers(y) else None


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(value, (int, float)) and math.isfinite(value) for value in values)
