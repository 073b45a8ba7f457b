"""The likelihood of transitions under a Markov chain of points, its gradient, and gradient ascent.

P[y | x] is proportional to exp(b_y - |X_y - X_x|^2) over all songs y other than x. The sum over y is exact. Sources are
taken in blocks, so memory is one float64 matrix (block, n_songs).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from musicsim._arrays import Float64Array, Int64Array
from musicsim.playlist.counts import Counts

__all__ = ["Ascent", "Points", "TransitionTable", "climb", "log_moves", "row_logits"]


_SOURCES_AT_ONCE = 256
# decay of the means of the gradient and of its square, and the guard of the division (Kingma and Ba, "Adam: a method
# for stochastic optimization", 2015)
_DECAY, _SQUARE_DECAY, _TINY = 0.9, 0.999, 1e-8


@dataclass(frozen=True, slots=True)
class Points:
    """One point per song, `coordinates` of shape (n_songs, n_dimensions), and one `bias` per song."""

    coordinates: Float64Array
    bias: Float64Array

    def copy(self) -> "Points":
        return Points(self.coordinates.copy(), self.bias.copy())


@dataclass(frozen=True, slots=True)
class TransitionTable:
    """Distinct transitions by source: those of song x are `target[start[x]:start[x + 1]]`.

    `count` has the number of times each was seen. `source_count`, shape (n_songs,), has the number of transitions out
    of each song.
    """

    start: Int64Array
    target: Int64Array
    count: Float64Array
    source_count: Float64Array

    @classmethod
    def of(cls, counts: Counts, n_songs: int) -> "TransitionTable":
        source, target = counts.pairs.T
        count = np.bincount(counts.pair_of, minlength=len(counts.pairs)).astype(np.float64)
        return cls(
            start=np.searchsorted(source, np.arange(n_songs + 1)),
            target=target,
            count=count,
            source_count=np.bincount(source, weights=count, minlength=n_songs).astype(np.float64),
        )

    def rows(self, songs: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Return the positions in `songs` and in `target` of each transition out of `songs`."""
        degree = self.start[songs + 1] - self.start[songs]
        row = np.repeat(np.arange(songs.size), degree)
        before = np.cumsum(degree) - degree
        return row, np.arange(row.size) - before[row] + self.start[songs][row]


def row_logits(points: Points, songs: Int64Array) -> Float64Array:
    """Return log P[y | x] up to a constant per row, for x in `songs`: (n_given, n_songs), -inf if y is x.

    |X_x|^2 is constant in a row and omitted.
    """
    x = points.coordinates
    logits = x[songs] @ (2.0 * x).T
    logits += points.bias - np.einsum("ij,ij->i", x, x)
    logits[np.arange(songs.size), songs] = -np.inf
    return logits


def log_moves(points: Points, pairs: Int64Array) -> Float64Array:
    """Return log P[y | x] of each row (x, y) of `pairs`, which must be sorted by x and not contain x = y."""
    log_p = np.empty(len(pairs))
    sources = np.unique(pairs[:, 0])
    for start in range(0, sources.size, _SOURCES_AT_ONCE):
        songs = sources[start : start + _SOURCES_AT_ONCE]
        logits = row_logits(points, songs)
        top = logits.max(axis=1)
        here = slice(*np.searchsorted(pairs[:, 0], [songs[0], songs[-1] + 1]))
        row = np.searchsorted(songs, pairs[here, 0])
        own = logits[row, pairs[here, 1]] - top[row]
        logits -= top[:, None]
        log_p[here] = own - np.log(np.exp(logits, out=logits).sum(axis=1))[row]
    return log_p


def mean_log_move(points: Points, counts: Counts) -> float:
    """Return the mean of log P[y | x] over all transitions of `counts`."""
    return float(log_moves(points, counts.pairs)[counts.pair_of].mean())


def block_gradient(points: Points, table: TransitionTable, songs: Int64Array) -> Points:
    """Return the gradient of the log-likelihood of all transitions out of `songs`.

    Let r_xy = count(x, y) - count(x) P[y | x], whose sum over y is 0. The gradient is

    - with respect to b_y, the sum of r_xy over x,
    - with respect to X_y, the sum of 2 r_xy (X_x - X_y) over x,
    - with respect to X_x, the sum of 2 r_xy (X_y - X_x) over y.
    """
    x = points.coordinates
    residual = row_logits(points, songs)
    residual -= residual.max(axis=1, keepdims=True)
    np.exp(residual, out=residual)
    residual *= -(table.source_count[songs] / residual.sum(axis=1))[:, None]
    row, at = table.rows(songs)
    residual[row, table.target[at]] += table.count[at]
    by_target = residual.sum(axis=0)
    gradient = 2.0 * (residual.T @ x[songs] - by_target[:, None] * x)
    gradient[songs] += 2.0 * (residual @ x)
    return Points(gradient, by_target)


class _Adam:
    """Adam, gradient ascent with noisy gradients (Kingma and Ba, 2015)."""

    def __init__(self, parameters: list[Float64Array], learning_rate: float) -> None:
        self.parameters = parameters
        self.learning_rate = learning_rate
        self.mean = [np.zeros_like(parameter) for parameter in parameters]
        self.square = [np.zeros_like(parameter) for parameter in parameters]
        self.n_steps = 0

    def step(self, gradients: list[Float64Array]) -> None:
        """Update the parameters in place."""
        self.n_steps += 1
        # both means start at 0: divide their bias away
        size = self.learning_rate / (1.0 - _DECAY**self.n_steps)
        scale = 1.0 / (1.0 - _SQUARE_DECAY**self.n_steps)
        for i, gradient in enumerate(gradients):
            self.mean[i] += (1.0 - _DECAY) * (gradient - self.mean[i])
            self.square[i] += (1.0 - _SQUARE_DECAY) * (gradient * gradient - self.square[i])
            self.parameters[i] += size * self.mean[i] / (np.sqrt(self.square[i] * scale) + _TINY)


@dataclass(frozen=True, slots=True)
class Ascent:
    """Parameters of `climb`: see `LatentMarkovEmbedding`."""

    learning_rate: float
    batch_size: int
    max_iter: int
    n_iter_no_change: int
    regularization: float
    with_bias: bool


def climb(
    start: Points,
    training: Counts,
    held_out: Counts,
    how: Ascent,
    rng: np.random.Generator,
    callback: Callable[[dict[str, Any]], bool | None] | None,
) -> tuple[Points, list[float]]:
    """Return the best points found, and the mean log P of a held-out transition after each epoch.

    An epoch visits each source once, in random blocks. If `held_out` does not contain a transition, the training
    transitions replace it.
    """
    points, best, history = start.copy(), start, []
    table = TransitionTable.of(training, len(points.bias))
    sources = np.flatnonzero(table.source_count)
    judge = held_out if len(held_out.pairs) else training
    adam = _Adam([points.coordinates, points.bias][: 1 + how.with_bias], how.learning_rate)
    for epoch in range(1, how.max_iter + 1):
        order = rng.permutation(sources)
        for first in range(0, order.size, how.batch_size):
            songs = np.sort(order[first : first + how.batch_size])
            gradient = block_gradient(points, table, songs)
            penalty = 2.0 * how.regularization * songs.size / sources.size * points.coordinates
            n_moves = table.source_count[songs].sum()
            adam.step([(gradient.coordinates - penalty) / n_moves, gradient.bias / n_moves][: 1 + how.with_bias])
        history.append(mean_log_move(points, judge))
        best_epoch = int(np.argmax(history)) + 1
        if best_epoch == epoch:
            best = points.copy()
        step = {"iteration": epoch, "objective": history[-1], "best": max(history)}
        if (callback is not None and callback(step)) or epoch - best_epoch >= how.n_iter_no_change:
            break
    return best, history
