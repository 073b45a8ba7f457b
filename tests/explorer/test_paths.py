"""Tests of paths: positions of the fixed songs, and the songs between them."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from musicsim.explorer.playlists.steering import SoundRanks, places_of, steer_to_stops, weigh_rising
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


def test_weight_is_that_of_the_ranks():
    X = np.random.default_rng(0).normal(size=(400, 5))
    steer = steer_to_stops(SoundRanks(X).shares, {0: 7, 10: 3}, len(X))
    for place, previous in ((1, 7), (5, 90), (9, 12)):
        ranks = [np.argsort(np.argsort(np.linalg.norm(X - X[i], axis=1))) / 399 for i in (previous, 3)]
        left = ranks[1][7] * ((10 - place) / 10) ** 2
        cost = ranks[0] / 0.03 + ranks[1] / max(left, 4 / 400)
        np.testing.assert_allclose(steer(place, previous, np.ones(400)), np.maximum(np.exp(cost.min() - cost), 1e-4))
    assert steer(11, 3, np.ones(400)) is None, "nothing comes after the last stop"


def test_nothing_comes_before_the_first_stop():
    X = np.random.default_rng(0).normal(size=(30, 2))
    assert steer_to_stops(SoundRanks(X).shares, {4: 0, 8: 1}, 30)(2, 5, np.ones(30)) is None


@pytest.mark.parametrize("n_noise", [0, 60])
def test_paths_approach_their_end(n_noise):
    """Songs lie on a plane, also in 60 further dimensions of noise, where all distances are nearly equal."""
    rng = np.random.default_rng(0)
    plane = rng.uniform(size=(400, 2))
    X = np.hstack([plane, 0.05 * rng.normal(size=(400, n_noise))])
    model = PlaylistModel(build_edges(400), weights=np.ones(1))
    shares = SoundRanks(X).shares

    def measure(steered):
        """Return the last step over the median one, and the way left before it, on the plane; one row per path."""
        rng, found = np.random.default_rng(1), []
        while len(found) < 60:
            fixed = dict(zip((0, 14), rng.choice(400, 2, replace=False).tolist(), strict=True))
            whole = np.linalg.norm(plane[fixed[0]] - plane[fixed[14]])
            if whole > 0.4:
                steer = steer_to_stops(shares, fixed, 400) if steered else None
                songs = model.generate(15, fixed=fixed, steer=steer, random_state=len(found)).songs
                steps = np.linalg.norm(np.diff(plane[list(songs)], axis=0), axis=1)
                found.append((steps[-1] / np.median(steps), steps[-1] / whole))
        return np.median(found, axis=0)

    ratio, left = measure(True)
    assert ratio < 2.0, "the last step is a usual one"
    assert left < 0.35 < measure(False)[1]


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
