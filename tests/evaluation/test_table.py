"""The table of metrics: scores against query_scores on the same folds, intervals against bootstrap_pairs."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import GroupKFold

from musicsim.evaluation import bootstrap_pairs, query_scores
from musicsim.evaluation.table import evaluate
from musicsim.metric import MLRCV, WCCN
from musicsim.relevance import Relevance


@pytest.fixture
def songs():
    rng = np.random.default_rng(0)
    artists = np.repeat(np.arange(30), 4)
    labels = artists % 3
    X = np.c_[labels + 0.5 * rng.normal(size=120), 4 * rng.normal(size=(120, 3))]
    return X, labels, artists


def test_plain_scores_are_those_of_the_folds(songs):
    X, labels, artists = songs
    relevance = Relevance.from_labels(labels, groups=artists)
    order = np.random.default_rng(3).permutation(30)[artists]
    average = np.full(len(X), np.nan)
    for train, test in GroupKFold(4).split(X, groups=order):
        average[test] = query_scores(X[test], X[train], relevance.restrict(test, train))["map"]
    table = evaluate({"plain": None}, X, labels, artists, n_splits=4, random_state=3)
    expected = bootstrap_pairs(average, np.zeros(len(X)), artists, random_state=3)
    assert table.loc[("plain", "MAP"), ["score", "low", "high"]].tolist() == pytest.approx(expected)
    assert table.difference.isna().all()


def test_difference_is_paired_with_first_model(songs):
    X, labels, artists = songs
    table = evaluate({"plain": None, "same": PCA(), "LDA": LinearDiscriminantAnalysis()}, X, labels, artists)
    # rotated vectors have the same distances
    assert table.loc["same"].difference.abs().max() <= 1e-12
    found = table.loc[("LDA", "MAP")]
    assert found.difference == pytest.approx(found.score - table.loc[("plain", "MAP"), "score"])
    assert found.difference_low > 0.2


def test_test_artists_are_not_seen_in_training(songs):
    X, _, artists = songs
    seen = []

    class Spy(PCA):
        def fit(self, X, y=None):
            seen.append(set(X[:, 0]))
            return super().fit(X)

    evaluate({"spy": Spy()}, X, artists % 3, artists, n_splits=3)
    for artist in range(30):
        own = set(X[artists == artist, 0])
        assert sum(own <= fold for fold in seen) == 2
        assert sum(bool(own & fold) for fold in seen) == 2


def test_noise_labels_give_no_gain(songs):
    X, _, artists = songs
    labels = np.random.default_rng(1).integers(3, size=30)[artists]
    rows = evaluate({"plain": None, "WCCN": WCCN()}, X[:, 1:], labels, artists).loc["WCCN"]
    assert rows.loc["AUC", "difference_low"] < 0 < rows.loc["AUC", "difference_high"]


def test_groups_and_lists_reach_estimator(songs):
    X, labels, artists = songs
    relevance = Relevance.from_lists(
        [[other for other in range(120) if labels[other] == labels[i] and other != i] for i in range(120)]
    )
    table = evaluate({"plain": None, "MLR": MLRCV(Cs=[10], cv=2)}, X, relevance, artists, n_splits=2)
    assert table.loc[("MLR", "AUC"), "difference_low"] > 0
    assert "kNN accuracy" not in table.loc["MLR"].index


def test_unknown_labels_are_left_out(songs):
    X, labels, artists = songs
    names = [None if i % 5 == 0 else f"genre {label}" for i, label in enumerate(labels)]
    table = evaluate({"LDA": LinearDiscriminantAnalysis()}, X, names, artists)
    assert table.score.between(0, 1).all()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"estimators": {}}, "estimators is empty"),
        ({"groups": [1, 2]}, "groups has 2 entries for 120 songs"),
        ({"y": [1, 2]}, "y has 2 entries for 120 songs"),
        ({"n_splits": 31}, "n_splits=31 must be from 2 to the number of artists, 30"),
        ({"n_splits": 1}, "n_splits=1 must be from 2"),
    ],
)
def test_wrong_arguments_are_named(songs, changes, words):
    X, labels, artists = songs
    arguments = {"estimators": {"plain": None}, "X": X, "y": labels, "groups": artists} | changes
    if "y" in changes:
        arguments["groups"] = None
    with pytest.raises(ValueError, match=words):
        evaluate(**arguments)
