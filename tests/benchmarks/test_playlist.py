"""The collection that the playlist benchmark generates must be what its head says it is."""

import itertools

import numpy as np
import pytest

from benchmarks.playlist import Size, collection, fit_row, hidden_weights, rival_row

SMALL = Size(songs=4_000, edges=2_000, playlists=6_000)


@pytest.fixture(scope="module")
def small():
    return collection(SMALL, 0)


def test_edges_per_song_match_thesis(small):
    graph, _ = small
    assert (graph.n_songs, graph.n_edges) == (SMALL.songs, SMALL.edges)
    scale = SMALL.edges / 6_390
    degrees = np.diff(graph.incidence.indptr)
    # 4,000 draws: the mean and the deviation have standard errors of about 1.2 %
    assert degrees.mean() == pytest.approx(76.46 * scale, rel=0.04)
    assert degrees.std() == pytest.approx(57.79 * scale, rel=0.04)
    assert degrees.max() <= round(218 * scale)
    assert graph.uniform_edge == SMALL.edges - 1


def test_playlists_are_walks_on_graph(small):
    graph, playlists = small
    lengths = np.array([len(playlist) for playlist in playlists])
    assert len(playlists) == SMALL.playlists
    assert lengths.min() == 2
    assert lengths.mean() == pytest.approx(4, abs=0.15)  # deviation 2.4, standard error 0.03
    pairs = np.array([pair for songs in playlists for pair in itertools.pairwise(songs)])
    assert np.all(pairs[:, 0] != pairs[:, 1])
    # by chance alone, pairs would share as many edges as any two songs
    shared = graph.incidence[pairs[:, 0]].multiply(graph.incidence[pairs[:, 1]]).sum(axis=1)
    rng = np.random.default_rng(0)
    any_two = graph.incidence[rng.permutation(pairs[:, 0])].multiply(graph.incidence[pairs[:, 1]]).sum(axis=1)
    assert shared.mean() > 1.2 * any_two.mean()


def test_hidden_weights_form_distribution():
    w = hidden_weights(50, 3)
    assert w.sum() == pytest.approx(1)
    assert w[-1] == pytest.approx(0.02)
    assert np.all(w > 0)


def test_fit_matches_or_beats_truth_and_rival():
    size = Size(songs=4_000, edges=1_000, playlists=3_000)
    row, model = fit_row(size, 0)
    assert row["objective"] > row["truth"]  # the optimum on these very playlists
    theirs = rival_row(size, 0, row["objective"], model.tol, 60.0)
    assert theirs["ended"] == "tolerance"
    assert theirs["objective"] == pytest.approx(row["objective"], abs=1e-3)
