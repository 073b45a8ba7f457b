"""Features and orders of the experiment on the order of playlists."""

import numpy as np
import pytest

from experiments.coherence import codes_of, generate_like, measure, order_greedily, rows_in_list, tag_vectors
from musicsim.evaluation import order_coherence
from musicsim.playlist import PlaylistModel
from tests.playlist.graphs import random_graph

pytestmark = pytest.mark.long


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
