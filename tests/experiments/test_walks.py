"""Walks: the order of their lists, the reasons of their steps, and queues that stay near a seed."""

import numpy as np
import pytest

from benchmarks.libraries import generated_library
from experiments.coherence import codes_of, generate_like, measure, order_greedily, rows_in_list, tag_vectors
from experiments.reasons import Trials, nearest_in_size, p_changed, summarize, try_steps
from experiments.station import mix, rank_songs, walk_on
from musicsim.evaluation import order_coherence
from musicsim.explorer.playlists.walk import Walk
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.playlist import PlaylistModel
from tests.playlist.graphs import random_graph

# --- coherence -------------------------------------------------------------------------------------------


def test_distance_of_tags_is_that_of_cosines():
    vectors = tag_vectors([["rock", "loud"], ["rock"], [], ["rock", "rock", "loud"]])
    assert np.isnan(vectors[2]).all()
    assert np.square(vectors[0] - vectors[1]).sum() == pytest.approx(2 - 2 * 0.5**0.5)
    np.testing.assert_allclose(vectors[0], vectors[3])


def test_artists_are_compared_within_a_list():
    codes = codes_of(["A", "B", "", "A", "C"])
    rows = rows_in_list("artist", codes, [0, 3, 2, 1, 1])
    pairs = [order_coherence(rows[places]) for places in ([0, 1, 3, 4], [0, 3, 1, 4])]
    assert pairs == [pytest.approx(1 - (1 / 3) / (4 / 6)), pytest.approx(1 - 1 / (4 / 6))]
    assert np.isnan(rows[2]).all()


def test_greedy_order_takes_nearest_left():
    assert order_greedily(np.array([[0.0], [5.0], [np.nan], [1.0], [4.0]])) == [0, 3, 4, 1, 2]


def test_generated_lists_have_first_song_and_length_of_others():
    rng = np.random.default_rng(4)
    graph = random_graph(rng, 12, 8, weighted=True)
    lists = [[3, 1, 2, 0], [5, 6, 5, 7, 8, 9]]
    made = generate_like(PlaylistModel(graph, weights=rng.dirichlet(np.ones(graph.n_edges))), lists, seed=1)
    assert [(songs[0], len(songs)) for songs in made] == [(3, 4), (5, 6)]
    assert len(set(made[0])) == 4, "no song twice, as in the first list"


def test_ordered_lists_are_told_from_shuffled_ones():
    rng = np.random.default_rng(0)
    values = np.sort(rng.normal(size=200))[:, np.newaxis]
    lists = [sorted(rng.choice(200, 10, replace=False)) for _ in range(40)]
    shuffled = [list(rng.permutation(songs)) for songs in lists]
    rows, claims = measure("made", {"value": values}, lists, shuffled, seed=0)
    assert all(claim.holds for claim in claims)
    assert float(rows[0]["people's"].split()[0]) > 0.7
    low, high = (float(part) for part in rows[0]["the walk's"].split("(")[1].strip(")").split(" to "))
    assert low < 0 < high


# --- reasons ---------------------------------------------------------------------------------------------


@pytest.fixture
def model():
    rng = np.random.default_rng(5)
    graph = random_graph(rng, 12, 8, weighted=True)
    return PlaylistModel(graph, weights=rng.dirichlet(np.ones(graph.n_edges)))


def test_probability_of_change_matches_walk_without_edge(model):
    for song in range(12):
        trials = Trials(model, song)
        P = model.transition_probabilities(song)
        for k, edge in enumerate(trials.edges):
            weights = model.weights_.copy()
            weights[edge] = 0.0
            without = PlaylistModel(model.hypergraph, weights=weights).transition_probabilities(song)
            songs = np.flatnonzero(P)
            changed = np.array([trials.p_changed(int(other))[k] for other in songs])
            expected = np.maximum(0.0, 1.0 - without[songs] / P[songs])
            np.testing.assert_allclose(changed, expected, atol=1e-9)
            n_changed = P[songs] @ changed
            assert n_changed == pytest.approx(np.abs(P - without).sum() / 2), "the closest coupling"


def test_steps_agree_with_trials_of_the_walk(model):
    steps = list(try_steps(model, 5, seed=2))
    walks = [model.generate(12, random_state=rng, repeat=True, trials=True) for rng in [np.random.default_rng(2)]]
    first = [s for s in walks[0].transitions if s.edge != model.hypergraph.uniform_edge]
    trial = first[0].trial
    assert steps[0].stated == pytest.approx(p_changed(trial.probability, np.array(trial.without)))
    row = summarize("random", model, steps, 0)
    assert row["steps"] == len(steps)
    assert 0 <= row["changed, of that size"] <= row["changed, stated"] <= 1


def test_nearest_size_is_by_ratio_and_ties_are_random():
    sizes = np.array([10, 20, 40, 5, 20])
    rng = np.random.default_rng(0)
    assert nearest_in_size(sizes, np.array([0, 2]), 30, rng) == 2
    assert {nearest_in_size(sizes, np.array([1, 4]), 25, rng) for _ in range(30)} == {1, 4}
    assert nearest_in_size(sizes, np.array([], dtype=np.intp), 25, rng) is None


# --- station ---------------------------------------------------------------------------------------------


def test_ranks_count_from_the_song_itself():
    X = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    assert rank_songs(X, 3).tolist() == [1, 3, 2, 0]


def test_mixture_is_a_distribution_that_prefers_near_songs():
    p = np.array([0.5, 0.3, 0.2])
    is_near = np.array([False, True, True])
    np.testing.assert_allclose(mix(p, is_near, 0.5), [0.25, 0.3 / 2 + 0.3, 0.2 / 2 + 0.2])
    np.testing.assert_allclose(mix(p, is_near, 0.0), p)
    np.testing.assert_allclose(mix(p, np.zeros(3, dtype=bool), 0.5), p, err_msg="no song is near")


def test_walk_around_a_seed_stays_nearer_than_a_free_one(tmp_path):
    with generated_library(tmp_path, 300, n_listeners=100, n_codewords=64) as library:
        snapshot = take_snapshot(library)
        walk = Walk(snapshot)
        X = snapshot.vectors_at(np.arange(snapshot.n_indexed)).astype(np.float64)
        medians = []
        for row in range(0, len(X), max(1, len(X) // 8)):
            ranks = rank_songs(X, row)
            nearest = snapshot.row_ids[np.argsort(ranks)[:4]].tolist()
            found = [walk_on(snapshot, walk, nearest, 0.3, seed=row, is_free=is_free) for is_free in (True, False)]
            assert all(not {*nearest} & {*ids} and len({*ids}) == len(ids) == 37 for ids in found)
            medians.append([np.median(ranks[snapshot.rows_of(ids)]) for ids in found])
    free, around = np.mean(medians, axis=0)
    assert around < free
