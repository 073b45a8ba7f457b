"""Probabilities that the walk reaches a fixed song in a given number of steps; they guide a path to this song.

Let P be the walk's transition matrix, g the weights of songs at a position, and z the fixed song at position b. The
message is

    beta_b(y) = 1[y = z],    beta_t(x) = sum_y P[y | x] g_{t+1}(y) beta_{t+1}(y).

A step from x at position t to y, drawn in proportion to P[y | x] g_{t+1}(y) beta_{t+1}(y), is a step of the walk
conditioned on z at position b. P is never formed; multiplying edge by edge is linear in the number of memberships.
"""

from collections.abc import Callable

import numpy as np
from scipy import sparse

from musicsim._arrays import Float64Array
from musicsim.playlist.hypergraph import Hypergraph

Weighing = Callable[[int], Float64Array | None]
"""Function that takes a position and returns the weights of all songs there, or None if they are equal."""


class Bridge:
    """Messages for a walk with edge weights `pull`; takes 12 bytes per membership, and 8 per song and free position."""

    def __init__(self, graph: Hypergraph, pull: Float64Array) -> None:
        self._graph = graph
        rows = graph.incidence
        song = np.repeat(np.arange(graph.n_songs), np.diff(rows.indptr))
        total = rows @ pull
        leaving = pull[rows.indices] / np.where(total[song] > 0, total[song], 1.0)
        # P[e | x] / (mass of e without x): probability of a step through e, per unit of song weight
        share = leaving / (graph.mass[rows.indices] - graph.song_weight[song])
        self._share = sparse.csr_array((share, rows.indices, rows.indptr), shape=rows.shape)
        self._own = np.asarray(self._share.sum(axis=1)).ravel()

    def _step_back(self, values: Float64Array) -> Float64Array:
        """Return ``sum_y P[y | x] values(y)`` for every song x."""
        weighted = self._graph.song_weight * values
        inside = self._graph.incidence.T @ weighted
        # rounding may make the difference negative
        return np.maximum(self._share @ inside - self._own * weighted, 0.0)

    def compute_messages(self, start: int, stop: int, song: int, weigh: Weighing) -> dict[int, Float64Array]:
        """Return beta, scaled to a maximum of 1, at the positions between `start` and `stop`, given `song` at `stop`.

        `weigh` returns g, multiplied by the mask of the songs allowed at a position.
        """
        beta = np.zeros(self._graph.n_songs)
        beta[song] = 1.0
        betas: dict[int, Float64Array] = {}
        for place in range(stop - 1, start, -1):
            values = self._step_back(beta)
            top = values.max(initial=0.0)
            beta = values / top if top > 0 else values
            betas[place] = beta
            weights = weigh(place)
            beta = beta if weights is None else beta * weights
        return betas
