"""Tests that runs and relevance in TREC's format give our scores to a reader of the format."""

from collections import defaultdict

import numpy as np
import pytest

from musicsim.evaluation import distance_scores, to_qrels, to_run
from musicsim.relevance import Relevance


def read(run, qrels):
    """Return each query's ranked relevance, as trec_eval does: by descending score."""
    relevant, ranked = defaultdict(set), defaultdict(list)
    for line in qrels.splitlines():
        query, zero, song, judgment = line.split()
        assert (zero, judgment) == ("0", "1")
        relevant[query].add(song)
    for line in run.splitlines():
        query, q0, song, rank, score, tag = line.split()
        assert (q0, tag) == ("Q0", "ours")
        ranked[query].append((-float(score), int(rank), song))
    for entries in ranked.values():
        assert [rank for _, rank, _ in sorted(entries)] == list(range(1, len(entries) + 1))
    return {query: [song in relevant[query] for _, _, song in sorted(ranked[query])] for query in ranked}


def test_readers_of_trec_files_get_our_map_and_mrr(rng):
    labels, artists = np.arange(20) % 4, np.arange(20) // 2
    labels[7] = -1
    relevance = Relevance.from_labels(labels, groups=artists)
    D = rng.integers(0, 6, size=(20, 20)).astype(float)  # many ties
    names = [f"song-{i}" for i in range(20)]
    read_back = read(
        to_run(D, relevance, tag="ours", queries=names, songs=names), to_qrels(relevance, queries=names, songs=names)
    )
    scores = distance_scores(D, relevance)
    for q, name in enumerate(names):
        hits = np.flatnonzero(read_back[name])
        if np.isnan(scores["map"][q]):
            assert not len(hits)
            continue
        assert np.mean((np.arange(len(hits)) + 1) / (hits + 1)) == pytest.approx(scores["map"][q])
        assert 1 / (hits[0] + 1) == pytest.approx(scores["mrr"][q])
        assert len(read_back[name]) == 18  # neither the query nor the other song of its artist


def test_names_with_spaces_or_twice_are_refused():
    relevance = Relevance.from_lists([[1], [0]])
    for names in (["a b", "c"], ["a", "a"], ["a"]):
        with pytest.raises(ValueError, match="queries must contain 2 different names without spaces"):
            to_qrels(relevance, queries=names)
    assert to_qrels(relevance) == "0 0 1 1\n1 0 0 1\n"
    assert to_run([[0, 1], [1, 0]], relevance) == "0 Q0 1 1 1 musicsim\n1 Q0 0 1 1 musicsim\n"
