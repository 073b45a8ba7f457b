"""Tests of the cone of metrics: projections, factors and the largest generalized eigenvalue."""

import numpy as np
import pytest
from scipy import linalg

from musicsim.metric.cone import Cone

WIDTHS = [(1,), (5,), (3, 1, 4), (2, 2)]


def symmetric(widths, rng, shift=0.0):
    """Return random symmetric blocks, flat, with eigenvalues moved by `shift`."""
    blocks = [rng.standard_normal((w, w)) for w in widths]
    return np.concatenate([(0.5 * (B + B.T) + shift * np.eye(len(B))).ravel() for B in blocks])


def inside(widths, rng):
    return np.concatenate([(B @ B.T).ravel() for B in (rng.standard_normal((w, w)) for w in widths)])


@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("shift", [-20.0, -0.5, 0.0, 0.5, 20.0])
def test_projection_matches_definition(widths, shift, rng):
    cone, A = Cone(widths, "full"), symmetric(widths, rng, shift)
    expected = []
    for B in cone.blocks(A):
        values, vectors = np.linalg.eigh(B)
        expected.append(((vectors * np.maximum(values, 0.0)) @ vectors.T).ravel())
    found = cone.project(A)
    np.testing.assert_allclose(found.point, np.concatenate(expected), rtol=0, atol=1e-13 * (1 + abs(shift)))
    assert found.factors is not None
    products = np.concatenate([(L.T @ L).ravel() for L in found.factors])
    np.testing.assert_allclose(products, found.point, rtol=0, atol=1e-13 * (1 + abs(shift)))
    np.testing.assert_allclose(cone.project(found.point).point, found.point, rtol=0, atol=1e-13 * (1 + abs(shift)))


@pytest.mark.parametrize("widths", WIDTHS)
def test_projection_is_nearest_point_of_cone(widths, rng):
    cone, A = Cone(widths, "full"), symmetric(widths, rng)
    nearest = cone.project(A).point
    for scale in (0.01, 0.1, 1.0):
        for _ in range(50):
            other = scale * inside(widths, rng) + rng.choice([0.0, 1.0]) * nearest
            assert np.linalg.norm(other - A) >= np.linalg.norm(nearest - A) - 1e-12
            # the residual has an obtuse angle with the cone (Moreau)
            assert (A - nearest) @ other <= 1e-12 * np.linalg.norm(other) * np.linalg.norm(A)
    assert (A - nearest) @ nearest == pytest.approx(0.0, abs=1e-12 * (A @ A))


def test_diagonal_is_clipped_at_zero(rng):
    cone, w = Cone([6], "diagonal"), rng.standard_normal(6)
    found = cone.project(w)
    np.testing.assert_array_equal(found.point, np.where(w > 0, w, 0.0))
    assert found.factors is None
    assert (cone.size, cone.n_projections) == (6, 0)


def test_counts_only_decompositions(rng):
    widths = (3, 4)
    cone, A = Cone(widths, "full"), inside(widths, rng)
    found = cone.project(A)
    assert cone.n_projections == 0
    np.testing.assert_array_equal(found.point, A)
    A[9:] *= -1.0
    found = cone.project(A)
    assert cone.n_projections == 1
    assert not found.point[9:].any()
    assert [len(L) for L in found.factors] == [3, 0]


def test_factor_rank_matches_positive_part(rng):
    axes = linalg.qr(rng.standard_normal((6, 6)))[0]
    A = (axes * [-3.0, -2.0, -1.0, -0.5, 1.0, 2.0]) @ axes.T
    (L,) = Cone([6], "full").project(0.5 * (A + A.T).ravel()).factors
    assert L.shape == (2, 6)


@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("shift", [-20.0, 0.0, 20.0])
def test_reach_is_largest_generalized_eigenvalue(widths, shift, rng):
    weights = 10.0 ** rng.uniform(-2, 2, sum(widths))
    cone, A = Cone(widths, "full", weights), symmetric(widths, rng, shift)
    parts = np.split(weights, np.cumsum(widths)[:-1])
    largest = max(linalg.eigh(B, np.diag(r), eigvals_only=True)[-1] for B, r in zip(cone.blocks(A), parts, strict=True))
    t = cone.reach(A)
    assert t == pytest.approx(largest, rel=1e-11)
    # from the definition, t diag(r) - A is on the border of the cone
    lowest = min(np.linalg.eigvalsh(B)[0] for B in cone.blocks(t * cone.unit - A))
    assert lowest == pytest.approx(0.0, abs=1e-10 * np.abs(A).max())


def test_reach_of_a_diagonal(rng):
    weights, A = np.array([1.0, 2.0, 0.5]), np.array([3.0, 8.0, -1.0])
    assert Cone([3], "diagonal", weights).reach(A) == 4.0
    assert Cone([3], "diagonal").reach(-np.abs(A)) == -1.0


def test_unit_is_gradient_of_weighted_trace(rng):
    widths, weights = (2, 3), np.arange(1.0, 6.0)
    cone, A = Cone(widths, "full", weights), inside((2, 3), rng)
    first, second = cone.blocks(A)
    assert cone.unit @ A == pytest.approx(np.r_[np.diag(first), np.diag(second)] @ weights, rel=1e-14)
    np.testing.assert_array_equal(Cone([5], "diagonal", weights).unit, weights)
