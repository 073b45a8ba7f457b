"""Tests of the interval that stays valid: closed forms, brute force, and false verdicts if one looks at every song."""

import math

import numpy as np
import pytest

from musicsim.explorer.trials.sequence import (
    estimate_differences,
    find_interval,
    find_verdict,
    forecast_songs,
    log_wealth,
)

BETS = [0.04 * (0.3 / 0.04) ** (k / 4) for k in range(5)]


def random_trial(rng, n, gap=0.0, shape=()):
    signs = rng.choice([1.0, -1.0], (*shape, n))
    return signs, (rng.random((*shape, n)) > np.where(signs > 0, 0.19, 0.19 + gap)).astype(float)


def wealth_by_definition(d, delta):
    """Multiply the gains of each bet, with exact sums, after each song."""
    return [
        math.log(sum(math.prod(1 + bet * (x - delta) for x in d[: n + 1]) for bet in BETS) / len(BETS))
        for n in range(len(d))
    ]


def test_estimates_follow_their_definition():
    signs, outcomes = [1, -1, -1, 1], [1.0, 0.5, 0.0, 1.0]
    expected = [2 * 0.5, -2 * (0.5 - 1.5 / 2), -2 * (0.0 - 2.0 / 3), 2 * (1.0 - 2.0 / 4)]
    np.testing.assert_allclose(estimate_differences(signs, outcomes), expected, rtol=1e-14)


def test_estimates_are_unbiased_over_the_coin():
    """The mean over all 2^6 tosses is the mean of A's outcomes minus B's, for outcomes that depend on the song."""
    rng = np.random.default_rng(1)
    a, b = rng.random((2, 6))
    tosses = np.array([[1 if toss >> k & 1 else -1 for k in range(6)] for toss in range(64)])
    d = estimate_differences(tosses, np.where(tosses > 0, a, b))
    np.testing.assert_allclose(d.mean(axis=0), a - b, atol=1e-12)
    assert np.abs(d).max() < 2


@pytest.mark.parametrize("delta", [-0.4, 0.0, 0.2])
def test_wealth_is_the_mean_of_products(delta):
    d = estimate_differences(*random_trial(np.random.default_rng(2), 40, 0.3))
    np.testing.assert_allclose(log_wealth(d, delta), wealth_by_definition(d, delta), rtol=1e-9, atol=1e-12)


def test_wealth_is_fair_without_difference():
    """The mean wealth over all tosses is 1 after every song if the outcomes do not depend on the toss."""
    outcomes = np.random.default_rng(3).random(10)
    tosses = np.array([[1 if toss >> k & 1 else -1 for k in range(10)] for toss in range(1024)])
    wealth = np.exp(log_wealth(estimate_differences(tosses, np.broadcast_to(outcomes, tosses.shape))))
    np.testing.assert_allclose(wealth.mean(axis=0), 1.0, rtol=1e-12)


def test_wealth_stays_below_fair_bet_if_effects_average_out():
    """Effects of +x and -x in turn: the wealth's mean never exceeds 1 after a pair (logarithms are concave)."""
    tosses = np.array([[1 if toss >> k & 1 else -1 for k in range(10)] for toss in range(1024)])
    effect = np.where(np.arange(10) % 2, -0.5, 0.5)
    wealth = np.exp(log_wealth(estimate_differences(tosses, 0.5 + tosses * effect / 2)))
    assert np.all(wealth.mean(axis=0)[1::2] < 1.0)


def test_interval_has_the_differences_that_no_bet_rejects():
    d = estimate_differences(*random_trial(np.random.default_rng(4), 400, 0.25))
    low, high = find_interval(d)
    limit = math.log(40)
    grid = np.linspace(-1, 1, 401)
    inside = [log_wealth(d, x)[-1] < limit and log_wealth(-d, -x)[-1] < limit for x in grid]
    np.testing.assert_array_equal(inside, (grid > low) & (grid < high))
    assert low < d.mean() < high
    assert find_interval(np.empty(0)) == (-1.0, 1.0)


def test_swapped_models_swap_the_result():
    d = estimate_differences(*random_trial(np.random.default_rng(5), 600, 0.3))
    sign, n = find_verdict(d)
    assert sign == 1
    assert find_verdict(-d) == (-1, n)
    low, high = find_interval(d)
    assert find_interval(-d) == (-high, -low)
    assert find_verdict(d[: n - 1]) == (0, n - 1), "the verdict comes with the first song that suffices"
    assert find_interval(d[:n])[0] >= 0 > find_interval(d[: n - 1])[0]


def test_false_verdicts_are_rare_though_every_song_is_looked_at():
    d = estimate_differences(*random_trial(np.random.default_rng(6), 2_000, shape=(300,)))
    limit = math.log(40)
    is_false = (log_wealth(d).max(axis=1) >= limit) | (log_wealth(-d).max(axis=1) >= limit)
    assert is_false.sum() <= 27  # at a share of 5%, more have a probability of 0.1%


def test_forecast_is_near_the_songs_that_a_verdict_takes():
    rng, gap, outcomes = np.random.default_rng(7), 0.15, []
    for _ in range(40):
        outcomes.append(find_verdict(estimate_differences(*random_trial(rng, 3_000, gap)))[1])
    d = estimate_differences(*random_trial(rng, 100, 0.0))
    alone = forecast_songs(np.empty(0), gap)
    assert 0.6 < alone / np.median(outcomes) < 1.6  # the forecast is of the mean logarithm, not of the median
    assert forecast_songs(d, 0.2) < forecast_songs(d, 0.1) < forecast_songs(d, 0.05)
    assert forecast_songs(d, 0.0) is None
    ahead = np.concatenate([d, np.full(20, 0.4)])
    assert forecast_songs(ahead, 0.1) < forecast_songs(d, 0.1)
