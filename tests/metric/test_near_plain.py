"""Tests of metric learning to rank near the plain metric: closed forms, a general solver, and the certificate."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from musicsim.evaluation import query_scores
from musicsim.metric import MLR
from musicsim.metric.oracles import LOSSES
from musicsim.relevance import Relevance
from tests.metric import truth
from tests.metric.test_mlr import EXACT, LOST, both_optimal, fitted, one_query, recomputed


def fitted_near(X, y, **parameters):
    return fitted(X, y, regularizer="plain", **parameters)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("structure", ["full", "diagonal"])
@pytest.mark.parametrize("solver", ["bundle", "admm", "subgradient"])
def test_one_wrong_ranking_matches_closed_form(loss, structure, solver):
    # minimize 1/2 ||W / c - I||^2 + C (lost - <W, Psi>), where Psi = 2 (near near^T - far far^T) = diag(-18, 0.5). The
    # query stays wrong, so W is c (I + C c Psi) without its negative part.
    X, y = one_query([3.0, 0.0], [0.0, 0.5])
    c = 1 / truth.squared_distances(X, np.eye(2)).mean()  # a larger plain metric is more wrong
    for C in (0.01, 0.1, 1.0):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the bound of subgradients closes slowly
            mlr = MLR(loss, k=1, C=C, structure=structure, regularizer="plain", solver=solver, tol=1e-6).fit(X, y)
        expected = c * np.diag([max(0.0, 1 - 18 * C * c), 1 + 0.5 * C * c])
        least = truth.penalty(expected, "plain", c) + C * (LOST[loss] - np.diag(expected) @ [-18, 0.5])
        assert mlr.dual_bound_ <= least * (1 + EXACT)
        assert mlr.objective_ == pytest.approx(least, rel=1e-6)
        # the objective grows with half the squared distance in units of c
        np.testing.assert_allclose(mlr.metric_, expected, atol=c * np.sqrt(2e-6 * least))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("structure", ["full", "diagonal"])
@pytest.mark.parametrize("C", [0.3, 20.0])
def test_matches_general_solver_over_all_rankings(loss, structure, C):
    X, y = truth.random_lists(6, 2, 3)
    best = truth.optimum_near_plain(X, y, loss, 2, C, structure)
    mlr = fitted_near(X, y, loss=loss, k=2, C=C, structure=structure, tol=1e-5)
    # the general solver meets its constraints to about 1e-9
    assert mlr.dual_bound_ <= best * (1 + 1e-6)
    assert mlr.objective_ == pytest.approx(best, rel=2e-5)
    assert recomputed(mlr, X, y) == pytest.approx(mlr.objective_, rel=EXACT)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    loss=st.sampled_from(LOSSES),
    structure=st.sampled_from(["full", "diagonal"]),
    C=st.floats(-3, 4).map(lambda power: 10.0**power),
)
def test_no_metric_is_below_certificate(seed, loss, structure, C):
    rng = np.random.default_rng(seed)
    X, y = truth.random_lists(12, 3, seed)
    mlr = fitted_near(X, y, loss=loss, k=3, C=C, structure=structure)
    assert recomputed(mlr, X, y) == pytest.approx(mlr.objective_, rel=EXACT)
    c = truth.plain_weight(X, y, loss, 3)
    assert np.linalg.eigvalsh(mlr.metric_).min() >= -1e-12 * c
    for L in (np.eye(3), np.zeros((3, 3)), *rng.standard_normal((5, 3, 3))):
        W = c * L.T @ L if structure == "full" else np.diag(np.diag(c * L.T @ L))
        for other in (W, mlr.metric_ + 0.01 * W):
            assert truth.objective(X, y, other, loss, 3, C, "plain") >= mlr.dual_bound_ * (1 - EXACT)


@pytest.mark.parametrize("structure", ["full", "diagonal"])
def test_small_c_keeps_plain_metric_and_its_rankings(structure):
    X, y = truth.problem("wine")
    plain = query_scores(X, X, Relevance.from_labels(y))["map"]
    c = truth.plain_weight(X, y)
    slack = truth.mean_hinge(c * truth.squared_distances(X, np.eye(X.shape[1])), y, "auc", 10)
    for C in (1e-9, 1e-3, 1.0):
        mlr = fitted_near(X, y, C=C, structure=structure)
        # the plain metric has the objective C slack, so no better one has a larger penalty
        assert truth.penalty(mlr.metric_, "plain", c) <= C * slack
    tiny = fitted_near(X, y, C=1e-9, structure=structure)
    Y = tiny.transform(X)
    np.testing.assert_array_equal(query_scores(Y, Y, Relevance.from_labels(y))["map"], plain)
    np.testing.assert_allclose(tiny.metric_, c * np.eye(X.shape[1]), atol=1e-4 * c)


def test_labels_without_meaning_do_less_harm_than_with_trace():
    rng = np.random.default_rng(1)
    centers = 2 * rng.standard_normal((10, 20))
    X = np.repeat(centers, 8, axis=0) + rng.standard_normal((80, 20))
    truly, wrongly = np.repeat(np.arange(10), 8), rng.permutation(np.repeat(np.arange(10), 8))
    judge = Relevance.from_labels(truly)
    before = query_scores(X, X, judge)["map"].mean()
    near, trace = (
        query_scores(Y, Y, judge)["map"].mean()
        for Y in (MLR(C=10.0, regularizer=kind, tol=1e-2).fit_transform(X, wrongly) for kind in ("plain", "trace"))
    )
    assert trace < before - 0.2  # 0.9 before
    assert near > before - 0.02


@pytest.mark.parametrize("structure", ["full", "diagonal"])
def test_scale_and_shift_of_songs_do_not_matter(structure, rng):
    # unlike with the trace, the same C is right at every scale
    X, y = truth.random_lists(24, 3)
    first = fitted_near(X, y, loss="mrr", C=6.0, structure=structure)
    for s in (1e-3, 30.0):
        other = fitted_near(s * X + s * np.array([5.0, -5.0, 0.0]), y, loss="mrr", C=6.0, structure=structure)
        both_optimal(first, other)
        assert np.trace(other.metric_) == pytest.approx(np.trace(first.metric_) / s**2, rel=1e-2)
    rows = rng.permutation(24)
    both_optimal(first, fitted_near(X[rows], y.restrict(rows, rows), loss="mrr", C=6.0, structure=structure))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", ["iris", "lists"])
def test_solvers_agree(name, loss):
    X, y = truth.problem(name)
    first = fitted_near(X, y, loss=loss, k=3, C=50.0)
    both_optimal(fitted_near(X, y, loss=loss, k=3, C=50.0, solver="admm"), first)
    assert recomputed(first, X, y) == pytest.approx(first.objective_, rel=EXACT)


def test_path_matches_separate_fits():
    X, y = truth.random_lists(24, 3)
    Cs = [1e-6, 2.0, 300.0, 30.0]
    for each in MLR("map", regularizer="plain").fit_path(X, y, Cs):
        both_optimal(each, fitted(X, y, **each.get_params()))


def test_sampled_queries_have_valid_bound():
    X, y = truth.problem("wine")
    full = fitted_near(X, y, C=20.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the bound of samples is loose
        sampled = MLR(C=20.0, regularizer="plain", n_queries=20, max_cuts=40, random_state=0).fit(X, y)
    # both may have another multiple of the plain metric, so only its own bound holds
    assert sampled.dual_bound_ <= sampled.objective_
    assert sampled.n_cuts_ == 40
    plain, near = (query_scores(Y, Y, Relevance.from_labels(y))["auc"].mean() for Y in (X, sampled.transform(X)))
    assert near > plain
    assert full.n_cuts_ < 40


def test_songs_in_perfect_order_keep_plain_metric():
    X, y = np.repeat(np.eye(3), 4, axis=0) + 1e-3 * np.random.default_rng(0).random((12, 3)), np.repeat(range(3), 4)
    mlr = fitted_near(X, y, C=100.0)
    assert mlr.objective_ == mlr.dual_bound_ == 0.0
    np.testing.assert_allclose(mlr.metric_, truth.plain_weight(X, y) * np.eye(3), rtol=1e-12, atol=1e-15)


def test_warns_that_large_c_gives_zero_metric():
    X, y = one_query([3.0], [1.0])  # any metric ranks the irrelevant song first
    with pytest.warns(UserWarning, match="best metric is 0.* C=1000 is probably too large: lower C"):
        MLR(C=1e3, regularizer="plain").fit(X, y)


@pytest.mark.parametrize("constant", [0.0, 1e6])
def test_constant_column_keeps_weight_of_plain_metric(constant):
    X, y = truth.problem("iris")
    for structure in ("full", "diagonal"):
        first = fitted_near(X, y, C=5.0, structure=structure)
        second = fitted_near(np.insert(X, 2, constant, axis=1), y, C=5.0, structure=structure)
        both_optimal(first, second)
        assert second.metric_[2, 2] == pytest.approx(truth.plain_weight(X, y), rel=1e-6)
