"""Tests that local metrics of a model agree with the estimator, in the coordinates of the model's vectors."""

import numpy as np
import pytest

from musicsim.explorer.models.similarity_model import ModelMetrics
from musicsim.metric import LGMMLByExample


@pytest.fixture
def fitted(rng):
    y = np.arange(120) % 4
    X = rng.normal(size=(120, 5)) * [1, 2, 3, 1, 0.5]
    X[:, :2] += 3 * np.c_[y % 2, y // 2]
    return LGMMLByExample(n_metrics=3, random_state=0).fit(X, y), X


@pytest.mark.parametrize("scale", [1.0, 0.01, 30.0])
def test_distances_match_estimator(fitted, scale):
    learned, X = fitted
    components = scale * learned.components_
    local, Z = ModelMetrics.from_fit(learned, components), X @ (scale * learned.components_).T
    # 1e-9: the inverse of a well-conditioned matrix, and products of five factors
    for q in (0, 17, 55):
        weights = local.weights_at(Z[q])
        np.testing.assert_allclose(weights, learned.weights_at(X[q : q + 1])[0], rtol=1e-9)
        metric = np.tensordot(weights, local.metrics, 1)
        away = Z - Z[q]
        ours = np.sqrt(np.einsum("ni,ij,nj->n", away, metric, away))
        theirs = learned.distances(X[q : q + 1], X)[0]
        np.testing.assert_allclose(ours, scale * theirs, rtol=1e-8, atol=1e-8 * scale)


def test_mean_over_songs_is_plain_distance(fitted):
    learned, X = fitted
    local = ModelMetrics.from_fit(learned, learned.components_)
    shares = np.mean([local.weights_at(z) for z in X @ learned.components_.T], axis=0)
    np.testing.assert_allclose(np.tensordot(shares, local.metrics, 1), np.eye(5), atol=1e-9)


def test_round_trip_through_arrays(fitted):
    learned, X = fitted
    local = ModelMetrics.from_fit(learned, learned.components_)
    again = ModelMetrics.from_arrays(local.arrays())
    z = X[0] @ learned.components_.T
    np.testing.assert_array_equal(again.weights_at(z), local.weights_at(z))
    assert ModelMetrics.from_arrays({}) is None


def test_weights_far_from_anchors_are_finite(fitted):
    learned, _ = fitted
    weights = ModelMetrics.from_fit(learned, learned.components_).weights_at(np.full(5, 1e4))
    assert np.isfinite(weights).all()
    assert weights.sum() == pytest.approx(1.0)
