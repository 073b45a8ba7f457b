"""Tests of the random-effects estimates against closed forms, published values and a direct maximization."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import multivariate_normal, t

from musicsim.extensions.pooling.random_effects import combine_effects, estimate_tau2

# vaccinated with and without tuberculosis, and the same of the others: Colditz et al., JAMA 271, 1994
BCG = (
    (4, 119, 11, 128), (6, 300, 29, 274), (3, 228, 11, 209), (62, 13536, 248, 12619), (33, 5036, 47, 5761),
    (180, 1361, 372, 1079), (8, 2537, 10, 619), (505, 87886, 499, 87892), (29, 7470, 45, 7232), (17, 1699, 65, 1600),
    (186, 50448, 141, 27197), (5, 2493, 3, 2338), (27, 16886, 29, 17825),
)  # fmt: skip


def test_vaccine_trials_match_published_values():
    """The package metafor prints these values for `rma(yi, vi, data=dat, test="knha")`."""
    a, b, c, d = np.array(BCG, dtype=float).T
    ratios = np.log(a / (a + b)) - np.log(c / (c + d))
    found = combine_effects(ratios, np.sqrt(1 / a - 1 / (a + b) + 1 / c - 1 / (c + d)))
    assert (found.mean, found.low, found.high) == pytest.approx((-0.7145, -1.1084, -0.3206), abs=5e-5)
    assert found.tau**2 == pytest.approx(0.3132, abs=5e-5)
    assert found.i2 == pytest.approx(0.9222, abs=5e-5)


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=12), st.floats(0.01, 1))
def test_equal_errors_give_the_t_interval(effects, error):
    """The spread counts as the error if it is larger."""
    y = np.array(effects)
    found = combine_effects(y, np.full(len(y), error))
    half = t.ppf(0.975, len(y) - 1) * max(y.std(ddof=1), error) / np.sqrt(len(y))
    assert (found.mean, found.high - found.mean) == pytest.approx((y.mean(), half), abs=1e-6)
    assert found.tau == pytest.approx(np.sqrt(max(0.0, y.var(ddof=1) - error**2)), abs=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_tau_maximizes_likelihood_of_contrasts(seed):
    """The restricted likelihood is the likelihood of n - 1 contrasts, whatever they are."""
    rng = np.random.default_rng(seed)
    v = rng.uniform(0.01, 0.3, 8)
    y = rng.normal(0.2, np.sqrt(v + 0.1))
    contrasts = np.eye(8)[1:] - np.eye(8)[:-1]

    def deviance(log_tau2):
        covariance = contrasts @ np.diag(v + np.exp(log_tau2[0])) @ contrasts.T
        return -multivariate_normal(np.zeros(7), covariance).logpdf(contrasts @ y)

    best = min((minimize(deviance, [start], method="Nelder-Mead") for start in (-6, -3, 0)), key=lambda one: one.fun)
    assert estimate_tau2(y, v) == pytest.approx(np.exp(best.x[0]), abs=1e-4)


def test_few_libraries_have_wide_or_no_intervals():
    one, two = combine_effects([0.1], [0.02]), combine_effects([0.1, 0.2], [0.02, 0.02])
    assert one.high - one.mean == pytest.approx(1.96 * 0.02, rel=1e-3)
    assert np.isnan([one.tau, one.i2, one.predicted_low, two.predicted_low]).all()
    assert two.high - two.mean == pytest.approx(12.706 * 0.05, rel=1e-3)
    three = combine_effects([0.1, 0.2, 0.3], [0.02, 0.03, 0.02])
    assert three.predicted_low < three.low < three.high < three.predicted_high


def test_identical_libraries_have_no_spread():
    found = combine_effects([0.1] * 4, [0.02] * 4)
    assert (found.mean, found.tau, found.i2) == pytest.approx((0.1, 0, 0), abs=1e-12)
    assert found.high - found.mean == pytest.approx(t.ppf(0.975, 3) * 0.01)
