"""Tests of splits by artist: no artist on both sides, for any input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier

from musicsim.evaluation import ArtistSplit

some_artists = st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=20).map(
    lambda names: [*names, "d", "e", "f"]
)


def check_fold(train, test, artists):
    assert sorted([*train, *test]) == list(range(len(artists)))
    assert len(train)
    assert len(test)
    named = [{artists[i] for i in rows} - {None} for rows in (train, test)]
    assert not named[0] & named[1]


@given(some_artists, st.integers(0, 3))
def test_artists_are_in_one_fold_side(artists, seed):
    splitter = ArtistSplit(4, 0.4, random_state=seed)
    folds = list(splitter.split(artists, groups=artists))
    assert len(folds) == splitter.get_n_splits()
    for train, test in folds:
        check_fold(train, test, artists)


def test_test_size_is_share_of_artists():
    artists = np.repeat(np.arange(20), np.arange(1, 21))
    for train, test in ArtistSplit(5, 0.3, random_state=0).split(artists, groups=artists):
        assert len(set(artists[test])) == 6
        assert len(set(artists[train])) == 14


def test_songs_of_unknown_artists_split_individually():
    artists = [None, float("nan"), "", -1, None, None]
    sides = {tuple(test) for _, test in ArtistSplit(40, 0.5, random_state=0).split(artists, groups=artists)}
    # any 3 of 6 single songs; one group of all could not be split at all
    assert len(sides) > 10


def test_seed_repeats_splits_but_generator_advances():
    artists = np.arange(50) // 2

    def tests(splitter):
        return [test.tolist() for _, test in splitter.split(artists, groups=artists)]

    assert tests(ArtistSplit(3, random_state=5)) == tests(ArtistSplit(3, random_state=5))
    assert tests(ArtistSplit(3, random_state=5)) != tests(ArtistSplit(3, random_state=6))
    by_generator = ArtistSplit(3, random_state=np.random.default_rng(5))
    assert tests(by_generator) != tests(by_generator)


def test_works_with_scikit_learn_search(rng):
    # songs of an artist are twins: in a split by song, the nearest would be a correct twin; by artist it is not
    artists = np.repeat(np.arange(40), 2)
    X = np.repeat(rng.standard_normal((40, 8)), 2, axis=0)
    y = np.repeat(rng.integers(2, size=40), 2)
    search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1]}, cv=ArtistSplit(5, 0.25, random_state=0))
    search.fit(X, y, groups=artists)
    assert search.n_splits_ == 5
    assert search.best_score_ < 0.75


@pytest.mark.parametrize(
    ("groups", "message"),
    [(None, "groups is missing"), (["a", "b"], "2 entries for 3 songs"), (["a"] * 3, "has 1 artists")],
)
def test_rejects_bad_groups(groups, message):
    with pytest.raises(ValueError, match=message):
        next(ArtistSplit().split(np.zeros((3, 2)), groups=groups))
