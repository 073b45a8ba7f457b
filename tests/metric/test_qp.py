"""Tests of the quadratic program of the solvers against clarabel, and of its duality gap."""

import clarabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from musicsim.metric.qp import solve_dual


def value(H, b, a):
    return 0.5 * a @ H @ a + b @ a


def duality_gap(H, b, C, a):
    """Bound the distance of the value of `a` from the minimum, by the linear program of its gradient."""
    gradient = H @ a + b
    return gradient @ a - C * min(0.0, gradient.min())


def judged(H, b, C):
    """Return feasible weights by an interior point method."""
    m = len(b)
    options = clarabel.DefaultSettings()
    options.verbose = False
    # Ax + s = b with s >= 0: the weights and the slack to C, in units of C
    A = sparse.csc_matrix(np.vstack([-np.eye(m), np.ones((1, m))]))
    bounds = np.append(np.zeros(m), 1.0)
    P = sparse.triu(sparse.csc_matrix(H * C), format="csc")
    solver = clarabel.DefaultSolver(P, b, A, bounds, [clarabel.NonnegativeConeT(m + 1)], options)
    a = C * np.maximum(solver.solve().x, 0.0)
    return a * min(1.0, C / max(a.sum(), 1e-300))


def assert_solved(H, b, C, a, tol):
    """Assert that weights are feasible, within tolerance, and as good as the reference up to its own gap."""
    scale = C * (np.abs(b).max() + C * np.abs(H).max())
    rounding = 1e-11 * scale
    assert (a >= 0).all()
    assert a.sum() <= C * (1 + 1e-10)
    gap = duality_gap(H, b, C, a)
    assert gap <= tol + rounding
    judge = judged(H, b, C)
    assert value(H, b, a) - value(H, b, judge) <= gap + rounding
    slack = duality_gap(H, b, C, judge)
    assert slack <= 1e-6 * scale + 1e-8
    assert value(H, b, judge) - value(H, b, a) <= slack + rounding


def programme(kind, m, rng):
    """Return H and b as planes produce them: b mostly negative, H their inner products."""
    b = -rng.random(m)
    if kind == "sparse":
        rows = rng.standard_normal((m, 3 * m))
    elif kind == "dense":
        rows, b = np.eye(m) + 0.01 * rng.random((m, m)), -1.0 - 0.01 * rng.random(m)
    elif kind == "near-collinear":
        rows = rng.standard_normal(m) + 1e-3 * rng.standard_normal((m, m))
    elif kind == "low rank":
        rows = rng.standard_normal((m, 4))
    elif kind == "rank one":
        rows = rng.standard_normal((m, 1))
    elif kind == "duplicates":
        half = rng.standard_normal(((m + 1) // 2, m))
        rows = np.vstack([half, half])[:m]
    else:
        rows = np.zeros((m, 1))
    return rows @ rows.T, b


KINDS = ["sparse", "dense", "near-collinear", "low rank", "rank one", "duplicates", "zero"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", [1, 2, 7, 30, 100])
@pytest.mark.parametrize("C", [1e-2, 1.0, 1e3])
def test_value_matches_interior_point_solver(kind, m, C, rng):
    H, b = programme(kind, m, rng)
    tol = 1e-6 * C  # |b| is at most about 1
    assert_solved(H, b, C, solve_dual(H, b, C, np.zeros(m), tol), tol)


def test_sum_constraint_active_or_inactive(rng):
    H, b = programme("dense", 20, rng)
    free = solve_dual(H, b, 1e3, np.zeros(20), 1e-9)
    assert free.sum() < 500
    np.testing.assert_allclose(H @ free, -b, atol=1e-4)  # no constraint is active, so the gradient is 0 if H is dense
    bound = solve_dual(H, b, 0.5 * free.sum(), np.zeros(20), 1e-9)
    assert bound.sum() == pytest.approx(0.5 * free.sum(), rel=1e-6)


@pytest.mark.parametrize(("h", "b", "C"), [(2.0, -3.0, 9.0), (2.0, -3.0, 1.0), (2.0, 3.0, 1.0), (0.0, -1.0, 4.0)])
def test_one_weight_matches_closed_form(h, b, C):
    best = C if h == 0 else min(C, max(0.0, -b / h))
    a = solve_dual(np.array([[h]]), np.array([b]), C, np.zeros(1), 0.0)
    assert a == pytest.approx([best], rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_warm_start_reaches_same_value(kind, rng):
    m, C, tol = 40, 5.0, 1e-6
    H, b = programme(kind, m, rng)
    shares = rng.dirichlet(np.ones(m))
    for start in (C * shares, 0.3 * C * shares, C * np.eye(m)[3]):
        before = start.copy()
        assert_solved(H, b, C, solve_dual(H, b, C, start, tol), tol)
        np.testing.assert_array_equal(start, before)


def test_optimal_start_is_unchanged(rng):
    H, b = programme("sparse", 30, rng)
    first = solve_dual(H, b, 2.0, np.zeros(30), 1e-8)
    np.testing.assert_array_equal(solve_dual(H, b, 2.0, first, 1e-8), first)


@st.composite
def programmes(draw):
    m, r = draw(st.integers(1, 8)), draw(st.integers(1, 5))
    numbers = st.integers(-4, 4).map(float)
    rows = np.array(draw(st.lists(st.lists(numbers, min_size=r, max_size=r), min_size=m, max_size=m)))
    b = np.array(draw(st.lists(numbers, min_size=m, max_size=m)))
    start = np.array(draw(st.lists(st.integers(0, 3).map(float), min_size=m, max_size=m)))
    C = draw(st.sampled_from([0.01, 0.5, 1.0, 7.0, 300.0]))
    return rows @ rows.T, b, C, start * C / max(start.sum(), 1.0)


@settings(max_examples=200, derandomize=True)
@given(programmes())
def test_small_programs_with_ties(given_programme):
    H, b, C, start = given_programme
    tol = 1e-6 * C
    assert_solved(H, b, C, solve_dual(H, b, C, start, tol), tol)
