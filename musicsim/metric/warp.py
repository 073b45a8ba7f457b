"""Compiled stochastic gradient steps for the weights of local metrics (SIGIR 2017, 3.3 and algorithm 2).

Rows are documents. The documents of a query are the rows ``starts[q]`` to ``starts[q + 1] - 1``, sorted by ascending
label. ``lower[i]`` counts the documents of the same query that are less relevant than i; these come first. The array
``closeness`` contains g_r = t_r exp(-t_r) of equation 13, and the score of a document is f = -phi . g. A step moves phi
by the mean of L (g(p-) - g(p+)) over a minibatch, the negative gradient of the hinge loss ``zeta - f(p+) + f(p-)``. It
also clips phi at 0.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def draw(state, n):
    """Draw a number below `n`; `state` is one nonzero uint64 (Marsaglia's xorshift with a multiplication)."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return np.int64(((x * np.uint64(2685821657736338717)) >> np.uint64(33)) % np.uint64(n))


@njit(cache=True, nogil=True)
def _negative_score(closeness, row, phi):
    total = 0.0
    for r in range(len(phi)):
        total += phi[r] * closeness[row, r]
    return total


@njit(cache=True, nogil=True)
def _update(phi, gradient, scale, total):
    for r in range(len(phi)):
        phi[r] = max(0.0, phi[r] + scale * gradient[r])
        gradient[r] = 0.0
        total[r] += phi[r]


@njit(cache=True, nogil=True)
def warp_steps(closeness, lower, starts, queries, phi, rate, margin, batch, n_steps, ranks, state, total):
    """Take `n_steps` steps with the WARP loss, each on a minibatch of `batch` tuples (query, p+, p-).

    A violator p-, with f(p-) + margin > f(p+), is drawn with replacement from the less relevant documents. The number
    of draws is at most the number of these documents. If draw N finds a violator, its weight is
    ``ranks[floor(n_less / N)]`` (equation 16). Changes `phi`, adds it to `total` after every step, and returns the mean
    loss over all tuples (equation 19).
    """
    gradient = np.zeros(len(phi))
    loss = 0.0
    for _ in range(n_steps):
        for _ in range(batch):
            q = queries[draw(state, len(queries))]
            first, last = starts[q], starts[q + 1]
            least = first
            while lower[least] == 0:
                least += 1
            up = least + draw(state, last - least)
            near = _negative_score(closeness, up, phi)
            n_less = lower[up]
            for n_drawn in range(1, n_less + 1):
                down = first + draw(state, n_less)
                short = margin + near - _negative_score(closeness, down, phi)
                if short > 0.0:
                    weight = ranks[n_less // n_drawn]
                    loss += weight * short
                    for r in range(len(phi)):
                        gradient[r] += weight * (closeness[down, r] - closeness[up, r])
                    break
        _update(phi, gradient, rate / batch, total)
    return loss / (n_steps * batch)


@njit(cache=True, nogil=True)
def ndcg_steps(closeness, lower, starts, queries, phi, rate, margin, batch, n_steps, gains, k, state, total):
    """Take `n_steps` steps on minibatches of `batch` queries; weight violated pairs by how much a swap changes NDCG@k.

    `gains` are relative to the query's best DCG@k. Changes `phi` and `total` as :func:`warp_steps` does, and returns
    the mean weighted hinge loss of the queries.
    """
    gradient = np.zeros(len(phi))
    loss = 0.0
    for _ in range(n_steps):
        for _ in range(batch):
            q = queries[draw(state, len(queries))]
            first, last = starts[q], starts[q + 1]
            n = last - first
            far, discount, push = np.empty(n), np.zeros(n), np.zeros(n)
            for i in range(n):
                far[i] = _negative_score(closeness, first + i, phi)
            for i in range(n):  # no sort, because all pairs are compared anyway; less relevant documents win ties
                place = 0
                for j in range(n):
                    place += far[j] < far[i] or (far[j] == far[i] and j < i)
                if place < k:
                    discount[i] = 1.0 / np.log2(place + 2.0)
            for up in range(n):
                for down in range(lower[first + up]):
                    short = margin + far[up] - far[down]
                    if short > 0.0:
                        weight = (gains[first + up] - gains[first + down]) * abs(discount[up] - discount[down])
                        loss += weight * short
                        push[down] += weight
                        push[up] -= weight
            for i in range(n):
                if push[i] != 0.0:
                    for r in range(len(phi)):
                        gradient[r] += push[i] * closeness[first + i, r]
        _update(phi, gradient, rate / batch, total)
    return loss / (n_steps * batch)
