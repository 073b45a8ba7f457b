"""Order coherence against all orders of a list, von Neumann's ratio and the autocorrelation of long series."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from musicsim.evaluation import order_coherence


@given(st.integers(0, 10_000), st.integers(3, 6), st.integers(1, 3), st.integers(1, 2))
def test_mean_over_all_orders_is_zero(seed, n_songs, n_features, lag):
    songs = np.random.default_rng(seed).normal(5, 2, (n_songs, n_features))
    orders = [order_coherence(songs[list(order)], lag) for order in permutations(range(n_songs))]
    assert np.mean(orders) == pytest.approx(0, abs=1e-9)


def test_unknown_songs_keep_their_places():
    songs = np.random.default_rng(0).normal(size=(5, 2))
    orders = []
    for order in permutations(range(5)):
        placed = np.full((7, 2), np.nan)
        placed[[0, 1, 3, 4, 6]] = songs[list(order)]  # in a row: 0 and 1, 3 and 4
        orders.append(order_coherence(placed))
    assert np.mean(orders) == pytest.approx(0, abs=1e-9)
    with_gap, without = [1.0, np.nan, 1.1, 5.0, 5.1], [1.0, 1.1, 5.0, 5.1]
    assert order_coherence(with_gap) != pytest.approx(order_coherence(without))


def test_equals_von_neumanns_ratio():
    values = np.random.default_rng(1).normal(size=50)
    ratio = np.mean(np.diff(values) ** 2) / np.var(values)  # has mean 2 n / (n - 1) in random order
    assert order_coherence(values) == pytest.approx(1 - ratio * 49 / 100)


@pytest.mark.parametrize("lag", [1, 2])
def test_approaches_autocorrelation(lag):
    rng, values = np.random.default_rng(2), np.zeros(200_000)
    for i, noise in enumerate(rng.normal(size=len(values) - 1), 1):
        values[i] = 0.7 * values[i - 1] + noise
    assert order_coherence(values, lag) == pytest.approx(0.7**lag, abs=0.01)  # four standard errors


def test_sorted_shuffled_and_alternating_lists():
    values = np.arange(20.0)
    assert order_coherence(values) > 0.9
    assert order_coherence(np.ravel([values[:10], values[10:]], order="F")) < 0
    assert order_coherence(np.eye(2)[[0, 0, 0, 1, 1, 1]]) == pytest.approx(1 - (1 / 5) / (9 / 15))


def test_offset_and_scale_do_not_matter():
    values = np.random.default_rng(3).normal(size=30)
    assert order_coherence(1e6 + 3 * values) == pytest.approx(order_coherence(values), abs=1e-6)


@pytest.mark.parametrize("features", [[], [1.0], [1.0, 2.0], [4.0] * 9, [1.0, np.nan, 2.0, np.nan, 3.0]])
def test_no_coherence_without_differences_or_pairs(features):
    assert np.isnan(order_coherence(features))


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="lag=0"):
        order_coherence([1.0, 2.0, 3.0], lag=0)
    with pytest.raises(ValueError, match=r"features has shape \(2, 2, 2\)"):
        order_coherence(np.zeros((2, 2, 2)))
