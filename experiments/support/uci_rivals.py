"""Two rivals of the thesis's tables 3.2 and 3.4 without a package: MLCC and SVM-MAP."""

import numpy as np

from musicsim._arrays import Float64Array, Int64Array
from musicsim.metric.oracles import Oracle
from musicsim.metric.qp import solve_dual
from musicsim.relevance import Relevance

__all__ = ["collapse_classes", "collapsing_loss", "rank_by_support_vectors"]

_SHRINKS = 40


def collapsing_loss(W: Float64Array, X: Float64Array, y: Int64Array) -> tuple[float, Float64Array]:
    """Return the mean divergence over rows between "all of my class, equally" and p(j | i) ~ exp(-d_W(i, j)).

    Rows that are alone in their class are skipped, and a constant is omitted.

    Returns
    -------
    loss : float
    gradient : ndarray of shape (d, d)
    """
    Z = X @ W
    norms = np.einsum("ij,ij->i", Z, X)
    D = norms[:, None] + norms[None, :] - 2.0 * Z @ X.T
    np.fill_diagonal(D, np.inf)
    alike = y[:, None] == y[None, :]
    np.fill_diagonal(alike, False)
    counts = alike.sum(axis=1)
    asks = counts > 0
    target = np.where(asks[:, None], alike / np.maximum(counts, 1)[:, None], 0.0)
    nearest = D.min(axis=1, keepdims=True)
    P = np.exp(nearest - D)
    sums = P.sum(axis=1, keepdims=True)
    np.fill_diagonal(D, 0.0)
    losses = (target * D).sum(axis=1) + np.log(sums[:, 0]) - nearest[:, 0]
    pull = np.where(asks[:, None], target - P / sums, 0.0) / asks.sum()
    pull = pull + pull.T
    gradient = X.T @ (pull.sum(axis=1)[:, None] * X) - X.T @ pull @ X
    return float(losses[asks].mean()), 0.5 * (gradient + gradient.T)


def collapse_classes(
    X: Float64Array, y: Int64Array, *, tol: float = 1e-4, max_iter: int = 200
) -> tuple[Float64Array, float]:
    """Learn a metric by collapsing classes (Globerson and Roweis, NIPS 2006), by projected gradients.

    The problem is convex. Steps are accelerated, and restart from the last point if the loss rises. If classes can
    collapse completely, an optimum does not exist and the metric would grow forever.

    Parameters
    ----------
    X : ndarray of shape (n_rows, d)
    y : ndarray of shape (n_rows,)
    tol : float
        Stop after a step that gains less than this share of the loss.

    Returns
    -------
    components : ndarray of shape (d, d)
        L of W = L'L.
    loss : float
    """
    W = ahead = np.eye(X.shape[1]) / X.shape[1]
    loss, momentum, step = collapsing_loss(W, X, y)[0], 1.0, 1.0
    for _ in range(max_iter):
        value, gradient = collapsing_loss(ahead, X, y)
        for _ in range(_SHRINKS):
            new = _nearest_metric(ahead - step * gradient)
            move = new - ahead
            after = collapsing_loss(new, X, y)[0]
            if after <= value + np.vdot(gradient, move) + 0.5 / step * np.vdot(move, move) + 1e-12:
                break
            step *= 0.5
        if after > loss:  # momentum overshot
            if momentum == 1.0:
                break
            ahead, momentum = W, 1.0
            continue
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        ahead = new + (momentum - 1.0) / following * (new - W)
        gain, W, loss, momentum, step = loss - after, new, after, following, 1.5 * step
        if gain <= tol * max(abs(loss), tol):
            break
    values, vectors = np.linalg.eigh(W)
    return np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T, loss


def _nearest_metric(W: Float64Array) -> Float64Array:
    values, vectors = np.linalg.eigh(W)
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


def rank_by_support_vectors(
    X: Float64Array, y: Int64Array, C: float, *, tol: float = 1e-2, max_cuts: int = 100
) -> tuple[Float64Array, float]:
    """Fit SVM-MAP (Yue, Finley, Radlinski, Joachims, SIGIR 2007): 1/2 |w|^2 + C times the mean hinge loss of AP.

    The score of row x for query q is -<w, (q - x)^2>, with squares per column. The thesis's map, q - x, ranks the rows
    alike for all queries and cannot classify. This is diagonal metric learning to rank, with a ridge instead of the
    trace and with weights of either sign.

    Parameters
    ----------
    y : ndarray of shape (n_rows,)
        Rows of a class are relevant to each other.

    Returns
    -------
    weights : ndarray of shape (d,)
    gap : float
        Of the objective and its lower bound, divided by the objective.
    """
    oracle = Oracle(X, Relevance.from_labels(y), "map", structure="diagonal")
    w, a = np.zeros(X.shape[1]), np.empty(0)
    losses, psi = np.empty(0), np.empty((0, X.shape[1]))
    best, least, bound = w, np.inf, 0.0
    for _ in range(max_cuts):
        cut = oracle.cut(w)
        value = 0.5 * float(w @ w) + C * max(0.0, cut.slack)
        if value < least:
            best, least = w, value
        if least - bound <= tol * least:
            break
        losses, psi = np.append(losses, cut.loss), np.vstack([psi, cut.dpsi])
        a = solve_dual(psi @ psi.T, -losses, C, np.append(a, 0.0), 1e-3 * tol * least)
        w = a @ psi
        bound = max(bound, float(a @ losses) - 0.5 * float(w @ w))
    return best, (least - bound) / least
