"""Tests of metrics of several kernels: against MLR for linear ones, and linear programs over all rankings."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from musicsim.metric import MLR, MultipleKernelMLR
from musicsim.metric.oracles import LOSSES
from musicsim.relevance import Relevance
from tests.metric import truth

EXACT = 1e-8  # kernels square the condition number of the songs


def fitted(kernels, y, **parameters):
    """Fit, and assert that the gap closes."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = MultipleKernelMLR(**parameters).fit(kernels, y)
    assert model.dual_bound_ <= model.objective_ * (1 + 1e-12)
    assert model.objective_ - model.dual_bound_ <= model.tol * model.objective_
    return model


def learned_distances(kernels, metrics):
    """Sum the distances of the columns over the kernels."""
    return sum(truth.squared_distances(K.T, W) for K, W in zip(kernels, metrics, strict=True))


def recomputed(model, kernels, y):
    """Compute the objective from the definition: <W, K> and a loop over the queries."""
    metrics = model.metrics_
    penalty = sum(np.sum(W * K) for W, K in zip(metrics, kernels, strict=True))
    hinge = truth.mean_hinge(learned_distances(kernels, metrics), y, model.loss, model.k)
    return penalty + model.C * hinge


def gaussian(X, width=1.0):
    return np.exp(-truth.squared_distances(X, np.eye(X.shape[1])) / (2 * width**2 * X.shape[1]))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", ["iris", "lists"])
def test_linear_kernel_matches_mlr(name, loss):
    # K_x = X x: W^k gives the distances of X^T W^k X, whose trace is <W^k, X X^T>
    X, y = truth.problem(name)
    K = X @ X.T
    mlr = MLR(loss, k=3, C=5.0).fit(X, y)
    model = fitted([K], y, loss=loss, k=3, C=5.0)
    assert model.objective_ == pytest.approx(mlr.objective_, rel=2e-3)
    assert model.objective_ >= mlr.dual_bound_ * (1 - EXACT)
    assert mlr.objective_ >= model.dual_bound_ * (1 - EXACT)
    assert recomputed(model, [K], y) == pytest.approx(model.objective_, rel=EXACT)
    # as a metric of the songs, it has the same objective, and nearly the same distances
    (W,) = model.metrics_
    of_songs = X.T @ W @ X
    assert truth.objective(X, y, of_songs, loss, 3, 5.0) == pytest.approx(model.objective_, rel=EXACT)


def test_weighted_linear_kernel_matches_weighted_mlr(rng):
    X, y = truth.problem("iris")
    weights = rng.integers(0, 4, len(X)).astype(float)
    of_kernel = MultipleKernelMLR(C=10.0, tol=1e-5).fit([X @ X.T], y, sample_weight=weights)
    of_songs = MLR(C=10.0, tol=1e-5).fit(X, y, sample_weight=weights)
    assert of_kernel.objective_ == pytest.approx(of_songs.objective_, rel=2e-5)
    assert of_kernel.n_queries_ == np.count_nonzero(weights)
    without = MultipleKernelMLR(C=10.0, tol=1e-5).fit([X @ X.T], y)
    assert abs(without.objective_ - of_kernel.objective_) > 1e-3 * without.objective_


def test_linear_kernel_gives_song_distances():
    X, y = truth.problem("iris")
    mlr = MLR("auc", C=2.0, tol=1e-6, max_cuts=1000).fit(X, y)
    model = fitted([X @ X.T], y, C=2.0, tol=1e-6, max_cuts=1000)
    Z, ours = model.transform([X @ X.T]), truth.squared_distances(X, mlr.metric_)
    distances = truth.squared_distances(Z, np.eye(Z.shape[1]))
    # an objective within tol determines the metric to its square root
    np.testing.assert_allclose(distances, ours, atol=2e-3 * ours.max())


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", [0, 1])
def test_diagonal_matches_optimum_over_all_rankings(loss, seed):
    X, y = truth.random_lists(6, 3, seed)
    kernels = [X @ X.T + np.eye(6), gaussian(X)]
    # one weight per training song and kernel, at the price of the diagonal of the kernel
    columns, price = np.hstack(kernels), np.concatenate([np.diag(K) for K in kernels])
    best = truth.optimum(columns, y, loss, 2, 10.0, "diagonal", price=price)
    model = fitted(kernels, y, loss=loss, k=2, C=10.0, structure="diagonal")
    assert model.dual_bound_ <= best * (1 + 1e-7)
    assert best <= model.objective_ * (1 + 1e-7)
    assert recomputed(model, kernels, y) == pytest.approx(model.objective_, rel=EXACT)
    for W in model.metrics_:
        np.testing.assert_array_equal(W, np.diag(np.diag(W)))


def test_full_metrics_match_optimum_over_all_rankings():
    # the kernels of two columns are MLR on both with a metric of two blocks, that is, a diagonal one
    X, y = truth.random_lists(6, 2, 0)
    for loss in LOSSES:
        best = truth.optimum(X, y, loss, 2, 30.0, "diagonal")
        model = fitted([np.outer(x, x) for x in X.T], y, loss=loss, k=2, C=30.0)
        assert model.dual_bound_ <= best * (1 + 1e-7)
        assert best <= model.objective_ * (1 + 1e-7)


@pytest.mark.parametrize("structure", ["full", "diagonal"])
@pytest.mark.parametrize("loss", ["auc", "ndcg"])
def test_two_kernel_objective_matches_loop(structure, loss):
    X, y = truth.problem("lists")
    kernels = [gaussian(X[:, :3]), X[:, 3:] @ X[:, 3:].T]
    model = fitted(kernels, y, loss=loss, C=1.0 if structure == "full" else 20.0, structure=structure)
    assert recomputed(model, kernels, y) == pytest.approx(model.objective_, rel=EXACT)


@pytest.mark.parametrize("solver", ["admm", "subgradient"])
def test_other_solvers_reach_same_objective(solver):
    X, y = truth.random_lists(15, 4)
    kernels = [X[:, :2] @ X[:, :2].T, X[:, 2:] @ X[:, 2:].T]
    bundle = fitted(kernels, y, C=3.0, tol=3e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the bound of subgradients closes slowly
        other = MultipleKernelMLR(C=3.0, solver=solver, max_cuts=40).fit(kernels, y)
    assert bundle.dual_bound_ <= other.objective_ <= bundle.objective_ * (1 + 1e-3)
    assert other.dual_bound_ <= bundle.objective_


@pytest.mark.parametrize("structure", ["full", "diagonal"])
def test_noise_kernel_gets_little_weight(structure, rng):
    X, y = truth.problem("iris")
    noise = rng.standard_normal((len(X), 4))
    kernels = [noise @ noise.T, X @ X.T]
    model = fitted(kernels, y, C=5.0, structure=structure)
    useless, useful = (np.sum(W * K) for W, K in zip(model.metrics_, kernels, strict=True))
    assert useful > 20 * useless
    # another kernel never makes the optimum worse
    assert model.dual_bound_ <= fitted(kernels[1:], y, C=5.0, structure=structure).objective_


def test_constant_kernel_is_ignored():
    X, y = truth.problem("iris")
    K, zero = X @ X.T, np.zeros((len(X), len(X)))
    alone, both = fitted([K], y, C=3.0), fitted([zero, K], y, C=3.0)
    assert both.components_[0].shape == (0, len(X))
    np.testing.assert_array_equal(both.components_[1], alone.components_[0])
    np.testing.assert_array_equal(both.transform([zero, K]), alone.transform([K]))


def test_kernel_order_and_duplication_do_not_matter():
    X, y = truth.random_lists(20, 4)
    first, second = X[:, :2] @ X[:, :2].T, X[:, 2:] @ X[:, 2:].T
    ahead, behind = fitted([first, second], y, C=4.0), fitted([second, first], y, C=4.0)
    assert ahead.objective_ >= behind.dual_bound_ * (1 - EXACT)
    assert behind.objective_ >= ahead.dual_bound_ * (1 - EXACT)
    # the same kernel twice has the same cost and result as once
    once, twice = fitted([first], y, C=4.0), fitted(np.stack([first, first]), y, C=4.0)
    assert once.objective_ >= twice.dual_bound_ * (1 - EXACT)
    assert twice.objective_ >= once.dual_bound_ * (1 - EXACT)


@pytest.mark.parametrize("structure", ["full", "diagonal"])
def test_transform_gives_learned_distances(structure, rng):
    X, y = truth.random_lists(20, 4)
    new = rng.standard_normal((7, 4))
    kernels = [X @ X.T, gaussian(X)]
    model = fitted(kernels, y, C=5.0, structure=structure)
    Z = model.transform(kernels)
    assert Z.shape == (20, sum(len(L) for L in model.components_))
    np.testing.assert_allclose(
        truth.squared_distances(Z, np.eye(Z.shape[1])), learned_distances(kernels, model.metrics_), atol=1e-10
    )
    # new songs next to old ones, by their similarities to the training songs
    everyone = np.vstack([X, new])
    to_training = [everyone @ X.T, gaussian(everyone)[:, :20]]
    Z = model.transform(to_training)
    np.testing.assert_allclose(Z[:20], model.transform(kernels), atol=1e-12)
    np.testing.assert_allclose(
        truth.squared_distances(Z, np.eye(Z.shape[1])),
        sum(truth.squared_distances(K, W) for K, W in zip(to_training, model.metrics_, strict=True)),
        atol=1e-10,
    )
    np.testing.assert_array_equal(clone(model).fit_transform(kernels, y), model.transform(kernels))


def test_rejects_all_constant_kernels():
    X, y = truth.problem("iris")
    with pytest.raises(ValueError, match="All kernels are constant"):
        MultipleKernelMLR().fit([np.full((len(X), len(X)), 0.3)], y)


def test_tiny_c_uses_no_kernel():
    X, y = truth.random_lists(12, 3)
    kernels = [X @ X.T, gaussian(X)]
    for structure in ("full", "diagonal"):
        with pytest.warns(UserWarning, match="raise C or scale the kernels"):
            model = fitted(kernels, y, C=1e-9, structure=structure)
        assert [len(L) for L in model.components_] == [0, 0]
        assert model.transform(kernels).shape == (12, 0)
        assert not any(W.any() for W in model.metrics_)


def test_follows_scikit_learn_conventions():
    model = MultipleKernelMLR("mrr", C=2.0, structure="diagonal", max_cuts=77)
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        model.transform([np.eye(3)])
    with pytest.raises(NotFittedError):
        _ = model.metrics_
    X, y = truth.random_lists(12, 3)
    kernels = [X @ X.T, gaussian(X)]
    assert model.fit(kernels, y) is model
    assert (model.n_kernels_in_, model.n_songs_in_) == (2, 12)
    again = clone(model).fit([K.tolist() for K in kernels], y)
    for first, second in zip(model.components_, again.components_, strict=True):
        np.testing.assert_array_equal(first, second)
    steps = []
    stopped = clone(model).fit(kernels, y, callback=lambda step: steps.append(step) or step["cut"] == 2)
    assert stopped.n_cuts_ == 2
    latest = [step.pop("components") for step in steps][-1]()
    assert stopped.history_ == steps
    for told, kept in zip(latest, stopped.components_, strict=True):
        np.testing.assert_array_equal(told, kept)
    with pytest.warns(ConvergenceWarning, match="relative gap"):
        clone(model).set_params(C=50.0, max_cuts=2).fit(kernels, y)


LABELS = [0, 0, 1, 1]
GIVEN_NAN = np.where(np.eye(4) > 0, np.nan, 0.0)
SKEWED = np.eye(4) + np.triu(np.ones((4, 4)))
INDEFINITE = np.eye(4) - 2 * np.diag([0, 0, 0, 1.0])
HIDDEN = np.ones((4, 4)) - np.eye(4) + 0.5 * np.eye(4)  # the diagonal is not negative, but eigenvalues are -1/2


@pytest.mark.parametrize("structure", ["full", "diagonal"])
@pytest.mark.parametrize(
    ("kernels", "y", "message"),
    [
        ([], LABELS, "kernels is empty"),
        (np.eye(4), LABELS, "sequence of matrices"),
        ([np.ones((4, 3))], LABELS, r"kernels\[0\] has shape \(4, 3\); it must be square"),
        ([np.eye(4), np.ones(4)], LABELS, r"kernels\[1\] has shape \(4,\)"),
        ([np.eye(4), GIVEN_NAN], LABELS, r"kernels\[1\] contains NaN"),
        ([SKEWED], LABELS, r"kernels\[0\] is not symmetric"),
        ([INDEFINITE], LABELS, "positive semidefinite"),
        ([HIDDEN], LABELS, "positive semidefinite"),
        ([np.eye(4), np.eye(3)], LABELS, r"kernels have sizes \[4, 3\]"),
        ([np.zeros((4, 4))], LABELS, "All kernels are constant"),
        ([np.ones((4, 4))], LABELS, "All kernels are constant"),
        ([np.empty((0, 0))], [], "kernel"),
        ([np.eye(4)], LABELS[:3], "y has 3 queries"),
        ([np.eye(4)], [0, 0, 0, 0], "no query has both"),
        ([np.eye(4)], Relevance.from_labels([0, 0, 1, 1]).restrict([0, 1]), "y has 2 queries"),
    ],
)
def test_rejects_unusable_kernels(kernels, y, message, structure):
    with pytest.raises(ValueError, match=message):
        MultipleKernelMLR(structure=structure).fit(kernels, y)


@pytest.mark.parametrize(
    "wrong",
    [{"loss": "ap"}, {"structure": "block"}, {"solver": "sgd"}, {"k": 0}, {"admm_steps": 0}, {"max_cuts": 0},
     {"C": 0.0}, {"C": np.nan}, {"tol": -1.0}],
    ids=str,
)  # fmt: skip
def test_rejects_bad_parameters(wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=f"^{name}="):
        MultipleKernelMLR(**wrong).fit([np.eye(4)], LABELS)


@pytest.mark.parametrize(
    ("kernels", "message"),
    [
        ([np.ones((5, 4))], "kernels contains 1 matrices, but the model was fitted on 2"),
        ([np.ones((5, 4))] * 3, "kernels contains 3"),
        ([np.ones((5, 4)), np.ones((5, 3))], r"kernels\[1\] has shape \(5, 3\)"),
        ([np.ones((5, 4)), np.ones((6, 4))], r"kernels\[1\] has shape \(6, 4\)"),
        ([np.ones((5, 4)), np.full((5, 4), np.inf)], r"kernels\[1\] contains NaN or infinite"),
        (np.ones((5, 4)), "sequence of matrices"),
        ([], "kernels is empty"),
    ],
)
def test_rejects_mismatched_new_songs(kernels, message):
    model = MultipleKernelMLR(C=5.0).fit([np.eye(4), 2 * np.eye(4) + 1], LABELS)
    with pytest.raises(ValueError, match=message):
        model.transform(kernels)
