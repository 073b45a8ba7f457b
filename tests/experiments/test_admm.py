"""The experiment on solvers: kernels of families, the vote without oneself, and a run of every solver."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import LeaveOneOut, cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from experiments.admm import FAMILIES, SHORT, family_kernels, left_out_error, measured_kernels, solvers


def test_families_cover_all_columns():
    columns = np.concatenate([np.arange(57)[part] for part in FAMILIES.values()])
    assert columns.tolist() == list(range(57))


def test_kernels_use_one_family_each(rng):
    X, train = rng.normal(size=(12, 57)), np.arange(8)
    kernels = family_kernels(X, train)
    assert [K.shape for K in kernels] == [(12, 8)] * 6
    squares = ((X[:, None, 16] - X[None, train, 16]) ** 2) / np.mean((X[train, None, 16] - X[None, train, 16]) ** 2)
    np.testing.assert_allclose(kernels[4], np.exp(-squares))


def test_leave_one_out_excludes_own_row(rng):
    Y, y = rng.normal(size=(40, 3)), rng.integers(2, size=40)
    truth = 1 - cross_val_score(KNeighborsClassifier(5), Y, y, cv=LeaveOneOut()).mean()
    assert left_out_error(Y, y) == pytest.approx(truth)


def test_every_solver_finds_informative_family(rng):
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 57))
    X[:, 16] += 6.0 * y
    protocol = replace(SHORT, kernel_steps=(5,), Cs_of_kernels=(10.0,), kernel_cuts=30)
    found = measured_kernels(X, y, 0, protocol, 0)
    assert list(found) == list(solvers((5,)))
    for one in found.values():
        assert one["error, %"] <= 10.0
        assert one["cuts"] >= 1
