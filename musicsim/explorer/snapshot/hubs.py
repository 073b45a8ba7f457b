"""Hub reduction of search results: candidates in the order of their mutual proximity.

What a song finds usual as a distance is worked out once for every song of a library of up to 100,000. Of more songs
it would keep the first answer waiting (13 s for a million), so there it is worked out for the candidates of each
query, 500 at a time, and only the average song is taken from a sample of all.
"""

from collections.abc import Callable
from functools import cached_property

import numpy as np

from musicsim import search
from musicsim._arrays import Float32Array, Float64Array, FloatingArray, Int64Array

_MAX_IN_ADVANCE = 100_000
_SONGS_AVERAGED = 5_000


class HubReduction:
    """Adjusts distances by what both songs find usual.

    `vectors` gives those of some rows, float32 (k, n_dimensions); `proximity` gives the mutual proximity of all rows,
    and is called for small libraries only: up to `max_in_advance` songs the moments of all are computed before the
    first answer.
    """

    def __init__(
        self,
        n_rows: int,
        vectors: Callable[[Int64Array], Float32Array],
        proximity: Callable[[], "search.MutualProximity"],
        max_in_advance: int = _MAX_IN_ADVANCE,
    ) -> None:
        self._n_rows, self._vectors, self._proximity = n_rows, vectors, proximity
        self._is_small = n_rows <= max_in_advance

    def adjusted(
        self,
        vector: Float32Array,
        distances: FloatingArray,
        rows: Int64Array,
    ) -> Float64Array:
        """Distances of candidates, (k,), from a query, (n_dimensions,), as :class:`MutualProximity` adjusts them."""
        if self._is_small:
            proximity = self._proximity()
            mean, deviation = proximity.moments(vector[None, :])
            return proximity.rescore(distances, rows, (mean[0], deviation[0]))
        sample = self._of_sample
        # candidates are no part of the average song: they are all from one place, more or fewer from query to query
        of_candidates = sample.moments(self._vectors(rows))
        return sample.rescore_others(distances, of_candidates, sample.moments(vector[None, :]))

    @cached_property
    def _of_sample(self) -> "search.MutualProximity":
        n = self._n_rows
        chosen = np.sort(np.random.default_rng(0).choice(n, min(n, _SONGS_AVERAGED), replace=False))
        return search.MutualProximity().fit(self._vectors(chosen))
