"""Compiled loops for factors of listeners and songs."""

from typing import Any

import numpy as np
from numba import njit

TINY = 1e-20  # squared length of a residual that is zero up to rounding


@njit(cache=True, nogil=True)
def _is_in(values: Any, value: Any) -> Any:
    """Return True if a sorted array contains a value."""
    at = np.searchsorted(values, value)
    return at < len(values) and values[at] == value


@njit(cache=True, nogil=True)
def ascend(
    indptr: Any,
    indices: Any,
    owner: Any,
    plays: Any,
    others: Any,
    listeners: Any,
    songs: Any,
    bias: Any,
    rate: Any,
    penalty: Any,
) -> None:
    """Take one gradient step of BPR for each drawn play and the other song drawn for it, in place.

    `plays` are positions in `indices`, `owner` is the row of each position. A step is skipped if the listener also
    played the other song.
    """
    for step in range(len(plays)):
        u, i, j = owner[plays[step]], indices[plays[step]], others[step]
        if _is_in(indices[indptr[u] : indptr[u + 1]], j):
            continue
        lead = bias[i] - bias[j]
        for f in range(listeners.shape[1]):
            lead += listeners[u, f] * (songs[i, f] - songs[j, f])
        slope = 1 / (1 + np.exp(lead))
        bias[i] += rate * (slope - penalty * bias[i])
        bias[j] -= rate * (slope + penalty * bias[j])
        for f in range(listeners.shape[1]):
            a, b, c = listeners[u, f], songs[i, f], songs[j, f]
            listeners[u, f] += rate * (slope * (b - c) - penalty * a)
            songs[i, f] += rate * (slope * a - penalty * b)
            songs[j, f] -= rate * (slope * a + penalty * c)


@njit(cache=True, nogil=True)
def _apply(base: Any, y: Any, extra: Any, x: Any) -> Any:
    """Return (base + sum of extra y y^T) x without forming the matrix."""
    product = base @ x
    for k in range(len(y)):
        product += extra[k] * (y[k] @ x) * y[k]
    return product


@njit(cache=True, nogil=True)
def solve_rows(indptr: Any, indices: Any, extra: Any, others: Any, base: Any, solved: Any, n_steps: Any) -> None:
    """Improve each row's solution x of (base + sum of extra y y^T) x = sum of (1 + extra) y by conjugate gradients."""
    for row in range(len(solved)):
        y = others[indices[indptr[row] : indptr[row + 1]]]
        weights = extra[indptr[row] : indptr[row + 1]]
        x = solved[row]
        rest = (1 + weights) @ y - _apply(base, y, weights, x)
        direction, square = rest.copy(), rest @ rest
        for _ in range(n_steps):
            if square < TINY:
                break
            product = _apply(base, y, weights, direction)
            length = square / (direction @ product)
            x += length * direction
            rest -= length * product
            before, square = square, rest @ rest
            direction = rest + square / before * direction
