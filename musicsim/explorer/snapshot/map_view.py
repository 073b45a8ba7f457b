"""The songs of a map in drawing order, and the songs inside an outline.

If a library is too large to draw completely, a browser draws the songs in view that come first in this order. The
sample is thus always the same, and its points stay after zooming in.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float32Array, Int64Array
from musicsim.explorer.snapshot.neighbors import Neighbors

MAX_UNFOLDED = 20_000
"""Maximum size of a map on which new songs are placed with the map's own method, which is slow for larger maps."""

_ROOM = 0.06  # margin as a share of the map's width, so that marks at the edge are not cut off
_COARSE, _FINE = 64, 256  # number of cells per side of the grid
_N_NEAREST = 10  # number of neighbors that determine the place of a new song


@dataclass(frozen=True, slots=True)
class Window:
    """A rectangle of the map, in the map's unit."""

    left: float
    right: float
    bottom: float
    top: float


class MapView:
    """The places of songs, and an order whose first n songs are a fair sample for every n.

    One song from each cell of a 64 x 64 grid comes first, so that no region is empty; the others follow at random. In a
    cell of a 256 x 256 grid with c songs, each has weight 1 / sqrt(c), so four times as many songs give twice as many
    points. Songs without a place, nan in `places` (n_songs, 2), are not drawn. Memory: 16 bytes per song, plus 8 bytes
    after the first outline.
    """

    def __init__(self, places: Float32Array, random_state: int = 0) -> None:
        self.places = places
        placed = np.flatnonzero(np.isfinite(places).all(axis=1))
        x, y = places[placed, 0], places[placed, 1]
        self.home = _home(x, y)
        order = _fair_order(x, y, self.home, np.random.default_rng(random_state))
        self.rows: Int64Array = placed[order]
        self._x, self._y = x[order], y[order]

    @cached_property
    def _by_height(self) -> Int64Array:
        return np.argsort(self._y, kind="stable")

    def inside(self, x: Sequence[float], y: Sequence[float]) -> Int64Array:
        """Return the rows of all songs inside an outline, in the order of the sample.

        The last corner is joined to the first. A song is inside if a ray from it to the right crosses an odd number of
        edges. If the outline crosses itself, areas that are enclosed twice are thus outside. Songs are sorted by
        height, so the time per edge is linear in the number of songs at its height.
        """
        order = self._by_height
        heights = self._y[order].astype(np.float64)
        places = self._x[order].astype(np.float64)
        odd = np.zeros(len(order), dtype=bool)
        for x0, y0, x1, y1 in zip(x, y, np.roll(x, -1), np.roll(y, -1), strict=True):
            first, last = np.searchsorted(heights, (min(y0, y1), max(y0, y1)))
            if first < last:
                crossing = x0 + (heights[first:last] - y0) * ((x1 - x0) / (y1 - y0))
                odd[first:last] ^= places[first:last] < crossing
        return self.rows[np.sort(order[odd])]


def place_by_neighbors(places: Float32Array, rows: Int64Array) -> Float32Array:
    """Return the median place (2,) of neighbors, which openTSNE also starts from; nan if none of them has a place."""
    near = places[rows]
    near = near[np.isfinite(near).all(axis=1)]
    return np.median(near, axis=0) if len(near) else np.full(2, np.nan, dtype=np.float32)


def place_vector(
    vector: Float32Array, places: Float32Array, index: Neighbors, unfold: Callable[[Float32Array], Float32Array]
) -> Float32Array:
    """Return a place (2,) on the map for a song that is not on it; nan if it cannot be placed.

    `vector` (n_dimensions,) is the song, `places` (n_songs, 2) is the map, and `index` contains the map's songs. For
    maps of at most :data:`MAX_UNFOLDED` songs, `unfold` places vectors with the map's own method.
    """
    if len(places) <= MAX_UNFOLDED:
        return unfold(vector[None, :])[0]
    _, rows = index.query(vector[None, :], _N_NEAREST)
    return place_by_neighbors(places, rows[0])


def _home(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> Window:
    if not len(x):
        return Window(-1.0, 1.0, -1.0, 1.0)
    low, high = (float(x.min()), float(y.min())), (float(x.max()), float(y.max()))
    room = [max(_ROOM * (b - a), 1e-3) for a, b in zip(low, high, strict=True)]
    return Window(low[0] - room[0], high[0] + room[0], low[1] - room[1], high[1] + room[1])


def _fair_order(x: npt.NDArray[Any], y: npt.NDArray[Any], home: Window, rng: np.random.Generator) -> Int64Array:
    """Return songs in the order of :class:`MapView`: a weighted sample (Efraimidis and Spirakis 2006)."""

    def cells(values: npt.NDArray[Any], low: float, high: float) -> Int64Array:
        scaled = (values.astype(np.float64) - low) * (_FINE / max(high - low, _FINE * np.finfo(float).tiny))
        return np.clip(scaled, 0, _FINE - 1).astype(np.int64)

    across, up = cells(x, home.left, home.right), cells(y, home.bottom, home.top)
    fine = up * _FINE + across
    counts = np.bincount(fine, minlength=_FINE**2)
    order = np.argsort(rng.exponential(size=len(x)) * np.sqrt(counts[fine]))
    step = _FINE // _COARSE
    coarse = (up // step * _COARSE + across // step)[order]
    is_first = np.zeros(len(x), dtype=bool)
    is_first[np.unique(coarse, return_index=True)[1]] = True
    return np.concatenate([order[is_first], order[~is_first]])
