"""Tests of statistics of listening tests against published examples, scipy and properties of their designs."""

import numpy as np
import pytest
from scipy.stats import friedmanchisquare, norm

from musicsim.evaluation import compare_ranks, krippendorff_alpha, scores_by_query, williams_square

_ = np.nan
# Krippendorff (2011), section C: four observers, twelve units, with missing values
PUBLISHED = np.array([
    [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
    [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
])  # fmt: skip


@pytest.mark.parametrize(("level", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_matches_published_example(level, alpha):
    found = krippendorff_alpha(PUBLISHED, level, random_state=0)
    assert found.alpha == pytest.approx(alpha, abs=5e-4)  # it is printed with three digits
    assert found.n_items == 11, "one unit was rated once"
    assert found.low < found.alpha < found.high


def test_alpha_for_full_agreement_and_constant_ratings():
    assert krippendorff_alpha([[1, 2, 3], [1, 2, 3]], "interval", n_resamples=0).alpha == 1
    assert np.isnan(krippendorff_alpha([[2, 2], [2, 2]], "ordinal").alpha)
    assert np.isnan(krippendorff_alpha([[2, _], [_, 1]], "ordinal").alpha)


def test_unit_of_ratings_does_not_change_alpha():
    found = [krippendorff_alpha(PUBLISHED * unit, "interval", n_resamples=0).alpha for unit in (1.0, 1e-3)]
    assert found[1] == pytest.approx(found[0], rel=1e-9)


def test_alpha_of_random_ratings_is_near_zero(rng):
    found = krippendorff_alpha(rng.integers(3, size=(6, 400)), "ordinal", random_state=0)
    assert found.low < 0 < found.high


@pytest.mark.long
def test_alpha_interval_has_nominal_coverage(rng):
    """A rating is the value of the item plus a deviation of the same spread, so alpha is a half."""
    hits = 0
    for draw in range(200):
        ratings = rng.normal(size=60) + rng.normal(size=(5, 60))
        found = krippendorff_alpha(ratings.round(1), "interval", n_resamples=200, random_state=draw)
        hits += found.low <= 0.5 <= found.high
    assert 0.85 < hits / 200 < 0.99  # percentile intervals of 60 items


def test_rejects_invalid_ratings():
    for wrong, level, words in (([1, 2], "ordinal", "shape"), ([[np.inf]], "ordinal", "finite"), ([[1]], "x", "level")):
        with pytest.raises(ValueError, match=words):
            krippendorff_alpha(wrong, level)


@pytest.mark.parametrize("has_ties", [False, True])
def test_friedman_test_matches_scipy(rng, has_ties):
    scores = rng.normal([0, 0, 0.5, 1], size=(23, 4))
    if has_ties:
        scores = scores.round()
    truth = friedmanchisquare(*scores.T)
    found = compare_ranks(scores)
    assert (found.chi2, found.p_value) == pytest.approx((truth.statistic, truth.pvalue))


# Demsar (2006), table 5a: critical values of the two-tailed Nemenyi test at 5 %, in units of sqrt(k (k + 1) / 6 n)
@pytest.mark.parametrize(("k", "critical"), [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (10, 3.164)])
def test_tukey_difference_matches_published_value(rng, k, critical):
    n = 30
    found = compare_ranks(rng.normal(size=(n, k)))
    assert 2 * found.half_width / np.sqrt(k * (k + 1) / (6 * n)) == pytest.approx(
        critical, abs=1e-3
    )  # truncated to three digits
    gaps = np.abs(found.mean_ranks[:, None] - found.mean_ranks)
    assert ((found.pair_p_values < 0.05) == (gaps > 2 * found.half_width)).all()


def test_both_tests_agree_for_two_models(rng):
    found = compare_ranks(rng.normal([0, 0.4], size=(40, 2)))
    z = np.sqrt(found.chi2)
    assert found.p_value == pytest.approx(2 * norm.sf(z))
    assert found.pair_p_values[0, 1] == pytest.approx(found.p_value, rel=1e-6)
    assert found.mean_ranks[1] > found.mean_ranks[0]


def test_identical_models_do_not_differ():
    found = compare_ranks(np.ones((5, 3)))
    assert (found.p_value, found.chi2) == (1, 0)
    assert (found.pair_p_values == 1).all()


def test_rejects_incomparable_scores():
    for wrong in ([[1, 2]], [[1], [2]], [1, 2], np.ones((2, 2, 2)), [[1, np.nan], [1, 2]]):
        with pytest.raises(ValueError, match="scores"):
            compare_ranks(wrong)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 9, 30])
def test_orders_balance_position_and_predecessor(n):
    square = williams_square(n)
    assert len(square) == (2 * n if n % 2 and n > 1 else n)
    assert (np.sort(square, axis=1) == np.arange(n)).all()
    assert (np.sort(square[:n], axis=0) == np.arange(n)[:, None]).all(), "the first rows are a Latin square"
    after = np.zeros((n, n), dtype=int)
    np.add.at(after, (square[:, :-1].ravel(), square[:, 1:].ravel()), 1)
    assert (after[~np.eye(n, dtype=bool)] == len(square) // n).all()


def test_model_score_is_mean_over_its_results():
    fine = [[10, 30, 50, _, _], [20, 50, _, _, 80]]
    gave = [[1, 0], [1, 1], [0, 1], [1, 0], [0, 1]]
    scores = scores_by_query(fine, [0, 0, 0, 1, 1], gave)
    np.testing.assert_array_equal(scores, [[(15 + 40) / 2, (40 + 50) / 2], [_, 80]])
