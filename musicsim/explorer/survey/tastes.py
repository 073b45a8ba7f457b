"""Sample a listener's tastes, given some answers, and compute how informative further questions are.

A taste is a vector of weights w >= 0 for the dimensions of a model; its squared distances are w . (x - y)^2. The prior
of each weight is exponential with mean 1, so that the mean taste is the model itself. An answer consists of comparisons
d(i, j) < d(k, l). The likelihood of an answer is logistic in its comparisons, with a scale of 0.3 times the median
squared distance. Posterior tastes are drawn with the weighted Bayesian bootstrap (Newton, Polson and Xu 2021). Each
answer gets an exponential weight. A taste minimizes the weighted loss plus the distance from a sample of the prior.
"""

from itertools import combinations

import numpy as np

from musicsim._arrays import Float64Array, Int64Array
from musicsim.blas import one_blas_thread

_N_TASTES = 32
_SOFTNESS = 0.3
_NEAR, _MAX_STEPS = 1e-3, 500  # convergence: largest change of a weight, far below the spread of the weights
_N_POWERS, _MARGIN = 20, 1.2


def pairs_apart(vectors: Float64Array, places: Int64Array) -> Float64Array:
    """Return squared differences between all pairs of songs in each question, (n_questions, n_pairs, n_dimensions).

    `places` (n_questions, n_shown) are rows of `vectors` (n_songs, n_dimensions); pairs come in the order of
    :func:`itertools.combinations`.
    """
    pairs = combinations(range(places.shape[1]), 2)
    return np.stack([(vectors[places[:, i]] - vectors[places[:, j]]) ** 2 for i, j in pairs], axis=1)


def answer_costs(apart: Float64Array, n_shown: int, form: str) -> Float64Array:
    """Return the cost of each possible answer, (n_questions, n_choices, ...); a lower cost means a likelier answer.

    `apart` (n_questions, n_pairs, ...) contains squared distances or their summands, from :func:`pairs_apart`. For
    "odd", the cost of choosing a song is the mean over the pairs without it; for "like", its distance from the first
    song.
    """
    if form == "like":
        return apart[:, : n_shown - 1]
    pairs = list(combinations(range(n_shown), 2))
    others = [[k for k, pair in enumerate(pairs) if song not in pair] for song in range(n_shown)]
    return np.stack([apart[:, kept].mean(axis=1) for kept in others], axis=1)


def sample_tastes(gaps: Float64Array, answer: Int64Array, rng: np.random.Generator) -> Float64Array:
    """Draw 32 tastes from their posterior, given answers; returns nonnegative weights, (n_dimensions, 32).

    `gaps` (n_comparisons, n_dimensions) are squared differences of the farther pair minus those of the nearer pair,
    divided by the scale. `answer` (n_comparisons,) is the index of the answer to which each comparison belongs.

    Minimizes sum_c u_c log(1 + exp(-gaps_c . w)) + |w - w_0|^2 / 2 for each taste, with exponential u (per answer) and
    w_0. The method is accelerated projected gradients (Beck and Teboulle 2009) with one step size per dimension and
    adaptive restart (O'Donoghue and Candès 2015). It stops if each weight changes by less than 0.001, or after
    500 steps. For 500 comparisons in 139 dimensions, this takes 20 ms of CPU time. Memory: two arrays like `gaps`.
    """
    prior = rng.exponential(size=(gaps.shape[1], _N_TASTES))
    if not len(gaps):
        return prior
    counts = rng.exponential(size=(int(answer.max()) + 1, _N_TASTES))[answer]
    with one_blas_thread():  # the matrices are small, so threads would wait for each other
        lengths = step_lengths(gaps, counts, prior)
        tastes, ahead, momentum = prior, prior, np.ones(_N_TASTES)
        for _ in range(_MAX_STEPS):
            wrong = counts / (1 + np.exp(np.clip(gaps @ ahead, -500, 500)))
            stepped = np.maximum(ahead - lengths * (ahead - prior - gaps.T @ wrong), 0)
            moved = stepped - tastes
            momentum[((ahead - stepped) * moved / lengths).sum(axis=0) > 0] = 1
            next_momentum = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            ahead = stepped + (momentum - 1) / next_momentum * moved
            tastes, momentum = stepped, next_momentum
            if np.abs(moved).max() < _NEAR:
                break
    return tastes


def step_lengths(gaps: Float64Array, counts: Float64Array, vectors: Float64Array) -> Float64Array:
    """Return a gradient step size for each dimension and taste, (n_dimensions, n_tastes).

    The Hessian is at most I + gaps^T diag(u) gaps / 4. Dimensions are scaled to similar curvature, because variances
    can differ by orders of magnitude. The power method then finds the largest eigenvalue for each taste. It starts from
    random `vectors`, because informative questions are nearly orthogonal to a constant vector.
    """
    scale = 1 / (1 + (gaps**2).sum(axis=0) / 4)
    scaled = gaps * np.sqrt(scale)
    for _ in range(_N_POWERS):
        vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=0), np.finfo(float).tiny)
        vectors = scaled.T @ (counts * (scaled @ vectors))
    largest = np.linalg.norm(vectors, axis=0)
    return scale[:, None] / (1 + _MARGIN * largest / 4)


def information(apart: Float64Array, n_shown: int, form: str, tastes: Float64Array, scale: float) -> Float64Array:
    """Return the mutual information between each question's answer and the taste, (n_questions,) in nats.

    This is the entropy of the mean answer minus the mean entropy of the answers (Houlsby et al. 2011). A taste
    answers with probabilities proportional to exp(-cost / scale). `apart` comes from :func:`pairs_apart`, `scale`
    from :func:`softness`; tastes are (n_dimensions, n_tastes).
    """
    logits = -answer_costs(apart @ tastes, n_shown, form) / scale
    logits -= logits.max(axis=1, keepdims=True)
    chances = np.exp(logits)
    chances /= chances.sum(axis=1, keepdims=True)
    of_mean, of_each = (
        -(p * np.log(np.maximum(p, np.finfo(float).tiny))).sum(axis=1) for p in (chances.mean(axis=2), chances)
    )
    gained: Float64Array = of_mean - of_each.mean(axis=1)
    return gained


def softness(apart: Float64Array) -> float:
    """Return the scale of answers: 0.3 times the median squared distance from :func:`pairs_apart`; 1 if that is 0."""
    return _SOFTNESS * float(np.median(apart.sum(axis=2))) or 1.0
