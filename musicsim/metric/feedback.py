"""Relevance feedback: thumbs up and down (marks) change the metric and the position of a query.

The marks are the positive and negative documents of a geometric mean metric for the query, and its previous metric is
the prior (Su, King, Lyu, SIGIR 2017, algorithm 1). The query moves toward the liked songs, as the ideal candidate
document does in section 3 of the paper (and in Rocchio, 1971). Local metrics are reweighted first (section 3.2).
Everything has a closed form, and without marks nothing changes.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import linalg

from musicsim._arrays import Float64Array, FloatingArray
from musicsim._checks import check_number
from musicsim.metric._geometric import geometric_mean_metric
from musicsim.metric.linear import factor
from musicsim.metric.scatter import scatter_across

_BLOCK_ENTRIES = 4_000_000  # Number of entries in a block of songs: 32 MB
_STRONGEST = 1e9  # Higher strengths exceed double precision
_ZERO = 1e-9  # Singular values below this share of the largest are rounding errors


@dataclass(frozen=True, slots=True, eq=False)
class Feedback:
    """An ideal song and the metric around it.

    The metric is ``L^T (I + U^T (G - I) U) L``: the base metric L^T L, changed along the directions of the marks.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.metric import Feedback
    >>> feedback = Feedback(np.zeros(2), None, np.array([[0.0, 1.0]]), np.array([[100.0]]))
    >>> feedback.metric
    array([[  1.,   0.],
           [  0., 100.]])
    >>> feedback.distances(np.array([[1.0, 0.0], [0.0, 1.0]]))
    array([ 1., 10.])
    """

    point: Float64Array  # (d,): new position of the query
    base: Float64Array | None  # (r, d): L; None is the identity matrix
    directions: Float64Array  # (k, r): U, with orthonormal rows
    change: Float64Array  # (k, k): G, symmetric positive definite
    weights: Float64Array | None = None  # (m,): weights of the local metrics whose sum is the base metric

    @property
    def metric(self) -> Float64Array:
        """The metric, (d, d)."""
        r = self.directions.shape[1]
        inner = np.eye(r) + self.directions.T @ (self.change - np.eye(len(self.change))) @ self.directions
        return inner if self.base is None else self.base.T @ inner @ self.base

    def distances(self, X: npt.ArrayLike) -> FloatingArray:
        """Return the distances (not squared) from songs to the ideal song.

        Parameters
        ----------
        X : array-like of shape (n_songs, d); float32 is not converted

        Returns
        -------
        float32 or float64 ndarray of shape (n_songs,), like X

        Notes
        -----
        Time: O(n r (d + k)), or O(n d k) without L. Memory: 32 MB for any number of songs.
        """
        songs = np.asarray(X)
        if songs.ndim != 2 or songs.shape[1] != len(self.point):
            raise ValueError(f"X has shape {songs.shape}; it must be (n_songs, {len(self.point)}).")
        dtype = np.float32 if songs.dtype == np.float32 else np.float64
        point, directions = self.point.astype(dtype), self.directions.astype(dtype)
        base = None if self.base is None else self.base.T.astype(dtype)
        extra = (self.change - np.eye(len(self.change))).astype(dtype)
        squares = np.empty(len(songs), dtype)
        block = max(1, _BLOCK_ENTRIES // len(point))
        for start in range(0, len(songs), block):
            Z = songs[start : start + block] - point
            if base is not None:
                Z = Z @ base
            Y = Z @ directions.T
            squares[start : start + block] = np.einsum("ij,ij->i", Z, Z) + np.einsum("ij,ij->i", Y @ extra, Y)
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
    """Return the metric and the ideal song for a query, given songs marked up and down.

    Parameters
    ----------
    x : array-like of shape (d,)
        The query, in the space of `base`.
    up, down : array-likes of shape (n_up, d) and (n_down, d)
        Songs marked as similar and as dissimilar; both may be empty.
    base : array-like of shape (d, d), optional
        Previous metric, positive semidefinite. By default Euclidean distance, which is also right for songs mapped by
        the ``transform`` of a learned metric.
    strength : float from 0 to 1e9
        Effect of a mark: a single mark changes squared distances in its direction by at most the factor
        ``sqrt(1 + strength)``.
    move : float >= 0
        The query moves ``move n_up / (move n_up + 1)`` of the way to the mean of the songs in `up`.
    weights : ndarray of shape (m,), optional
        Stored in the result; see :func:`adapt_weights`.

    Notes
    -----
    Let z be differences in the base metric, and s the mean of z^2 over the marks. S is a sum over the songs in `up`.
    Each term is the mean of z z^T / s over a song's differences from the query and the other songs in `up`. D is a sum
    over the songs in `down`; each term is the mean over the differences from the query and the songs in `up`. In the
    directions of the marks, G = (I + strength S)^-1 # (I + strength D). Time for k marks: O(k^2 r), about a
    millisecond, and O(r d^2) with `base`.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.metric import feedback_metric
    >>> songs = np.array([[0.0, 2.0], [2.0, 0.0]])
    >>> adapted = feedback_metric(np.zeros(2), up=[[0.0, 1.0]], down=[[1.0, 0.0]])
    >>> adapted.point  # halfway to the song with a thumbs-up
    array([0. , 0.5])
    >>> adapted.distances(songs).round(2)  # the song in its direction is nearer now
    array([1.31, 3.05])
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
            raise ValueError(f"base has shape {metric.shape}; it must be {(d, d)} and contain finite numbers.")
        L = factor(metric)
    point = query
    if len(ups):
        point = query + float(move) / (float(move) + 1.0 / len(ups)) * (ups.mean(axis=0) - query)
    near, far = (rows - query if L is None else (rows - query) @ L.T for rows in (ups, downs))
    directions, change = _change(near, far, float(strength))
    return Feedback(point, L, directions, change, weights)


def _change(ups: Float64Array, downs: Float64Array, strength: float) -> tuple[Float64Array, Float64Array]:
    """Return U and G of :class:`Feedback` for marks given relative to the query."""
    marks = np.concatenate([ups, downs])
    scale = float(np.mean(np.sum(marks * marks, axis=1))) if len(marks) else 0.0
    if not (strength > 0 and scale > 0):
        return np.empty((0, ups.shape[1])), np.empty((0, 0))
    _, sizes, axes = linalg.svd(marks / np.sqrt(scale), full_matrices=False)
    directions = axes[sizes > _ZERO * sizes[0]]
    up, down = ups @ directions.T, downs @ directions.T
    k = len(directions)
    similar = np.concatenate([np.zeros((1, k)), up])
    S = scatter_across(up, similar).total / max(len(up), 1)
    D = scatter_across(down, similar).total / len(similar)
    return directions, geometric_mean_metric(np.eye(k) + strength / scale * S, np.eye(k) + strength / scale * D)


def adapt_weights(
    x: npt.ArrayLike,
    up: npt.ArrayLike,
    down: npt.ArrayLike,
    metrics: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    *,
    strength: float = 1.0,
) -> Float64Array:
    """Adapt the weights of local metrics to the marks of a query.

    The gain ``g_r`` of metric r is the mean of ``d_r / d`` over the songs in `down`, minus the mean over the songs in
    `up`. Here, ``d_r`` is the squared distance by metric r, and ``d`` is the squared distance by the weighted sum. The
    new weights maximize ``sum_r phi_r g_r - KL(phi || weights) / s``, so they are proportional to
    ``weights_r exp(s g_r)``. With n marks, s is ``strength n / (n + 2)``, so that few marks change little.

    Parameters
    ----------
    x, up, down : as in :func:`feedback_metric`
    metrics : array-like of shape (m, d, d), all on the same scale
    weights : array-like of shape (m,), optional
        Previous weights, not negative and not all 0; by default equal.
    strength : float >= 0

    Returns
    -------
    float64 ndarray of shape (m,), not negative, sums to 1

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.metric import adapt_weights
    >>> by_tempo, by_timbre = np.diag([1.0, 0.0]), np.diag([0.0, 1.0])  # the song marked up has the query's tempo
    >>> adapt_weights([0, 0], up=[[0, 1]], down=[[1, 0]], metrics=[by_tempo, by_timbre]).round(2)
    array([0.88, 0.12])
    """
    query = _vector(x)
    d = len(query)
    ups, downs = _rows(up, d, "up") - query, _rows(down, d, "down") - query
    M = np.asarray(metrics, dtype=np.float64)
    if M.ndim != 3 or M.shape[1:] != (d, d) or not len(M) or not np.isfinite(M).all():
        raise ValueError(f"metrics has shape {M.shape}; it must be (m, {d}, {d}) and contain finite numbers.")
    before = np.ones(len(M)) if weights is None else np.asarray(weights, dtype=np.float64)
    if before.shape != (len(M),) or not ((before >= 0) & (before < np.inf)).all() or not before.any():
        raise ValueError(f"weights must be {len(M)} finite numbers, not negative and not all 0.")
    check_number("strength", strength, 0)
    before = before / before.max()
    before /= before.sum()
    marks = np.concatenate([ups, downs])
    squares = np.einsum("rij,nj,ni->rn", M, marks, marks, optimize=True)
    totals = before @ squares
    differs = totals > 0  # a copy of the query has no effect
    if not differs.any() or strength == 0:
        return before
    has_weight = before > np.finfo(np.float64).tiny  # the other metrics keep weight 0 whatever their gain
    ratios = squares[np.ix_(has_weight, differs)] / totals[differs]
    signs = np.where(np.arange(len(marks)) < len(ups), -1.0, 1.0)[differs]
    counts = np.where(signs < 0, np.count_nonzero(signs < 0), np.count_nonzero(signs > 0))
    gains = ratios @ (signs / counts)
    n = len(signs)
    with np.errstate(over="ignore"):
        # logarithms, because a metric with a large gain may have a tiny weight
        powers = np.log(before[has_weight]) + float(strength) * (n / (n + 2.0)) * (gains - gains.max())
    adapted = np.zeros(len(M))
    adapted[has_weight] = np.exp(powers - powers.max())
    return adapted / adapted.sum()


def _vector(x: npt.ArrayLike) -> Float64Array:
    query = np.asarray(x, dtype=np.float64)
    if query.ndim != 1 or not query.size or not np.isfinite(query).all():
        raise ValueError(f"x has shape {query.shape}; it must be (d,) and contain finite numbers.")
    return query


def _rows(songs: npt.ArrayLike, d: int, name: str) -> Float64Array:
    rows = np.asarray(songs, dtype=np.float64)
    if not rows.size:
        return np.empty((0, d))
    if rows.ndim != 2 or rows.shape[1] != d or not np.isfinite(rows).all():
        raise ValueError(f"{name} has shape {rows.shape}; it must be (n_songs, {d}) and contain finite numbers.")
    return rows
