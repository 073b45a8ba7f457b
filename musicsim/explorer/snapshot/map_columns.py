"""The columns of a map as bytes for a browser: places, colors and the names of regions.

Each is a line of JSON, padded with spaces so that it ends, with its line feed, at a multiple of four bytes. Arrays
follow, little-endian, with an entry for every song in the order of :class:`MapView`. Places are shares of the home
window: 0 to 1 from left to right and from bottom to top.
"""

import json
from dataclasses import asdict
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float64Array
from musicsim.errors import NotFoundError
from musicsim.explorer.snapshot.map_colours import colouring, colours_offered, regions_of
from musicsim.explorer.snapshot.map_view import Window, map_view
from musicsim.explorer.snapshot.snapshot import Snapshot

_STEPS = 65_535  # along each axis: a third of a pixel at the largest zoom

Places = npt.NDArray[np.floating[Any]]


def to_unit(home: Window, places: Places) -> Float64Array:
    """Return places (n, 2) as shares of the map's width and height."""
    low, size = np.array([home.left, home.bottom]), np.array([home.right - home.left, home.top - home.bottom])
    return np.asarray((places.astype(np.float64) - low) / size)


def from_unit(home: Window, x: npt.ArrayLike, y: npt.ArrayLike) -> tuple[list[float], list[float]]:
    """Return shares of the map's width and height as coordinates in the map's unit."""
    across = home.left + np.asarray(x, dtype=np.float64) * (home.right - home.left)
    up = home.bottom + np.asarray(y, dtype=np.float64) * (home.top - home.bottom)
    return across.tolist(), up.tolist()


def map_column(snapshot: Snapshot, name: str) -> bytes:
    """Return a column of the map; raise NotFoundError for an unknown one.

    Columns are "places": song ids (uint32), then x, then y (uint16); "regions": JSON alone; and each of
    :func:`musicsim.explorer.snapshot.map_colours.colours_offered`: codes (uint8).
    """
    view = map_view(snapshot.map)
    if name == "regions":
        levels = []
        for level in regions_of(snapshot):
            named = [region for region in level if region.name]
            places = to_unit(view.home, np.array([[region.x, region.y] for region in named]).reshape(-1, 2))
            levels.append(
                [
                    {"name": region.name, "x": round(x, 4), "y": round(y, 4), "n": region.n_songs}
                    for region, (x, y) in zip(named, places.tolist(), strict=True)
                ]
            )
        return _pack({"levels": levels})
    ids = snapshot.row_ids[view.rows]
    # the same in all columns with the same songs in the same order
    order = blake2b(ids.tobytes(), digest_size=8).hexdigest()
    if name == "places":
        x, y = np.round(to_unit(view.home, snapshot.map[view.rows]) * _STEPS).astype("<u2").T
        return _pack({"n": len(ids), "order": order}, ids.astype("<u4"), x, y)
    if name in colours_offered():
        colours = colouring(snapshot, name)
        scale = asdict(colours.scale) if colours.scale else None
        header = {"order": order, "entries": [asdict(entry) for entry in colours.entries], "scale": scale}
        return _pack(header, colours.codes[view.rows])
    raise NotFoundError(
        f"a map does not have a column {name!r}: ask for places, regions, {', '.join(colours_offered())}."
    )


def _pack(header: dict[str, Any], *arrays: npt.NDArray[Any]) -> bytes:
    line = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    line += b" " * (-(len(line) + 1) % 4) + b"\n"
    return line + b"".join(array.tobytes() for array in arrays)
