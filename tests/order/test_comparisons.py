"""Tests of cleaning comparisons, against networkx, a greedy subgraph with a new search per edge, and by hand."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musicsim.order import CleaningReport, clean_comparisons


def _edges(comparisons):
    return [(frozenset(map(int, row[:2])), frozenset(map(int, row[2:]))) for row in comparisons]


def _graph(comparisons):
    return nx.DiGraph(_edges(comparisons))


def _drawn(n_songs, n_comparisons, seed):
    return np.random.default_rng(seed).integers(n_songs, size=(n_comparisons, 4))


def _from_a_line(n_songs, n_comparisons, seed):
    """Return consistent comparisons of songs on a line."""
    rng = np.random.default_rng(seed)
    places = rng.standard_normal(n_songs)
    drawn = rng.integers(n_songs, size=(n_comparisons, 4))
    drawn = drawn[(drawn[:, 0] != drawn[:, 1]) & (drawn[:, 2] != drawn[:, 3])]
    i, j, k, m = places[drawn].T
    swapped = drawn[:, [2, 3, 0, 1]]
    near = np.abs(i - j) < np.abs(k - m)
    result = np.where(near[:, None], drawn, swapped)
    same = np.sort(result[:, :2], axis=1) == np.sort(result[:, 2:], axis=1)
    return result[~same.all(axis=1)]


comparison_lists = st.lists(st.tuples(*[st.integers(0, 5)] * 4), max_size=60)


@settings(max_examples=200)
@given(comparison_lists, st.integers(0, 3))
def test_reduction_is_acyclic_and_keeps_closure(comparisons, seed):
    whole, _ = clean_comparisons(comparisons, reduce=False, random_state=seed)
    kept, _ = clean_comparisons(comparisons, random_state=seed)
    assert nx.is_directed_acyclic_graph(_graph(whole))
    assert set(_edges(kept)) == set(nx.transitive_reduction(_graph(whole)).edges)
    closure = nx.transitive_closure_dag(_graph(whole)).edges
    assert set(nx.transitive_closure_dag(_graph(kept)).edges) == set(closure)


@settings(max_examples=200)
@given(comparison_lists, st.integers(0, 3))
def test_acyclic_subgraph_is_maximal(comparisons, seed):
    agreed, _ = clean_comparisons(comparisons, acyclic=False, reduce=False)
    kept, _ = clean_comparisons(comparisons, reduce=False, random_state=seed)
    closure = nx.transitive_closure_dag(_graph(kept))
    left_out = set(_edges(agreed)) - set(_edges(kept))
    assert all(closure.has_edge(head, tail) for tail, head in left_out)


@pytest.mark.parametrize("seed", range(5))
def test_greedy_subgraph_matches_search_per_edge(seed):
    comparisons = _drawn(7, 400, seed)
    agreed, _ = clean_comparisons(comparisons, acyclic=False, reduce=False)
    kept, _ = clean_comparisons(comparisons, reduce=False, random_state=seed)
    # edges are sorted by their pairs, then shuffled
    width = int(comparisons.max()) + 1
    keys = [tuple(min(row[a], row[b]) * width + max(row[a], row[b]) for a, b in ((0, 1), (2, 3))) for row in agreed]
    edges = sorted(set(zip(keys, _edges(agreed), strict=True)))
    graph = nx.DiGraph()
    for place in np.random.default_rng(seed).permutation(len(edges)):
        tail, head = edges[place][1]
        graph.add_nodes_from((tail, head))
        if not nx.has_path(graph, head, tail):
            graph.add_edge(tail, head)
    assert set(_edges(kept)) == set(graph.edges)


def test_consistent_comparisons_lose_only_redundant_ones():
    comparisons = _from_a_line(30, 3_000, 0)
    kept, report = clean_comparisons(comparisons, reduce=False)
    assert report.n_contradictory == report.n_cyclic == 0
    assert set(_edges(kept)) == set(_edges(comparisons))
    reduced, _ = clean_comparisons(comparisons)
    assert set(_edges(reduced)) == set(nx.transitive_reduction(_graph(comparisons)).edges)


def test_wide_reduction_spans_several_blocks(monkeypatch):
    from musicsim.order import comparisons as module

    comparisons = _from_a_line(60, 6_000, 1)
    whole, _ = clean_comparisons(comparisons)
    monkeypatch.setattr(module, "REACH_BYTES", 1)
    narrow, _ = clean_comparisons(comparisons)
    assert np.array_equal(whole, narrow)


def test_report_counts_every_step():
    comparisons = [
        (0, 1, 0, 2), (1, 0, 2, 0),  # the same, repeated
        (0, 3, 0, 4), (0, 4, 0, 3),  # opposites
        (5, 5, 0, 1), (0, 1, 1, 0), (0, 1, 6, 6),  # of songs or pairs with themselves
        (0, 2, 0, 5), (0, 1, 0, 5),  # the second follows from the first
    ]  # fmt: skip
    kept, report = clean_comparisons(comparisons)
    assert kept.tolist() == [[0, 1, 0, 2], [0, 2, 0, 5]]
    assert report == CleaningReport(
        n_given=9, n_self=3, n_repeated=1, n_contradictory=2, n_cyclic=0, n_redundant=1, n_kept=2, n_pairs=3
    )


def test_cycle_loses_one_comparison():
    _, report = clean_comparisons([(0, 1, 0, 2), (0, 2, 0, 3), (0, 3, 0, 1)], random_state=0)
    assert (report.n_cyclic, report.n_kept) == (1, 2)


def test_majority_keeps_more_frequent_comparison():
    comparisons = [(0, 1, 0, 2)] * 2 + [(0, 2, 0, 1)] + [(0, 3, 0, 4), (0, 4, 0, 3)]
    kept, report = clean_comparisons(comparisons, contradictions="majority")
    assert kept.tolist() == [[0, 1, 0, 2]]
    assert report.n_contradictory == 3
    kept, report = clean_comparisons(comparisons, contradictions="keep", acyclic=False, reduce=False)
    assert (report.n_contradictory, len(kept)) == (0, 4)


@settings(max_examples=50)
@given(comparison_lists)
def test_counts_add_up_and_rows_keep_order(comparisons):
    kept, r = clean_comparisons(comparisons, random_state=1)
    assert r.n_given == len(comparisons)
    assert r.n_given == r.n_self + r.n_repeated + r.n_contradictory + r.n_cyclic + r.n_redundant + r.n_kept
    assert len(kept) == r.n_kept
    given_rows = [tuple(row) for row in comparisons]
    places = [given_rows.index(tuple(row)) for row in kept.tolist()]
    assert places == sorted(places)


def test_seed_determines_subgraph():
    comparisons = _drawn(8, 300, 0)
    first, again = (clean_comparisons(comparisons, random_state=3)[0] for _ in range(2))
    others = [clean_comparisons(comparisons, random_state=s)[0] for s in range(5)]
    assert np.array_equal(first, again)
    assert any(not np.array_equal(first, other) for other in others)


@pytest.mark.parametrize(
    ("comparisons", "options", "words"),
    [
        ([(0, 1, 2)], {}, "rows of four integers"),
        ([(0.5, 1, 2, 3)], {}, "integers"),
        ([(0, -1, 2, 3)], {}, "-1"),
        ([(0, 1, 0, 2)], {"contradictions": "vote"}, "contradictions='vote'"),
        ([(0, 1, 0, 2)], {"acyclic": False}, "reduce=True needs"),
    ],
)
def test_rejects_bad_arguments(comparisons, options, words):
    with pytest.raises(ValueError, match=words):
        clean_comparisons(comparisons, **options)


def test_empty_input_gives_empty_output():
    kept, report = clean_comparisons([])
    assert kept.shape == (0, 4)
    assert str(report) == ("given 0, self 0, repeated 0, contradictory 0, cyclic 0, redundant 0, kept 0, pairs 0")


@settings(max_examples=100)
@given(comparison_lists, st.integers(0, 3))
def test_song_ids_do_not_matter(comparisons, seed):
    names = 2**63 - 1 - np.arange(100)[::-1] * 2**54
    plain, report = clean_comparisons(comparisons, random_state=seed)
    renamed = names[np.asarray(comparisons, dtype=np.int64).reshape(-1, 4)]
    large, of_large = clean_comparisons(renamed, random_state=seed)
    assert of_large == report
    assert np.array_equal(large, names[plain])


def test_rejects_ids_beyond_int64():
    with pytest.raises(ValueError, match=f"song {2**63 + 1};"):
        clean_comparisons(np.array([(0, 2**63 + 1, 1, 2)], dtype=np.uint64))
