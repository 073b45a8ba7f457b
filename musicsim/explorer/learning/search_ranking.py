"""Scores of songs ranked as in search results: by distance, and with hub reduction if the library uses it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from musicsim import evaluation, relevance, search
from musicsim._arrays import Float64Array, FloatingArray, Int64Array

if TYPE_CHECKING:
    Relevance = relevance.Relevance  # its module loads numba

_QUERIES_AT_ONCE = 256


def score_search(
    X: FloatingArray,
    queries: Int64Array,
    database: Int64Array,
    relevance: Relevance,
    *,
    reduce_hubs: bool,
    k: int = 10,
    songs: Int64Array | None = None,
    distances: Callable[[Int64Array], FloatingArray] | None = None,
) -> dict[str, Float64Array]:
    """Return the scores of :func:`musicsim.evaluation.query_scores` for the order in which search lists songs.

    X (n, d) are the vectors of a library's songs; `queries` and `database` are row numbers, and `relevance` covers
    these queries and songs. With `reduce_hubs`, distances are adjusted by mutual proximity, fitted on the rows `songs`
    (by default, all rows). `distances` returns the distances (k, n_database) from k rows to the database; by default,
    they are Euclidean. Memory: 6 kB per song in the database.
    """
    return join_scores(
        evaluation.distance_scores(D, part, k)
        for D, part in search_distances(
            X, queries, database, relevance, reduce_hubs=reduce_hubs, songs=songs, distances=distances
        )
    )


def join_scores(parts: Iterable[dict[str, Float64Array]]) -> dict[str, Float64Array]:
    """Return the scores of all queries from those of parts, in order."""
    known = list(parts)
    return {name: np.concatenate([part[name] for part in known]) for name in (known[0] if known else ())}


def search_distances(
    X: FloatingArray,
    queries: Int64Array,
    database: Int64Array,
    relevance: Relevance,
    *,
    reduce_hubs: bool,
    songs: Int64Array | None = None,
    distances: Callable[[Int64Array], FloatingArray] | None = None,
) -> Iterator[tuple[FloatingArray, Relevance]]:
    """Yield the distances (n, n_database) of the next n queries, and their relevance; see :func:`score_search`."""
    from scipy.spatial.distance import cdist

    adjust = QueryHubReduction(X if songs is None else X[songs], X[database]) if reduce_hubs else None
    for start in range(0, len(queries), _QUERIES_AT_ONCE):
        rows = queries[start : start + _QUERIES_AT_ONCE]
        D = cdist(X[rows], X[database]) if distances is None else distances(rows)
        if adjust is not None:
            D = adjust(D, X[rows])
        yield D, relevance.restrict(np.arange(start, start + len(rows)))


class QueryHubReduction:
    """Mutual proximity of queries and a database, fitted on the songs of a library."""

    def __init__(self, songs: FloatingArray, database: FloatingArray) -> None:
        self._proximity = search.MutualProximity().fit(songs)
        self._of_database = self._proximity.moments(database)

    def __call__(self, distances: FloatingArray, queries: FloatingArray) -> Float64Array:
        """Adjust the distances (n_queries, n_database) of queries (n_queries, d)."""
        own: Sequence[tuple[float, float]] = list(zip(*self._proximity.moments(queries), strict=True))
        rescore = self._proximity.rescore_others
        return np.stack([rescore(d, self._of_database, one) for d, one in zip(distances, own, strict=True)])
