"""Distances between albums, and their scores, on cases that can be worked out by hand."""

import numpy as np
import pytest

from experiments.albums import MEAN, distances, precisions

X = np.array([[0.0], [2.0], [3.0], [7.0], [20.0]])
ALBUMS = [("a", np.array([0, 1])), ("a", np.array([2, 3])), ("b", np.array([4]))]


def test_distances_are_those_of_their_definitions():
    found = distances(X, ALBUMS)
    expected = {
        MEAN: 4.0,
        "mean of all pairs": (3 + 7 + 1 + 5) / 4,
        "mean of nearest pieces, both ways": ((3 + 1) / 2 + (1 + 5) / 2) / 2,
    }
    assert {kind: D[0, 1] for kind, D in found.items()} == pytest.approx(expected)
    for D in found.values():
        np.testing.assert_allclose(D, D.T)


def test_precisions_ignore_composers_with_one_album():
    values = precisions(distances(X, ALBUMS)[MEAN], np.array(["a", "a", "b"]))
    np.testing.assert_allclose(values, [[1, 0.5, 0.5], [1, 0.5, 0.5], [np.nan] * 3])
