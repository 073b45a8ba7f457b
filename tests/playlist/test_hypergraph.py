"""Tests of hypergraphs: what they keep, drop, count and refuse."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from musicsim.playlist import Hypergraph
from musicsim.playlist.hypergraph import name_parts

# 4 songs: everyone, {0, 1}, {1, 2, 3}
SMALL = np.array([[1, 1, 0], [1, 1, 1], [1, 0, 1], [1, 0, 1]], dtype=bool)
NAMES = ["uniform:all", "tag:calm", "artist:Nora Vale"]


def test_attributes_of_a_small_graph():
    graph = Hypergraph(SMALL, NAMES)
    assert sparse.issparse(graph.incidence)
    assert graph.incidence.format == "csr"
    assert graph.incidence.dtype == bool
    np.testing.assert_array_equal(graph.incidence.toarray(), SMALL)
    assert (graph.n_songs, graph.n_edges, graph.n_dropped, graph.uniform_edge) == (4, 3, 0, 0)
    assert graph.names == NAMES
    assert graph.sizes.tolist() == graph.mass.tolist() == [4, 2, 3]
    assert graph.edges_of(1).tolist() == [0, 1, 2]
    assert graph.members(2).tolist() == [1, 2, 3]


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array, np.asarray])
def test_any_kind_of_matrix_is_taken_and_left_as_it_was(kind):
    given_matrix = kind(SMALL)
    graph = Hypergraph(given_matrix, NAMES)
    graph.incidence.data[:] = False
    back = given_matrix if isinstance(given_matrix, np.ndarray) else given_matrix.toarray()
    np.testing.assert_array_equal(back, SMALL)


def test_edges_of_fewer_than_two_songs_are_dropped_and_counted():
    matrix = np.array([[1, 1, 0, 0], [1, 0, 0, 1], [1, 0, 0, 1]], dtype=bool)
    graph = Hypergraph(matrix, ["uniform:all", "tag:one", "tag:none", "tag:two"])
    assert graph.n_dropped == 2
    assert graph.names == ["uniform:all", "tag:two"]
    np.testing.assert_array_equal(graph.incidence.toarray(), matrix[:, [0, 3]])


def test_explicit_zeros_and_double_entries_are_no_members():
    entries = (np.array([1, 1, 1, 0, 1]), ([0, 0, 1, 2, 2], [0, 0, 0, 0, 1]))
    matrix = sparse.coo_array(entries, shape=(3, 2))
    with pytest.raises(ValueError, match="1 of 3 songs"):  # song 2 is only in an edge of one song
        Hypergraph(matrix, ["tag:a", "tag:b"])


def test_songs_without_an_edge_are_refused_and_counted():
    matrix = np.array([[1, 0], [1, 0], [0, 1], [0, 0]], dtype=bool)
    with pytest.raises(ValueError, match="2 of 4 songs belong to no edge"):
        Hypergraph(matrix, ["tag:a", "tag:b"])


@pytest.mark.parametrize("n_songs", [0, 1])
def test_a_collection_of_fewer_than_two_songs_has_no_edges(n_songs):
    graph = Hypergraph(np.ones((n_songs, 1), dtype=bool), ["uniform:all"])
    assert (graph.n_songs, graph.n_edges, graph.n_dropped, graph.uniform_edge) == (n_songs, 0, 1, None)


def test_names_must_fit_and_differ():
    with pytest.raises(ValueError, match=r"shape \(4, 3\), but names has 2 entries"):
        Hypergraph(SMALL, NAMES[:2])
    with pytest.raises(ValueError, match="'tag:calm' occurs more than once"):
        Hypergraph(SMALL, ["uniform:all", "tag:calm", "tag:calm"])


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, 2, 3], r"shape \(3,\)"),
        ([1, 0, 1, 1], "positive"),
        ([1, np.nan, 1, 1], "finite"),
        ([1, 1e10, 1, 1], "ratio of 1.0e\\+10"),
    ],
)
def test_song_weights_that_cannot_be_probabilities_are_refused(weight, message):
    with pytest.raises(ValueError, match=message):
        Hypergraph(SMALL, NAMES, song_weight=weight)


def test_mass_sums_the_song_weights():
    graph = Hypergraph(SMALL, NAMES, song_weight=[1, 2, 4, 8])
    assert graph.mass.tolist() == [15, 3, 14]
    assert graph.weighted


def test_the_edge_of_everyone_is_found_without_its_name():
    graph = Hypergraph(SMALL, ["tag:music", *NAMES[1:]])
    assert graph.uniform_edge == 0
    both = np.hstack([np.ones((4, 1), dtype=bool), SMALL])
    assert Hypergraph(both, ["tag:music", *NAMES]).uniform_edge == 1
    assert Hypergraph(SMALL[:, 1:], NAMES[1:]).uniform_edge is None


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("tag:calm", [("tag", "calm")]),
        ("artist:Simon & Garfunkel", [("artist", "Simon & Garfunkel")]),
        ("artist:Simon & Garfunkel & cluster-16:3", [("artist", "Simon & Garfunkel"), ("cluster-16", "3")]),
        ("artist:Earth: Wind & Fire", [("artist", "Earth: Wind & Fire")]),
        ("unnamed", [("unnamed", "")]),
    ],
)
def test_names_are_split_at_joints_only(name, parts):
    assert name_parts(name) == parts


@given(arrays(bool, st.tuples(st.integers(2, 8), st.integers(0, 6))))
def test_members_and_edges_of_agree_with_the_matrix(matrix):
    full = np.hstack([matrix, np.ones((len(matrix), 1), dtype=bool)])
    graph = Hypergraph(full, [f"tag:{e}" for e in range(full.shape[1])])
    kept = full[:, full.sum(axis=0) >= 2]
    assert graph.n_dropped == full.shape[1] - kept.shape[1]
    for song in range(graph.n_songs):
        assert graph.edges_of(song).tolist() == np.flatnonzero(kept[song]).tolist()
    for edge in range(graph.n_edges):
        assert graph.members(edge).tolist() == np.flatnonzero(kept[:, edge]).tolist()
    assert graph.sizes.tolist() == kept.sum(axis=0).tolist()
