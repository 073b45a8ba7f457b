"""The convex problem of partial order embedding (thesis 2.4 and 2.B).

    minimize  f(W) = penalty(W) + C / m sum over comparisons of max(0, 1 - <W, psi>)   over the cone,

where psi = ``(k - l)(k - l)^T - (i - j)(i - j)^T`` for a comparison (i, j, k, l). Let a be weights of the comparisons,
each between 0 and C / m. Let t >= 1 be such that sum(a psi) is below t times the gradient of the penalty on the cone.
Then sum(a) / t is a lower bound on the optimum. Both solvers stop when this bound is close enough to the objective.
"""

import numpy as np
from scipy import sparse

from musicsim._arrays import Float64Array, Int64Array
from musicsim.metric.cone import Cone, ConeProjection
from musicsim.order._kernels import pair_distances


class Objective:
    """The objective f with its subgradients and lower bounds, for songs (n_songs, d) and comparisons (m, 4).

    The cone has d columns; its weights are also the weights of the penalty. In addition to the songs, this needs twice
    their memory, plus 60 bytes per comparison.
    """

    def __init__(self, songs: Float64Array, comparisons: Int64Array, cone: Cone, C: float) -> None:
        self.cone, self.n_comparisons = cone, len(comparisons)
        self.weight = C / len(comparisons)
        self._songs = songs - songs.mean(axis=0)
        ends = np.cumsum(cone.widths)
        self._columns = [slice(end - w, end) for end, w in zip(ends, cone.widths, strict=True)]
        # the distinct pairs of songs, and the index of the nearer and the farther pair of each comparison
        n = len(songs)
        low_first = np.sort(comparisons.reshape(-1, 2), axis=1)
        keys, places = np.unique(low_first[:, 0] * n + low_first[:, 1], return_inverse=True)
        self._pairs = np.stack(np.divmod(keys, n), axis=1)
        self._near, self._far = places.reshape(-1, 2).T
        # a symmetric sparse matrix with the weights of the pairs: pair and column of each entry, and start of each row
        rows, columns = np.concatenate([self._pairs, self._pairs[:, ::-1]]).T
        by_row = np.lexsort((columns, rows))
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
        self._entries = by_row % len(keys), columns[by_row].astype(np.int32), starts.astype(np.int32)

    def penalty(self, flat: Float64Array) -> float:
        return float(self.cone.unit @ flat)

    def margins(self, W: ConeProjection) -> Float64Array:
        """Return <W, psi> for each comparison: the difference between its squared distances, which is linear in W."""
        squares = pair_distances(self._map(W), self._pairs)
        return squares[self._far] - squares[self._near]

    def _map(self, W: ConeProjection) -> Float64Array:
        """Map the songs to coordinates in which the Euclidean distance equals the distance under W."""
        if W.factors is None:
            return self._songs * np.sqrt(W.point)
        parts = [self._songs[:, c] @ L.T for c, L in zip(self._columns, W.factors, strict=True)]
        return np.ascontiguousarray(np.concatenate(parts, axis=1))

    def value(self, W: ConeProjection, margins: Float64Array) -> float:
        return self.penalty(W.point) + self.weight * float(np.maximum(0.0, 1.0 - margins).sum())

    def combine(self, weights: Float64Array) -> Float64Array:
        """Return the weighted sum of psi as a flat array: a sparse matrix times the songs on both sides (2.B)."""
        X, n_pairs = self._songs, len(self._pairs)
        sums = np.bincount(self._far, weights, n_pairs) - np.bincount(self._near, weights, n_pairs)
        entries, columns, starts = self._entries
        off_diagonal = sparse.csr_array((sums[entries], columns, starts), shape=(len(X), len(X)))
        degrees = np.bincount(self._pairs.ravel(), np.repeat(sums, 2), len(X))
        folded = degrees[:, None] * X - off_diagonal @ X
        if self.cone.structure == "diagonal":
            return np.asarray(np.einsum("ij,ij->j", folded, X))
        blocks = [folded[:, c].T @ X[:, c] for c in self._columns]
        return np.concatenate([(0.5 * (block + block.T)).ravel() for block in blocks])

    def lower_bound(self, weights: Float64Array, combined: Float64Array) -> float:
        """Return the lower bound for weights between 0 and C / m; `combined` is the sum of psi with these weights."""
        return float(weights.sum()) / max(1.0, self.cone.reach(combined))
