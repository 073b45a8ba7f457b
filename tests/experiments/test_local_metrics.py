"""Generated classes and boosted trees of the experiment on local metrics."""

import numpy as np
import pytest

from experiments.local_metrics import COLUMNS, measured_gains, synthetic
from experiments.support.letor_boosting import gbrt
from tests.experiments.test_letor import fold


def test_classes_have_distinct_covariances():
    X, y = synthetic(3, 3000, np.random.default_rng(0))
    assert X.shape == (3000, COLUMNS)
    assert np.bincount(y).tolist() == [1000] * 3
    covariances = [np.cov(X[y == k], rowvar=False) for k in range(3)]
    for one, other in ((0, 1), (1, 2)):
        apart = np.linalg.norm(covariances[one] - covariances[other])
        assert apart > 0.5 * np.linalg.norm(covariances[one])


def test_local_metrics_improve_on_distinct_class_shapes():
    found = measured_gains(10, (1.0,), 0)
    assert list(found) == [1, 10]
    assert found[10] > found[1] + 0.05


def test_regression_trees_find_informative_column():
    try:
        import lightgbm  # noqa: F401
    except (ImportError, OSError) as error:  # its wheel needs the system's libgomp
        pytest.skip(f"lightgbm cannot be loaded: {error}")
    made = fold()
    grid = [{"num_leaves": 4, "min_child_samples": 5}]
    fitted = gbrt(made, grid, 0)
    assert np.corrcoef(fitted.score(made.test), made.test.X[:, 0])[0, 1] > 0.7
    assert np.array_equal(fitted.score(made.test), gbrt(made, grid, 0).score(made.test))
