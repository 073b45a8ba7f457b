"""Recall and time of each kind of neighbor index on the songs of a library.

Queries are a sample of songs, each excluded from its own results. Recall is the share of the ten nearest songs that an
index finds. Other results that are as near as the tenth song also count.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from musicsim import search
from musicsim._arrays import Float32Array, Int64Array
from musicsim.blas import one_blas_thread
from musicsim.errors import ModelError
from musicsim.explorer.snapshot.neighbors import CHOSEN_FROM, KINDS, build_partition
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.progress import Progress, no_progress

K = 10
_N_QUERIES = 200
_MAX_SONGS = 300_000
_SEED = 0
TOO_FEW = "A search index needs at least {:,} songs; this library has {:,}. Until then, search compares every song."


@dataclass(frozen=True, slots=True)
class KindSpeed:
    """Recall, time and memory of one kind of index."""

    kind: str
    recall: float  # mean recall over the queries
    ms: float  # median time of a query on one thread
    build_s: float
    mb: float  # memory in addition to the vectors
    is_chosen: bool  # whether searches in this library use this kind

    @property
    def title(self) -> str:
        """Name of the kind."""
        return self.kind.capitalize()


@dataclass(frozen=True, slots=True)
class SearchSpeed:
    """All kinds of index, compared on the same songs and queries."""

    model: str
    n_songs: int
    n_compared: int  # number of songs in each index: all, or a sample of a very large library
    n_queries: int
    rows: list[KindSpeed]

    @property
    def caption(self) -> str:
        """Description of the sample and the measures."""
        sample = "" if self.n_compared == self.n_songs else f" (a sample of {self.n_compared:,})"
        return (
            f"{self.n_songs:,} songs{sample}; {self.n_queries} query songs. Recall: share of the {K} nearest songs "
            "that are found. Time: median of one query on one thread. Memory: in addition to the vectors."
        )


def measure_search(snapshot: Snapshot, *, progress: Progress = no_progress) -> SearchSpeed:
    """Build each kind of index over a snapshot's songs, and run the same queries on each. Nothing is stored.

    At most 300,000 songs are indexed. An exception raised by `progress` ends the measurement, which takes half a minute
    for 100,000 songs on two cores. Raises ModelError if the library has too few songs for an index.
    """
    n_songs = snapshot.n_indexed
    if n_songs < CHOSEN_FROM:
        raise ModelError(TOO_FEW.format(CHOSEN_FROM, n_songs))
    rng = np.random.default_rng(_SEED)
    X = snapshot.X if n_songs <= _MAX_SONGS else snapshot.vectors_at(np.sort(rng.permutation(n_songs)[:_MAX_SONGS]))
    queries = np.sort(rng.permutation(len(X))[:_N_QUERIES])
    progress("comparing every song", 0, len(KINDS))
    limits = _distances_of_last(X, queries)
    rows = []
    for place, kind in enumerate(KINDS):
        progress(f"building an index: {kind}", place, len(KINDS))
        started = time.perf_counter()
        index = build_partition(X) if kind == "partition" else search.ExactIndex().fit(X)
        build_s = time.perf_counter() - started
        progress(f"searching: {kind}", place, len(KINDS))
        recall, ms = _time_searches(index, X, queries, limits)
        mb = 0.0 if isinstance(index, search.ExactIndex) else index.nbytes_ / 1e6
        rows.append(KindSpeed(kind, recall, ms, build_s, mb, kind == snapshot.index_kind))
    progress("searching", len(KINDS), len(KINDS))
    return SearchSpeed(snapshot.record.name if snapshot.record else "", n_songs, len(X), len(queries), rows)


def _distances_of_last(X: Float32Array, queries: Int64Array) -> Float32Array:
    """Return the distance from each query to its K-th nearest other song."""
    distances, ids = search.ExactIndex().fit(X).query(X[queries], K + 1)
    others = np.where(ids == queries[:, None], -np.inf, distances)
    # indexes may round equal distances differently
    return np.sort(others, axis=1)[:, -1].astype(np.float32) * np.float32(1 + 1e-6)


def _time_searches(index: Any, X: Float32Array, queries: Int64Array, limits: Float32Array) -> tuple[float, float]:
    shares, seconds = np.empty(len(queries)), np.empty(len(queries))
    with one_blas_thread():
        index.query(X[queries[:1]], K + 1)  # the first call loads compiled code
        for i, row in enumerate(queries):
            started = time.perf_counter()
            distances, ids = index.query(X[row : row + 1], K + 1)
            seconds[i] = time.perf_counter() - started
            is_right = (distances[0] <= limits[i]) & (ids[0] != row)
            shares[i] = min(int(np.count_nonzero(is_right)), K) / K
    return float(shares.mean()), float(1e3 * np.median(seconds))
