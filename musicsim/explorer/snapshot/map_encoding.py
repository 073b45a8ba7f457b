"""The encoding of a map's columns for a browser.

Each column is encoded as a line of JSON, followed by little-endian arrays with one entry per song, in the order of
:class:`MapView`. Spaces pad the line, including its line feed, to a multiple of four bytes. Positions are fractions of
the home window: 0 to 1 from left to right and from bottom to top.
"""

import json
from dataclasses import asdict
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float64Array, FloatingArray
from musicsim.errors import NotFoundError
from musicsim.explorer.snapshot.map_columns import coloring, colors_allowed, regions_of
from musicsim.explorer.snapshot.map_contents import map_contents
from musicsim.explorer.snapshot.map_view import Window
from musicsim.explorer.snapshot.snapshot import Snapshot

_STEPS = 65_535  # steps along each axis; a step is a third of a pixel at the largest zoom


def to_unit(home: Window, places: FloatingArray) -> Float64Array:
    """Convert places (n, 2) to shares of the map's width and height."""
    low, size = np.array([home.left, home.bottom]), np.array([home.right - home.left, home.top - home.bottom])
    return np.asarray((places.astype(np.float64) - low) / size)


def from_unit(home: Window, x: npt.ArrayLike, y: npt.ArrayLike) -> tuple[list[float], list[float]]:
    """Convert shares of the map's width and height to coordinates in the map's unit."""
    across = home.left + np.asarray(x, dtype=np.float64) * (home.right - home.left)
    up = home.bottom + np.asarray(y, dtype=np.float64) * (home.top - home.bottom)
    return across.tolist(), up.tolist()


def map_column(snapshot: Snapshot, name: str) -> bytes:
    """Return a column of the map; raise NotFoundError for an unknown one.

    "places" contains song ids (uint32), then x, then y (uint16). "regions" is JSON only. "contents" contains the number
    of each song's group (uint16). Each column of :func:`colors_allowed` contains codes (uint8).
    """
    view = snapshot.map_view
    if name == "regions":
        levels: list[list[dict[str, Any]]] = []
        for level in regions_of(snapshot):
            levels.append([])
            for region in level:
                if region.name:
                    x, y = to_unit(view.home, np.array([region.x, region.y])).round(4).tolist()
                    levels[-1].append({"name": region.name, "x": x, "y": y, "n": region.n_songs})
        return _pack({"levels": levels})
    ids = snapshot.row_ids[view.rows]
    # columns with the same digest have the same songs in the same order
    order = blake2b(ids.tobytes(), digest_size=8).hexdigest()
    if name == "places":
        x, y = np.round(to_unit(view.home, view.places[view.rows]) * _STEPS).astype("<u2").T
        return _pack({"n": len(ids), "order": order}, ids.astype("<u4"), x, y)
    if name == "contents":
        contents = map_contents(snapshot)
        return _pack({"order": order, **contents.describe()}, contents.codes[view.rows].astype("<u2"))
    if name in colors_allowed():
        colors = coloring(snapshot, name)
        scale = asdict(colors.scale) if colors.scale else None
        header = {"order": order, "entries": [asdict(entry) for entry in colors.entries], "scale": scale}
        return _pack(header, colors.codes[view.rows])
    raise NotFoundError(
        f"{name!r} is not a column of a map: use places, regions, contents, {', '.join(colors_allowed())}."
    )


def _pack(header: dict[str, Any], *arrays: npt.NDArray[Any]) -> bytes:
    line = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    line += b" " * (-(len(line) + 1) % 4) + b"\n"
    return line + b"".join(array.tobytes() for array in arrays)
