"""Weights that steer the steps of a playlist: functions of vectors and numbers of songs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache

import numpy as np

from musicsim import playlist
from musicsim._arrays import BoolArray, Float64Array, FloatingArray, IntpArray

_NEAR_STEP, _FEW_NEAR = 0.03, 8  # songs near the last one on a path: a share, or a number if that is larger
_NARROW, _FEW = 0.02, 2  # deviation for rising values: a share of the songs, or a number of songs if that is larger
_FLOOR = 1e-4  # minimum weight of a song, so that the walk never gets stuck
# Median rank of the next song, as a share of the library, at surprise 0 and 1. Artist spacing leaves some steps without
# a near song, so 0.017 is needed to keep half of the steps within 0.02.
_SMOOTH, _SURPRISING = 0.017, 0.25
_MIN_EXPONENT, _MAX_EXPONENT = -3.0, 6.0  # range of the exponent for paced steps; the maximum is divided by the median
_HALVINGS = 25
_ROUNDING = 1e-6  # rounding error of squared distances, as a share of the squared norms
_CACHED_RANKS = 32  # number of songs whose ranks are cached; 160 kB each
_NEAR_SONG = 0.1  # share of the library that counts as similar to a song
_MAX_TEMPERATURE = 4.0  # temperature at surprise 1; the inverse applies at surprise 0
_AROUND = 0.2  # share of the songs that a playlist chooses from if it stays around a song
_PER_PLACE = 3  # minimum number of songs to choose from, per song of the playlist
_USUAL, _ANYWHERE = 0.3, 0.9  # surprise up to which this share applies, and from which all songs are near


def places_of(X: FloatingArray, rows: Sequence[int], length: int) -> list[int]:
    """Return positions in a playlist for rows of X, first to last; the gaps are proportional to the rows' distances."""
    far = np.linalg.norm(np.diff(X[list(rows)].astype(np.float64), axis=0), axis=1)
    far = far if far.sum() > 0 else np.ones_like(far)
    shares = (length - 1) * far / far.sum()
    steps = np.maximum(np.floor(shares).astype(int), 1)
    while steps.sum() < length - 1:
        steps[np.argmax(shares - steps)] += 1
    while steps.sum() > length - 1:  # very short stretches were each rounded up to one step
        steps[np.argmax(steps)] -= 1
    return [0, *np.cumsum(steps).tolist()]


def steer_to_stops(shares: Callable[[int], Float64Array], fixed: Mapping[int, int], n_songs: int) -> playlist.Steering:
    """Return weights for the songs between two fixed ones that keep the steps short and approach the second one.

    `shares` is :meth:`SoundRanks.shares`. Let m of M steps be left from the fixed song a to the fixed song z. The
    weight of a song y after x is exp(-(r_x(y) / s + r_z(y) / l)). Here, r_x(y) is the rank of y by distance from x, as
    a share of the songs, s is 3%, and l = r_z(a) (m / M)^2. Ranks are used because in many dimensions all distances are
    alike: steps of equal length still jump at the end. The square is the rank on a straight line in two dimensions,
    those of the map. Positions that are not between fixed songs have no weights.
    """
    places = sorted(fixed)
    step, nearest = max(_NEAR_STEP, _FEW_NEAR / n_songs), 0.5 * _FEW_NEAR / n_songs

    def steer(place: int, previous: int, probabilities: Float64Array) -> Float64Array | None:
        del probabilities
        start = max((p for p in places if p <= place), default=None)
        stop = min((p for p in places if p > place), default=None)
        if start is None or stop is None:
            return None
        from_end = shares(fixed[stop])
        left = from_end[fixed[start]] * ((stop - place) / (stop - start)) ** 2
        cost = shares(previous) / step + from_end / max(left, nearest)
        return np.maximum(np.exp(cost.min() - cost), _FLOOR)

    return steer


def _distances_from(X: FloatingArray) -> Callable[[FloatingArray], Float64Array]:
    """Return a function from a vector to its squared distances from the rows of X, (n_songs,)."""
    squares = np.einsum("ij,ij->i", X, X, dtype=np.float64)
    return lambda vector: np.maximum(squares - 2.0 * (X @ vector) + vector @ vector, 0.0)


def _nearest_first(squares: Float64Array, k: int) -> Float64Array | None:
    """Return weights that fall with squared distance, to 1/e at the k-th nearest song; None if all are equally near."""
    squares = squares - squares.min()
    width = np.partition(squares, k)[k] or squares[squares > 0].min(initial=np.inf)
    return np.maximum(np.exp(-squares / width), _FLOOR) if 0 < width < np.inf else None


def weigh_rising(
    values: FloatingArray, allowed: BoolArray, length: int, first: int | None = None
) -> playlist.Weighing | None:
    """Return song weights per position that make a value rise along a playlist; None if fewer than two songs have one.

    Let r be the share of the allowed songs with a smaller value. A song has weight exp(-((r - t) / s)^2 / 2) at the
    position with target share t. The targets increase evenly over `length` positions, from 0 (or the share of the song
    `first`) to 1. Every position therefore has about the same number of songs to choose from. The deviation s is 0.02,
    or 2 divided by the number of known values if that is larger. `values` (n_songs,) are nan if unknown;
    negate them for a falling playlist.
    """
    known = np.sort(values[allowed & np.isfinite(values)].astype(np.float64))
    if len(known) < 2:
        return None
    # songs with equal values all get the middle of their shares
    below, upto = (np.searchsorted(known, values, side) for side in ("left", "right"))
    shares = np.where(np.isfinite(values), (below + upto) / (2 * len(known)), np.nan)
    start = 0.0 if first is None or not np.isfinite(shares[first]) else float(shares[first])
    width = max(_NARROW, _FEW / len(known))

    def weigh(place: int) -> Float64Array:
        wanted = start + (1 - start) * min(place / max(length - 1, 1), 1.0)
        weights = np.exp(-0.5 * np.square((shares - wanted) / width))
        return np.maximum(np.nan_to_num(weights), _FLOOR)

    return weigh


def multiply(weigh: playlist.Weighing, same: Float64Array | None) -> playlist.Weighing:
    """Return a function that multiplies its weights by those of every position; None stands for equal weights."""

    def weigh_both(place: int) -> Float64Array | None:
        weights = weigh(place)
        return weights if weights is None or same is None else weights * same

    return weigh_both


def median_of(surprise: float) -> float:
    """Return the median rank of the next song, as a share of the songs: 2% at surprise 0, 7% at 0.5, 25% at 1."""
    return float(_SMOOTH * (_SURPRISING / _SMOOTH) ** surprise)


def distances_around(X: FloatingArray, songs: Sequence[int]) -> Float64Array:
    """Return the squared distance of each row of X from the nearest of some songs to stay around, (n_songs,)."""
    squared_distances = _distances_from(X)
    nearest: Float64Array = np.minimum.reduce([squared_distances(X[song]) for song in songs])
    return nearest


def weigh_around(squares: Float64Array, surprise: float) -> Float64Array | None:
    """Return weights that fall with the squared distances from :func:`distances_around`; None if all are equal."""
    n = len(squares)
    return _nearest_first(squares, min(n - 1, max(_FEW_NEAR, round(median_of(surprise) * n))))


def find_around(squares: Float64Array, allowed: BoolArray, surprise: float, length: int) -> BoolArray:
    """Return the allowed songs that are nearest: a fifth, and more above surprise 0.3; at least three per position."""
    n_allowed = np.count_nonzero(allowed)
    share = float(_AROUND ** (1.0 - np.clip((surprise - _USUAL) / (_ANYWHERE - _USUAL), 0.0, 1.0)))
    n_near = max(round(share * n_allowed), _PER_PLACE * length)
    return allowed if n_near >= n_allowed else allowed & (squares <= np.partition(squares[allowed], n_near)[n_near])


def _order(values: Float64Array) -> IntpArray:
    """Return the order of a stable sort, but in a sixth of its time if no two values are equal."""
    order = np.argsort(values)
    ascending = values[order]
    return np.argsort(values, kind="stable") if np.any(ascending[1:] == ascending[:-1]) else order


class SoundRanks:
    """Ranks the songs X by distance from one of them; `nearest` is the share of songs that count as near."""

    def __init__(self, X: FloatingArray) -> None:
        self._X = X
        self.nearest = max(_NEAR_SONG, 1.0 / max(1, len(X) - 1))

    @cached_property
    def _squared_distances(self) -> Callable[[FloatingArray], Float64Array]:
        return _distances_from(self._X)

    @cached_property
    def shares(self) -> Callable[[int], Float64Array]:
        """Function of a song that returns each song's rank as a fraction: 0 for the song itself, 1 for the farthest.

        Each step needs the same ranks three times, and playlists of different lengths begin with the same songs.
        """
        X, squared_distances = self._X, self._squared_distances

        @lru_cache(_CACHED_RANKS)
        def shares(row: int) -> Float64Array:
            distance = squared_distances(X[row])
            distance[row] = -np.inf
            ranks = np.empty(len(distance))
            ranks[_order(distance)] = np.linspace(0.0, 1.0, len(distance))
            return ranks

        return shares

    def share_between(self, start: FloatingArray, end: FloatingArray) -> float:
        """Return the share of the songs that are nearer to the vector `start` than `end` is."""
        limit = np.square(end - start).sum() - _ROUNDING * (start @ start + end @ end)
        return np.count_nonzero(self._squared_distances(start) < limit) / max(1, len(self._X) - 1)

    def near(self, row: int) -> IntpArray:
        """Return the songs near a song, and the song itself, in ascending order."""
        return np.flatnonzero(self.shares(row) <= self.nearest)


def make_paced_steering(
    shares: Callable[[int], Float64Array], median: float
) -> Callable[[int, int, Float64Array], Float64Array]:
    """Return steering for `PlaylistModel.generate` that makes `median` the median rank of the next song.

    `shares` is :meth:`SoundRanks.shares`. The steering multiplies the probability of each song by exp(-x rank). Among
    all distributions with the same mean rank, this is the closest to the walk's own (by Kullback-Leibler divergence).
    Bisection finds the exponent x. Its range ensures that the walk can choose from at least a few songs.
    """

    def steer(place: int, previous: int, probabilities: Float64Array) -> Float64Array:
        del place
        ranks = shares(previous)
        possible = np.flatnonzero(probabilities)
        rank, p = ranks[possible], probabilities[possible]
        is_near = rank <= median
        low, high = _MIN_EXPONENT, _MAX_EXPONENT / median
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            weighed = p * np.exp(-middle * (rank - rank.min()))
            low, high = (middle, high) if weighed[is_near].sum() < weighed.sum() / 2 else (low, middle)
        return np.exp(-high * np.maximum(ranks - rank.min(), 0.0))

    return steer


def temperature_of(surprise: float) -> float:
    """Return the temperature of the walk: 1/4 at surprise 0, 1 at 0.5, and 4 at 1."""
    return float(_MAX_TEMPERATURE ** (2.0 * surprise - 1.0))
