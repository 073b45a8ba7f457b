"""The songs of a map in the order in which they are drawn, and what an outline on it holds.

A browser that cannot draw all of a large library draws a sample: the songs in view that come first in this order. So
a sample never changes from one look to the next, and the points of a window stay when one looks closer.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float32Array, Int64Array
from musicsim.explorer.snapshot.neighbours import Neighbours

MAX_UNFOLDED = 20_000
"""Songs up to which a new one is placed by the map's own method, which takes too long beyond."""

_ROOM = 0.06  # of the map's width, around it: marks at the edge are whole
_COARSE, _FINE = 64, 256  # cells a side
_N_NEAREST = 10  # songs whose places give the place of a new one

Source = TypeVar("Source")
Made = TypeVar("Made")


class OncePer(Generic[Source, Made]):
    """A few things made of large objects, found again by the object itself: arrays have no hash.

    `make` takes the object and further hashable arguments. Of more than `most` the one that was not asked for the
    longest goes.
    """

    def __init__(self, make: Callable[..., Made], most: int = 6) -> None:
        self._make, self._most = make, most
        self._lock = threading.Lock()
        # the object is kept, too: its id is its own only while it lives
        self._made: OrderedDict[Hashable, tuple[Source, Made]] = OrderedDict()

    def __call__(self, source: Source, *rest: Hashable) -> Made:
        """What is made of `source`, made now if it is not here."""
        key = (id(source), *rest)
        with self._lock:
            if key not in self._made:
                self._made[key] = source, self._make(source, *rest)
            self._made.move_to_end(key)
            while len(self._made) > self._most:
                self._made.popitem(last=False)
            return self._made[key][1]


@dataclass(frozen=True, slots=True)
class Window:
    """A rectangle of the map, limits in its own unit."""

    left: float
    right: float
    bottom: float
    top: float


class MapView:
    """The places of songs, in an order that makes any first part of them a fair sample.

    First comes a song of each cell of 64 x 64, so that no region is bare, then the others by chance. A song of a fine
    cell of 256 x 256 with c songs weighs 1 / sqrt(c): where four times as many songs are, twice as many are drawn.
    Songs without a place, nan in `places` (n_songs, 2), are not drawn. Memory: 16 bytes a song, and 8 more once an
    outline was asked for.
    """

    def __init__(self, places: Float32Array, random_state: int = 0) -> None:
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
        """Rows of all songs inside of an outline, those that are drawn among them, in the order of the sample.

        Parameters
        ----------
        x, y : sequences of n_corners numbers
            Corners one after the other; the last one is joined to the first. Where it crosses itself, what is
            encircled twice is outside (even-odd rule).

        Notes
        -----
        A song is inside if a ray from it to the right crosses an odd number of edges. Songs are looked at by their
        height, so that an edge asks only those that it may cross: the time goes with the songs at its height.
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


map_view: "OncePer[Float32Array, MapView]" = OncePer(MapView)
"""The view of an array of places, float32 (n_songs, 2); made once an array (0.5 s for 1 000 000 songs)."""


def place_by_neighbours(places: Float32Array, rows: Int64Array) -> Float32Array:
    """A place on the map for a new song, float32 (2,): the median of its nearest neighbours' places.

    For maps that are too large to be unfolded again; openTSNE starts from it, too. Of the nearest `rows` those
    without a place are left out; it is nan where there are no others.
    """
    near = places[rows]
    near = near[np.isfinite(near).all(axis=1)]
    return np.median(near, axis=0) if len(near) else np.full(2, np.nan, dtype=np.float32)


def place_vector(
    vector: Float32Array, places: Float32Array, index: Neighbours, unfold: Callable[[Float32Array], Float32Array]
) -> Float32Array:
    """A place on the map, float32 (2,), for a song that is not on it; nan where it has no place.

    `vector` (n_dimensions,) is the song, `places` (n_songs, 2) the map, and `index` has its songs. `unfold` gives
    places of vectors by the map's own method; it is used up to :data:`MAX_UNFOLDED` songs, beyond which it takes too
    long.
    """
    if len(places) <= MAX_UNFOLDED:
        return unfold(vector[None, :])[0]
    _, rows = index.query(vector[None, :], _N_NEAREST)
    return place_by_neighbours(places, rows[0])


def _home(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> Window:
    """The whole map with room around it."""
    if not len(x):
        return Window(-1.0, 1.0, -1.0, 1.0)
    low, high = (float(x.min()), float(y.min())), (float(x.max()), float(y.max()))
    room = [max(_ROOM * (b - a), 1e-3) for a, b in zip(low, high, strict=True)]
    return Window(low[0] - room[0], high[0] + room[0], low[1] - room[1], high[1] + room[1])


def _cells(values: npt.NDArray[Any], low: float, high: float, n: int) -> Int64Array:
    """Which of `n` cells from `low` to `high` each value lies in."""
    scaled = (values.astype(np.float64) - low) * (n / max(high - low, n * np.finfo(float).tiny))
    return np.clip(scaled, 0, n - 1).astype(np.int64)


def _fair_order(x: npt.NDArray[Any], y: npt.NDArray[Any], home: Window, rng: np.random.Generator) -> Int64Array:
    """Songs so that any first part of them is a fair sample; see :class:`MapView`.

    Weighted sampling without replacement: in the order of E / w with E exponential (Efraimidis and Spirakis 2006).
    """
    limits = (home.left, home.right), (home.bottom, home.top)
    across, up = (_cells(v, *limit, _FINE) for v, limit in zip((x, y), limits, strict=True))
    fine = up * _FINE + across
    counts = np.bincount(fine, minlength=_FINE**2)
    order = np.argsort(rng.exponential(size=len(x)) * np.sqrt(counts[fine]))
    step = _FINE // _COARSE
    coarse = (up // step * _COARSE + across // step)[order]
    first = np.full(_COARSE**2, -1)
    first[coarse[::-1]] = np.arange(len(x))[::-1]  # of songs of the same cell the last one written stays
    is_first = np.zeros(len(x), dtype=bool)
    is_first[first[first >= 0]] = True
    return np.concatenate([order[is_first], order[~is_first]])
