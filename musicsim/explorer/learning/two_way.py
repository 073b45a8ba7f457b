"""Scores with resampled artists: of the queries, and of the database that all queries share.

If only queries were resampled, whatever all of them share would look certain: by chance, a few artists of the database
are relevant to most queries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from musicsim import evaluation, relevance
from musicsim._arrays import Float64Array, FloatingArray, Int64Array
from musicsim.explorer import learning
from musicsim.explorer.learning.search_ranking import join_scores, search_distances

if TYPE_CHECKING:
    Relevance = relevance.Relevance  # its module loads numba

_N_DATABASES, _N_QUERIES = 200, 10  # number of resampled databases, and of resampled sets of queries for each
_K = 10
RESAMPLED = ("auc", "map", "mrr", "precision")


@dataclass(frozen=True, slots=True)
class Space:
    """Vectors of all songs (n_songs, d), and distances from rows to the database, if they are not Euclidean."""

    X: FloatingArray
    distances: Callable[[Int64Array], FloatingArray] | None = None


@dataclass(frozen=True, slots=True)
class ResampledScores:
    """Scores in one space by measure: of each query, and their means in each resample."""

    each: Mapping[str, Float64Array]  # (n_queries,), nan for queries that are not scored
    both: Mapping[str, Float64Array]  # (n_resamples,), with resampled queries and databases
    of_database: Mapping[str, Float64Array]  # the same, with resampled databases only
    of_queries: Mapping[str, Float64Array]  # the same, with resampled queries only
    n_artists: int  # number of artists of the queries with scores


class TwoWay:
    """Resamples of the artists of queries and of a database; the same ones for all spaces.

    Query artists and database artists are drawn independently, with replacement. One copy of each song by the query's
    own artist is always in the database. Memory: 8 kB per artist.
    """

    def __init__(
        self,
        queries: Int64Array,
        database: Int64Array,
        groups: Sequence[str],
        *,
        reduce_hubs: bool,
        random_state: int = 0,
    ) -> None:
        rng = np.random.default_rng(random_state)
        self._queries, self._database, self._reduce_hubs = queries, database, reduce_hubs
        artists = np.asarray(groups)
        self._of_database, self._of_queries = np.unique(artists[database]), np.unique(artists[queries])
        n = len(self._of_database)
        copies = rng.multinomial(n, np.full(n, 1 / n), _N_DATABASES)
        self._copies = np.ascontiguousarray(copies.T, np.int64)
        n = len(self._of_queries)
        self._weights = rng.multinomial(n, np.full(n, 1 / n), (_N_DATABASES, _N_QUERIES)).transpose(2, 0, 1)

    def score(self, space: Space, relevance: Relevance, groups: Sequence[str]) -> ResampledScores:
        """Score a space; `relevance` covers all songs, and `groups` has their artists, perhaps in another order."""
        split = relevance.restrict(self._queries, self._database)
        artists = np.asarray(groups)
        of_songs = np.searchsorted(self._of_database, artists[self._database])
        of_queries = np.searchsorted(self._of_queries, artists[self._queries])
        sums = np.zeros((len(RESAMPLED), len(self._of_queries), _N_DATABASES))
        counts = np.zeros((len(self._of_queries), _N_DATABASES))
        parts: list[dict[str, Float64Array]] = []
        done = 0
        for D, part in search_distances(
            space.X, self._queries, self._database, split, reduce_hubs=self._reduce_hubs, distances=space.distances
        ):
            parts.append(evaluation.distance_scores(D, part, _K))
            for d, judgments in zip(D, part.judgments(np.arange(len(D))), strict=True):
                group = of_queries[done]
                scores = self._score_query(d, judgments, of_songs, self._of_queries[group])
                is_scored = np.isfinite(scores[0])
                counts[group] += is_scored
                sums[:, group] += np.where(is_scored, scores, 0.0)
                done += 1
        each = join_scores(parts)
        both = _means(np.einsum("gbq,mgb->mbq", self._weights, sums), np.einsum("gbq,gb->bq", self._weights, counts))
        of_database = _means(sums.sum(axis=1), counts.sum(axis=0))
        is_scored = np.isfinite(each["auc"])
        n = np.bincount(of_queries, is_scored, len(self._of_queries))
        true = [np.bincount(of_queries, np.where(is_scored, each[name], 0.0), len(n)) for name in RESAMPLED]
        of_sets = _means(np.einsum("gbq,mg->mbq", self._weights, true), np.einsum("gbq,g->bq", self._weights, n))
        return ResampledScores(each, both, of_database, of_sets, int(np.count_nonzero(n)))

    def _score_query(self, d: FloatingArray, judgments: Int64Array, groups: Int64Array, own: str) -> Float64Array:
        scores = np.full((len(RESAMPLED), _N_DATABASES), np.nan)
        rows = np.concatenate([np.flatnonzero(judgments == 0), np.flatnonzero(judgments == 1)])
        rows = rows[np.argsort(d[rows], kind="stable")]
        at = int(np.searchsorted(self._of_database, own))
        is_inside = at < len(self._of_database) and self._of_database[at] == own
        learning._kernels.score_weighted(
            np.asarray(d, np.float64)[rows], judgments[rows] == 1, groups[rows], at if is_inside else -1, self._copies,
            _K, scores,
        )  # fmt: skip
        return scores


def _means(sums: Float64Array, counts: Float64Array) -> dict[str, Float64Array]:
    means = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
    return {name: mean.ravel() for name, mean in zip(RESAMPLED, means, strict=True)}
