"""Paths from song to song: where waypoints stand, and which songs lie between them in the space of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from musicsim import playlist
from musicsim._arrays import BoolArray, Float64Array, FloatingArray

_NEAR = 0.03  # share of the songs that count as near the line
_MIN_NEAR = 8
_NARROW, _FEW = 0.02, 2  # deviation on a rise: a share of the songs, and at least that of as few songs
_FLOOR = 1e-4  # of a song far from the line: where nothing is near, the walk still goes on


def places_of(X: FloatingArray, rows: Sequence[int], length: int) -> list[int]:
    """Places of songs, two rows of X at least, to pass through: the first at 0 and the last at the end.

    Steps are shared out by distance, so that each brings the list about as far.
    """
    points = X[list(rows)].astype(np.float64)
    far = np.linalg.norm(np.diff(points, axis=0), axis=1)
    far = far if far.sum() > 0 else np.ones_like(far)
    shares = (length - 1) * far / far.sum()
    steps = np.maximum(np.floor(shares).astype(int), 1)
    while steps.sum() < length - 1:
        steps[np.argmax(shares - steps)] += 1
    while steps.sum() > length - 1:  # stretches of next to no length have taken their one step
        steps[np.argmax(steps)] -= 1
    return [0, *np.cumsum(steps).tolist()]


def along(X: FloatingArray, fixed: Mapping[int, int]) -> playlist.Weighing:
    """Weights of songs at each place between two fixed ones: large near the straight line from one to the other.

    A song at distance d from the point that the place has on the line weighs exp(-(d^2 - a^2) / (b^2 - a^2)), with the
    distance a of the nearest song and b of the k-th nearest, k three in a hundred: in many dimensions all
    distances are large, and only their differences tell. Places not between fixed songs weigh all alike.

    Time: one distance to each song a place.
    """
    places = sorted(fixed)
    squares = np.einsum("ij,ij->i", X, X, dtype=np.float64)
    k = _n_near(len(X))

    def weigh(place: int) -> Float64Array | None:
        before = [p for p in places if p < place]
        behind = [p for p in places if p > place]
        if not before or not behind:
            return None
        start, stop = before[-1], behind[0]
        t = (place - start) / (stop - start)
        point = (1 - t) * X[fixed[start]].astype(np.float64) + t * X[fixed[stop]].astype(np.float64)
        return _nearest_first(np.maximum(squares - 2.0 * (X @ point) + point @ point, 0.0), k)

    return weigh


def evenly(X: FloatingArray, fixed: Mapping[int, int]) -> playlist.Steering:
    """Weights of songs between two fixed ones that leave no long step: neither from the song before, nor for the rest.

    With m steps left to the fixed song z, a song y after x costs max(d(x, y), d(y, z) / (m - 1)): the longest step, if
    those behind y were all as long. It weighs as in :func:`along`, by its cost in place of a distance. Costs up to
    a usual step are all alike, or the largest would stand out of steps that are shorter than need be: a usual step is
    the mean distance of the k-th nearest songs of the fixed ones, or that of the loneliest of them to its nearest.
    Places not between fixed songs weigh all alike.
    """
    places = sorted(fixed)
    squares = np.einsum("ij,ij->i", X, X, dtype=np.float64)
    k = _n_near(len(X))

    def distances(row: int) -> Float64Array:
        return np.sqrt(np.maximum(squares - 2.0 * (X @ X[row]) + squares[row], 0.0))

    near = np.array([np.sort(np.partition(distances(row), k)[: k + 1])[[min(1, k), k]] for row in fixed.values()])
    usual = max(near[:, 0].max(), near[:, 1].mean())

    def steer(place: int, previous: int, probabilities: Float64Array) -> Float64Array | None:
        del probabilities
        stop = next((p for p in places if p > place), None)
        if stop is None or place < places[0]:
            return None
        cost = np.maximum(distances(previous), distances(fixed[stop]) / (stop - place))
        return _nearest_first(np.maximum(cost, usual) ** 2, k)

    return steer


def _n_near(n_songs: int) -> int:
    """How many songs count as near."""
    return min(max(_MIN_NEAR, round(_NEAR * n_songs)), n_songs - 1)


def _nearest_first(squares: Float64Array, k: int) -> Float64Array | None:
    """Weights that fall with squared distances, to 1/e at the k-th nearest; None where all are as near."""
    squares = squares - squares.min()
    width = np.partition(squares, k)[k] or squares[squares > 0].min(initial=np.inf)
    return np.maximum(np.exp(-squares / width), _FLOOR) if 0 < width < np.inf else None


def rising(
    values: FloatingArray, allowed: BoolArray, length: int, first: int | None = None
) -> playlist.Weighing | None:
    """Weights of songs at each place of a list along which a value rises.

    A song whose value is greater than that of a share r of the allowed songs weighs exp(-((r - t) / s)^2 / 2) at the
    place whose share is t: these go evenly from 0 to 1, so that no place has fewer songs to choose from than
    another. s is 0.02, or that of two songs where these are more.

    Parameters
    ----------
    values : (n_songs,), nan where unknown
        What rises; with its sign changed it falls.
    allowed : (n_songs,), bool
    length : int
        Songs of the list.
    first : int, optional
        The song that it begins with: the rise begins at its value.

    Returns
    -------
    callable of a place, or None where fewer than two songs have a value
    """
    known = np.sort(values[allowed & np.isfinite(values)].astype(np.float64))
    if len(known) < 2:
        return None
    # of songs with equal values each has the middle of their shares
    below, upto = (np.searchsorted(known, values, side) for side in ("left", "right"))
    shares = np.where(np.isfinite(values), (below + upto) / (2 * len(known)), np.nan)
    start = 0.0 if first is None or not np.isfinite(shares[first]) else float(shares[first])
    width = max(_NARROW, _FEW / len(known))

    def weigh(place: int) -> Float64Array:
        wanted = start + (1 - start) * min(place / max(length - 1, 1), 1.0)
        weights = np.exp(-0.5 * np.square((shares - wanted) / width))
        return np.maximum(np.nan_to_num(weights), _FLOOR)

    return weigh
