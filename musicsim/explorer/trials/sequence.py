"""A 95% interval for the difference between two models that stays valid however often somebody looks at it.

Song t is chosen by model A (s = 1) or B (s = -1), by a fair coin. Its outcome y is in [0, 1], and m is the mean of the
earlier outcomes. Then d = 2 s (y - m) is an unbiased estimate of the difference A - B at song t, and |d| < 2. A bet of
the share λ on "the difference is above δ" has the wealth K(λ) = Π (1 + λ (d - δ)); the bet against it uses -λ. The
mean wealth over a fixed set of λ is a nonnegative supermartingale if no difference is above δ. By Ville's inequality,
it ever reaches 40 with a probability of at most 2.5%. The interval contains each δ that neither bet rejects this way.

A verdict (δ = 0) does not need equal differences. As λ is fixed and the logarithm is concave, the wealth stays below
such a martingale while the mean difference up to song t is not above 0. Betting on bounded means is due to Waudby-Smith
and Ramdas (2023).
"""

from functools import reduce

import numpy as np
from numpy.typing import ArrayLike

from musicsim._arrays import Float64Array

_LIMIT = np.log(2 / 0.05)  # of the logarithm of the wealth: two bets share a level of 5%
_BETS = np.geomspace(0.04, 0.3, 5)  # below 1/3, because |d - δ| < 3; chosen for differences of 2 to 20 points
_USUAL_SQUARE, _N_USUAL = 0.6, 10  # mean square of the estimates if a fifth is skipped; its weight in songs
_HALVINGS = 40
_MAX_SONGS = 1e6  # maximum of a forecast


def estimate_differences(signs: ArrayLike, outcomes: ArrayLike) -> Float64Array:
    """Return an unbiased estimate of the difference A - B from each song, float64 (..., n), in (-2, 2).

    `signs` (..., n) are 1 for A and -1 for B; `outcomes` are in [0, 1]. Songs are along the last axis, oldest first.
    """
    y = np.asarray(outcomes, dtype=np.float64)
    n_before = np.arange(y.shape[-1])
    means = (0.5 + np.cumsum(y, axis=-1) - y) / (1.0 + n_before)  # of the earlier songs and one with outcome 1/2
    return 2.0 * np.asarray(signs, dtype=np.float64) * (y - means)


def log_wealth(d: Float64Array, delta: float = 0.0) -> Float64Array:
    """Return the logarithm of the mean wealth of the bets that the difference is above `delta`, after each song."""
    gains = (np.cumsum(np.log1p(bet * (d - delta)), axis=-1) for bet in _BETS)  # one at a time, to save memory
    return reduce(np.logaddexp, gains) - np.log(len(_BETS))


def find_verdict(d: Float64Array) -> tuple[int, int]:
    """Return 1 (A is better), -1 (B) or 0 (no verdict yet), and the number of songs that the verdict took."""
    hits = np.argwhere(np.stack([log_wealth(d), log_wealth(-d)], axis=1) >= _LIMIT)
    return ((1, -1)[hits[0, 1]], int(hits[0, 0]) + 1) if len(hits) else (0, len(d))


def find_interval(d: Float64Array) -> tuple[float, float]:
    """Return the interval of the difference after all songs; -1 to 1 without songs."""
    return (_lower_end(d), -_lower_end(-d)) if len(d) else (-1.0, 1.0)


def _lower_end(d: Float64Array) -> float:
    """Return the largest difference that the bets reject: their wealth falls as `delta` rises."""
    low, high = -1.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if log_wealth(d, middle)[-1] >= _LIMIT else (low, middle)
    return low


def forecast_songs(d: Float64Array, difference: float) -> int | None:
    """Return about how many more songs a verdict takes if the true difference is this large; None if over a million.

    Every bet is expected to gain λ δ - λ² v / 2 per song, where v is the mean square of the estimates so far.
    """
    size, signed = abs(difference), d if difference >= 0 else -d
    square = float((d @ d + _N_USUAL * _USUAL_SQUARE) / (len(d) + _N_USUAL))
    now = np.array([np.log1p(bet * signed).sum() for bet in _BETS])
    growth = _BETS * size - _BETS**2 * square / 2.0
    n = np.geomspace(1.0, _MAX_SONGS, 2_000)  # in steps of 0.7%
    is_enough = np.logaddexp.reduce(now[:, None] + growth[:, None] * n) >= _LIMIT + np.log(len(_BETS))
    return int(np.ceil(n[is_enough.argmax()])) if is_enough.any() else None
