"""The likelihood of playlists under a hypergraph walk, as a function of the edge weights.

Its log is a sum of logs of sums of weights, less another such sum. Both are bounded from below at the
present weights: the first by Jensen's inequality with the posterior of the edges, the second by its
tangent. The bound touches the objective there and falls apart into one problem an edge.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from musicsim._arrays import Float64Array, Int64Array
from musicsim.playlist._kernels import common_edges
from musicsim.playlist.counts import Counts
from musicsim.playlist.hypergraph import Hypergraph


def pair_matrix(graph: Hypergraph, pairs: Int64Array) -> sparse.csr_array:
    """Return P[y | e, x] for each pair (x, y) of different songs: a sparse (n_pairs, n_edges)."""
    x, y = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
    start, edges = common_edges(graph.incidence.indptr, graph.incidence.indices, x, y)
    p, n = graph.song_weight, np.diff(start)
    data = np.repeat(p[y], n) / (graph.mass[edges] - np.repeat(p[x], n))
    return sparse.csr_array((data, edges, start), shape=(len(pairs), graph.n_edges))


def _scale_columns(matrix: sparse.csr_array, factor: Float64Array) -> sparse.csr_array:
    """Return the matrix with its columns multiplied; it shares the places of the entries."""
    data = matrix.data * factor[matrix.indices]
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def _first_matrix(graph: Hypergraph, songs: Int64Array) -> sparse.csr_array:
    """Return P[x | e] for the given songs: a sparse (n_given, n_edges)."""
    inside = _scale_columns(graph.incidence[songs], 1.0 / graph.mass)
    inside.data *= np.repeat(graph.song_weight[songs], np.diff(inside.indptr))
    return inside


@dataclass(frozen=True, slots=True)
class Likelihood:
    """The MAP objective, as sparse rows over the edges and how often each row was seen.

    For weights w that sum to 1 it is the sum of ``count * log(row @ w)`` over `numerators`, less the
    same over `denominators`, plus ``prior @ log(w)``. Transitions with only one possible edge have a
    posterior of 1 whatever the weights: they are held as counts an edge in `certain`, and what
    their probabilities inside the edge contribute as the number `constant`.
    """

    numerators: sparse.csr_array
    numerator_count: Float64Array
    denominators: sparse.csr_array
    denominator_count: Float64Array
    certain: Float64Array
    constant: float
    prior: Float64Array
    total: float

    @classmethod
    def of(
        cls, graph: Hypergraph, counts: Counts, edge_factor: Float64Array, prior: Float64Array
    ) -> tuple["Likelihood", int]:
        """Build the objective; also return how many transitions no edge can explain.

        `edge_factor` is c in P[e | x] = w_e c_e / (sum of w_f c_f over the edges f of x).
        """
        n = graph.n_songs
        moves = _scale_columns(pair_matrix(graph, counts.pairs), edge_factor)
        seen = np.bincount(counts.pair_of, minlength=len(counts.pairs)).astype(np.float64)
        possible = np.diff(moves.indptr) > 0
        n_impossible = int(seen[~possible].sum())
        n_source = np.bincount(counts.pairs[:, 0], weights=np.where(possible, seen, 0.0), minlength=n).astype(
            np.float64
        )
        n_first = np.bincount(counts.first_songs, minlength=n).astype(np.float64)
        sources, firsts = np.flatnonzero(n_source), np.flatnonzero(n_first)
        rows = sparse.csr_array(sparse.vstack([moves, _first_matrix(graph, firsts)], format="csr"))
        row_count = np.concatenate([seen, n_first[firsts]])
        degree = np.diff(rows.indptr)
        single, several = np.flatnonzero(degree == 1), np.flatnonzero(degree > 1)
        at = rows.indptr[single]
        certain = np.bincount(rows.indices[at], weights=row_count[single], minlength=graph.n_edges)
        likelihood = cls(
            numerators=rows if several.size == rows.shape[0] else sparse.csr_array(rows[several]),
            numerator_count=row_count[several],
            denominators=_scale_columns(graph.incidence[sources], edge_factor),
            denominator_count=n_source[sources],
            certain=certain.astype(np.float64),
            constant=float(row_count[single] @ np.log(rows.data[at])),
            prior=prior,
            total=float(n_first.sum() + prior.sum()),
        )
        return likelihood, n_impossible

    @property
    def n_observations(self) -> float:
        """First songs and transitions."""
        return float(self.numerator_count.sum() + self.certain.sum())

    def evaluate(self, w: Float64Array) -> tuple[float, Float64Array, Float64Array]:
        """Return the objective at w and the minoriser ``gain @ log(w) - cost @ w`` (up to a constant).

        `w` must sum to 1: the log of that sum, which the objective subtracts, is then 0.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            numerator = self.numerators @ w
            denominator = self.denominators @ w
            known = self.certain + self.prior
            log_w = np.log(w, where=known > 0, out=np.zeros_like(w))
            objective = (
                self.numerator_count @ np.log(numerator)
                - self.denominator_count @ np.log(denominator)
                + known @ log_w
                + self.constant
            )
            gain = w * (self.numerators.T @ (self.numerator_count / numerator)) + known
            cost = self.denominators.T @ (self.denominator_count / denominator) + self.total
        return float(objective), gain, cost
