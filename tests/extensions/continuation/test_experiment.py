"""Tests of the experiment on continued lists: its splits, its table and its claims."""

import numpy as np

from experiments import continuation
from experiments.support.playlists import Collection
from musicsim.extensions.continuation.continuation import ARTIST, WALK


def made_up(n_lists=300, n_songs=60, seed=0):
    """Make lists of eight songs from one of three groups, which are also artists."""
    rng = np.random.default_rng(seed)
    group = np.arange(n_songs) % 3
    lists = [rng.permutation(np.flatnonzero(group == g))[:8].tolist() for g in rng.integers(3, size=n_lists)]
    known = {"artists": [f"artist {g}" for g in group]}
    return Collection("made up", n_songs, lists, [None] * n_lists, known)


def test_split_contains_every_way_and_both_walks():
    found = continuation.judged(made_up(), 1, 0)
    assert {ARTIST, WALK, continuation.BY_PLAYS, *continuation.RIVALS} == set(found)
    assert all(len(scores["ndcg"]) == 60 for scores in found.values())
    # sixteen songs of the group remain, and four of them must be found among 56
    assert found[WALK]["r_precision"].mean() > 0.15


def test_table_has_means_spreads_and_lead_intervals():
    way = {name: np.array([0.25, 0.75]) for name in continuation.MEASURES}
    better = {name: values + 0.125 for name, values in way.items()}
    found = [{WALK: way, "other": better}, {WALK: better, "other": better}]
    first, second = continuation.table("made up", found, 0)
    assert (first["way"], first["NDCG"], first["NDCG sd"]) == ("other", 0.625, 0.0)
    assert (second["way"], second["NDCG"], second["splits"], second["judged lists"]) == (WALK, 0.5625, 2, 4)
    assert second["NDCG sd"] == np.std([0.5, 0.625], ddof=1)
    assert first["walk ahead, NDCG"].startswith("-0.062 (-0.125 to ")
