"""What a request for a playlist means for the songs of a snapshot: which may come, and what each weighs.

A playlist is drawn from all of a library, or from a sample of a large one.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from musicsim import playlist
from musicsim._arrays import BoolArray, Float32Array, Float64Array, Int64Array, IntegerArray
from musicsim.explorer.playlists.pace import SoundRanks
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.snapshot.filtering import passing
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library.importing.spelling import plain_artist, plain_title
from musicsim.library.stores.playlists import OWN_PLAYLISTS

# Where steps go by shares of the library, which a sample has like the whole: a step takes 15 ms with so many.
_MAX_SONGS = 20_000
RESTS_S = 24 * 3600.0
"""Seconds for which songs of a list weigh less."""
_RESTED = 0.1  # what they weigh
_WIDEST = 4.0  # the temperature at the end of "surprising", and its inverse at the end of "smooth"


def allowed_rows(snapshot: Snapshot, request: PlaylistRequest) -> BoolArray:
    """Which rows may come, bool (n_indexed,)."""
    allowed = passing(snapshot, request)
    if allowed is None:
        allowed = np.ones(snapshot.n_indexed, dtype=bool)
    excluded = snapshot.rows_of(request.exclude)
    allowed[excluded[excluded >= 0]] = False
    return allowed


def song_weights(snapshot: Snapshot, request: PlaylistRequest, plays: Float64Array) -> Float64Array | None:
    """What each song weighs beside what leads to it; None where all weigh the same.

    `plays` counts the plays of each row.
    """
    recent = _recently_saved(snapshot) if request.avoid_recent else frozenset()
    rested = snapshot.rows_of(request.rested | recent)
    rested = rested[rested >= 0]
    if not len(rested) and request.prefer == "any":
        return None
    weights = np.ones(snapshot.n_indexed)
    if request.prefer != "any":
        weights = np.sqrt(plays + 0.5)
        weights = weights if request.prefer == "familiar" else 1.0 / weights
    weights[rested] *= _RESTED
    return weights / weights.max()


def _recently_saved(snapshot: Snapshot) -> frozenset[int]:
    """Songs of the listener's own playlists that were saved a short time ago."""
    since = time.time() - RESTS_S
    own = snapshot.library.playlists(OWN_PLAYLISTS)
    return frozenset(i for playlist in own if playlist.created_at >= since for i in playlist.song_ids)


def temperature_of(surprise: float) -> float:
    """The walk's temperature: 1/4 where smooth, 1 in the middle, 4 where surprising."""
    return float(_WIDEST ** (2.0 * surprise - 1.0))


def works_of(snapshot: Snapshot, rows: Int64Array | None = None) -> list[tuple[str, str] | None]:
    """What songs are versions of: artist and title in their plainest spelling; None for an unknown artist."""
    artists, names = snapshot.columns.artist.texts(rows), snapshot.names_at(rows)
    return [
        (plain_artist(artist), plain_title(title)[0]) if artist else None
        for artist, (title, _) in zip(artists, names, strict=True)
    ]


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
