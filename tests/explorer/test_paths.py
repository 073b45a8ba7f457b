"""Tests of paths: positions of the fixed songs, and the songs between them."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from musicsim.explorer.playlists.steering import places_of, steer_evenly, weigh_along, weigh_rising
from musicsim.playlist import PlaylistModel, build_edges


@given(seed=st.integers(0, 1000), n_stops=st.integers(2, 6), more=st.integers(0, 20))
def test_positions_increase_from_first_to_last(seed, n_stops, more):
    X = np.random.default_rng(seed).normal(size=(10, 3))
    places = places_of(X, list(range(n_stops)), n_stops + more)
    assert places[0] == 0
    assert places[-1] == n_stops + more - 1
    assert all(a < b for a, b in itertools.pairwise(places))


def test_steps_are_proportional_to_distance():
    X = np.array([[0.0], [1.0], [4.0]])
    assert places_of(X, [0, 1, 2], 9) == [0, 2, 8]  # 2 of 8 steps, and 6
    assert places_of(X, [0, 1, 2, 2, 2], 9) == [0, 2, 6, 7, 8]
    assert places_of(X, [0, 0, 0], 5) == [0, 2, 4]  # all distances are zero: the steps are shared equally


def test_weights_increase_toward_line():
    X = np.stack([np.linspace(0, 1, 101), np.zeros(101)], axis=1)
    weigh = weigh_along(X, {0: 0, 10: 100})
    assert weigh(0) is None
    assert weigh(11) is None
    for place in (1, 5, 9):
        weights = weigh(place)
        assert np.argmax(weights) == 10 * place
        assert np.all(np.diff(weights[: 10 * place + 1]) >= 0)
        assert weights.max() == pytest.approx(1.0)
        assert weights.min() > 0


def test_identical_songs_give_no_weights():
    assert weigh_along(np.ones((20, 4)), {0: 0, 5: 3})(2) is None


def test_step_length_matches_remaining_steps():
    X = np.stack([np.linspace(0, 1, 101), np.zeros(101)], axis=1)
    steer = steer_evenly(X, {0: 0, 10: 100})
    for place, previous, best in ((1, 0, 10), (5, 50, 58), (9, 60, 80), (2, 4, 15)):
        # the larger of this step and the mean of the rest, by brute force
        cost = np.maximum(np.abs(X[:, 0] - X[previous, 0]), np.abs(X[:, 0] - 1.0) / (10 - place))
        weights = steer(place, previous, np.ones(101))
        assert abs(np.argmax(weights) - best) <= 1
        assert weights[np.argmin(cost)] == pytest.approx(1.0)
        order = np.argsort(cost)
        assert np.all(np.diff(weights[order]) <= 1e-12)
    assert steer(11, 100, np.ones(101)) is None


def test_unavoidable_long_step_relaxes_others():
    X = np.append(np.linspace(0, 1, 101), 4.0)[:, None]  # at distance 3 from everything
    steer = steer_evenly(X, {0: 0, 3: 101})
    weights = steer(1, 0, np.ones(102))  # no step up to 3 is long compared with 3
    np.testing.assert_array_equal(weights[:101], 1.0)
    assert weights[101] < 1.0
    assert np.argmax(steer(2, 60, np.ones(102))) == 100


def test_paths_have_even_steps():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    model = PlaylistModel(build_edges(300), weights=np.ones(1))

    def largest_to_mean(steer):
        rng, ratios = np.random.default_rng(1), []
        for seed in range(60):
            fixed = dict(zip((0, 4, 9), rng.choice(300, 3, replace=False).tolist(), strict=True))
            songs = model.generate(
                10,
                fixed=fixed,
                weigh=weigh_along(X, fixed),
                steer=steer_evenly(X, fixed) if steer else None,
                random_state=seed,
            ).songs
            steps = np.linalg.norm(np.diff(X[list(songs)], axis=0), axis=1)
            ratios.append(steps.max() / steps.mean())
        return np.array(ratios)

    without, evened = largest_to_mean(False), largest_to_mean(True)
    assert evened.mean() < without.mean()
    assert np.mean(evened > 2) < 0.05 < np.mean(without > 2)


def test_rise_is_even_among_allowed_songs():
    values = np.array([*np.arange(100.0) ** 3, 50.0, np.nan])
    allowed = np.ones(102, bool)
    allowed[100] = False
    weigh = weigh_rising(values, allowed, 11)
    for place in range(11):
        weights = weigh(place)
        assert abs(int(np.argmax(weights[:100])) - 10 * place) <= 1
        assert weights[101] == weights.min() > 0, "of which nothing is known"


def test_rise_begins_with_first_song():
    values = np.arange(100.0)
    weigh = weigh_rising(values, np.ones(100, bool), 5, first=60)
    assert [int(np.argmax(weigh(place))) for place in (0, 2, 4)] == pytest.approx([60, 80, 99], abs=1)


@given(st.lists(st.sampled_from([1.0, 2.0, 3.0, np.nan]), min_size=1, max_size=30), st.integers(1, 20))
def test_equal_values_have_equal_weights(values, length):
    values = np.array(values)
    weigh = weigh_rising(values, np.ones(len(values), bool), length)
    if weigh is None:
        assert np.isfinite(values).sum() < 2
        return
    weights = weigh(length // 2)
    assert np.all((weights > 0) & (weights <= 1))
    for value in np.unique(values[np.isfinite(values)]):
        assert np.ptp(weights[values == value]) == 0
