"""Distances of the songs of a queue from its seed, compared with the rest of the library."""

import numpy as np

from musicsim._arrays import Float32Array, Float64Array
from musicsim.explorer.playlists.queue import QueueItem, QueueRequest
from musicsim.explorer.search.query import Example, examples_of
from musicsim.explorer.snapshot.snapshot import Snapshot

_ROUNDING = 1e-9
_N_SAMPLED = 1000  # songs that stand for the library


def share_farther(snapshot: Snapshot, request: QueueRequest, items: list[QueueItem]) -> list[float | None]:
    """Return for each song of a queue the share of the library that is farther from the seed; 1 is nearest.

    The seed of several songs is as near as its nearest song. None for songs without a vector, and for queues from words
    alone. Memory: O(1000 d), whatever the size of the library.
    """
    seeds = _seed_vectors(snapshot, request)
    rows = snapshot.rows_of([item.song.id for item in items])
    if not len(seeds) or not len(rows):
        return [None] * len(items)
    sampled = np.linspace(0, snapshot.n_indexed - 1, min(_N_SAMPLED, snapshot.n_indexed)).astype(np.int64)
    usual = np.sort(_nearest_distances(snapshot.vectors_at(np.unique(sampled)), seeds))
    known = rows >= 0
    shares = np.full(len(rows), np.nan)
    distances = _nearest_distances(snapshot.vectors_at(rows[known]), seeds)
    # rounding, which depends on the number of songs, must not change the order of equal distances
    shares[known] = 1 - np.searchsorted(usual, distances - _ROUNDING) / len(usual)
    return [None if np.isnan(share) else round(float(share), 3) for share in shares]


def _seed_vectors(snapshot: Snapshot, request: QueueRequest) -> Float32Array:
    if request.query is None:
        return np.empty((0, 0), dtype=np.float32)
    like = examples_of(request.query).like
    rows = snapshot.rows_of([one for one in like if isinstance(one, int)])
    sounds = [one.vector for one in like if isinstance(one, Example)]
    known = snapshot.vectors_at(rows[rows >= 0])
    return np.concatenate([known, np.asarray(sounds, dtype=np.float32).reshape(len(sounds), known.shape[1])])


def _nearest_distances(vectors: Float32Array, seeds: Float32Array) -> Float64Array:
    """Return the squared distance of each vector to the nearest seed."""
    products = vectors.astype(np.float64) @ seeds.T.astype(np.float64)
    squared = (vectors.astype(np.float64) ** 2).sum(axis=1)[:, None] - 2 * products
    nearest: Float64Array = (squared + (seeds.astype(np.float64) ** 2).sum(axis=1)[None, :]).min(axis=1)
    return nearest
