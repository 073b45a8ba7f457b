"""Tests of the step size of a playlist in sound, if no playlist of people determines it."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from musicsim.explorer.playlists import pool
from musicsim.explorer.playlists.fit import refit_walks
from musicsim.explorer.playlists.steering import SoundRanks, make_paced_steering, median_of
from musicsim.explorer.playlists.walk import ShuffleWalk, Walk
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.snapshot.snapshot import take_snapshot


def test_ranks_match_all_distances(rng):
    X = rng.normal(size=(50, 4)).astype(np.float32)
    ranks = SoundRanks(X)
    for row in range(50):
        distance = np.linalg.norm(X.astype(float) - X[row], axis=1)
        shares = np.array([np.count_nonzero(distance < d) for d in distance]) / 49
        np.testing.assert_allclose(ranks.shares(row), shares)
        assert ranks.near(row).tolist() == np.flatnonzero(shares <= 0.1).tolist()
        between = [ranks.share_between(X[row], other) for other in X]
        np.testing.assert_allclose(between, shares)


def test_nearest_song_of_small_library_is_near():
    assert SoundRanks(np.array([[0.0], [1.0], [3.0]])).near(1).tolist() == [0, 1]


@given(seed=st.integers(0, 10_000), surprise=st.floats(0, 1))
def test_half_of_steps_stay_within_median(seed, surprise):
    rng = np.random.default_rng(seed)
    shares = rng.permutation(np.linspace(0, 1, 401))
    p = rng.dirichlet(np.ones(401))
    median = median_of(surprise)
    weights = make_paced_steering(lambda _: shares, median)(1, 0, p)
    steps = p * weights / (p @ weights)
    assert steps[shares <= median].sum() == pytest.approx(0.5, abs=1e-4)
    # Songs of one rank keep the odds of the walk, because the weight is an exponential of the rank alone.
    slope = np.diff(np.log(weights)[np.argsort(shares)])
    np.testing.assert_allclose(slope, slope[0], rtol=1e-6, atol=1e-9)


def test_nearest_songs_are_preferred_if_none_is_near():
    shares = np.linspace(0, 1, 201)
    p = np.where(shares > 0.3, 1.0, 0.0)
    weights = make_paced_steering(lambda _: shares, 0.02)(1, 0, p / p.sum()) * p
    steps = np.sort(weights / weights.sum())[::-1]
    assert np.argmax(weights) == np.flatnonzero(p)[0]
    assert 0.1 < steps[1] < steps[0] < 0.9


def test_equally_near_songs_are_ranked_in_order(rng):
    X = rng.integers(3, size=(200, 2)).astype(float)  # many songs in one place
    distances = np.square(X - X[7]).sum(axis=1)
    distances[7] = -1.0
    order = sorted(range(200), key=lambda song: (distances[song], song))
    shares = SoundRanks(X).shares(7)
    np.testing.assert_allclose(shares[order], np.linspace(0.0, 1.0, 200))


def ranks_and_labels(walk, surprise, n_lists=60):
    """Return the ranks of the next songs by brute force, and the labels of the steps."""
    snapshot, ranks, labels = walk.snapshot, [], []
    X = snapshot.X.astype(float)
    for seed in range(n_lists):
        drawn = walk.generate(PlaylistRequest(length=8, surprise=surprise), seed)
        rows = snapshot.rows_of([song.id for song in drawn.songs])
        for here, there in itertools.pairwise(rows):
            distance = np.linalg.norm(X - X[here], axis=1)
            ranks.append(np.count_nonzero(distance < distance[there]) / (len(X) - 1))
        labels += [edge.label for edge in drawn.edges[1:]]
    return np.array(ranks), labels


@pytest.mark.long
@pytest.mark.parametrize(("surprise", "low", "high"), [(0.0, 0.0, 0.025), (0.5, 0.05, 0.09), (1.0, 0.2, 0.3)])
def test_step_width_follows_surprise_without_playlists(taught, surprise, low, high):
    ranks, _ = ranks_and_labels(Walk(take_snapshot(taught)), surprise)
    assert low <= np.median(ranks) <= high


def test_library_without_playlists_gives_sound_reasons(taught):
    _, labels = ranks_and_labels(Walk(take_snapshot(taught)), 0.3)
    assert labels.count("random jump") < 0.05 * len(labels)
    assert np.mean(["similar sound" in label for label in labels]) > 0.5


def test_shuffle_ignores_sound(taught):
    ranks, labels = ranks_and_labels(ShuffleWalk(take_snapshot(taught)), 0.0)
    assert 0.4 < np.median(ranks) < 0.6
    assert set(labels) == {"random jump"}


def test_many_playlists_determine_step_width(taught):
    ids = [song.id for song in taught.songs()]

    def is_paced_after(n_lists):
        lists = [(f"{n_lists} {i}", None, ids[7 * i : 7 * i + 6]) for i in range(n_lists)]
        taught.add_playlists(lists, source="test")
        refit_walks(taught, lambda *_: None)
        walk = Walk(take_snapshot(taught))
        assert walk.n_playlists >= n_lists
        return walk.step_width(0.0) == pytest.approx(2 * median_of(0.0) * (len(ids) - 1))

    assert is_paced_after(2)
    assert not is_paced_after(25)


@pytest.mark.long
@pytest.mark.parametrize(("surprise", "low", "high"), [(0.0, 0.0, 0.06), (1.0, 0.2, 0.3)])
def test_large_library_playlist_uses_sample(taught, monkeypatch, surprise, low, high):
    monkeypatch.setattr(pool, "MAX_PLAYLIST_SONGS", 100)
    snapshot = take_snapshot(taught)
    walk, ids = Walk(snapshot), [song.id for song in taught.songs()]
    assert len(ids) > 100
    ranks, labels = ranks_and_labels(walk, surprise)
    assert low <= np.median(ranks) <= high
    assert surprise > 0.0 or labels.count("random jump") < 0.05 * len(labels)
    drawn = [walk.generate(PlaylistRequest(length=8), seed) for seed in range(40)]
    assert len({song.id for one in drawn for song in one.songs}) > 100, "each playlist has a sample of its own"
    named = PlaylistRequest(length=9, first=ids[0], through=(ids[5], ids[-1]), keep={2: ids[9]}, like=(ids[3],))
    for seed in range(5):
        songs = [song.id for song in walk.generate(named, seed).songs]
        assert (songs[0], songs[2], songs[-1]) == (ids[0], ids[9], ids[-1])
        assert ids[5] in songs
        assert len(set(songs)) == 9
