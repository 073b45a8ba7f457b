"""The experiment on continued lists: what is shown and taken away, and that every way finds what is easy."""

import numpy as np
import pytest

from experiments import continuation
from experiments._continuation_models import ARTIST, POPULARITY, SOUND, Asked
from experiments._playlists import Collection


def made_up(n_lists=150, n_songs=60, seed=0):
    """Lists of eight songs of one of three groups, which are artists, too, and lie apart."""
    rng = np.random.default_rng(seed)
    group = np.arange(n_songs) % 3
    lists = [rng.permutation(np.flatnonzero(group == g))[:8].tolist() for g in rng.integers(3, size=n_lists)]
    known = {"artists": [f"artist {g}" for g in group]}
    return Collection("made up", n_songs, lists, [None] * n_lists, known), np.eye(3)[group]


def test_what_is_to_be_found_is_in_no_list_that_is_learned_from():
    collection, _ = made_up()
    train, begun, taken = continuation.split([*collection.playlists, [1, 2, 3]], np.random.default_rng(0))
    assert (len(train), len(begun)) == (121, 30)
    assert [1, 2, 3] in train, "too short to be judged"
    for first, rest in zip(begun, taken, strict=True):
        assert (len(first), len(rest)) == (4, 4)
        assert not set(first) & set(rest)
        assert first + rest in collection.playlists


def test_songs_of_the_list_are_not_recommended_and_there_are_500_at_most():
    scores = np.arange(700.0)
    assert continuation.recommended(scores, [699, 0]).tolist() == list(range(698, 198, -1))
    assert len(continuation.recommended(scores[:10], [3])) == 9


@pytest.mark.slow
def test_every_way_but_popularity_finds_songs_of_the_group():
    collection, vectors = made_up()
    train, begun, taken = continuation.split(collection.playlists, np.random.default_rng(0))
    found = continuation.measure(Asked(collection, train, begun, 0, vectors), taken)
    precision = {name: scores["r_precision"].mean() for name, scores in found.items()}
    assert {ARTIST, SOUND} < set(precision)
    # four of the sixteen that are left of the group: chance within it is a quarter, without it a fourteenth
    assert all(value > 0.15 for name, value in precision.items() if name != POPULARITY), precision
    assert precision[POPULARITY] < 0.15
    rows = continuation.table(collection, found, 0)
    assert len(rows) == len(found)
