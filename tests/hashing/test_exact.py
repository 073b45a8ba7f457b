"""Tests of projections with signs that do not depend on the order of summation."""

import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from musicsim.hashing.exact import ExactProjection
from tests.hashing.thread_codes import codes_in_hex


@pytest.fixture
def projection(rng):
    X = rng.normal(size=(200, 30)) * 10.0 ** rng.integers(-6, 7, size=30) + 100.0
    X[:, 4] = 7.0  # a constant column
    return X, ExactProjection.build(X, rng.normal(size=(30, 8)) / X.std(axis=0).clip(1e-9)[:, None], rng.normal(size=8))


def test_sums_are_exact(projection):
    X, exact = projection
    rows = np.rint((X[:20] - exact.center) / 2.0**exact.exponents)
    truth = [
        [sum(Fraction(x) * Fraction(w) for x, w in zip(row, column, strict=True)) + Fraction(b)
         for column, b in zip(exact.weights.T, exact.bias, strict=True)]
        for row in rows
    ]  # fmt: skip
    assert exact.sums(X[:20]).tolist() == [[int(value) for value in row] for row in truth]


def test_column_order_does_not_change_sums(projection, rng):
    X, exact = projection
    order = rng.permutation(30)
    shuffled = ExactProjection(
        exact.center[order], exact.exponents[order], exact.weights[order], exact.bias, exact.units
    )
    assert np.array_equal(shuffled.sums(X[:, order]), exact.sums(X))


def test_values_match_weights(rng):
    X = rng.normal(size=(100, 40)) * 10.0 ** rng.integers(-3, 4, size=40)
    weights, bias = rng.normal(size=(40, 6)) / X.std(axis=0)[:, None], rng.normal(size=6)
    exact = ExactProjection.build(X, weights, bias)
    truth = (X - X.mean(axis=0)) @ weights + bias
    # grids of 2^-21 of the range of a column, and of 2^-17 or finer of the sum of a bit's weights
    np.testing.assert_allclose(exact.values(X), truth, rtol=0, atol=1e-5 * np.abs(truth).max())


def test_distant_rows_are_clipped_and_sums_stay_exact(projection):
    X, exact = projection
    far = exact.center + 1e12 * (X[:3] - exact.center)
    sums = exact.sums(far)
    assert np.abs(sums).max() < 2.0**53
    assert np.array_equal(sums, exact.sums(exact.center + 1e15 * (X[:3] - exact.center)))


@pytest.mark.long
def test_codes_do_not_depend_on_thread_count():
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
    command = [sys.executable, "-m", "tests.hashing.thread_codes"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    with threadpool_limits(1):
        assert codes_in_hex() == run.stdout
    assert len(run.stdout) == 4 * (600 + 200) * 2 * 16
