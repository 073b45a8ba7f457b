"""The songs that a playlist is drawn from: all of a library, or a sample of a large one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from musicsim import playlist
from musicsim._arrays import BoolArray, Float32Array, Int64Array, IntegerArray
from musicsim.explorer.playlists.pace import SoundRanks

# Where steps go by shares of the library, which a sample has like the whole: a step takes 15 ms with so many.
_MAX_SONGS = 20_000


@dataclass(frozen=True, slots=True)
class Pool:
    """Songs that may follow each other, numbered from 0."""

    rows: Int64Array  # (n,), ascending: their rows in the snapshot
    model: playlist.PlaylistModel  # the walk among them
    X: Float32Array  # (n, n_dimensions)
    ranks: SoundRanks
    groups: IntegerArray  # (n,): codes of their artists
    works: Sequence[Hashable] | None  # what each is a version of, where versions are kept apart

    def place_of(self, row: int) -> int:
        """The number of a song that is in the pool, by its row."""
        return int(np.searchsorted(self.rows, row))


def is_sampled(n_songs: int) -> bool:
    """Whether a library is so large that playlists are drawn from a sample."""
    return n_songs > _MAX_SONGS


def sample_of(allowed: BoolArray, named: Int64Array, random_state: int | None) -> Int64Array:
    """Rows of 20,000 at most of the songs that may come, drawn at random, and of those that are named."""
    rows = np.flatnonzero(allowed)
    if is_sampled(len(rows)):
        rows = np.random.default_rng(random_state).choice(rows, _MAX_SONGS, replace=False)
    return np.union1d(rows, named).astype(np.int64)
