"""Tests of penalties of a metric against numerical minimizers, and of the scale that makes a lower bound valid."""

import numpy as np
import pytest
from scipy import optimize

from musicsim.metric.cone import Cone, RowNorms, Trace


def row_norms(W):
    return np.linalg.norm(W, axis=1).sum()


def random_symmetric(d, rng):
    A = rng.standard_normal((d, d))
    return 0.5 * (A + A.T)


def random_metrics(d, n, rng):
    """Return metrics of every rank, and some that are nearly one axis."""
    for _ in range(n):
        L = rng.standard_normal((rng.integers(1, d + 1), d)) * rng.choice([1.0, 0.05, 0.0], d, p=[0.5, 0.3, 0.2])
        yield (L.T @ L).ravel()


@pytest.mark.parametrize("t", [0.05, 0.7, 2.0])
def test_row_shrinkage_matches_numerical_minimum(t, rng):
    d, W = 3, rng.standard_normal((3, 3)) * np.array([[2.0], [1.0], [0.2]])
    penalty = RowNorms(Cone([d], "full"))

    def value(V):
        return t * row_norms(V) + 0.5 * np.sum((V - W) ** 2)

    def smoothed(flat):
        V = flat.reshape(d, d)
        norms = np.sqrt(np.sum(V * V, axis=1) + 1e-12)
        return t * norms.sum() + 0.5 * np.sum((V - W) ** 2), (t * V / norms[:, None] + V - W).ravel()

    numerical = optimize.minimize(smoothed, W.ravel(), jac=True, method="BFGS", options={"gtol": 1e-10})
    found = penalty.shrink(W.ravel(), t).reshape(d, d)
    # smoothing costs t sqrt(1e-12) per row
    assert value(found) <= value(numerical.x.reshape(d, d)) + 1e-12
    assert value(found) == pytest.approx(value(numerical.x.reshape(d, d)), abs=1e-5)
    np.testing.assert_allclose(found, numerical.x.reshape(d, d), atol=1e-4)


def test_shrinkage_satisfies_optimality_condition(rng):
    # V = W - t G with G feasible and <G, V> the penalty of V: the condition of the minimum
    penalty = RowNorms(Cone([4], "full"))
    for t in (0.1, 1.0, 3.0):
        W = rng.standard_normal(16)
        V = penalty.shrink(W, t)
        G = (W - V) / t
        assert np.linalg.norm(G.reshape(4, 4), axis=1).max() <= 1 + 1e-12
        assert pytest.approx(penalty.value(V), abs=1e-12) == G @ V
    assert not penalty.shrink(np.zeros(16), 1.0).any()


def test_trace_shrinks_by_its_gradient(rng):
    weights = np.array([0.5, 1.0, 4.0])
    penalty, W = Trace(Cone([3], "full", weights)), random_symmetric(3, rng).ravel()
    assert penalty.value(W) == pytest.approx(np.diag(W.reshape(3, 3)) @ weights, rel=1e-14)
    V = penalty.shrink(W, 0.3)
    for _ in range(50):
        other = V + rng.standard_normal(9)
        values = [0.3 * penalty.value(U) + 0.5 * np.sum((U - W) ** 2) for U in (V, other)]
        assert values[0] < values[1]


def test_row_norm_gradient_is_correct(rng):
    penalty = RowNorms(Cone([4], "full"))
    L = rng.standard_normal((4, 4))
    W = L.T @ L
    assert penalty.value(W.ravel()) == pytest.approx(row_norms(W), rel=1e-14)
    gradient = penalty.gradient(W.ravel()).reshape(4, 4)
    np.testing.assert_array_equal(gradient, gradient.T)
    for _ in range(10):
        step = random_symmetric(4, rng)
        slope = (row_norms(W + 1e-6 * step) - row_norms(W - 1e-6 * step)) / 2e-6
        assert np.sum(gradient * step) == pytest.approx(slope, abs=1e-7)  # central differences of 1e-6
    # without a gradient, one of the subgradients: no metric is below it
    W[1] = W[:, 1] = 0.0
    gradient = penalty.gradient(W.ravel())
    for V in random_metrics(4, 100, rng):
        assert penalty.value(V) >= penalty.value(W.ravel()) + gradient @ (V - W.ravel()) - 1e-12


def test_slope_projection_is_nearest_feasible_point(rng):
    penalty = RowNorms(Cone([4], "full"))
    for scale in (0.2, 1.0, 5.0):
        G = scale * rng.standard_normal(16)
        nearest = penalty.project_slope(G)
        assert np.linalg.norm(nearest.reshape(4, 4), axis=1).max() <= 1 + 1e-14
        np.testing.assert_allclose(penalty.project_slope(nearest), nearest, rtol=1e-14)
        for _ in range(100):
            other = rng.standard_normal((4, 4))
            other *= rng.random((4, 1)) / np.linalg.norm(other, axis=1, keepdims=True)
            # the angle of a projection on a convex set is never acute
            assert (G - nearest) @ (other.ravel() - nearest) <= 1e-12
    trace = Trace(Cone([4], "full"))
    np.testing.assert_array_equal(trace.project_slope(G), np.eye(4).ravel())


def penalties(d):
    weights = np.linspace(0.2, 3.0, d)
    return {
        "trace": Trace(Cone([d], "full")),
        "weighted trace": Trace(Cone([d], "full", weights)),
        "blocks": Trace(Cone([2, d - 2], "full", weights)),
        "row norms": RowNorms(Cone([d], "full")),
    }


@pytest.mark.parametrize("kind", ["trace", "weighted trace", "blocks", "row norms"])
@pytest.mark.parametrize("shift", [-4.0, 0.0, 4.0])
def test_dual_scale_bounds_all_metrics(kind, shift, rng):
    d = 5
    penalty = penalties(d)[kind]
    widths = penalty.cone.widths if kind != "row norms" else (d,)
    A = np.concatenate([(random_symmetric(w, rng) + shift * np.eye(w)).ravel() for w in widths])
    multipliers = [None, *random_metrics(d, 3, rng)] if kind == "row norms" else [None]
    for P in multipliers:
        t = penalty.dual_scale(A, P)
        for scale in (1.0, 1e-3):
            for _ in range(300):
                W = scale * np.concatenate([next(random_metrics(w, 1, rng)) for w in widths])
                assert t * penalty.value(W) + 1e-12 * scale >= A @ W


def test_multiplier_reduces_dual_scale_of_row_norms(rng):
    # of a plane that pulls in one direction and pushes in the other, only the pull counts
    penalty, A = RowNorms(Cone([2], "full")), np.diag([1.0, -9.0]).ravel()
    assert penalty.dual_scale(A, np.zeros(4)) == 9.0
    assert penalty.dual_scale(A, None) == 1.0
    assert penalty.dual_scale(A, np.diag([0.0, 9.0]).ravel()) == 1.0
    assert penalty.dual_scale(A, np.diag([50.0, 0.0]).ravel()) == 9.0


def test_dual_scale_of_trace_is_tight():
    A = np.array([[2.0, 1.0], [1.0, 2.0]])
    penalty, W = Trace(Cone([2], "full")), np.ones(4)
    assert penalty.dual_scale(A.ravel(), None) == pytest.approx(3.0, rel=1e-14)
    assert A.ravel() @ W == pytest.approx(3.0 * penalty.value(W), rel=1e-14)
