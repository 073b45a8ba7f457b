"""Tests of steered walks by enumeration: fixed songs, weighted songs, temperature, versions."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from musicsim.playlist import PlaylistModel, build_edges
from tests.playlist.graphs import random_graph


def model_of(seed, *, n_songs=5, weighted=False, temperature=1.0):
    """Return a random model, and its transition matrix at a temperature, edge by edge from the definition."""
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, n_songs, 5, weighted=weighted)
    weights = rng.dirichlet(np.ones(graph.n_edges))
    model = PlaylistModel(graph, weights=weights)
    inside = graph.incidence.toarray().astype(float)
    P = np.zeros((n_songs, n_songs))
    for x in range(n_songs):
        leave = np.where(inside[x] > 0, weights * graph.mass ** (1 - 1 / temperature), 0.0)
        leave /= leave.sum()
        for e in np.flatnonzero(leave):
            share = graph.song_weight * inside[:, e]
            share[x] = 0.0
            P[x] += leave[e] * share / share.sum()
    return model, P, graph.song_weight * (inside * (weights / graph.mass)).sum(axis=1)


def conditioned(P, opening, fixed, length, g):
    """Enumerate P[walk | the fixed songs], with g the weight of songs at free positions."""
    odds = {}
    for walk in itertools.product(range(len(P)), repeat=length):
        if all(walk[place] == song for place, song in fixed.items()):
            p = 1.0 if 0 in fixed else opening[walk[0]] * g[walk[0]]
            for t in range(1, length):
                p *= P[walk[t - 1], walk[t]] * (1.0 if t in fixed else g[walk[t]])
            if p > 0:
                odds[walk] = p
    total = sum(odds.values())
    return {walk: p / total for walk, p in odds.items()}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("fixed", "is_weighed", "temperature"),
    [
        ({0: 1, 3: 2}, False, 1.0),
        pytest.param({0: 1, 3: 2}, True, 1.0, marks=pytest.mark.long),
        pytest.param({2: 4}, False, 1.0, marks=pytest.mark.long),
        ({1: 0, 3: 3}, False, 2.0),
        ({0: 2, 3: 2}, True, 0.5),
    ],
)
def test_walks_through_fixed_songs_are_those_of_the_conditioned_walk(weighted, fixed, is_weighed, temperature):
    model, P, opening = model_of(3, weighted=weighted, temperature=temperature)
    g = np.random.default_rng(1).uniform(0.2, 1.0, len(P)) if is_weighed else np.ones(len(P))
    expected = conditioned(P, opening, fixed, 4, g)
    rng, n = np.random.default_rng(0), 2000
    counts = dict.fromkeys(expected, 0)
    for _ in range(n):
        drawn = model.generate(
            4, random_state=rng, fixed=fixed, repeat=True, temperature=temperature, weigh=g if is_weighed else None
        )
        counts[drawn.songs] += 1
    walks = sorted(expected, key=expected.get)
    # pool walks expected fewer than five times, as the chi-square test requires
    rare = [w for w in walks if n * expected[w] < 5]
    cells = [[w] for w in walks if n * expected[w] >= 5] + ([rare] if rare else [])
    seen = [sum(counts[w] for w in cell) for cell in cells]
    hoped = [n * sum(expected[w] for w in cell) for cell in cells]
    # one in a thousand such tests fails by chance; the seeds are fixed
    assert stats.chisquare(seen, hoped).pvalue > 1e-3


@pytest.mark.parametrize("temperature", [0.3, 3.0])
def test_the_temperature_weighs_edges_by_their_size(temperature):
    model, P, _ = model_of(5, temperature=temperature)
    rng, n = np.random.default_rng(2), 2000
    counts = np.zeros(len(P))
    for _ in range(n):
        counts[model.generate(2, first=0, random_state=rng, temperature=temperature).songs[1]] += 1
    possible = P[0] > 0
    assert counts[~possible].sum() == 0
    assert stats.chisquare(counts[possible], n * P[0][possible]).pvalue > 1e-3


def test_a_cold_walk_chooses_among_fewer_songs_than_a_hot_one():
    tags = [["all", f"ten{i // 10}", f"two{i // 2}"] for i in range(40)]
    graph = build_edges(40, tags=tags, uniform=False)
    model = PlaylistModel(graph, weights=np.ones(graph.n_edges))
    # edges of 2, 10 and 40 songs, all alike: the geometric mean of 1, 9 and 39
    assert model.step_width() == pytest.approx((9 * 39) ** (1 / 3))
    # at 1/2, each edge has the weight 1 / |e|
    p = np.array([1 / 2, 1 / 10, 1 / 40])
    assert model.step_width(0.5) == pytest.approx(np.exp(p / p.sum() @ np.log([1, 9, 39])))
    assert model.step_width(0.2) < model.step_width(1.0) < model.step_width(5.0) < 39


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10_000), length=st.integers(3, 8), n_groups=st.integers(1, 9), spacing=st.integers(0, 3),
    use_uniform=st.booleans(), data=st.data(),
)  # fmt: skip
def test_a_path_always_arrives_and_repeats_nothing(seed, length, n_groups, spacing, use_uniform, data):
    model, _, _ = model_of(seed, n_songs=9)
    songs = data.draw(st.permutations(range(9)))
    places = data.draw(st.sets(st.integers(1, length - 1), max_size=3)) | {0, length - 1}
    fixed = dict(zip(sorted(places), songs, strict=False))
    drawn = model.generate(
        length, random_state=seed, fixed=fixed, groups=[i % n_groups for i in range(9)], spacing=spacing,
        use_uniform=use_uniform,
    )  # fmt: skip
    assert len(set(drawn.songs)) == len(drawn.songs) == length
    assert [drawn.songs[place] for place in fixed] == list(fixed.values())
    assert len(drawn.transitions) == length - 1
    for step, (i, j) in zip(drawn.transitions, itertools.pairwise(drawn.songs), strict=True):
        assert (step.previous, step.song) == (i, j)
        assert step.probability == 0.0 or {i, j} <= set(model.hypergraph.members(step.edge))


def test_spacing_looks_behind_and_ahead_and_says_where_it_cannot_be_kept():
    graph = build_edges(6, tags=[["a"]] * 6)
    model = PlaylistModel(graph, weights=np.ones(graph.n_edges))
    for seed in range(20):
        drawn = model.generate(
            4, random_state=seed, fixed={0: 0, 3: 1}, groups=["x", "y", "x", "y", "z", "w"], spacing=2
        )
        assert set(drawn.songs[1:3]) == {4, 5}
        assert drawn.note == ""
    close = model.generate(3, random_state=0, fixed={0: 0, 2: 1}, groups=["x", "y", "x", "y", "x", "y"], spacing=2)
    assert len(close.songs) == 3
    assert "song 2" in close.note


def test_a_gap_without_songs_is_closed_and_said():
    graph = build_edges(3, tags=[["a"]] * 3)
    model = PlaylistModel(graph, weights=np.ones(graph.n_edges))
    drawn = model.generate(4, random_state=0, fixed={0: 0, 3: 1}, exclude=[2])
    assert drawn.songs == (0, 1)
    assert drawn.note == "no suitable songs are left before song 4 (2 missing)"


@pytest.mark.parametrize(
    "works",
    [
        ["love", "love", "rain", "rain", None, None],
        np.array([7, 7, 9, 9, -1, -1]),
        lambda song: np.array([song] if song > 3 else [song, song ^ 1]),
    ],
    ids=["names", "numbers", "function"],
)
def test_versions_of_a_song_do_not_meet(works):
    graph = build_edges(6, tags=[["a"]] * 6)
    model = PlaylistModel(graph, weights=np.ones(graph.n_edges))
    for seed in range(30):
        drawn = model.generate(6, random_state=seed, works=works)
        assert len(drawn.songs) == 4
        assert {4, 5} <= set(drawn.songs)
        kept = model.generate(4, random_state=seed, works=works, fixed={3: 1})
        assert 0 not in kept.songs


def test_songs_that_weigh_nothing_come_last():
    graph = build_edges(5, tags=[["a"]] * 5)
    model = PlaylistModel(graph, weights=np.ones(graph.n_edges))
    for seed in range(20):
        drawn = model.generate(5, random_state=seed, weigh=[1.0, 0.0, 1.0, 0.0, 1.0])
        assert set(drawn.songs[:3]) == {0, 2, 4}
        assert len(drawn.songs) == 5


def test_weights_may_change_from_place_to_place():
    graph = build_edges(4, tags=[["a"]] * 4)
    model = PlaylistModel(graph, weights=np.ones(graph.n_edges))
    order = [2, 0, 3, 1]
    drawn = model.generate(4, random_state=0, weigh=lambda place: np.eye(4)[order[place]])
    assert drawn.songs == tuple(order)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"fixed": {4: 0}}, "fixed has position 4; with length=4, it must be 0 to 3"),
        ({"fixed": {0: 1}, "first": 2}, "fixed puts song 1 at position 0, but song 2 is fixed there"),
        ({"fixed": {1: 9}}, "fixed=9 must be a song"),
        ({"temperature": 0.0}, "temperature=0.0 must be positive"),
        ({"weigh": [1.0]}, r"weigh has shape \(1,\)"),
        ({"weigh": [1.0, -1.0, 1.0, 1.0]}, "not negative"),
        ({"works": ["x"]}, "works has 1 entries for 4 songs"),
    ],
)
def test_requests_that_make_no_sense_are_named(arguments, message):
    graph = build_edges(4, tags=[["a"]] * 4)
    with pytest.raises(ValueError, match=message):
        PlaylistModel(graph, weights=np.ones(graph.n_edges)).generate(4, random_state=0, **arguments)


@pytest.mark.long
@pytest.mark.parametrize("weighted", [False, True])
def test_what_the_song_before_adds_multiplies_the_walks_own_step(weighted):
    model, P, _ = model_of(3, weighted=weighted)
    added = np.array([0.5, 2.0, 0.0, 1.0, 3.0])
    seen = []

    def steer(place, previous, probabilities):
        seen.append((place, previous))
        np.testing.assert_allclose(probabilities, P[previous], atol=1e-12)
        return added

    n = 4000
    drawn = [model.generate(2, first=1, steer=steer, repeat=True, random_state=seed).songs[1] for seed in range(n)]
    assert set(seen) == {(1, 1)}
    expected = P[1] * added / (P[1] @ added)
    counts = np.bincount(drawn, minlength=5)
    assert not counts[expected == 0].any()
    possible = expected > 0
    assert stats.chisquare(counts[possible], n * expected[possible]).pvalue > 1e-3


def test_the_uniform_edge_may_lead_to_some_songs_only():
    model = PlaylistModel(build_edges(9), weights=np.ones(1))
    around = {song: np.sort([(song + 1) % 9, (song + 2) % 9]) for song in range(9)}
    for seed in range(20):
        songs = model.generate(4, steer=lambda *_: np.ones(9), within=around.__getitem__, random_state=seed).songs
        assert all(there in around[here] for here, there in itertools.pairwise(songs))


def test_where_no_edge_leads_on_steering_still_chooses():
    graph = build_edges(6, tags=[["a"], ["a"], [], [], [], []])
    model = PlaylistModel(graph, weights=np.ones(graph.n_edges))
    nearest = {1: np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0])}
    for seed in range(20):
        drawn = model.generate(
            3, prefix=[0, 1], use_uniform=False, steer=lambda _, song, __: nearest.get(song), random_state=seed
        )
        assert drawn.songs == (0, 1, 3)
