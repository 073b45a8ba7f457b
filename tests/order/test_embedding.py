"""Tests of partial order embedding: finite differences, brute force, a convex solver and known properties."""

import itertools

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from musicsim.metric.cone import Cone
from musicsim.order import LinearPartialOrderEmbedding, PartialOrderEmbedding, share_in_order
from musicsim.order.objective import Objective

STRUCTURES = ("full", "diagonal")
SOLVERS = ("accelerated", "subgradient")


def _kernels(n, seed, widths=(3, 4)):
    rng = np.random.default_rng(seed)
    return [(X := rng.standard_normal((n, w))) @ X.T for w in widths]


def _comparisons(n, m, seed):
    """Return comparisons of songs on a plane, a tenth of them wrong."""
    rng = np.random.default_rng(seed)
    places = rng.standard_normal((n, 2))
    drawn = rng.integers(n, size=(8 * m, 3))
    drawn = drawn[[len(set(row)) == 3 for row in drawn.tolist()]][:m]
    i, j, k = drawn.T
    near = np.linalg.norm(places[i] - places[j], axis=1) < np.linalg.norm(places[i] - places[k], axis=1)
    near ^= rng.random(len(near)) < 0.1
    j, k = np.where(near, j, k), np.where(near, k, j)
    return np.stack([i, j, i, k], axis=1)


def _value(kernels, Ws, comparisons, C):
    """Compute f in the coordinates of the papers, by a loop."""

    def d(i, j):
        return sum((K[i] - K[j]) @ W @ (K[i] - K[j]) for K, W in zip(kernels, Ws, strict=True))

    loss = np.mean([max(0.0, 1.0 + d(i, j) - d(k, m)) for i, j, k, m in comparisons])
    return sum(np.sum(W * K) for K, W in zip(kernels, Ws, strict=True)) + C * loss


def _optimum(kernels, comparisons, C, structure):
    """Return the optimum by a general solver."""
    n = len(kernels[0])
    Ws = [
        cp.Variable((n, n), PSD=True) if structure == "full" else cp.diag(cp.Variable(n, nonneg=True)) for _ in kernels
    ]

    def inner(i, j):
        return sum(cp.sum(cp.multiply(W, np.outer(K[i] - K[j], K[i] - K[j]))) for K, W in zip(kernels, Ws, strict=True))

    loss = sum(cp.pos(1 + inner(i, j) - inner(k, m)) for i, j, k, m in comparisons) / len(comparisons)
    penalty = sum(cp.sum(cp.multiply(W, K)) for K, W in zip(kernels, Ws, strict=True))
    problem = cp.Problem(cp.Minimize(penalty + C * loss))
    return problem.solve(solver=cp.CLARABEL)


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("C", [0.5, 20.0])
def test_objective_matches_general_solver(structure, C):
    kernels, comparisons = _kernels(7, 0), _comparisons(7, 25, 0)
    model = PartialOrderEmbedding(structure, C, tol=1e-4, max_iter=20_000).fit(kernels, comparisons)
    optimum = _optimum(kernels, comparisons, C, structure)
    # clarabel's own tolerance is 1e-8; the gap of the fit is 1e-4
    assert model.dual_bound_ <= optimum * (1 + 1e-6)
    assert model.objective_ == pytest.approx(optimum, rel=2e-4)


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_objective_matches_metrics_in_original_coordinates(structure, solver):
    kernels, comparisons = _kernels(12, 1), _comparisons(12, 60, 1)
    model = PartialOrderEmbedding(structure, 10.0, solver=solver, tol=0.05).fit(kernels, comparisons)
    # 1e-8: conversion to principal axes and back
    assert model.objective_ == pytest.approx(_value(kernels, model.metrics_, comparisons, 10.0), rel=1e-8)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_gradients_match_finite_differences(structure):
    rng = np.random.default_rng(2)
    songs, comparisons = rng.standard_normal((9, 5)), _comparisons(9, 40, 2)
    cone = Cone([2, 3], structure, rng.uniform(0.5, 2.0, 5))
    objective = Objective(songs, comparisons, cone, 3.0)
    W = cone.project(rng.standard_normal(cone.size))
    weights = objective.weight * (objective.margins(W) < 1.0)
    slope = cone.unit - objective.combine(weights)

    def linear(flat):  # f for a fixed set of violated comparisons, which is linear in W
        squares = np.zeros(len(comparisons))
        for column, block in zip((slice(0, 2), slice(2, 5)), cone.blocks(flat), strict=True):
            A = np.diag(block) if structure == "diagonal" else block
            for pair, sign in ((comparisons[:, :2], -1), (comparisons[:, 2:], 1)):
                D = (songs[pair[:, 0]] - songs[pair[:, 1]])[:, column]
                squares += sign * np.einsum("pi,ij,pj->p", D, A, D)
        return cone.unit @ flat + weights @ (1.0 - squares)

    assert objective.value(W, objective.margins(W)) == pytest.approx(linear(W.point), rel=1e-10)
    step = 1e-6
    for direction in np.eye(cone.size):
        difference = (linear(W.point + step * direction) - linear(W.point - step * direction)) / (2 * step)
        # f is linear here, so the error is the rounding of a difference of values of size 10, over 1e-6
        assert difference == pytest.approx(slope @ direction, abs=1e-7)


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("combination", ["concatenated", "sum"])
def test_transform_reproduces_training_embedding(structure, combination):
    kernels, comparisons = _kernels(15, 3), _comparisons(15, 80, 3)
    model = PartialOrderEmbedding(structure, 50.0, combination, tol=0.02).fit(kernels, comparisons)
    embedded = model.transform(kernels)
    given = [np.sum(kernels, axis=0)] if combination == "sum" else kernels
    assert np.allclose(embedded @ embedded.T, sum(K @ W @ K for K, W in zip(given, model.metrics_, strict=True)))
    for song in (0, 7):
        assert np.allclose(model.transform([K[song : song + 1] for K in kernels])[0], embedded[song])


def test_orders_new_songs_by_true_metric():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((80, 6)) * [3, 3, 1, 1, 1, 1]
    true = X[:, :2]  # four columns without information
    asked = np.array([rng.choice(60, 3, replace=False) for _ in range(600)])
    i, j, k = asked.T
    swap = np.linalg.norm(true[i] - true[j], axis=1) > np.linalg.norm(true[i] - true[k], axis=1)
    j, k = np.where(swap, k, j), np.where(swap, j, k)
    held_out = np.array([(a, b, a, c) for a in range(60, 80) for b, c in itertools.permutations(range(0, 60, 7), 2)])
    far = np.linalg.norm(true[held_out[:, 0]] - true[held_out[:, 3]], axis=1)
    held_out = held_out[np.linalg.norm(true[held_out[:, 0]] - true[held_out[:, 1]], axis=1) < far]
    native = share_in_order(X, held_out)
    learned = LinearPartialOrderEmbedding(C=1e3).fit(X, np.stack([i, j, i, k], axis=1)).score(X, held_out)
    kernel = PartialOrderEmbedding(C=1e3).fit(X[:60] @ X[:60].T, np.stack([i, j, i, k], axis=1))
    assert native < 0.92
    assert learned > 0.97
    # by the representer theorem, a linear kernel gives the linear metric
    assert kernel.score(X @ X[:60].T, held_out) == pytest.approx(learned, abs=0.01)


def test_noise_kernels_get_little_weight():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 3))
    comparisons = np.array([rng.choice(60, 3, replace=False) for _ in range(800)])
    i, j, k = comparisons.T
    swap = np.linalg.norm(X[i] - X[j], axis=1) > np.linalg.norm(X[i] - X[k], axis=1)
    j, k = np.where(swap, k, j), np.where(swap, j, k)
    noise = rng.standard_normal((3, 60, 3))
    noise /= np.linalg.norm(noise, axis=2, keepdims=True)
    kernels = [X @ X.T, *(N @ N.T for N in noise)]
    model = PartialOrderEmbedding(C=100.0).fit(kernels, np.stack([i, j, i, k], axis=1))
    assert model.kernel_weights_.sum() == pytest.approx(1.0)
    assert model.kernel_weights_[0] > 0.95


def test_identity_kernel_embeds_any_consistent_order():
    """With K = I, any partial order has an embedding (thesis 2.A)."""
    rng = np.random.default_rng(6)
    places = rng.standard_normal((20, 2))
    asked = rng.integers(20, size=(200, 4))
    asked = asked[(asked[:, 0] != asked[:, 1]) & (asked[:, 2] != asked[:, 3])]
    near, far = (np.linalg.norm(places[asked[:, a]] - places[asked[:, b]], axis=1) for a, b in ((0, 1), (2, 3)))
    comparisons = np.where((near < far)[:, None], asked, asked[:, [2, 3, 0, 1]])[near != far]
    model = PartialOrderEmbedding(C=1e5, tol=0.05).fit(np.eye(20), comparisons)
    assert model.score(np.eye(20), comparisons) == 1.0


@pytest.mark.parametrize("solver", SOLVERS)
def test_solvers_agree(solver):
    kernels, comparisons = _kernels(20, 7), _comparisons(20, 150, 7)
    best = PartialOrderEmbedding(C=10.0, tol=1e-4, max_iter=20_000).fit(kernels, comparisons).objective_
    model = PartialOrderEmbedding(C=10.0, solver=solver, tol=0.01, max_iter=20_000).fit(kernels, comparisons)
    assert best * (1 - 1e-4) <= model.objective_ <= best * 1.011
    assert model.dual_bound_ <= best


def test_tiny_c_gives_optimal_zero_metric():
    kernels, comparisons = _kernels(10, 8), _comparisons(10, 40, 8)
    model = PartialOrderEmbedding(C=1e-6).fit(kernels, comparisons)
    assert model.objective_ == model.dual_bound_ == pytest.approx(1e-6)
    assert not model.kernel_weights_.any()
    assert model.score(kernels, comparisons) == 0.0  # equal distances are not in order


def test_max_rank_keeps_widest_directions():
    kernels, comparisons = _kernels(40, 9, widths=(30,)), _comparisons(40, 200, 9)
    full = PartialOrderEmbedding(C=10.0).fit(kernels, comparisons)
    cut = PartialOrderEmbedding(C=10.0, max_rank=30).fit(kernels, comparisons)
    few = PartialOrderEmbedding(C=10.0, max_rank=5).fit(kernels, comparisons)
    assert cut.objective_ == pytest.approx(full.objective_, rel=2e-3)
    assert few.objective_ > full.objective_
    assert np.linalg.matrix_rank(few.metrics_[0]) <= 5


def test_callback_sees_every_step_and_stops_fit():
    seen = []
    kernels, comparisons = _kernels(20, 10), _comparisons(20, 100, 10)

    def callback(step):
        seen.append(step)
        return len(seen) == 4

    model = PartialOrderEmbedding(C=100.0).fit(kernels, comparisons, callback)
    assert [step["iteration"] for step in seen] == [1, 2, 3, 4] == [step["iteration"] for step in model.history_]
    assert model.n_iter_ == 4
    assert np.isfinite(model.transform(kernels)).all()


def test_warns_about_open_gap():
    kernels, comparisons = _kernels(20, 11), _comparisons(20, 100, 11)
    with pytest.warns(ConvergenceWarning, match="after 3 iterations"):
        PartialOrderEmbedding(C=100.0, max_iter=3).fit(kernels, comparisons)


def test_constant_kernel_is_ignored():
    kernels, comparisons = _kernels(12, 12), _comparisons(12, 60, 12)
    alone = PartialOrderEmbedding(C=10.0).fit(kernels, comparisons)
    model = PartialOrderEmbedding(C=10.0).fit([*kernels, np.ones((12, 12))], comparisons)
    assert model.objective_ == pytest.approx(alone.objective_, rel=1e-9)
    assert model.kernel_weights_[2] == 0.0
    assert model.components_[2].shape == (0, 12)


def test_clones_keep_parameters():
    model = PartialOrderEmbedding("diagonal", C=3.0, max_rank=4)
    assert clone(model).get_params() == model.get_params()
    assert clone(LinearPartialOrderEmbedding(C=2.0)).C == 2.0


@pytest.mark.parametrize(
    ("options", "kernels", "comparisons", "words"),
    [
        ({"C": 0.0}, np.eye(3), [(0, 1, 0, 2)], "C=0.0"),
        ({"structure": "round"}, np.eye(3), [(0, 1, 0, 2)], "structure='round'"),
        ({"solver": "newton"}, np.eye(3), [(0, 1, 0, 2)], "solver='newton'"),
        ({"max_iter": 0}, np.eye(3), [(0, 1, 0, 2)], "max_iter=0"),
        ({"max_rank": 0}, np.eye(3), [(0, 1, 0, 2)], "max_rank=0"),
        ({}, np.eye(3), [], "empty"),
        ({}, np.eye(3), [(0, 1, 0, 3)], "song 3"),
        ({}, np.eye(3)[:2], [(0, 1, 0, 2)], "square"),
        ({}, np.diag([1.0, 1.0, -1.0]), [(0, 1, 0, 2)], "positive semidefinite"),
        ({}, np.ones((3, 3)), [(0, 1, 0, 2)], "constant"),
        ({}, [np.eye(3), np.eye(4)], [(0, 1, 0, 2)], "for the same songs"),
        ({}, np.full((3, 3), np.nan), [(0, 1, 0, 2)], "NaN"),
    ],
)
def test_rejects_bad_arguments(options, kernels, comparisons, words):
    with pytest.raises(ValueError, match=words):
        PartialOrderEmbedding(**options).fit(kernels, comparisons)


def test_linear_metric_rejects_identical_rows():
    with pytest.raises(ValueError, match="are equal"):
        LinearPartialOrderEmbedding().fit(np.ones((4, 2)), [(0, 1, 0, 2)])


@pytest.mark.parametrize("structure", STRUCTURES)
def test_linear_metric_matches_its_components(structure):
    X = np.random.default_rng(13).standard_normal((30, 5))
    model = LinearPartialOrderEmbedding(structure, C=20.0).fit(X, _comparisons(30, 150, 13))
    assert np.allclose(model.components_.T @ model.components_, model.metric_)
    value = np.trace(model.metric_) + 20.0 * np.mean(
        [
            max(
                0.0, 1.0 + (X[i] - X[j]) @ model.metric_ @ (X[i] - X[j]) - (X[k] - X[m]) @ model.metric_ @ (X[k] - X[m])
            )
            for i, j, k, m in _comparisons(30, 150, 13)
        ]
    )
    assert model.objective_ == pytest.approx(value, rel=1e-8)


def test_share_in_order_counts_strict_order():
    assert share_in_order([[0.0], [1.0], [3.0]], [(0, 1, 0, 2), (0, 2, 0, 1), (0, 1, 1, 0)]) == pytest.approx(1 / 3)
    assert np.isnan(share_in_order([[0.0]], []))


@pytest.mark.parametrize("embedding", [[0.0, 1.0, 5.0], [[0.0], [np.nan], [1.0]], [[0.0], [np.inf], [1.0]]])
def test_share_in_order_rejects_bad_embedding(embedding):
    with pytest.raises(ValueError, match="embedding has shape"):
        share_in_order(embedding, [(0, 1, 0, 2)])


def test_rejects_empty_kernels_but_accepts_no_songs():
    kernels, comparisons = _kernels(10, 14), _comparisons(10, 40, 14)
    with pytest.raises(ValueError, match="kernels is empty"):
        PartialOrderEmbedding().fit([], comparisons)
    model = PartialOrderEmbedding(C=10.0).fit(kernels, comparisons)
    with pytest.raises(ValueError, match="kernels is empty"):
        model.transform([])
    alone = PartialOrderEmbedding(C=10.0).fit(kernels[0], comparisons)
    assert alone.transform(np.empty((0, 10))).shape == (0, len(alone.components_[0]))


def test_accepts_kernel_as_dataframe_or_lists():
    K, comparisons = _kernels(10, 15)[0], _comparisons(10, 40, 15)
    table = pd.DataFrame(K, columns=[f"song {i}" for i in range(10)])
    expected = PartialOrderEmbedding(C=10.0).fit([K], comparisons).transform([K])
    for given in (table, [table], K.tolist(), [K.tolist()]):
        assert np.array_equal(PartialOrderEmbedding(C=10.0).fit(given, comparisons).transform(given), expected)


@pytest.mark.parametrize("depth", [1e-3, 0.1, 1.0])
def test_rejects_indefinite_kernel_even_with_max_rank(depth):
    rng = np.random.default_rng(16)
    basis = np.linalg.qr(rng.standard_normal((200, 200)))[0]
    values = np.append(np.linspace(0.0, 1.0, 199) ** 4, -depth)
    K = (basis * values) @ basis.T
    with pytest.raises(ValueError, match="positive semidefinite"):
        PartialOrderEmbedding(max_rank=5).fit(K, _comparisons(200, 50, 16))
    PartialOrderEmbedding(max_rank=5).fit((basis[:, :199] * values[:199]) @ basis[:, :199].T, _comparisons(200, 50, 16))
