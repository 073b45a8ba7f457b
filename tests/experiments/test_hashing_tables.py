"""The hashing paper's other tables: shortlists, hidden units, rivals' spaces, regression."""

import numpy as np
import pytest

from experiments import hashing_tables
from experiments.hashing_tables import measured_regression, shortlist, with_hidden_units
from experiments.support.hashing import Part
from tests.shared import SHARED


def rings(n, seed):
    """Two classes that no line parts: near the middle, and around it."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, 64))
    X *= ((1.0 + 2.0 * y) / np.linalg.norm(X, axis=1))[:, None]
    return X, y


def test_shortlist_is_smallest_set_of_whole_bins():
    distances = np.random.default_rng(0).integers(9, size=(50, 30))
    for row, mask in zip(distances, shortlist(distances, 0.2), strict=True):
        edge = next(edge for edge in range(9) if np.count_nonzero(row <= edge) >= 6)
        assert np.array_equal(mask, row <= edge)


def test_hidden_units_separate_nonlinear_classes():
    part = with_hidden_units(Part("rings", *rings(600, 0), *rings(200, 1)), 0)
    weights = np.linalg.lstsq(np.c_[part.X, np.ones(600)], 2.0 * part.y - 1.0, rcond=None)[0]
    said = np.c_[part.X_test, np.ones(200)] @ weights > 0
    assert np.mean(said == part.y_test) > 0.9


def test_rivals_get_principal_components():
    X, y = rings(300, 0)
    part = Part("rings", X, y, *rings(50, 1))
    assert hashing_tables.learn_metric(part, "NCA", 5, 100, 0).shape == (5, 64)
    assert np.array_equal(hashing_tables.learn_metric(part, "Euclid", 5, 100, 0), np.eye(64))


def test_regression_error_is_relative_to_mean():
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(500, 4)), rng.normal(size=500)
    y = X[:, 0] + 0.1 * noise
    part = Part("line", X[:400], y[:400], X[400:], y[400:])
    found = measured_regression(part, hashing_tables.Protocol((30, 5), 1, 50, ()), 0)
    assert found["line"] == pytest.approx(0.01, abs=0.01)
    assert found["RankNet, 64 bits"] < found["random projection, 64 bits"] + 0.3 < 1.3


@pytest.mark.skipif(not SHARED.is_dir(), reason="no data: set MUSICSIM_SHARED_DATA to the folder of public data sets")
def test_danceability_is_excluded_from_features():
    part = hashing_tables.regression_part(SHARED, 0)
    assert part.X.shape[1] == 12
    assert len(part.X) + len(part.X_test) == 16_071
    correlations = [abs(np.corrcoef(column, part.y)[0, 1]) for column in part.X.T]
    assert max(correlations) < 0.9
