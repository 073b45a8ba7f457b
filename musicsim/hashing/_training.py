"""Gradient descent on pairs of documents: RankNet, then LambdaRank (Nair, Mahajan, Sundararajan, WWW 2012, 3 and 4).

A batch is some queries and the documents that they share. Lambdas, the slopes of the cost by the scores, are one
(queries x documents) matrix, and the slopes by the weights four matrix products: two from scores to the relaxed bits h
of queries and documents (equation 2), two from these to the weights (equation 1).
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from musicsim._arrays import Float64Array, Int16Array, Int64Array
from musicsim._callbacks import StepCallback
from musicsim.hashing._gains import Gains, keep_targets
from musicsim.hashing._kernels import order_lambdas, swap_lambdas
from musicsim.hashing.votes import bin_edges

_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Neighbours of a query: the documents of the `n_bins` nearest bins, or at distances up to `radius`.

    They are swapped with documents up to a third of the bits beyond the last of them, or, unless `beyond`, with
    those of the nearest bins, a third of the bits in number, theirs included.
    """

    n_bins: int | None
    radius: int
    beyond: bool = True

    def edges(self, distances: Int16Array, n_bits: int) -> tuple[Int64Array, Int64Array]:
        """The largest distance of a neighbour of each query, and of a swap; negative distances do not count."""
        if self.n_bins is None:
            inner = np.full(len(distances), self.radius)
        else:
            inner = bin_edges(distances, self.n_bins, n_bits)
        third = -(-n_bits // 3)
        return inner, inner + third if self.beyond else bin_edges(distances, third, n_bits)


@dataclass(frozen=True, slots=True)
class Course:
    """Settings of a descent: steps of each phase, sizes of batches, length of a step; the rest as of RankHash."""

    ranknet_steps: int
    lambdarank_steps: int
    n_queries: int
    ranknet_documents: int
    lambdarank_documents: int
    step_size: float
    momentum: float
    temperature: float
    noise: float
    n_targets: int | None
    neighbourhood: Neighbourhood
    decay: bool = True
    normalize: bool = True

    def phases(self) -> Iterator[tuple[str, int, float]]:
        """Phase, documents of a batch and step size of each step."""
        n_steps = self.ranknet_steps + self.lambdarank_steps
        for t in range(n_steps):
            step_size = self.step_size * (1.0 - t / n_steps if self.decay else 1.0)
            if t < self.ranknet_steps:
                yield "ranknet", self.ranknet_documents, step_size
            else:
                yield "lambdarank", self.lambdarank_documents, step_size


def relaxed_bits(sums: Float64Array) -> Float64Array:
    """h of equation 1; sums are no longer than exp takes."""
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(sums, -500.0, 500.0))))


@dataclass(frozen=True, slots=True)
class Projection:
    """Rows to the sums of equation 1: ``[x, u] W + b``, of x and k hidden units ``u = max(x V + c, 0) / sqrt(k)``.

    From units their mean at the start is taken; else it is what bits learn first, and many end up the same for all
    rows. Divided by the root of k, units move the sums as far by steps along the slopes of V as by those of W, so
    that one step size fits both, whatever k is.
    """

    weights: Float64Array  # (d + k, n_bits)
    bias: Float64Array  # (n_bits,)
    hidden_weights: Float64Array  # (d, k)
    hidden_bias: Float64Array  # (k,)
    hidden_mean: Float64Array  # (k,): taken from the units, not learned

    def arrays(self) -> tuple[Float64Array, ...]:
        """What is learned, in the order of :meth:`slopes`."""
        return self.weights, self.bias, self.hidden_weights, self.hidden_bias

    def inputs(self, rows: Float64Array) -> Float64Array:
        """What W is multiplied with: rows (n, d), and their hidden units."""
        n_hidden = len(self.hidden_bias)
        if not n_hidden:
            return rows
        units = np.maximum(rows @ self.hidden_weights + self.hidden_bias, 0.0)
        return np.hstack([rows, units / np.sqrt(n_hidden) - self.hidden_mean])

    def slopes(self, rows: Float64Array, inputs: Float64Array, by_sums: Float64Array) -> tuple[Float64Array, ...]:
        """Slopes by each of :meth:`arrays` from those by the sums of rows, `inputs` being those of the rows."""
        d, n_hidden = self.hidden_weights.shape
        by_units = by_sums @ self.weights[d:].T / np.sqrt(max(n_hidden, 1))
        by_units *= inputs[:, d:] > -self.hidden_mean
        return inputs.T @ by_sums, by_sums.sum(axis=0), rows.T @ by_units, by_units.sum(axis=0)


@dataclass(frozen=True, slots=True)
class Batch:
    """Queries, the documents they share, and gains; nan where a document does not count for a query."""

    queries: Float64Array
    documents: Float64Array
    gains: Float64Array

    def slopes(
        self, projection: Projection, temperature: float, neighbourhood: Neighbourhood | None, normalize: bool = True
    ) -> tuple[list[Float64Array], float]:
        """Slopes of the mean cost of the queries by weights and biases; the share of pairs in the wrong order.

        Parameters
        ----------
        projection : Projection
        temperature : float
            Scores are divided by it.
        neighbourhood : Neighbourhood or None
            None for RankNet.
        normalize : bool
            Divide the cost of a query by the sum of the weights of its pairs.

        Notes
        -----
        The share is the mean over queries of the mean probability of their pairs (equation 3).
        """
        n_bits = projection.weights.shape[1]
        inputs = [projection.inputs(rows) for rows in (self.queries, self.documents)]
        h, g = (relaxed_bits(rows @ projection.weights + projection.bias) for rows in inputs)
        # equation 2, less half the number of bits, which no difference of scores feels
        scores = (h.sum(axis=1)[:, None] + g.sum(axis=1) - 2.0 * h @ g.T - 0.5 * n_bits) / temperature
        is_known = ~np.isnan(self.gains)
        gains = np.where(is_known, self.gains, 0.0)
        lambdas, totals = np.empty_like(scores), np.empty((len(scores), 2))
        if neighbourhood is None:
            # nan comes last
            order = np.argsort(-self.gains, axis=1, kind="stable")
            order_lambdas(scores, gains, order, is_known.sum(axis=1), lambdas, totals)
        else:
            ours, theirs = (np.where(bits > 0.5, 1.0, -1.0).astype(np.float32) for bits in (h, g))
            distances = ((n_bits - ours @ theirs.T) / 2.0).astype(np.int16)
            distances[~is_known] = -1
            swap_lambdas(scores, gains, distances, *neighbourhood.edges(distances, n_bits), lambdas, totals)
        if normalize:
            lambdas /= np.maximum(totals[:, :1], _TINY)
        lambdas /= len(lambdas) * temperature
        by_h = lambdas.sum(axis=1)[:, None] - 2.0 * lambdas @ g
        by_g = lambdas.sum(axis=0)[:, None] - 2.0 * lambdas.T @ h
        by_h *= h * (1.0 - h)
        by_g *= g * (1.0 - g)
        asked = totals[:, 0] > 0
        wrong = float(np.mean(totals[asked, 1] / totals[asked, 0])) if asked.any() else float("nan")
        sides = zip((self.queries, self.documents), inputs, (by_h, by_g), strict=True)
        slopes = [projection.slopes(*side) for side in sides]
        return [a + b for a, b in zip(*slopes, strict=True)], wrong


def descend(
    rows: Float64Array,
    gains: Gains,
    start: Projection,
    course: Course,
    rng: np.random.Generator,
    callback: StepCallback | None,
) -> list[dict[str, Any]]:
    """Learn the weights and biases of `start`, in place.

    Parameters
    ----------
    rows : ndarray of shape (n, d), centred
    start : Projection
        Weights to start from.
    rng : Generator
        Draws the batches.
    callback : callable, optional
        Gets each step; True ends the descent.

    Returns
    -------
    list of dict
        One a step: step, phase, step_size, wrong.
    """
    learned = list(start.arrays())
    moves = [np.zeros_like(array) for array in learned]
    spread = course.noise * rows.std(axis=0)
    history: list[dict[str, Any]] = []
    began = time.perf_counter()
    for phase, n_documents, step_size in course.phases():
        drawn = rng.choice(len(rows), min(course.n_queries, len(rows)), replace=False)
        found = gains.documents(drawn, n_documents, rng)
        queries = rows[drawn]
        if course.noise:
            queries = queries + spread * rng.normal(size=queries.shape)
        batch = Batch(queries, rows[found], gains.gains(drawn, found))
        if course.n_targets is not None:
            keep_targets(batch.gains, rows[drawn], batch.documents, course.n_targets)
        neighbourhood = course.neighbourhood if phase == "lambdarank" else None
        slopes, wrong = batch.slopes(start, course.temperature, neighbourhood, course.normalize)
        for i, slope in enumerate(slopes):
            moves[i] = course.momentum * moves[i] - step_size * slope
            learned[i] += moves[i]  # in place
        history.append({"step": len(history) + 1, "phase": phase, "step_size": step_size, "wrong": wrong})
        if callback is not None and callback({**history[-1], "seconds": time.perf_counter() - began}):
            break
    return history
