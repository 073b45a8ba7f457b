"""Tests of family weights, fitted on lists that were not used to build the edges."""

import numpy as np
import pytest

from musicsim.playlist import PlaylistModel, build_edges, cooccurrence_vectors, nearest_by_direction
from musicsim.playlist.held_out import kind_factors, reweight


def model_of(names, weights):
    graph = build_edges(4, tags=[["a"], ["a"], ["b"], ["b"]], artists=["x", "y", "x", "y"])
    assert set(names) <= set(graph.names)
    known = dict(zip(names, weights, strict=True))
    return PlaylistModel(graph, weights=[known.get(name, 0.0) for name in graph.names])


def test_shares_of_kinds_become_those_of_the_other_model_and_proportions_within_stay():
    names = ("tag:a", "tag:b", "artist:x", "artist:y", "uniform:all")
    fitted = model_of(names, [0.6, 0.2, 0.1, 0.05, 0.05])
    other = model_of(names, [0.1, 0.1, 0.2, 0.2, 0.4])
    again = reweight(fitted, kind_factors(fitted, other))
    assert again.family_shares() == pytest.approx({"tag": 0.2, "artist": 0.4, "uniform": 0.4})
    weights = dict(zip(again.hypergraph.names, again.weights_, strict=True))
    assert weights["tag:a"] / weights["tag:b"] == pytest.approx(3.0)
    assert again.weights_.sum() == pytest.approx(1.0)


def test_kinds_that_one_of_them_lacks_keep_their_proportion():
    names = ("tag:a", "artist:x", "uniform:all")
    fitted = model_of(names, [0.5, 0.3, 0.2])
    graph = build_edges(4, tags=[["a"], ["a"], ["b"], ["b"]])
    other = PlaylistModel(graph, weights=[0.2, 0.2, 0.6])
    factors = kind_factors(fitted, other)
    assert set(factors) == {("tag",), ("uniform",)}
    shares = reweight(fitted, factors).family_shares()
    assert shares["uniform"] / shares["tag"] == pytest.approx(1.5)
    assert shares["artist"] == pytest.approx(0.3 / 1.3)


def test_sparse_lists_are_foretold_better_with_shares_of_lists_kept_apart():
    # each song is listed about twice: neighbors by company are the lists themselves, and useless on other lists
    rng, n = np.random.default_rng(0), 400
    tags = [[f"t{i % 8}"] for i in range(n)]

    def lists(count):
        of_tag = [np.flatnonzero(np.arange(n) % 8 == t) for t in range(8)]
        return [rng.choice(of_tag[rng.integers(8)], 4, replace=False).tolist() for _ in range(count)]

    train, test = lists(200), lists(200)

    def graph(made_of):
        near = nearest_by_direction(cooccurrence_vectors(made_of, n, random_state=0), 6)
        return build_edges(n, tags=tags, cooccurrence_neighbors=near)

    plain = PlaylistModel(graph(train)).fit(train)
    held_out = PlaylistModel(graph(train[50:])).fit(train[:50])
    honest = reweight(plain, kind_factors(plain, held_out))
    tags_alone = PlaylistModel(build_edges(n, tags=tags)).fit(train)
    foretold = [m.mean_transition_log_probability(test) for m in (plain, honest, tags_alone)]
    assert foretold[1] > foretold[0] + 0.3
    assert foretold[1] > foretold[2] - 0.05
