"""Tests of within-class whitening: its definition by loops, closed forms, and invariances."""

import numpy as np
import pytest
from sklearn.base import clone

from musicsim.metric import WCCN, compute_within_covariance
from musicsim.relevance import Relevance


def songs_of_classes(seed, sizes, d):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    spread = np.diag(rng.uniform(0.2, 3.0, d)) @ np.linalg.qr(rng.standard_normal((d, d)))[0]
    return rng.standard_normal((len(sizes), d))[y] + rng.standard_normal((len(y), d)) @ spread, y


def looped(X, y):
    """Sum outer products around the mean of each class, over n - 1 per class."""
    total, freedom = np.zeros((X.shape[1], X.shape[1])), 0
    for label in {label for label in y if label is not None}:
        rows = [i for i, other in enumerate(y) if other == label]
        middle = X[rows].mean(axis=0)
        for i in rows:
            total += np.outer(X[i] - middle, X[i] - middle)
        freedom += len(rows) - 1
    return total / freedom


@pytest.mark.parametrize("sizes", [(5, 5, 5), (2, 1, 9, 3), (1, 1, 2)])
def test_covariance_matches_loops(sizes):
    X, y = songs_of_classes(0, sizes, 4)
    named = [f"artist {label}" for label in y]
    np.testing.assert_allclose(compute_within_covariance(X, named), looped(X, named), atol=1e-12)
    unknown = [*named[:-1], None]
    if sum(n > 1 for n in sizes[:-1]) or sizes[-1] > 2:
        np.testing.assert_allclose(compute_within_covariance(X, unknown), looped(X, unknown), atol=1e-12)


def test_pairs_of_balanced_classes_match_labels():
    X, y = songs_of_classes(1, (4, 4, 4), 3)
    np.testing.assert_allclose(
        compute_within_covariance(X, Relevance.from_labels(y)), compute_within_covariance(X, y), atol=1e-12
    )


@pytest.mark.parametrize("shrinkage", [0.0, 0.3, 0.9])
def test_transform_whitens_shrunk_covariance(shrinkage):
    X, y = songs_of_classes(2, (20, 20, 20), 6)
    W = looped(X, y)
    wccn = WCCN(shrinkage).fit(X, y)
    S = (1 - shrinkage) * W * 6 / np.trace(W) + shrinkage * np.eye(6)
    np.testing.assert_allclose(wccn.covariance_, S, atol=1e-12)
    np.testing.assert_allclose(wccn.components_ @ S @ wccn.components_, np.eye(6), atol=1e-10)
    np.testing.assert_allclose(wccn.components_, wccn.components_.T, atol=1e-12)
    np.testing.assert_allclose(wccn.transform(X), X @ wccn.components_.T)
    if shrinkage == 0:
        within = looped(wccn.transform(X), y)
        np.testing.assert_allclose(within, np.eye(6) * np.trace(within) / 6, atol=1e-10)


def test_full_shrinkage_gives_euclidean_distance():
    X, y = songs_of_classes(3, (5, 5), 4)
    np.testing.assert_allclose(WCCN(1.0).fit(X, y).components_, np.eye(4), atol=1e-12)


def test_diagonal_covariance_matches_closed_form():
    wccn = WCCN(0.5).fit_covariances([np.diag([6.0, 2.0, 1.0])])
    np.testing.assert_allclose(wccn.components_, np.diag(1 / np.sqrt(0.5 * np.array([2.0, 2 / 3, 1 / 3]) + 0.5)))


def test_whitening_is_scale_invariant_and_rotation_equivariant():
    X, y = songs_of_classes(4, (8, 6, 9), 5)
    L = WCCN(0.4).fit(X, y).components_
    np.testing.assert_allclose(WCCN(0.4).fit(1000.0 * X, y).components_, L, atol=1e-10)
    moved = X + 50.0 * np.random.default_rng(0).standard_normal((3, 5))[y]
    np.testing.assert_allclose(WCCN(0.4).fit(moved, y).components_, L, atol=1e-9)
    Q = np.linalg.qr(np.random.default_rng(1).standard_normal((5, 5)))[0]
    np.testing.assert_allclose(WCCN(0.4).fit(X @ Q.T, y).components_, Q @ L @ Q.T, atol=1e-10)


def test_covariances_are_weighted_equally_in_any_unit():
    X, y = songs_of_classes(5, (8, 8, 8), 4)
    folders = np.arange(24) % 5
    A, B = compute_within_covariance(X, y), compute_within_covariance(X, folders)
    both = WCCN(0.2).fit_covariances([A, B]).covariance_
    np.testing.assert_allclose(WCCN(0.2).fit_covariances([100.0 * A, B]).covariance_, both, atol=1e-12)
    alone = [WCCN(0.2).fit_covariances([W]).covariance_ for W in (A, B)]
    np.testing.assert_allclose(both, (alone[0] + alone[1]) / 2, atol=1e-12)


def test_brings_new_songs_of_class_together():
    X, y = songs_of_classes(6, (12,) * 12, 5)
    X += 5.0 * np.random.default_rng(8).standard_normal((12, 5))[y]
    X = np.c_[X, 20.0 * np.random.default_rng(7).standard_normal((len(X), 2))]
    learned = WCCN(0.1).fit(X[:72], y[:72])

    def of_one_class_nearest(Y):
        D = np.linalg.norm(Y[:, None] - Y[None], axis=2)
        np.fill_diagonal(D, np.inf)
        return (y[72:][D.argmin(axis=1)] == y[72:]).mean()

    assert of_one_class_nearest(learned.transform(X[72:])) > of_one_class_nearest(X[72:]) + 0.1


def test_clone_keeps_parameters():
    assert clone(WCCN(0.7)).get_params() == {"shrinkage": 0.7}


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: WCCN(1.1).fit(np.eye(4), [0, 0, 1, 1]), "shrinkage=1.1"),
        (lambda: WCCN("half").fit(np.eye(4), [0, 0, 1, 1]), "shrinkage='half'"),
        (lambda: WCCN().fit(np.eye(4), [0, 1, 2, 3]), "no class has two songs"),
        (lambda: WCCN().fit(np.eye(4), [0, 0, 1]), "y has 3 labels, but X has 4 rows"),
        (lambda: WCCN().fit(np.eye(4), Relevance.from_labels([0, 1, 2, 3])), "nothing to learn from"),
        (lambda: WCCN(0.0).fit(np.eye(4), [0, 0, 1, 1]), "is singular; use a shrinkage above 0.0"),
        (lambda: WCCN().fit(np.ones((4, 2)), [0, 0, 1, 1]), "songs of a class must differ"),
        (lambda: WCCN().fit_covariances([]), "give at least one"),
        (lambda: WCCN().fit_covariances([np.eye(2), np.eye(3)]), r"shape \(3, 3\); all must have shape \(2, 2\)"),
        (lambda: WCCN().fit([[np.nan, 0.0], [0.0, 1.0]], [0, 0]), "NaN"),
    ],
)
def test_rejects_unusable_data(act, message):
    with pytest.raises(ValueError, match=message):
        act()
