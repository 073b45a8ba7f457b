"""Tests of shares and bands: against closed forms, finite differences and scipy."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.special import logsumexp
from scipy.stats import binom, f

from musicsim.extensions.taste_card.shares import Choices, Fit

PRIOR_SD = 20.0


def draw_answers(rng, n, psi):
    """Return answers of a listener with these psi to questions with two to four options."""
    found = []
    for _ in range(n):
        options = rng.gamma(2.0, 0.5, size=(rng.integers(2, 5), len(psi)))
        chosen = int(np.argmax(rng.gumbel(size=len(options)) - options @ psi))
        found.append(np.delete(options, chosen, axis=0) - options[chosen])
    return found


def loss_of(answers, psi):
    """Return the loss from its definition, one answer at a time."""
    likelihood = sum(logsumexp([0.0, *(-given @ psi)]) for given in answers)
    return likelihood + psi @ psi / (2 * PRIOR_SD**2)


def constrained(answers, part, share):
    """Return the smallest loss for a share of one part, by sequential least squares."""
    n_parts = answers[0].shape[1]
    constraints = [
        {"type": "eq", "fun": lambda psi: psi[part] - share * psi.sum()},
        {"type": "ineq", "fun": lambda psi: psi.sum()},
    ]
    found = [
        minimize(
            lambda psi: loss_of(answers, psi), start, constraints=constraints, method="SLSQP",
            options={"ftol": 1e-13, "maxiter": 500},
        ).fun
        for start in (np.full(n_parts, 0.5), np.zeros(n_parts))
    ]  # fmt: skip
    return min(found)


def opposed(n_right, n, n_parts, part):
    """Return answers to questions whose options differ by 1 in one part only; `n_right` of n chose the nearer one."""
    return [np.eye(n_parts)[[part]] * (1 if row < n_right else -1) for row in range(n)]


@pytest.fixture
def answers(rng):
    return draw_answers(rng, 60, np.array([2.0, 1.0, 0.3]))


@pytest.mark.parametrize("psi", [[0.0, 0.0, 0.0], [3.0, 1.0, 0.2], [-1.0, 40.0, 900.0]])
def test_loss_and_derivatives_match_definition(answers, psi):
    psi = np.array(psi)
    value, gradient, hessian = Choices(answers).loss(psi)
    assert value == pytest.approx(loss_of(answers, psi))
    of_differences = approx_fprime(psi, lambda at: loss_of(answers, at), 1e-6)
    np.testing.assert_allclose(gradient, of_differences, atol=1e-3, rtol=1e-4)  # a step of 1e-6 loses ten digits
    rows = approx_fprime(psi, lambda at: Choices(answers).loss(at)[1], 1e-6)
    np.testing.assert_allclose(hessian, rows, atol=1e-4, rtol=1e-4)


def test_share_matches_closed_form():
    """If each question is about one part, psi is the log odds of the nearer option; the prior changes it by 0.1%."""
    fit = Fit(Choices(opposed(80, 100, 2, 0) + opposed(60, 100, 2, 1)))
    psi = np.log([80 / 20, 60 / 40])
    np.testing.assert_allclose(fit.psi, psi, rtol=2e-3)
    np.testing.assert_allclose([band.share for band in fit.bands], psi / psi.sum(), rtol=2e-3)


def test_ends_of_band_match_closed_form():
    """The profile over psi_1 is a one-dimensional grid of binomial likelihoods."""
    answers = opposed(80, 100, 2, 0) + opposed(60, 100, 2, 1)
    sums = np.linspace(0, 6, 6001)
    shares = np.linspace(0, 1, 501)[:, None]

    def log_likelihood(share):
        a, b = (1 / (1 + np.exp(-sums * part)) for part in (share, 1 - share))
        return binom.logpmf(80, 100, a) + binom.logpmf(60, 100, b)

    best = log_likelihood(shares).max(axis=1)
    inside = shares[2 * (best.max() - best) <= f.ppf(0.95, 1, 198), 0]
    band = Fit(Choices(answers)).bands[0]
    assert (band.low, band.high) == pytest.approx((inside.min(), inside.max()), abs=5e-3)  # two steps of the grid


def test_profile_matches_scipy(answers):
    fit = Fit(Choices(answers))
    for part in range(3):
        for share in (0.0, 0.2, 0.7, 1.0):
            assert fit.profile(part, share) == pytest.approx(constrained(answers, part, share), abs=1e-5)


def test_band_ends_where_the_test_rejects(answers):
    fit = Fit(Choices(answers))
    least = minimize(lambda psi: loss_of(answers, psi), np.ones(3), method="BFGS").fun
    limit = least + f.ppf(0.95, 1, 57) / 2
    for part, band in enumerate(fit.bands):
        assert band.low <= band.share <= band.high
        for end, bound in ((band.low, 0.0), (band.high, 1.0)):
            if end == bound:
                assert constrained(answers, part, bound) <= limit + 1e-4
            else:
                # the slope of the loss is below 100, and the ends are exact to 1e-4
                assert constrained(answers, part, end) == pytest.approx(limit, abs=1e-2)


def test_opposed_part_has_no_share():
    """If the listener chooses the farther songs in a part, its share is 0."""
    answers = opposed(80, 100, 3, 0) + opposed(70, 100, 3, 1) + opposed(20, 100, 3, 2)
    fit = Fit(Choices(answers))
    assert fit.psi[2] == 0
    assert fit.bands[2].low == fit.bands[2].share == 0
    # in steps of .05 around the optimum, which is (1.39, .85, 0); the loss is convex
    grid = np.array([[a, b, c] for a in np.linspace(1.2, 1.6, 9) for b in np.linspace(0.65, 1.05, 9) for c in (0, 0.1)])
    best = min(loss_of(answers, psi) for psi in grid)
    assert Choices(answers).loss(fit.psi)[0] <= best


def test_contradictory_answers_leave_everything_open():
    fit = Fit(Choices(opposed(50, 100, 2, 0) + opposed(50, 100, 2, 1)))
    assert [(band.share, band.low, band.high) for band in fit.bands] == [(0.5, 0, 1)] * 2


def test_consistent_answers_have_a_finite_estimate():
    """Without the prior, psi would be infinite."""
    fit = Fit(Choices(opposed(40, 40, 2, 0) + opposed(40, 40, 2, 1)))
    assert np.isfinite(fit.psi).all()
    assert [band.share for band in fit.bands] == pytest.approx([0.5, 0.5], abs=1e-6)


@pytest.mark.long
def test_bands_contain_true_shares():
    """With a coverage of 95%, fewer than 408 of 450 bands have a probability of 0.1%, even if parts are dependent."""
    shares, covered = np.array([0.6, 0.3, 0.1]), 0
    for seed in range(150):
        answers = draw_answers(np.random.default_rng(seed), 50, 4 * shares)
        covered += sum(b.low <= s <= b.high for b, s in zip(Fit(Choices(answers)).bands, shares, strict=True))
    assert covered >= 408
