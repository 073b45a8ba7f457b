"""Gradient descent on document pairs: RankNet, then LambdaRank (Nair, Mahajan, Sundararajan, WWW 2012, sections 3-4).

A batch consists of some queries and the documents that they share. Lambdas, the derivatives of the cost with respect to
the scores, form one (queries x documents) matrix. Four matrix products give the derivatives with respect to the
weights. Two of them lead from the scores to the relaxed bits h of queries and documents (equation 2). The others lead
from the bits to the weights (equation 1).
"""

from dataclasses import dataclass

import numpy as np

from musicsim._arrays import Float64Array, Int16Array, Int64Array
from musicsim.hashing._kernels import order_lambdas, swap_lambdas
from musicsim.hashing.votes import bin_edges

_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True, slots=True)
class Neighborhood:
    """Neighbors of a query: the documents in the `n_bins` nearest bins, or at distances up to `radius`.

    With `beyond`, neighbors are swapped with documents that are farther away than the last neighbor, by up to a third
    of the bits. Otherwise, they are swapped with documents in the nearest n_bits / 3 bins.
    """

    n_bins: int | None
    radius: int
    beyond: bool = True

    def edges(self, distances: Int16Array, n_bits: int) -> tuple[Int64Array, Int64Array]:
        """Return each query's largest distance of a neighbor and of a document to swap; ignore negative distances."""
        if self.n_bins is None:
            inner = np.full(len(distances), self.radius)
        else:
            inner = bin_edges(distances, self.n_bins, n_bits)
        third = -(-n_bits // 3)
        return inner, inner + third if self.beyond else bin_edges(distances, third, n_bits)


def relax_bits(sums: Float64Array) -> Float64Array:
    """Return h of equation 1; sums are clipped, so that exp is finite."""
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(sums, -500.0, 500.0))))


@dataclass(frozen=True, slots=True)
class Projection:
    """Map from rows to the sums of equation 1, ``[x, u] W + b``, with k hidden units ``u = max(x V + c, 0) / sqrt(k)``.

    The initial mean of the units is subtracted. Otherwise, bits would learn this mean first, and many would become
    constant. Because of the factor 1 / sqrt(k), one step size suits W and V for any k.
    """

    weights: Float64Array  # (d + k, n_bits)
    bias: Float64Array  # (n_bits,)
    hidden_weights: Float64Array  # (d, k)
    hidden_bias: Float64Array  # (k,)
    hidden_mean: Float64Array  # (k,): subtracted from the units, not learned

    def arrays(self) -> tuple[Float64Array, ...]:
        """Return the learned arrays, in the order of :meth:`slopes`."""
        return self.weights, self.bias, self.hidden_weights, self.hidden_bias

    def inputs(self, rows: Float64Array) -> Float64Array:
        """Return the inputs that W is multiplied by: rows (n, d), followed by the values of their hidden units."""
        n_hidden = len(self.hidden_bias)
        if not n_hidden:
            return rows
        units = np.maximum(rows @ self.hidden_weights + self.hidden_bias, 0.0)
        return np.hstack([rows, units / np.sqrt(n_hidden) - self.hidden_mean])

    def slopes(self, rows: Float64Array, inputs: Float64Array, by_sums: Float64Array) -> tuple[Float64Array, ...]:
        """Return the derivatives with respect to :meth:`arrays`, given the derivatives with respect to the sums."""
        d, n_hidden = self.hidden_weights.shape
        by_units = by_sums @ self.weights[d:].T / np.sqrt(max(n_hidden, 1))
        by_units *= inputs[:, d:] > -self.hidden_mean
        return inputs.T @ by_sums, by_sums.sum(axis=0), rows.T @ by_units, by_units.sum(axis=0)


@dataclass(frozen=True, slots=True)
class Batch:
    """Queries, the documents they share, and gains (NaN if a document is ignored for a query)."""

    queries: Float64Array
    documents: Float64Array
    gains: Float64Array

    def slopes(
        self, projection: Projection, temperature: float, neighborhood: Neighborhood | None, normalize: bool = True
    ) -> tuple[list[Float64Array], float]:
        """Return the derivatives of the queries' mean cost with respect to the weights, and the share of wrong pairs.

        Scores are divided by `temperature`. `neighborhood` is None for RankNet. With `normalize`, the cost of a query
        is divided by the sum of its pairs' weights. The share of wrong pairs is the probability of the wrong order
        (equation 3), averaged over each query's pairs, then over queries.
        """
        n_bits = projection.weights.shape[1]
        inputs = [projection.inputs(rows) for rows in (self.queries, self.documents)]
        h, g = (relax_bits(rows @ projection.weights + projection.bias) for rows in inputs)
        # equation 2 minus half the number of bits; subtracting a constant does not change differences between scores
        scores = (h.sum(axis=1)[:, None] + g.sum(axis=1) - 2.0 * h @ g.T - 0.5 * n_bits) / temperature
        is_known = ~np.isnan(self.gains)
        gains = np.where(is_known, self.gains, 0.0)
        lambdas, totals = np.empty_like(scores), np.empty((len(scores), 2))
        if neighborhood is None:
            # NaN sorts last
            order = np.argsort(-self.gains, axis=1, kind="stable")
            order_lambdas(scores, gains, order, is_known.sum(axis=1), lambdas, totals)
        else:
            left, right = (np.where(bits > 0.5, 1.0, -1.0).astype(np.float32) for bits in (h, g))
            distances = ((n_bits - left @ right.T) / 2.0).astype(np.int16)
            distances[~is_known] = -1
            swap_lambdas(scores, gains, distances, *neighborhood.edges(distances, n_bits), lambdas, totals)
        if normalize:
            lambdas /= np.maximum(totals[:, :1], _TINY)
        lambdas /= len(lambdas) * temperature
        by_h = lambdas.sum(axis=1)[:, None] - 2.0 * lambdas @ g
        by_g = lambdas.sum(axis=0)[:, None] - 2.0 * lambdas.T @ h
        by_h *= h * (1.0 - h)
        by_g *= g * (1.0 - g)
        has_pairs = totals[:, 0] > 0
        wrong = float(np.mean(totals[has_pairs, 1] / totals[has_pairs, 0])) if has_pairs.any() else float("nan")
        sides = zip((self.queries, self.documents), inputs, (by_h, by_g), strict=True)
        slopes = [projection.slopes(*side) for side in sides]
        return [a + b for a, b in zip(*slopes, strict=True)], wrong
