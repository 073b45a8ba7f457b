"""What a map shows of a large library: which songs are points, and how dense all of them lie behind those.

Up to :data:`MAX_DRAWN` songs every one is a point. Beyond that a window of the map shows a sample of the songs
in it. Songs stand in one order, and a window shows those of its songs that come first: a sample never changes
from one look to the next, and the points of a window stay when one looks closer.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from musicsim.explorer.snapshot.neighbours import Neighbours

__all__ = [
    "MAX_DRAWN",
    "SAMPLE",
    "MapView",
    "OncePer",
    "Shown",
    "Window",
    "map_view",
    "place_by_neighbours",
    "place_vector",
]

MAX_DRAWN = 20_000
"""Songs up to which all are drawn: as many points are 1.4 MB, and a browser without a graphics card moves them."""
SAMPLE = 8_000
"""Songs that are drawn of a window with more."""

_ROOM = 0.06  # of the map's width, around it: plotly's own limits cut marks at the edge
_COARSE, _FINE = 64, 256  # cells a side
_PIXELS = (360, 480)  # cells of the density, as high and wide as the plot to about two pixels
_BINOMIAL = np.array([1.0, 4.0, 6.0, 4.0, 1.0]) / 16.0
_BRIGHTEST = 99.8  # percentile of the density: a single spot does not make all else pale
_WINDOWS_KEPT = 12
_N_NEAREST = 10  # songs whose places give the place of a new one

Rows = npt.NDArray[np.int64]
Source = TypeVar("Source")
Made = TypeVar("Made")


class OncePer(Generic[Source, Made]):
    """A few things made of large objects, found again by the object itself: arrays have no hash.

    Parameters
    ----------
    make : callable of the object and further hashable arguments
    most : int
        How many are kept; the one that was not asked for the longest goes.
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

    def grown(self, by: float) -> "Window":
        """With `by` times its width and height more on every side."""
        x, y = by * (self.right - self.left), by * (self.top - self.bottom)
        return Window(self.left - x, self.right + x, self.bottom - y, self.top + y)

    def within(self, other: "Window") -> "Window":
        """The part of it that lies in another one; of no extent where there is none."""
        left, bottom = max(self.left, other.left), max(self.bottom, other.bottom)
        return Window(
            left, max(left, min(self.right, other.right)), bottom, max(bottom, min(self.top, other.top))
        )


@dataclass(frozen=True, slots=True)
class Shown:
    """What is to be drawn of a window.

    Attributes
    ----------
    rows : int64 ndarray of shape (n_points,)
        Rows of the songs that are points.
    n_here : int
        Songs in the window.
    density : uint8 ndarray of shape (height, width), or None where every song is a point
        0 where no songs are, 255 where most are; the logarithm of the smoothed density. The first line is the top.
    behind : Window
        What the density covers: more than the window, so that a map that is moved is not bare at once.
    """

    rows: Rows
    n_here: int
    density: npt.NDArray[np.uint8] | None
    behind: Window


class MapView:
    """The places of songs, in an order that makes any first part of them a fair sample.

    First comes a song of each cell of 64 x 64, so that no region is bare, then the others by chance. A song of a
    fine cell of 256 x 256 with c songs weighs 1 / sqrt(c): where four times as many songs are, twice as many are
    drawn. Memory: 16 bytes a song, and 8 more once an outline was asked for.

    Parameters
    ----------
    places : float32 ndarray of shape (n_songs, 2)
        nan for songs without a place, which are not drawn.
    """

    def __init__(self, places: npt.NDArray[np.float32], random_state: int = 0) -> None:
        placed = np.flatnonzero(np.isfinite(places).all(axis=1))
        x, y = places[placed, 0], places[placed, 1]
        self.home = _home(x, y)
        order = _fair_order(x, y, self.home, np.random.default_rng(random_state))
        self.rows: Rows = placed[order]
        self._x, self._y = x[order], y[order]
        self._shown: OrderedDict[Window, Shown] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def is_sampled(self) -> bool:
        """Whether the whole map shows a sample only."""
        return len(self.rows) > MAX_DRAWN

    def shown(self, window: Window | None = None) -> Shown:
        """What is drawn of a window, or of the whole map.

        Time: 5 ms for a window of 1 000 000 songs when all are points, 40 ms with the density, nothing for one that
        was asked for just before.
        """
        if not self.is_sampled:
            return Shown(self.rows, len(self.rows), None, self.home)
        window = window or self.home
        with self._lock:
            if window not in self._shown:
                self._shown[window] = self._show(window)
            self._shown.move_to_end(window)
            while len(self._shown) > _WINDOWS_KEPT:
                self._shown.popitem(last=False)
            return self._shown[window]

    def _show(self, window: Window) -> Shown:
        here = self._in(window)
        rows = self.rows[here[:SAMPLE]]
        behind = window.grown(0.5).within(self.home)
        is_whole = len(here) <= SAMPLE
        return Shown(rows, len(here), None if is_whole else self._density(behind), behind)

    def _in(self, window: Window) -> Rows:
        inside = (self._x >= window.left) & (self._x <= window.right)
        inside &= (self._y >= window.bottom) & (self._y <= window.top)
        return np.flatnonzero(inside)

    def _density(self, window: Window) -> npt.NDArray[np.uint8]:
        here = self._in(window)
        height, width = _PIXELS
        cells = _cells(self._y[here], window.bottom, window.top, height) * width
        cells += _cells(self._x[here], window.left, window.right, width)
        counts = np.bincount(cells, minlength=height * width).reshape(height, width)
        smooth = np.log1p(_smoothed(counts.astype(np.float64)))
        brightest = np.percentile(smooth[smooth > 0], _BRIGHTEST)
        return np.round(255.0 * np.minimum(smooth / brightest, 1.0)).astype(np.uint8)[::-1]

    @cached_property
    def _by_height(self) -> Rows:
        return np.argsort(self._y, kind="stable")

    def inside(self, x: Sequence[float], y: Sequence[float]) -> Rows:
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


map_view: "OncePer[npt.NDArray[np.float32], MapView]" = OncePer(MapView)
"""The view of an array of places, float32 (n_songs, 2); made once an array (0.5 s for 1 000 000 songs)."""


def place_by_neighbours(places: npt.NDArray[np.float32], rows: Rows) -> npt.NDArray[np.float32]:
    """A place on the map for a new song, float32 (2,): the median of its nearest neighbours' places.

    For maps that are too large to be unfolded again; openTSNE starts from it, too.

    Parameters
    ----------
    places : float32 ndarray of shape (n_songs, 2)
    rows : int64 ndarray of shape (n_neighbours,)
        The songs nearest to the new one; those without a place are left out.

    Returns
    -------
    float32 ndarray of shape (2,), nan where no neighbour has a place
    """
    near = places[rows]
    near = near[np.isfinite(near).all(axis=1)]
    return np.median(near, axis=0) if len(near) else np.full(2, np.nan, dtype=np.float32)


def place_vector(
    vector: npt.NDArray[np.float32],
    places: npt.NDArray[np.float32],
    index: Neighbours,
    unfold: Callable[[npt.NDArray[np.float32]], npt.NDArray[np.float32]],
) -> npt.NDArray[np.float32]:
    """A place on the map for a song that is not on it.

    Parameters
    ----------
    vector : float32 ndarray of shape (n_dimensions,)
        The song.
    places : float32 ndarray of shape (n_songs, 2)
        The map.
    index : Neighbours
        The songs of the map.
    unfold : callable of vectors (n, n_dimensions)
        Places by the map's own method; used up to :data:`MAX_DRAWN` songs, beyond which it takes too long.

    Returns
    -------
    float32 ndarray of shape (2,), nan where it has no place
    """
    if len(places) <= MAX_DRAWN:
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


def _cells(values: npt.NDArray[Any], low: float, high: float, n: int) -> Rows:
    """Which of `n` cells from `low` to `high` each value lies in."""
    scaled = (values.astype(np.float64) - low) * (n / max(high - low, n * np.finfo(float).tiny))
    return np.clip(scaled, 0, n - 1).astype(np.int64)


def _fair_order(
    x: npt.NDArray[Any], y: npt.NDArray[Any], home: Window, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
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


def _smoothed(image: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Spread over neighbouring cells, twice by (1 4 6 4 1) / 16 along both axes; what leaves the image is lost."""
    for axis in (0, 1, 0, 1):
        lines = np.moveaxis(image, axis, 0)
        padded = np.pad(lines, ((2, 2), (0, 0)))
        spread = sum(w * padded[k : k + len(lines)] for k, w in enumerate(_BINOMIAL))
        image = np.moveaxis(np.asarray(spread), 0, axis)
    return image
