"""The columns of a map as bytes for a browser: places, colours and the names of regions.

Each is a line of JSON, ended by a line feed and filled up with spaces to a multiple of four bytes, and arrays
behind it, little-endian, with an entry for every song in the order of :class:`MapView`. Places are in the unit of
the map's home: 0 to 1 from left to right and from bottom to top.
"""

import json
from dataclasses import asdict
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float64Array
from musicsim.errors import NotFoundError
from musicsim.explorer.snapshot.map_colours import colouring, colours_offered
from musicsim.explorer.snapshot.map_regions import regions_of
from musicsim.explorer.snapshot.map_view import Window, map_view
from musicsim.explorer.snapshot.snapshot import Snapshot

_STEPS = 65_535  # of a place along each axis: a third of a pixel at the closest look

Places = npt.NDArray[np.floating[Any]]


def to_unit(home: Window, places: Places) -> Float64Array:
    """Places (n, 2) as shares of the map's width and height."""
    low, size = np.array([home.left, home.bottom]), np.array([home.right - home.left, home.top - home.bottom])
    return np.asarray((places.astype(np.float64) - low) / size)


def from_unit(home: Window, x: npt.ArrayLike, y: npt.ArrayLike) -> tuple[list[float], list[float]]:
    """Coordinates in the map's unit of shares of its width and height."""
    across = home.left + np.asarray(x, dtype=np.float64) * (home.right - home.left)
    up = home.bottom + np.asarray(y, dtype=np.float64) * (home.top - home.bottom)
    return across.tolist(), up.tolist()


def map_column(snapshot: Snapshot, name: str) -> bytes:
    """A column of the map. Raises NotFoundError if there is no such column.

    "places": song ids (uint32), then x, then y (uint16); "regions": JSON alone; or one of
    :func:`musicsim.explorer.snapshot.map_colours.colours_offered`: codes (uint8).
    """
    if name == "places":
        return _places(snapshot)
    if name == "regions":
        return _regions(snapshot)
    if name in colours_offered():
        return _colours(snapshot, name)
    raise NotFoundError(
        f"there is no column {name!r} of a map: ask for places, regions, {', '.join(colours_offered())}."
    )


def _packed(said: dict[str, Any], *arrays: npt.NDArray[Any]) -> bytes:
    header = json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    header += b" " * (-(len(header) + 1) % 4) + b"\n"
    return header + b"".join(array.tobytes() for array in arrays)


def _order(snapshot: Snapshot) -> str:
    """What two columns of the same songs in the same order have in common."""
    view = map_view(snapshot.map)
    return blake2b(snapshot.row_ids[view.rows].tobytes(), digest_size=8).hexdigest()


def _places(snapshot: Snapshot) -> bytes:
    view = map_view(snapshot.map)
    ids = snapshot.row_ids[view.rows].astype("<u4")
    x, y = np.round(to_unit(view.home, snapshot.map[view.rows]) * _STEPS).astype("<u2").T
    return _packed({"n": len(ids), "order": _order(snapshot)}, ids, x, y)


def _colours(snapshot: Snapshot, by: str) -> bytes:
    made = colouring(snapshot, by)
    said = {
        "order": _order(snapshot),
        "entries": [asdict(entry) for entry in made.entries],
        "scale": asdict(made.scale) if made.scale else None,
    }
    return _packed(said, made.codes[map_view(snapshot.map).rows])


def _regions(snapshot: Snapshot) -> bytes:
    home = map_view(snapshot.map).home
    levels = []
    for level in regions_of(snapshot):
        named = [region for region in level if region.name]
        places = to_unit(home, np.array([[region.x, region.y] for region in named]).reshape(-1, 2))
        levels.append(
            [
                {"name": region.name, "x": round(x, 4), "y": round(y, 4), "n": region.n_songs}
                for region, (x, y) in zip(named, places.tolist(), strict=True)
            ]
        )
    return _packed({"levels": levels})
