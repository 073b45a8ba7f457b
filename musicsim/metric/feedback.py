"""Relevance feedback: songs marked up and down around a query change its metric, and its place, at once.

The marks of a query are the positive and negative documents of a geometric mean metric of its own (Su, King, Lyu,
SIGIR 2017, algorithm 1), with the metric it had before as the prior; the query moves towards what was marked up, as
the ideal candidate document of section 3 (and of Rocchio, 1971). Local metrics are reweighted first, a Phi of this
query's own (section 3.2). Everything is in closed form, and no mark changes nothing.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import linalg

from musicsim._arrays import Float64Array, FloatingArray
from musicsim._checks import check_number
from musicsim.metric._geometric import geometric_mean_metric
from musicsim.metric.linear import factor

_BLOCK_ENTRIES = 4_000_000
"""Of songs less the query that are held at once: 32 MB."""
_STRONGEST = 1e9
"""Beyond it what was marked and what was not differ by more than double precision holds."""
_ZERO = 1e-9
"""Length of a difference, relative to the longest vector, that is rounding; also of a direction among others."""


@dataclass(frozen=True, slots=True, eq=False)
class Feedback:
    """An ideal song and the metric around it.

    The metric is ``L^T (I + U^T (G - I) U) L``: the base metric L^T L, changed along as many directions as there are
    marks.
    """

    point: Float64Array  # (d,): where the query now is
    base: Float64Array | None  # (r, d), or None: L; None is the identity
    directions: Float64Array  # (k, r): U, orthonormal rows
    change: Float64Array  # (k, k): G, symmetric positive definite
    # (m,), or None: of the local metrics that the base metric is the sum of
    weights: Float64Array | None = None

    @property
    def metric(self) -> Float64Array:
        """The metric, (d, d)."""
        r = self.directions.shape[1]
        inner = np.eye(r) + self.directions.T @ (self.change - np.eye(len(self.change))) @ self.directions
        return inner if self.base is None else self.base.T @ inner @ self.base

    def distances(self, X: npt.ArrayLike) -> FloatingArray:
        """Distances from the ideal song, not squared.

        Parameters
        ----------
        X : array-like of shape (n_songs, d)
            float32 is taken as it is.

        Returns
        -------
        float32 or float64 ndarray of shape (n_songs,), as X

        Raises
        ------
        ValueError
            If X has another number of columns than the query.

        Notes
        -----
        O(n r (d + k)), without L O(n d k); 32 MB besides X, whatever the number of songs.
        """
        songs = np.asarray(X)
        if songs.ndim != 2 or songs.shape[1] != len(self.point):
            raise ValueError(f"X: shape {songs.shape} should be (n_songs, {len(self.point)}).")
        dtype = np.float32 if songs.dtype == np.float32 else np.float64
        point, directions = self.point.astype(dtype), self.directions.astype(dtype)
        base = None if self.base is None else self.base.T.astype(dtype)
        extra = (self.change - np.eye(len(self.change))).astype(dtype)
        squares = np.empty(len(songs), dtype)
        block = max(1, _BLOCK_ENTRIES // len(point))
        for start in range(0, len(songs), block):
            away = songs[start : start + block] - point
            if base is not None:
                away = away @ base
            along = away @ directions.T
            squares[start : start + block] = np.einsum("ij,ij->i", away, away) + np.einsum(
                "ij,ij->i", along @ extra, along
            )
        return np.sqrt(np.maximum(squares, 0.0))


def feedback_metric(
    x: npt.ArrayLike,
    up: npt.ArrayLike,
    down: npt.ArrayLike,
    base: npt.ArrayLike | None = None,
    *,
    strength: float = 4.0,
    move: float = 1.0,
    weights: Float64Array | None = None,
) -> Feedback:
    """The metric and the ideal song of a query after marks.

    Parameters
    ----------
    x : array-like of shape (d,)
        The query, in the space of `base`.
    up, down : array-likes of shape (n_up, d) and (n_down, d)
        Songs marked as like it and as unlike it; either may be empty.
    base : array-like of shape (d, d), optional
        The metric before, positive semi-definite; plain distance otherwise, also for songs that
        ``transform`` of a learned metric has mapped.
    strength : float from 0 to 1e9
        How much a mark changes of the metric; 0 leaves it. A single mark stretches or shrinks squared distances along
        it by at most the root of 1 + strength.
    move : float >= 0
        How far the query goes to the mean of the songs marked up: ``move n_up / (move n_up + 1)`` of the way.
    weights : ndarray of shape (m,), optional
        Kept in the result; see :func:`adapt_weights`.

    Raises
    ------
    ValueError
        If shapes differ, a number is not finite, or `strength` or `move` is out of range.

    Notes
    -----
    Let z be differences in units of the base metric and s the mean of z^2 over the marks. Every song up adds to S the
    mean of its z z^T / s with the query and the other songs up, each song down adds to D that with the query and the
    songs up, and G = (I + strength S)^-1 # (I + strength D) in the directions of the marks. Time: O(r d^2 + k^2 r) for
    k marks, r d^2 only with `base`; a millisecond without.
    """
    query = _vector(x)
    d = len(query)
    ups, downs = _rows(up, d, "up"), _rows(down, d, "down")
    check_number("strength", strength, 0, _STRONGEST)
    check_number("move", move, 0)
    L = None
    if base is not None:
        metric = np.asarray(base, dtype=np.float64)
        if metric.shape != (d, d) or not np.isfinite(metric).all():
            raise ValueError(f"base: shape {metric.shape} should be {(d, d)}, of finite numbers.")
        L = factor(metric)
    point = query
    if len(ups):
        point = query + float(move) / (float(move) + 1.0 / len(ups)) * (ups.mean(axis=0) - query)
    near, far = (rows - query if L is None else (rows - query) @ L.T for rows in (ups, downs))
    directions, change = _change(near, far, float(strength))
    return Feedback(point, L, directions, change, weights)


def _change(ups: Float64Array, downs: Float64Array, strength: float) -> tuple[Float64Array, Float64Array]:
    """Directions and what to do along them, from marks around a query that is the origin."""
    marks = np.concatenate([ups, downs])
    scale = float(np.mean(np.sum(marks * marks, axis=1))) if len(marks) else 0.0
    if not (strength > 0 and scale > 0):
        return np.empty((0, ups.shape[1])), np.empty((0, 0))
    _, sizes, axes = linalg.svd(marks / np.sqrt(scale), full_matrices=False)
    directions = axes[sizes > _ZERO * sizes[0]]
    up, down = ups @ directions.T, downs @ directions.T
    k = len(directions)
    like = np.concatenate([np.zeros((1, k)), up])
    S = _mean_scatters(up, like, len(up))
    D = _mean_scatters(down, like, len(like))
    one = np.eye(k)
    return directions, geometric_mean_metric(one + strength / scale * S, one + strength / scale * D)


def _mean_scatters(rows: Float64Array, others: Float64Array, n_others: int) -> Float64Array:
    """Sum over rows a of the sum over others b of (a - b)(a - b)^T / n_others."""
    if not len(rows):
        return np.zeros((rows.shape[1],) * 2)
    across = np.outer(rows.sum(axis=0), others.sum(axis=0))
    total = len(others) * rows.T @ rows + len(rows) * others.T @ others - across - across.T
    return total / n_others


def adapt_weights(
    x: npt.ArrayLike,
    up: npt.ArrayLike,
    down: npt.ArrayLike,
    metrics: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    *,
    strength: float = 1.0,
) -> Float64Array:
    """Weights of local metrics for a query with marks: its own Phi.

    Metric r is worth ``g_r``, the mean of d_r / d over the songs down less that over the songs up, where d_r is the
    squared distance by this metric and d that by all in their weights. The new weights are those on the simplex that
    maximise ``sum_r phi_r g_r - KL(phi || weights) / s``: ``weights_r exp(s g_r)``, made to sum to 1, with
    ``s = strength n / (n + 2)`` for n marks, so that few change little. Metrics should be of one scale.

    Parameters
    ----------
    x, up, down
        As of :func:`feedback_metric`.
    metrics : array-like of shape (m, d, d)
    weights : array-like of shape (m,), optional
        Those before, not negative; equal ones otherwise.
    strength : float >= 0

    Returns
    -------
    float64 ndarray of shape (m,), not negative, sums to 1

    Raises
    ------
    ValueError
        If shapes differ, a number is not finite, or weights are negative or all 0.
    """
    query = _vector(x)
    d = len(query)
    ups, downs = _rows(up, d, "up") - query, _rows(down, d, "down") - query
    M = np.asarray(metrics, dtype=np.float64)
    if M.ndim != 3 or M.shape[1:] != (d, d) or not len(M) or not np.isfinite(M).all():
        raise ValueError(f"metrics: shape {M.shape} should be (m, {d}, {d}), of finite numbers.")
    before = np.ones(len(M)) if weights is None else np.asarray(weights, dtype=np.float64)
    if before.shape != (len(M),) or not ((before >= 0) & (before < np.inf)).all() or not before.any():
        raise ValueError(f"weights should be {len(M)} finite numbers, not negative, not all 0.")
    check_number("strength", strength, 0)
    before = before / before.max()
    before /= before.sum()
    marks = np.concatenate([ups, downs])
    squares = np.einsum("rij,nj,ni->rn", M, marks, marks, optimize=True)
    mixed = before @ squares
    seen = mixed > 0  # a copy of the query tells nothing
    if not seen.any() or strength == 0:
        return before
    has = before > np.finfo(np.float64).tiny  # a metric without weight gets none, whatever it is worth
    ratios = squares[np.ix_(has, seen)] / mixed[seen]
    signs = np.where(np.arange(len(marks)) < len(ups), -1.0, 1.0)[seen]
    counts = np.where(signs < 0, np.count_nonzero(signs < 0), np.count_nonzero(signs > 0))
    worth = ratios @ (signs / counts)
    n = len(signs)
    with np.errstate(over="ignore"):
        # in logarithms: a metric of great worth may have next to no weight
        powers = np.log(before[has]) + float(strength) * (n / (n + 2.0)) * (worth - worth.max())
    tilted = np.zeros(len(M))
    tilted[has] = np.exp(powers - powers.max())
    return tilted / tilted.sum()


def _vector(x: npt.ArrayLike) -> Float64Array:
    query = np.asarray(x, dtype=np.float64)
    if query.ndim != 1 or not query.size or not np.isfinite(query).all():
        raise ValueError(f"x: shape {query.shape} should be (d,), of finite numbers.")
    return query


def _rows(songs: npt.ArrayLike, d: int, name: str) -> Float64Array:
    rows = np.asarray(songs, dtype=np.float64)
    if not rows.size:
        return np.empty((0, d))
    if rows.ndim != 2 or rows.shape[1] != d or not np.isfinite(rows).all():
        raise ValueError(f"{name}: shape {rows.shape} should be (n_songs, {d}), of finite numbers.")
    return rows
