"""What a listener's taste may be, after some answers, and what the answer to another question would tell of it.

A taste weighs the dimensions of a model's vectors: w >= 0, and its squared distances are w . (x - y)^2. Before any
answer the weights are exponential variables of mean 1, which is the model itself on average. An answer speaks through
its comparisons, d(i, j) < d(k, l), by the logistic loss of the difference over a scale, 0.3 of the median squared
distance of songs. Tastes that agree with the answers are drawn by the weighted Bayesian bootstrap (Newton, Polson and
Xu 2021): each answer gets an exponential weight, and a taste is the best compromise between weighted answers and
one draw from before the answers.
"""

from itertools import combinations

import numpy as np

from musicsim._arrays import Float64Array, Int64Array
from musicsim._blas import one_blas_thread

_N_TASTES = 32
_SOFTNESS = 0.3
_NEAR, _MAX_STEPS = 1e-3, 500  # of weights that are 1 on average: far less than tastes differ by
_N_POWERS, _MARGIN = 20, 1.2


def pairs_apart(vectors: Float64Array, places: Int64Array) -> Float64Array:
    """Squared differences of every two songs of each question, (n_questions, n_pairs, n_dimensions).

    `places` (n_questions, n_shown) are rows of `vectors` (n_songs, n_dimensions); pairs come in the order of
    :func:`itertools.combinations`.
    """
    pairs = combinations(range(places.shape[1]), 2)
    return np.stack([(vectors[places[:, i]] - vectors[places[:, j]]) ** 2 for i, j in pairs], axis=1)


def costs(apart: Float64Array, n_shown: int, form: str) -> Float64Array:
    """How far songs lie apart if the answer is this one: the less, the likelier it is.

    `apart` (n_questions, n_pairs, ...) are squared distances, or what they are sums of, in the order of
    :func:`pairs_apart`. Of "odd" there is a choice a song: the mean over the pairs without it. Of "like" one a song
    but for the first: its distance from the first.
    """
    if form == "like":
        return apart[:, : n_shown - 1]
    pairs = list(combinations(range(n_shown), 2))
    others = [[k for k, pair in enumerate(pairs) if song not in pair] for song in range(n_shown)]
    return np.stack([apart[:, kept].mean(axis=1) for kept in others], axis=1)


def sample_tastes(gaps: Float64Array, answer: Int64Array, rng: np.random.Generator) -> Float64Array:
    """Tastes that go with some answers.

    Parameters
    ----------
    gaps : float64 ndarray of shape (n_comparisons, n_dimensions)
        Squared differences of the pair that is farther apart less those of the nearer one, over the scale.
    answer : int64 ndarray of shape (n_comparisons,)
        Which answer each comparison comes from, from 0 on.

    Returns
    -------
    float64 ndarray of shape (n_dimensions, 32), not negative

    Notes
    -----
    Minimises sum_c u_c log(1 + exp(-gaps_c . w)) + |w - w_0|^2 / 2 for each taste, u exponential by answer and w_0
    exponential, by accelerated projected gradients (Beck and Teboulle 2009) with a step for each dimension, begun again
    where they turn back (O'Donoghue and Candès 2015), until no weight moves by 0.001; 500 steps at most. Of 500
    comparisons in 139 dimensions this takes 20 ms of CPU. Memory: two arrays of the size of `gaps`.
    """
    before = rng.exponential(size=(gaps.shape[1], _N_TASTES))
    if not len(gaps):
        return before
    counts = rng.exponential(size=(int(answer.max()) + 1, _N_TASTES))[answer]
    with one_blas_thread():  # matrices are small; threads wait for each other
        lengths = _step_lengths(gaps, counts, before)
        tastes, ahead, momentum = before, before, np.ones(_N_TASTES)
        for _ in range(_MAX_STEPS):
            wrong = counts / (1 + np.exp(np.clip(gaps @ ahead, -500, 500)))
            stepped = np.maximum(ahead - lengths * (ahead - before - gaps.T @ wrong), 0)
            moved = stepped - tastes
            momentum[((ahead - stepped) * moved / lengths).sum(axis=0) > 0] = 1
            next_momentum = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            ahead = stepped + (momentum - 1) / next_momentum * moved
            tastes, momentum = stepped, next_momentum
            if np.abs(moved).max() < _NEAR:
                break
    return tastes


def _step_lengths(gaps: Float64Array, counts: Float64Array, vectors: Float64Array) -> Float64Array:
    """How far to go down the slope, by dimension and taste, (n_dimensions, n_tastes).

    The objective curves at most as I + gaps^T diag(u) gaps / 4. Dimensions are scaled so that they curve about alike,
    as their spread may fall by orders of magnitude; then the largest eigenvalue bounds each taste's steps: by powers,
    from random `vectors`, as questions that tell much set the sum over dimensions, an even vector, near 0.
    """
    scale = 1 / (1 + (gaps**2).sum(axis=0) / 4)
    scaled = gaps * np.sqrt(scale)
    for _ in range(_N_POWERS):
        vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=0), np.finfo(float).tiny)
        vectors = scaled.T @ (counts * (scaled @ vectors))
    largest = np.linalg.norm(vectors, axis=0)
    return scale[:, None] / (1 + _MARGIN * largest / 4)


def information(apart: Float64Array, n_shown: int, form: str, tastes: Float64Array, scale: float) -> Float64Array:
    """What the answers to questions tell of the taste: their mutual information, (n_questions,) in nats.

    It is the entropy of the mean answer less the mean entropy of the answers (Houlsby and others 2011), where a taste
    answers with probabilities in proportion to exp(-cost / scale). `apart` comes from :func:`pairs_apart`, `scale`
    from :func:`softness`; tastes are (n_dimensions, n_tastes).
    """
    logits = -costs(apart @ tastes, n_shown, form) / scale
    logits -= logits.max(axis=1, keepdims=True)
    chances = np.exp(logits)
    chances /= chances.sum(axis=1, keepdims=True)
    return _entropy(chances.mean(axis=2)) - _entropy(chances).mean(axis=1)


def softness(apart: Float64Array) -> float:
    """The squared distance that a listener hardly hears: 0.3 of the median of :func:`pairs_apart`, 1 if that is 0."""
    return _SOFTNESS * float(np.median(apart.sum(axis=2))) or 1.0


def _entropy(chances: Float64Array) -> Float64Array:
    logs = np.log(chances, out=np.zeros_like(chances), where=chances > 0)
    return -(chances * logs).sum(axis=1)
