"""Tests of factors of listeners and songs: closed forms, gradients by differences, and rankings of unseen songs."""

import numpy as np
import pytest

from musicsim.playlist import als_factors, bpr_factors, solve_als
from musicsim.playlist._factor_kernels import ascend

PENALTY, ALPHA = 0.3, 2.0


@pytest.fixture
def plays(rng):
    return rng.poisson(0.4, (30, 20)).astype(float)


def loss(plays, listeners, songs):
    """Return the weighted squares of Hu, Koren and Volinsky (equation 3)."""
    wanted, weight = plays > 0, 1 + ALPHA * plays
    squares = (weight * (wanted - listeners @ songs.T) ** 2).sum()
    return squares + PENALTY * ((listeners**2).sum() + (songs**2).sum())


def test_factors_of_listeners_solve_the_normal_equations(plays, rng):
    songs = rng.normal(size=(20, 4))
    solved = solve_als(plays, songs, penalty=PENALTY, alpha=ALPHA)
    for row, x in zip(plays, solved, strict=True):
        weight = 1 + ALPHA * row
        left = songs.T @ np.diag(weight) @ songs + PENALTY * np.eye(4)
        # conjugate gradients stop at a residual of 1e-10
        np.testing.assert_allclose(x, np.linalg.solve(left, songs.T @ (weight * (row > 0))), atol=1e-8)


def test_each_pass_of_least_squares_lowers_the_loss_to_a_stationary_point(plays):
    fits = [als_factors(plays, 3, penalty=PENALTY, alpha=ALPHA, n_passes=n, random_state=0) for n in (1, 2, 5, 400)]
    losses = [loss(plays, *fit) for fit in fits]
    assert losses == sorted(losses, reverse=True)
    songs = fits[-1][1]
    exact = loss(plays, solve_als(plays, songs, penalty=PENALTY, alpha=ALPHA), songs)
    assert losses[-1] == pytest.approx(exact, rel=1e-6)


def test_a_step_of_ranking_is_the_gradient_of_its_log_likelihood(rng):
    listeners, songs, bias = rng.normal(size=(1, 3)), rng.normal(size=(2, 3)), rng.normal(size=2)
    parts = [listeners, songs, bias]

    def objective():
        lead = bias[0] - bias[1] + listeners[0] @ (songs[0] - songs[1])
        return -np.log1p(np.exp(-lead)) - PENALTY / 2 * sum((part**2).sum() for part in parts)

    slopes = []
    for part in parts:
        slope = np.zeros_like(part)
        for at in np.ndindex(part.shape):
            kept = part[at]
            part[at] = kept + 1e-5
            above = objective()
            part[at] = kept - 1e-5
            slope[at] = (above - objective()) / 2e-5
            part[at] = kept
        slopes.append(slope)
    before, rate = [part.copy() for part in parts], 1e-3
    one, zero = np.array([1]), np.array([0])
    ascend(np.array([0, 1]), zero, zero, zero, one, *parts, rate, PENALTY)
    for part, old, slope in zip(parts, before, slopes, strict=True):
        # central differences of 1e-5 are exact to about 1e-9
        np.testing.assert_allclose((part - old) / rate, slope, atol=1e-7)


def test_a_song_that_the_listener_played_is_no_counterexample(rng):
    parts = [rng.normal(size=(1, 3)), rng.normal(size=(2, 3)), rng.normal(size=2)]
    before = [part.copy() for part in parts]
    ascend(np.array([0, 2]), np.array([0, 1]), np.array([0, 0]), np.array([0]), np.array([1]), *parts, 0.1, PENALTY)
    for part, old in zip(parts, before, strict=True):
        np.testing.assert_array_equal(part, old)


@pytest.mark.parametrize("method", ["als", "bpr"])
def test_withheld_plays_rank_above_songs_of_another_camp(method, rng):
    camp = np.repeat([0, 1, 2], 20)
    taste = rng.integers(0, 3, 90)
    plays = ((taste[:, None] == camp) & (rng.random((90, 60)) < 0.6)).astype(float)
    withheld = (taste[:, None] == camp) & (plays == 0)
    if method == "als":
        listeners, songs = als_factors(plays, 6, penalty=0.1, n_passes=15, random_state=0)
        scores = listeners @ songs.T
    else:
        listeners, songs, bias = bpr_factors(plays, 6, learning_rate=0.05, penalty=1e-3, n_passes=100, random_state=0)
        scores = listeners @ songs.T + bias
    other = taste[:, None] != camp
    leads = [(scores[u][withheld[u]][:, None] > scores[u][other[u]]).mean() for u in range(90) if withheld[u].any()]
    assert np.mean(leads) > 0.95  # 0.5 by chance


def test_negative_plays_are_refused():
    with pytest.raises(ValueError, match="plays must be finite and not negative"):
        bpr_factors([[-1.0, 1.0]], 2, learning_rate=0.1, penalty=0.1, n_passes=1)
