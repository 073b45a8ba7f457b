"""Weights of songs along a path: places of its stops, songs near the line between them, and rising values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from musicsim import playlist
from musicsim._arrays import BoolArray, Float64Array, FloatingArray

_NEAR = 0.03  # share of the songs that count as near the line
_MIN_NEAR = 8
_NARROW, _FEW = 0.02, 2  # deviation on a rise: a share of the songs, and at least the share of this many songs
_FLOOR = 1e-4  # weight of a song far from the line, so that the walk never gets stuck


def places_of(X: FloatingArray, rows: Sequence[int], length: int) -> list[int]:
    """Return places for at least two songs, rows of X, to pass through: the first at 0 and the last at the end.

    Steps are divided by distance, so that all are about equally long.
    """
    far = np.linalg.norm(np.diff(X[list(rows)].astype(np.float64), axis=0), axis=1)
    far = far if far.sum() > 0 else np.ones_like(far)
    shares = (length - 1) * far / far.sum()
    steps = np.maximum(np.floor(shares).astype(int), 1)
    while steps.sum() < length - 1:
        steps[np.argmax(shares - steps)] += 1
    while steps.sum() > length - 1:  # very short stretches took one step each
        steps[np.argmax(steps)] -= 1
    return [0, *np.cumsum(steps).tolist()]


def weigh_along(X: FloatingArray, fixed: Mapping[int, int]) -> playlist.Weighing:
    """Return weights of songs by place that are large near the straight line between two fixed songs.

    A song at distance d from the place's point on the line weighs exp(-(d^2 - a^2) / (b^2 - a^2)). The distance a is
    that of the nearest song, b that of the k-th nearest, with k = 3% of the songs. In many dimensions all distances are
    large, and only their differences count. Places that are not between fixed songs do not have weights. Time: one
    distance to each song per place.
    """
    places = sorted(fixed)
    squares = np.einsum("ij,ij->i", X, X, dtype=np.float64)
    k = _n_near(len(X))

    def weigh(place: int) -> Float64Array | None:
        before = [p for p in places if p < place]
        after = [p for p in places if p > place]
        if not before or not after:
            return None
        start, stop = before[-1], after[0]
        t = (place - start) / (stop - start)
        point = (1 - t) * X[fixed[start]].astype(np.float64) + t * X[fixed[stop]].astype(np.float64)
        return _nearest_first(np.maximum(squares - 2.0 * (X @ point) + point @ point, 0.0), k)

    return weigh


def steer_evenly(X: FloatingArray, fixed: Mapping[int, int]) -> playlist.Steering:
    """Return weights of songs between two fixed ones that avoid long steps, now and later.

    With m steps left to the fixed song z, a song y after x costs max(d(x, y), d(y, z) / (m - 1)): the longest step if
    all later steps are equal. Its weight is as in :func:`weigh_along`, with the cost as the distance. Costs up to a
    usual step weigh the same; otherwise some steps would be needlessly short, and the largest would stick out. A usual
    step is the mean distance of the fixed songs to their k-th nearest song, or the largest of the distances to their
    nearest. Places that are not between fixed songs do not have weights.
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
    return min(max(_MIN_NEAR, round(_NEAR * n_songs)), n_songs - 1)


def _nearest_first(squares: Float64Array, k: int) -> Float64Array | None:
    """Return weights that fall with squared distances, to 1/e at the k-th nearest; None if all are equally near."""
    squares = squares - squares.min()
    width = np.partition(squares, k)[k] or squares[squares > 0].min(initial=np.inf)
    return np.maximum(np.exp(-squares / width), _FLOOR) if 0 < width < np.inf else None


def weigh_rising(
    values: FloatingArray, allowed: BoolArray, length: int, first: int | None = None
) -> playlist.Weighing | None:
    """Return weights of songs by place for a playlist along which a value rises; None if fewer than two have a value.

    A song whose value is greater than that of a share r of the allowed songs weighs exp(-((r - t) / s)^2 / 2) at the
    place with share t. The shares t increase evenly from 0 to 1 over `length` places, or from the value of the song
    `first`, so that every place has equally many songs to choose from. The deviation s is 0.02, or the share of two
    songs if that is more. `values` (n_songs,) are nan if unknown; negative values make it fall.
    """
    known = np.sort(values[allowed & np.isfinite(values)].astype(np.float64))
    if len(known) < 2:
        return None
    # songs with equal values all have the middle of their shares
    below, upto = (np.searchsorted(known, values, side) for side in ("left", "right"))
    shares = np.where(np.isfinite(values), (below + upto) / (2 * len(known)), np.nan)
    start = 0.0 if first is None or not np.isfinite(shares[first]) else float(shares[first])
    width = max(_NARROW, _FEW / len(known))

    def weigh(place: int) -> Float64Array:
        wanted = start + (1 - start) * min(place / max(length - 1, 1), 1.0)
        weights = np.exp(-0.5 * np.square((shares - wanted) / width))
        return np.maximum(np.nan_to_num(weights), _FLOOR)

    return weigh
