"""Likelihood of playlists under a hypergraph walk, as a function of the edge weights.

The log-likelihood is the difference between two sums of logs of sums of weights. At the current weights, Jensen's
inequality with the posterior of the edges bounds the first sum, and the tangent bounds the second. The resulting lower
bound touches the objective at these weights and separates into one problem per edge.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from musicsim._arrays import Float64Array, Int64Array
from musicsim.playlist._kernels import common_edges
from musicsim.playlist.counts import Counts
from musicsim.playlist.hypergraph import Hypergraph


def pair_matrix(graph: Hypergraph, pairs: Int64Array) -> sparse.csr_array:
    """Return P[y | e, x] for each pair (x, y) of different songs and each edge e, sparse (n_pairs, n_edges)."""
    x, y = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
    start, edges = common_edges(graph.incidence.indptr, graph.incidence.indices, x, y)
    p, n = graph.song_weight, np.diff(start)
    data = np.repeat(p[y], n) / (graph.mass[edges] - np.repeat(p[x], n))
    return sparse.csr_array((data, edges, start), shape=(len(pairs), graph.n_edges))


def _scale_columns(matrix: sparse.csr_array, factor: Float64Array) -> sparse.csr_array:
    """Return the matrix with its columns multiplied by `factor`; it shares the index arrays."""
    data = matrix.data * factor[matrix.indices]
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


@dataclass(frozen=True, slots=True)
class Likelihood:
    """The MAP objective as sparse rows over the edges, with a count per row.

    For weights w that sum to 1, it is the sum of ``count * log(row @ w)`` over `numerators`, minus the same sum over
    `denominators`, plus ``prior @ log(w)``. If a transition has a single possible edge, its posterior is 1 for any
    weights. `certain` counts these transitions per edge, and `constant` is the sum of their log P[y | e, x].
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
    def from_counts(
        cls, graph: Hypergraph, counts: Counts, edge_factor: Float64Array, prior: Float64Array
    ) -> tuple["Likelihood", int]:
        """Return the objective, and the number of transitions that no edge explains.

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
        first_rows = _scale_columns(graph.incidence[firsts], 1.0 / graph.mass)  # P[x | e]
        first_rows.data *= np.repeat(graph.song_weight[firsts], np.diff(first_rows.indptr))
        rows = sparse.csr_array(sparse.vstack([moves, first_rows], format="csr"))
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
        """Total number of first songs and transitions."""
        return float(self.numerator_count.sum() + self.certain.sum())

    def evaluate(self, w: Float64Array) -> tuple[float, Float64Array, Float64Array]:
        """Return the objective at w and the minorizer ``gain @ log(w) - cost @ w`` (up to a constant).

        `w` must sum to 1, because the objective omits the log of its sum.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            numerator = self.numerators @ w
            denominator = self.denominators @ w
            fixed_gain = self.certain + self.prior
            log_w = np.log(w, where=fixed_gain > 0, out=np.zeros_like(w))
            objective = (
                self.numerator_count @ np.log(numerator)
                - self.denominator_count @ np.log(denominator)
                + fixed_gain @ log_w
                + self.constant
            )
            gain = w * (self.numerators.T @ (self.numerator_count / numerator)) + fixed_gain
            cost = self.denominators.T @ (self.denominator_count / denominator) + self.total
        return float(objective), gain, cost
