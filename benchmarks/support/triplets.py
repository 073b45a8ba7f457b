"""Rivals of partial order embedding: t-STE, crowd kernel, classical MDS, and sub-gradients per comparison.

t-STE and the crowd kernel are implemented here because no package measures: cblearn 0.4 has a crowd kernel for torch
only. Its t-STE stores all distances of songs at every step and cannot be monitored. Both are solved by L-BFGS.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from musicsim._arrays import Float64Array, Int64Array

__all__ = ["Embedding", "classical_mds", "crowd_kernel", "dense_subgradient", "embed", "said_farther", "student_t"]

Losses = tuple[Float64Array, Float64Array, Float64Array]
Loss = Callable[[Float64Array, Float64Array], Losses]


@dataclass(frozen=True, slots=True)
class Embedding:
    """Points of the songs, (n_songs, r), and the CPU seconds and mean loss after each step."""

    points: Float64Array
    seconds: list[float]
    losses: list[float]


def student_t(n_components: int) -> Loss:
    """Return -log of the share of a heavy-tailed similarity, with n_components - 1 degrees of freedom.

    t-STE; van der Maaten and Weinberger, 2012.

    Returns
    -------
    callable
        Maps the squared distances of the nearer and the farther pairs, (m,) each, to losses and their slopes in both.
    """
    alpha = max(n_components - 1, 1)
    power = 0.5 * (alpha + 1)

    def loss(near: Float64Array, far: Float64Array) -> Losses:
        # log odds that the farther pair is the nearer one
        odds = power * (np.log1p(near / alpha) - np.log1p(far / alpha))
        wrong = 1.0 / (1.0 + np.exp(-odds))
        return np.logaddexp(0.0, odds), wrong * power / (alpha + near), -wrong * power / (alpha + far)

    return loss


def crowd_kernel(mu: float = 0.05) -> Loss:
    """Return -log of the farther pair's share of both squared distances, `mu` added to each.

    Tamuz, Liu, Belongie, Shamir and Kalai, 2011. Same return value as :func:`student_t`.
    """

    def loss(near: Float64Array, far: Float64Array) -> Losses:
        both, own = near + far + 2.0 * mu, far + mu
        return np.log(both / own), 1.0 / both, 1.0 / both - 1.0 / own

    return loss


def loss_and_slope(Y: Float64Array, comparisons: Int64Array, loss: Loss) -> tuple[float, Float64Array]:
    """Return the mean loss of the comparisons (m, 4) at the points Y (n_songs, r), and its gradient."""
    near, far = comparisons[:, :2].T, comparisons[:, 2:].T
    values, of_near, of_far = loss(*(np.square(Y[a] - Y[b]).sum(axis=1) for a, b in (near, far)))
    weights = np.concatenate([of_near, of_far]) / len(comparisons)
    a, b = np.concatenate([near, far], axis=1)
    W = sparse.csr_array((weights, (a, b)), shape=(len(Y), len(Y)))
    W = W + W.T
    return float(values.mean()), 2.0 * (np.asarray(W.sum(axis=1))[:, None] * Y - W @ Y)


def embed(
    n_songs: int,
    comparisons: Int64Array,
    loss: Loss,
    n_components: int,
    *,
    max_iter: int = 500,
    random_state: int | np.random.Generator | None = None,
) -> Embedding:
    """Minimize the mean loss over the points, from a random start, by L-BFGS.

    Parameters
    ----------
    comparisons : int ndarray of shape (m, 4)
    loss : callable
        :func:`student_t` or :func:`crowd_kernel`.
    """
    from scipy.optimize import minimize

    shape = (n_songs, n_components)
    start = np.random.default_rng(random_state).standard_normal(shape)
    began = time.process_time()
    seconds: list[float] = []
    losses: list[float] = []

    def asked(flat: Float64Array) -> tuple[float, Float64Array]:
        value, slope = loss_and_slope(flat.reshape(shape), comparisons, loss)
        return value, slope.ravel()

    def step(intermediate_result: object) -> None:
        seconds.append(time.process_time() - began)
        losses.append(float(intermediate_result.fun))  # type: ignore[attr-defined]

    found = minimize(asked, start.ravel(), jac=True, method="L-BFGS-B", callback=step, options={"maxiter": max_iter})
    return Embedding(found.x.reshape(shape), seconds, losses)


def said_farther(n_songs: int, comparisons: Int64Array, prior: float = 2.0) -> Float64Array:
    """Return a dissimilarity: the share of a pair's comparisons in which it was the farther one.

    Parameters
    ----------
    prior : float > 0
        Number of additional comparisons, half of them farther; pairs that were never compared get 1/2.

    Returns
    -------
    ndarray of shape (n_songs, n_songs)
    """
    far, asked = np.zeros((2, n_songs, n_songs))
    for pairs, is_far in ((comparisons[:, :2], 0.0), (comparisons[:, 2:], 1.0)):
        for a, b in (pairs.T, pairs.T[::-1]):
            np.add.at(far, (a, b), is_far)
            np.add.at(asked, (a, b), 1.0)
    D = (far + 0.5 * prior) / (asked + prior)
    np.fill_diagonal(D, 0.0)
    return D


def classical_mds(D: Float64Array, n_components: int) -> Float64Array:
    """Return points (n, r) whose inner products best fit those implied by the dissimilarities (n, n) (Torgerson)."""
    squares = np.square(D)
    B = -0.5 * (squares - squares.mean(axis=0) - squares.mean(axis=1)[:, None] + squares.mean())
    values, vectors = np.linalg.eigh(B)
    return np.asarray(vectors[:, -n_components:] * np.sqrt(np.maximum(values[-n_components:], 0.0)))


def dense_subgradient(
    X: Float64Array, comparisons: Int64Array, C: float, *, limit_s: float, stop_below: float = -np.inf
) -> Embedding:
    """Run projected sub-gradients of ``trace(W) + C / m * hinge`` with one outer product per comparison (2.B, naive).

    The problem, the step lengths and so the path are those of our own sub-gradients for X and its linear kernel.

    Parameters
    ----------
    X : ndarray of shape (n_songs, d)
    comparisons : int ndarray of shape (m, 4)
    limit_s : float
        CPU seconds; it ends after the step that exceeds them, or at the objective `stop_below`.

    Returns
    -------
    Embedding
        `losses` are the least objectives so far; `points` are X N^T of the last W = N^T N.
    """
    d, weight = X.shape[1], C / len(comparisons)
    W = start = np.zeros((d, d))
    squares = farthest = 0.0
    seconds: list[float] = []
    losses: list[float] = []
    began = time.process_time()
    while True:
        slope, value = np.eye(d), float(np.trace(W))
        for i, j, k, m in comparisons:
            near, far = X[i] - X[j], X[k] - X[m]
            hinge = 1.0 + near @ W @ near - far @ W @ far
            if hinge > 0.0:
                value += weight * hinge
                slope += weight * (np.outer(near, near) - np.outer(far, far))
        losses.append(min(value, *losses[-1:], np.inf))
        seconds.append(time.process_time() - began)
        if seconds[-1] >= limit_s or losses[-1] <= stop_below:
            break
        squares += float((slope * slope).sum())
        if farthest == 0.0:
            farthest = 1e-2 * _length_to_margin(X, comparisons, _positive(-slope))
        W = _positive(W - farthest / np.sqrt(squares) * slope)
        farthest = max(farthest, float(np.linalg.norm(W - start)))
    values, vectors = np.linalg.eigh(W)
    return Embedding(X @ (vectors * np.sqrt(np.maximum(values, 0.0))), seconds, losses)


def _positive(W: Float64Array) -> Float64Array:
    values, vectors = np.linalg.eigh(W)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def _length_to_margin(X: Float64Array, comparisons: Int64Array, step: Float64Array) -> float:
    """Return the length of the multiple of a step from 0 that makes the mean margin 1."""
    margins = []
    for i, j, k, m in comparisons:
        near, far = X[i] - X[j], X[k] - X[m]
        margins.append(far @ step @ far - near @ step @ near)
    return float(np.linalg.norm(step)) / max(float(np.mean(margins)), 1e-300)
