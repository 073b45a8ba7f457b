"""Tests of the correction for several comparisons, and of the sign-flip test, against their definitions."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from musicsim.evaluation import holm, sign_flip_p


@given(st.lists(st.floats(0, 1), min_size=0, max_size=6))
def test_holm_matches_its_step_down_definition(p):
    adjusted = holm(p)
    for i in range(len(p)):
        # rank by rank: a hypothesis is rejected at alpha if it and all smaller ones pass alpha / (m - rank)
        order = sorted(range(len(p)), key=lambda j: (p[j], j))
        place = order.index(i)
        assert adjusted[i] == min(1.0, max((len(p) - r) * p[order[r]] for r in range(place + 1)))


def test_holm_on_numbers_by_hand():
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])


@pytest.mark.parametrize("p", [[1.2], [-0.1], [np.nan], 0.3])
def test_invalid_p_values_are_refused(p):
    with pytest.raises(ValueError, match="p_values"):
        holm(p)


def test_sign_flip_matches_all_signs(rng):
    a, b, groups = rng.normal(0.4, 1, 12), rng.normal(size=12), np.repeat(np.arange(6), 2)
    a[3] = np.nan
    sums = [np.nansum((a - b)[groups == g]) for g in range(6)]
    flips = [abs(np.dot(sums, signs)) for signs in itertools.product([-1, 1], repeat=6)]
    exact = np.mean(np.array(flips) >= abs(sum(sums)) - 1e-12)
    assert sign_flip_p(a, b, groups, random_state=0) == pytest.approx(exact, abs=0.02)
    assert sign_flip_p(a, a, groups) == 1.0
