"""Tests that coordinates change the conditioning of the problem and nothing else."""

import numpy as np
import pytest

from musicsim.metric.coordinates import Axes, Columns


def squared_distances(X, W):
    differences = X[:, None] - X[None]
    return np.einsum("ijk,kl,ijl->ij", differences, W, differences)


@pytest.fixture
def songs(rng):
    """Return forty songs with correlated columns, whose scales differ by 1,000, far from the origin."""
    return 5.0 + rng.standard_normal((40, 6)) @ rng.standard_normal((6, 6)) * np.logspace(-2, 1, 6)


def test_metric_restores_original_distances_and_trace(songs, rng):
    axes = Axes.principal(songs)
    L = rng.standard_normal((6, 6))
    W = L.T @ L
    metric = axes.metric(W)
    np.testing.assert_array_equal(metric, metric.T)
    np.testing.assert_allclose(
        squared_distances(songs, metric), squared_distances(axes.apply(songs), W), rtol=1e-9, atol=1e-9
    )
    assert np.trace(metric) == pytest.approx(axes.weights @ np.diag(W), rel=1e-12)


def test_principal_coordinates_are_uncorrelated_and_half_whitened(songs):
    axes = Axes.principal(songs)
    covariance = np.cov(axes.apply(songs), rowvar=False, bias=True)
    deviations = np.sqrt(np.linalg.eigvalsh(np.cov(songs, rowvar=False, bias=True)))
    np.testing.assert_allclose(np.sort(np.diag(covariance)), deviations, rtol=1e-6)
    np.testing.assert_allclose(covariance - np.diag(np.diag(covariance)), 0.0, atol=1e-10)
    np.testing.assert_allclose(axes.weights, 1.0 / np.diag(covariance), rtol=1e-6)


def test_columns_preserve_distances_and_penalty(songs, rng):
    songs[:, 2] = 3.0
    prices = rng.random(6) + 0.1
    for penalty, price in ((None, np.ones(6)), (prices, prices)):
        columns = Columns.from_songs(songs, penalty)
        assert columns.columns.tolist() == [0, 1, 3, 4, 5]
        w = rng.random(5)
        diagonal = np.diag(columns.metric(w))
        assert diagonal[2] == 0.0
        np.testing.assert_allclose(
            squared_distances(columns.apply(songs), np.diag(w)),
            squared_distances(songs, np.diag(diagonal)),
            rtol=1e-10,
            atol=1e-12,
        )
        assert diagonal @ price == pytest.approx(columns.weights @ w, rel=1e-12)
        # halfway between the deviation of a column and 1
        np.testing.assert_allclose(columns.apply(songs).std(axis=0), songs[:, columns.columns].std(axis=0) ** 0.5)


def test_constant_column_is_dropped(songs):
    songs[:, 4] = 7.0
    axes = Axes.principal(songs)
    assert len(axes.weights) == 5
    np.testing.assert_allclose(axes.basis[4], 0.0, atol=1e-9)


def test_identical_songs_have_no_axes():
    songs = np.full((9, 3), 0.5)
    assert len(Axes.principal(songs).weights) == len(Columns.from_songs(songs).weights) == 0


@pytest.mark.parametrize(("n", "d"), [(30, 100), (8, 20)])
@pytest.mark.parametrize("offset", [0.0, 10.0])
def test_axes_are_limited_to_songs_minus_one(n, d, offset, rng):
    assert len(Axes.principal(offset + rng.standard_normal((n, d))).weights) == n - 1
