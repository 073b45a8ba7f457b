"""Distances in sound between the songs of a playlist, for a library without enough playlists to learn them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from musicsim._arrays import Float64Array, FloatingArray, IntpArray

# Median rank of the next song at both ends, as a share of the library. Artist spacing leaves some steps without a near
# song: 0.017 keeps half of the steps within 0.02.
_SMOOTH, _SURPRISING = 0.017, 0.25
_SHARPEST, _WIDEST = 6.0, -3.0  # limits of the exponent: of exp(-x rank / median), and of exp(-x rank)
_HALVINGS = 25
_ROUNDING = 1e-6  # of squared distances, as a share of the squared norms
_NEAR = 0.1  # share of the library that counts as similar to a song


def median_of(surprise: float) -> float:
    """Return the share of the library within which half of the steps end: 2% at 0, 7% in the middle, 25% at 1."""
    return float(_SMOOTH * (_SURPRISING / _SMOOTH) ** surprise)


class SoundRanks:
    """Ranks of all songs, vectors (n_songs, n_dimensions), by their distance from one of them.

    `nearest` is the share of the songs that count as near to one: at least one song.
    """

    def __init__(self, X: FloatingArray) -> None:
        self._X = X
        self._last: tuple[int, Float64Array] | None = None  # each step needs the same ranks three times
        self.nearest = max(_NEAR, 1.0 / max(1, len(X) - 1))

    @cached_property
    def _squares(self) -> Float64Array:
        squares: Float64Array = np.einsum("ij,ij->i", self._X, self._X, dtype=np.float64)
        return squares

    def shares(self, row: int) -> Float64Array:
        """Return the rank of each song as a share of the others: 0 for the song itself, 1 for the farthest."""
        last = self._last
        if last is None or last[0] != row:
            distance = self._squares - 2.0 * (self._X @ self._X[row])
            distance[row] = -np.inf
            shares = np.empty(len(distance))
            shares[np.argsort(distance, kind="stable")] = np.linspace(0.0, 1.0, len(distance))
            last = self._last = row, shares
        return last[1]

    def share_between(self, start: FloatingArray, end: FloatingArray) -> float:
        """Return the share of the songs that are nearer to the vector `start` than `end` is."""
        distance = self._squares - 2.0 * (self._X @ start)
        limit = end @ end - 2.0 * (end @ start) - _ROUNDING * (start @ start + end @ end)
        return np.count_nonzero(distance < limit) / max(1, len(distance) - 1)

    def near(self, row: int) -> IntpArray:
        """Return the songs near to a song and the song itself, ascending."""
        return np.flatnonzero(self.shares(row) <= self.nearest)


def make_paced_steering(
    shares: Callable[[int], Float64Array], median: float
) -> Callable[[int, int, Float64Array], Float64Array]:
    """Return steering for `PlaylistModel.generate` that lets half of the steps end within a share of the library.

    Among all distributions of the next song with the same mean rank, exp(-x rank) times the walk's own is the nearest
    to it (by Kullback-Leibler divergence). Bisection finds the exponent x that moves the median to this share, within
    limits that leave a choice of a few songs. `shares` returns the rank shares (n_songs,) of all songs from a song.
    """

    def steer(place: int, previous: int, probabilities: Float64Array) -> Float64Array:
        del place
        ranks = shares(previous)
        possible = np.flatnonzero(probabilities)
        rank, p = ranks[possible], probabilities[possible]
        is_near = rank <= median
        low, high = _WIDEST, _SHARPEST / median
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            weighed = p * np.exp(-middle * (rank - rank.min()))
            low, high = (middle, high) if weighed[is_near].sum() < weighed.sum() / 2 else (low, middle)
        return np.exp(-high * np.maximum(ranks - rank.min(), 0.0))

    return steer
