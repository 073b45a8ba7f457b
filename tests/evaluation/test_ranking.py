"""Tests of neighbor measures on collections small enough to count by hand, and by brute force."""

import numpy as np
import pytest
from scipy.stats import skew

from musicsim.evaluation import hubness, k_occurrence, nearest_neighbors, ranking, share_of_same

LINE = np.array([[0.0], [1.0], [3.0], [7.0]])


def test_neighbors_on_line():
    assert nearest_neighbors(LINE, 2).tolist() == [[1, 2], [0, 2], [1, 0], [2, 1]]


def test_neighbors_match_brute_force_for_any_block_size(rng, monkeypatch):
    X = rng.standard_normal((40, 5))
    D = np.linalg.norm(X[:, None] - X[None], axis=2)
    np.fill_diagonal(D, np.inf)
    truth = np.argsort(D, axis=1, kind="stable")[:, :7]
    for block_rows in (1, 7, 512):
        monkeypatch.setattr(ranking, "_NEIGHBOR_ROWS", block_rows)
        np.testing.assert_array_equal(nearest_neighbors(X, 7), truth)


def test_artist_filter_excludes_own_group_except_unknown():
    groups = np.array([0, 0, -1, -1])
    assert nearest_neighbors(LINE, 2, groups=groups).tolist() == [[2, 3], [2, 3], [1, 0], [2, 1]]


def test_fewer_candidates_than_k_are_marked():
    groups = np.array([0, 0, 0, 1])
    assert nearest_neighbors(LINE, 2, groups=groups).tolist() == [[3, -1], [3, -1], [3, -1], [2, 1]]


@pytest.mark.parametrize("k", [0, 4])
def test_rejects_k_out_of_range(k):
    with pytest.raises(ValueError, match=f"k={k}"):
        nearest_neighbors(LINE, k)


def test_occurrences_sum_to_number_of_results(rng):
    near = nearest_neighbors(rng.standard_normal((30, 4)), 5)
    counts = k_occurrence(near)
    assert counts.sum() == 150
    assert hubness(near) == pytest.approx(skew(counts))


def test_uniform_occurrence_has_no_hubs():
    circle = np.exp(2j * np.pi * np.arange(12) / 12)
    assert hubness(nearest_neighbors(np.c_[circle.real, circle.imag], 2)) == 0.0


def test_center_near_everything_is_hub():
    rng = np.random.default_rng(0)
    shell = rng.standard_normal((60, 200))
    shell /= np.linalg.norm(shell, axis=1, keepdims=True)
    assert hubness(nearest_neighbors(np.vstack([np.zeros(200), shell]), 1)) > 5


def test_share_of_same_matches_hand_computed_example():
    near = np.array([[1, 2], [0, 2], [3, -1], [-1, -1]])
    mean, shares = share_of_same(near, np.array([0, 0, 1, 1]))
    np.testing.assert_array_equal(shares, [0.5, 0.5, 1.0, np.nan])
    assert mean == pytest.approx(2 / 3)


def test_unknown_labels_are_ignored():
    mean, shares = share_of_same(np.array([[1], [0]]), np.array([-1, -1]))
    assert np.isnan(mean)
    assert np.isnan(shares).all()
