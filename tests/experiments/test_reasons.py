"""Tests of reasons on trial: closed forms against walks without the edge, and the choice of the edges to compare."""

import numpy as np
import pytest

from experiments.reasons import Trials, nearest_in_size, p_changed, summarize, try_steps
from musicsim.playlist import PlaylistModel
from tests.playlist.graphs import random_graph

pytestmark = pytest.mark.long


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
