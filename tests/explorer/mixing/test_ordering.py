"""Tests of the order of songs for mixing: the shortest path against all permutations, and costs of known pairs."""

from dataclasses import replace
from itertools import pairwise, permutations

import numpy as np
import pytest

from musicsim.explorer.mixing.ordering import find_path, measure_steps, order_for_mixing


def length(costs, path):
    return sum(costs[a, b] for a, b in pairwise(path))


@pytest.mark.parametrize("kind", ["random", "plane"])
def test_path_of_few_rows_is_shortest(rng, kind):
    """Local search has no guarantee, but it found the optimum of 150 of 150 such tasks."""
    for _ in range(30):
        n = int(rng.integers(1, 8))
        points = rng.random((n, 2))
        costs = np.linalg.norm(points[:, None] - points, axis=2) if kind == "plane" else rng.random((n, n))
        costs = costs + costs.T
        path = find_path(costs)
        assert (sorted(path), path[0]) == (list(range(n)), 0)
        assert length(costs, path) == pytest.approx(min(length(costs, (0, *p)) for p in permutations(range(1, n))))


def test_path_of_many_rows_is_near_known_optimum(rng):
    """Points on a circle: the optimum goes around."""
    angles = 2 * np.pi * rng.permutation(200) / 200
    points = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    costs = np.linalg.norm(points[:, None] - points, axis=2)
    assert length(costs, find_path(costs)) == pytest.approx(199 * 2 * np.sin(np.pi / 200))


@pytest.fixture
def make_song(tiny_library):
    (song, *_) = tiny_library.songs()

    def make(key=None, mode=None, tempo=None, number=0):
        return replace(song, key=key, mode=mode, tempo=tempo, id=number)

    return make


@pytest.mark.parametrize(
    ("one", "other", "cost"),
    [
        (("C", "major"), ("C", "major"), 0),
        (("C", "major"), ("A", "minor"), 0.5),
        (("Eb", "major"), ("C", "minor"), 0.5),
        (("C", "major"), ("G", "major"), 1),
        (("C", "major"), ("F", "major"), 1),
        (("A", "minor"), ("E", "minor"), 1),
        (("C", "major"), ("E", "minor"), 1.5),
        (("C", "major"), ("C", "minor"), 3.5),
        (("C", "major"), ("F#", "major"), 6),
        (("B", "major"), ("F#", "major"), 1),
    ],
)
def test_keys_are_compared_on_circle_of_fifths(make_song, one, other, cost):
    steps = measure_steps([make_song(*one, 100), make_song(*other, 100)])
    np.testing.assert_allclose(steps, [[0, cost], [cost, 0]], atol=1e-12)


@pytest.mark.parametrize(("tempo", "cost"), [(100, 0), (108, 1), (100 / 1.08, 1), (200, 0), (54, 1), (216, 1)])
def test_tempos_are_compared_up_to_octaves(make_song, tempo, cost):
    steps = measure_steps([make_song("C", "major", 100), make_song("C", "major", tempo)])
    np.testing.assert_allclose(steps[0, 1], cost, atol=1e-12)


def test_unknown_keys_and_tempos_cost_as_much_as_random_ones(make_song, rng):
    keys, modes = ("C", "C#", "D", "Eb", "E", "F", "F#", "G", "Ab", "A", "Bb", "B"), ("major", "minor")
    tempos = 100 * 2 ** rng.random(400)  # uniform within an octave
    songs = [make_song(keys[i % 12], modes[i // 12 % 2], tempo) for i, tempo in enumerate(tempos)]
    known = measure_steps(songs)
    unknown = measure_steps([make_song(), *songs])
    # the tempos' mean distance has a standard error of about 1 %
    assert unknown[0, 1:] == pytest.approx(known.mean(), rel=0.05)


def test_order_starts_with_first_song_and_joins_fitting_ones(make_song):
    songs = [make_song(key, "major", tempo, i) for i, (key, tempo) in enumerate(
        [("C", 120), ("F#", 90), ("D", 124), ("C#", 91), ("G", 61), ("B", 90)])]  # fmt: skip
    assert [song.id for song in order_for_mixing(songs)][:3] == [0, 4, 2]
    assert sorted(song.id for song in order_for_mixing(songs)) == list(range(6))
