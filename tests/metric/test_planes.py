"""Tests of the cutting planes of solvers, against a plain list of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musicsim.metric.planes import Planes


class Listed:
    """The same planes as a list: loss, psi, age, and a name that the weight carries."""

    def __init__(self):
        self.entries = []

    def retire(self, weights, oldest):
        for entry, weight in zip(self.entries, weights, strict=True):
            entry["age"] = 0 if weight > 1e-9 * sum(weights) else entry["age"] + 1
        kept = [i for i, entry in enumerate(self.entries) if entry["age"] <= oldest]
        self.entries = [self.entries[i] for i in kept]
        return [weights[i] for i in kept]


def assert_same(planes, listed):
    assert len(planes) == len(listed.entries)
    psi = np.array([entry["psi"] for entry in listed.entries]).reshape(len(planes), 5)
    np.testing.assert_array_equal(planes.psi, psi)
    np.testing.assert_array_equal(planes.loss, [entry["loss"] for entry in listed.entries])
    # a product of the row with the matrix, or of both matrices: sums of 5 numbers near 1 in another order
    np.testing.assert_allclose(planes.gram, psi @ psi.T, rtol=0, atol=1e-13)


@settings(max_examples=25, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), share=st.sampled_from([0.0, 0.2, 0.6, 1.0]), oldest=st.integers(0, 12))
def test_adding_and_retiring_match_list(seed, share, oldest):
    rng = np.random.default_rng(seed)
    planes, listed = Planes(5), Listed()
    for _ in range(25):
        for _ in range(rng.integers(1, 5)):
            loss, psi = rng.random(), rng.standard_normal(5)
            planes.add(loss, psi)
            listed.entries.append({"loss": loss, "psi": psi, "age": 0})
        weights = np.where(rng.random(len(planes)) < share, rng.random(len(planes)), 0.0)
        W = rng.standard_normal(5)
        slacks = [entry["loss"] - W @ entry["psi"] for entry in listed.entries]
        np.testing.assert_allclose(planes.slacks(W), slacks, rtol=0, atol=1e-13)
        combined = sum(w * entry["psi"] for w, entry in zip(weights, listed.entries, strict=True))
        np.testing.assert_allclose(planes.combine(weights), combined, rtol=0, atol=1e-12)
        left = planes.retire(weights, oldest)
        assert left.tolist() == listed.retire(weights.tolist(), oldest)
        assert_same(planes, listed)


def test_storage_grows_without_losing_planes(rng):
    planes, psi = Planes(4), rng.standard_normal((200, 2, 2))
    for i, plane in enumerate(psi):
        planes.add(float(i), plane)
    np.testing.assert_array_equal(planes.psi, psi.reshape(200, 4))
    np.testing.assert_allclose(planes.gram, planes.psi @ planes.psi.T, rtol=0, atol=1e-13)
    assert planes.loss.tolist() == list(range(200))


def test_negligible_weight_does_not_keep_plane(rng):
    planes = Planes(2)
    for _ in range(3):
        planes.add(1.0, rng.standard_normal(2))
    left = planes.retire(np.array([1e-12, 4.0, 0.0]), 0)
    assert left.tolist() == [4.0]
    assert len(planes) == 1


@pytest.mark.parametrize("oldest", [0, 3])
def test_unused_planes_are_retired_after_given_rounds(oldest):
    planes = Planes(1)
    planes.add(1.0, np.ones(1))
    planes.add(2.0, np.ones(1))
    for _ in range(oldest):
        assert len(planes.retire(np.array([0.0, 1.0]), oldest)) == 2
    assert planes.retire(np.array([0.0, 1.0]), oldest).tolist() == [1.0]
    assert planes.loss.tolist() == [2.0]
