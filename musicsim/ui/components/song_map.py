"""The map: every song as a point, with marks on the chosen song, results and the query.

The browser fetches positions, colors and region names itself (:mod:`musicsim.api.routes`); this module sends it only
the ids of marked songs. The browser sends clicks, lasso outlines, and the song that the pointer rests on.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import streamlit as st

from musicsim._arrays import Float32Array, Int64Array
from musicsim.explorer.snapshot.map_columns import colouring, from_unit, to_unit
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.ui.base.keys import read_event
from musicsim.ui.base.scripts import component

MAX_MARKED = 2_000
"""Maximum number of songs with a ring; more rings would merge into a black spot."""
_MAX_CORNERS = 5_000  # maximum number of corners of an outline; a hand-drawn outline has a few hundred


@st.fragment
def song_map(
    snapshot: Snapshot, *, key: str, color_by: str = "genre", chosen: int | None = None,
    marked: Sequence[int] | Int64Array = (), path: Sequence[int] = (), query: Float32Array | None = None,
    height: int | None = 480, legend: bool = True, on_pick: Callable[[int], None] | None = None,
    on_hear: Callable[[int], None] | None = None, on_outline: Callable[[Int64Array], None] | None = None,
) -> None:  # fmt: skip
    """Show the map as a fragment, so that playing a song does not rerun other parts of the page.

    Songs are given by id: the `chosen` song, the `marked` songs (the first :data:`MAX_MARKED` get rings), and the songs
    of a `path`. `query`, float32 of shape (2,), is the position of a star in map units. `height` is in pixels; with
    None, the map fills the window and shows region names. `color_by` is one of
    :data:`musicsim.explorer.snapshot.map_columns.COLOUR_BY`.

    `on_pick` gets the id of a clicked song, and `on_outline` the ids (int64) of all songs inside a lasso, drawn or not;
    both rerun the page. `on_hear` gets the id of the song that the pointer rests on; only the map reruns after that.
    """
    view = snapshot.map_view

    def song_sent(name: str) -> int | None:
        sent = read_event(key, name)
        return sent if isinstance(sent, int) and len(snapshot.songs_by_id([sent])) else None

    def pick() -> None:
        song_id = song_sent("picked")
        if on_pick is not None and song_id is not None:
            on_pick(song_id)
            st.rerun()

    def hear() -> None:
        song_id = song_sent("heard")
        if on_hear is not None and song_id is not None:
            on_hear(song_id)

    def outline() -> None:
        sent = read_event(key, "outline")
        corners = parse_corners(sent)
        if on_outline is not None and corners is not None:
            rows = view.inside(*from_unit(view.home, *corners))
            on_outline(snapshot.row_ids[filter_by_legend(snapshot, rows, color_by, sent.get("only"))])
            st.rerun()

    model = snapshot.record.id if snapshot.record else ""
    star = None if query is None or not np.isfinite(query).all() else to_unit(view.home, query[None, :])[0]
    component("map", isolate_styles=False)(
        key=key, height="content", on_picked_change=pick, on_heard_change=hear, on_outline_change=outline,
        data={
            "map": {"model": model, "library": snapshot.library.name, "revision": snapshot.revision},
            "colour_by": color_by, "chosen": chosen,
            "found": [int(i) for i in marked[:MAX_MARKED]], "path": list(path),
            "query": None if star is None else star.tolist(), "height": height, "legend": legend,
            "can_select": on_outline is not None, "can_hear": on_hear is not None,
            "alt": f"Map of {len(view.rows):,} songs. Arrow keys move from song to song; Enter plays the song.",
        },
    )  # fmt: skip


def parse_corners(sent: Any) -> tuple[list[float], list[float]] | None:
    """Return the outline that the browser sent, or None if it is not valid."""
    x, y = (sent.get(axis) for axis in "xy") if isinstance(sent, dict) else (None, None)
    if not (isinstance(x, list) and isinstance(y, list)) or not 3 <= len(x) == len(y) <= _MAX_CORNERS:
        return None
    return (x, y) if all(isinstance(v, int | float) and math.isfinite(v) for v in [*x, *y]) else None


def filter_by_legend(snapshot: Snapshot, rows: Int64Array, color_by: str, codes: Any) -> Int64Array:
    """Return the rows that have one of a legend's codes; without codes, return all rows."""
    if not isinstance(codes, list):
        return rows
    return rows[np.isin(colouring(snapshot, color_by).codes[rows], [code for code in codes if isinstance(code, int)])]
