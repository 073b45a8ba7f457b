"""Tests of the effect of an edge on a step, against steps computed from dense arrays by the definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musicsim.playlist import PlaylistModel, Trial, build_edges
from tests.playlist.graphs import random_graph

N_SONGS = 7


def make_step(graph, weights, previous, allowed, g, steer=None, *, removed=None):
    """Return the probabilities of the next song, edge by edge, with one edge removed."""
    inside = graph.incidence.toarray() > 0
    odds = np.zeros(graph.n_songs)
    for e in range(graph.n_edges):
        mass = graph.song_weight * inside[:, e] * allowed
        if e != removed and (previous is None or inside[previous, e]) and mass.any():
            odds += weights[e] * mass / mass.sum()
    if not odds.any():
        odds = graph.song_weight * allowed
    odds *= g
    if steer is not None and previous is not None:
        odds *= steer(0, previous, odds / odds.sum())
    return odds / odds.sum()


def repel(place, previous, probabilities):
    """Make likely songs less likely, so that the factors depend on the edges."""
    del place, previous
    return 1.0 / (0.05 + probabilities)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("is_weighed", [False, True])
@pytest.mark.parametrize("steer", [None, repel])
@settings(max_examples=25, derandomize=True, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_trials_match_steps_without_edge(weighted, is_weighed, steer, seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, N_SONGS, 5, weighted=weighted)
    weights = rng.dirichlet(np.ones(graph.n_edges))
    g = rng.uniform(0.2, 1.0, N_SONGS) if is_weighed else np.ones(N_SONGS)
    excluded = int(rng.integers(N_SONGS))
    walk = PlaylistModel(graph, weights=weights).generate(
        4, exclude=[excluded], weigh=g if is_weighed else None, steer=steer, trials=True, random_state=seed
    )
    assert len(walk.songs) == 4
    allowed = np.ones(N_SONGS)
    allowed[excluded] = 0.0
    steps = [(None, walk.opening), *zip(walk.songs, walk.transitions, strict=False)]
    for previous, step in steps:
        arguments = graph, weights, previous, allowed, g, steer
        with_edge, without = make_step(*arguments), make_step(*arguments, removed=step.edge)
        if step.trial is None:
            assert step.probability == 0.0, "no edge was drawn"
        else:
            assert step.trial.probability == pytest.approx(with_edge[step.song], rel=1e-9)
            assert step.trial.without == pytest.approx(without[step.song], rel=1e-9, abs=1e-15)
            rise = np.delete(without - with_edge, step.song)
            if step.trial.instead is None:
                assert rise.max() <= 1e-12
            else:
                instead = step.trial.instead
                assert without[instead] - with_edge[instead] == pytest.approx(rise.max(), rel=1e-6, abs=1e-12)
        allowed[step.song] = 0.0


def test_trials_do_not_change_the_walk():
    graph = random_graph(np.random.default_rng(3), 30, 8, weighted=False)
    model = PlaylistModel(graph, weights=np.ones(graph.n_edges))
    for options in ({}, {"steer": repel}, {"fixed": {5: 2}}):
        plain, tried = (model.generate(9, random_state=4, trials=trials, **options) for trials in (False, True))
        assert plain.songs == tried.songs
        assert all(step.trial is None for step in plain.transitions)
        assert [step.edge for step in plain.transitions] == [step.edge for step in tried.transitions]


def test_only_reason_is_what_made_song_possible():
    graph = build_edges(4, tags=[["calm"], ["calm"], ["loud"], ["loud"]])
    names = list(graph.names)
    weights = np.where([name == "tag:calm" for name in names], 1.0, 0.0)
    (step,) = PlaylistModel(graph, weights=weights).generate(2, first=0, trials=True).transitions
    assert (step.song, step.name) == (1, "tag:calm")
    assert step.trial == Trial(1.0, pytest.approx(1 / 3), pytest.approx(2))
