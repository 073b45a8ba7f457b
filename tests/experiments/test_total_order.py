"""A partial order becomes levels and points that keep all of it."""

from graphlib import CycleError

import numpy as np
import pytest

from experiments.support.total_order import constant_shift, levels
from musicsim.order import clean_comparisons, share_in_order


def test_pair_level_is_one_above_nearer_pairs():
    # 01 < 02 < 13 and 01 < 13; 23 is not asked about
    D = levels(np.array([[0, 1, 2, 0], [0, 2, 1, 3], [1, 0, 3, 1]]), 4)
    assert D[0, 1] == D[1, 0] == 1
    assert D[0, 2] == 2
    assert D[1, 3] == D[3, 1] == 3
    assert D[2, 3] == 1
    assert not np.diag(D).any()


def test_cycle_is_rejected():
    with pytest.raises(CycleError):
        levels(np.array([[0, 1, 0, 2], [0, 2, 0, 1]]), 3)


def test_constant_shift_adds_constant_to_squared_distances():
    rng = np.random.default_rng(0)
    D = rng.random((9, 9))
    D = np.triu(D, 1) + np.triu(D, 1).T
    points = constant_shift(D)
    found = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    off = ~np.eye(9, dtype=bool)
    np.testing.assert_allclose((found - D)[off], (found - D)[0, 1], atol=1e-10)
    assert points.shape == (9, 8)


def test_space_satisfies_acyclic_comparisons():
    asked = np.random.default_rng(1).integers(15, size=(300, 4))
    kept = clean_comparisons(asked, random_state=0)[0]
    assert len(kept) > 50
    assert share_in_order(constant_shift(levels(kept, 15)), kept) == 1.0
