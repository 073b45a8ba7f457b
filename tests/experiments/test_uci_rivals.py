"""The rivals of the UCI table, against general convex programmes on small sets; parts that are kept."""

import cvxpy
import numpy as np
import pytest
from scipy.optimize import approx_fprime

from benchmarks.support.parts import kept_parts
from benchmarks.support.report import Settings
from experiments.support.uci import knn_errors
from experiments.support.uci_rivals import collapse_classes, collapsing_loss, rank_by_support_vectors
from experiments.uci import spectral_dimensions
from musicsim.evaluation.ranking import distance_scores
from musicsim.relevance import Relevance
from tests.metric.programmes import slow_programme
from tests.metric.truth import as_sets


def overlapping(seed, n=8, d=2):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.normal(size=(n, d)) + 0.5 * y[:, None], y


def test_collapsing_gradient_matches_finite_differences():
    X, y = overlapping(0)
    A = np.random.default_rng(1).normal(size=(2, 2))
    W = A @ A.T
    numeric = approx_fprime(W.ravel(), lambda flat: collapsing_loss(flat.reshape(2, 2), X, y)[0], 1e-7)
    numeric = numeric.reshape(2, 2)
    np.testing.assert_allclose(collapsing_loss(W, X, y)[1], 0.5 * (numeric + numeric.T), atol=1e-6)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_collapsing_reaches_optimum_of_general_solver(seed):
    X, y = overlapping(seed)
    W = cvxpy.Variable((2, 2), PSD=True)
    losses = []
    for i in range(len(X)):
        D = {j: cvxpy.trace(W @ np.outer(X[i] - X[j], X[i] - X[j])) for j in range(len(X)) if j != i}
        mates = [D[j] for j in D if y[j] == y[i]]
        losses.append(sum(mates) / len(mates) + cvxpy.log_sum_exp(-cvxpy.hstack(list(D.values()))))
    optimum = cvxpy.Problem(cvxpy.Minimize(sum(losses) / len(X))).solve(solver="CLARABEL")
    L, loss = collapse_classes(X, y, tol=1e-9, max_iter=3000)
    assert loss == pytest.approx(optimum, abs=1e-5)
    assert collapsing_loss(L.T @ L, X, y)[0] == pytest.approx(loss)


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1])
def test_support_vectors_minimize_regularized_loss(seed):
    X, y = overlapping(seed, n=6, d=1)

    def objective(w):
        D = w * (X - X.T) ** 2
        hinges = [
            slow_programme("map", -D[q, relevant + irrelevant], len(relevant), 10)
            for q, (relevant, irrelevant) in enumerate(zip(*as_sets(y), strict=True))
        ]
        return 0.5 * w**2 + 10.0 * np.mean(hinges)

    weights, gap = rank_by_support_vectors(X, y, 10.0, tol=1e-6)
    assert gap <= 1e-6
    grid = np.linspace(-5.0, 5.0, 2001)
    least = min(objective(w) for w in grid)
    assert objective(weights[0]) == pytest.approx(least, rel=1e-3)


def test_negative_weights_prefer_far_rows():
    X, y = np.array([[0.0], [1.0], [5.0]]), np.array([0, 1, 2])
    assert knn_errors(X, y, np.zeros((1, 1)), np.array([2]), (1,), weights=np.array([-1.0])).tolist() == [0]
    assert knn_errors(X, y, np.zeros((1, 1)), np.array([0]), (1,), weights=np.array([1.0])).tolist() == [0]


def test_support_vectors_find_informative_column():
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = np.c_[y + 0.1 * rng.normal(size=40), rng.normal(size=(40, 3))]
    weights, _ = rank_by_support_vectors(X, y, 100.0)
    D = np.einsum("ijk,k->ij", (X[:, None] - X[None]) ** 2, weights)
    assert np.nanmean(distance_scores(D, Relevance.from_labels(y))["map"]) > 0.99


def test_dimensions_cover_95_percent_of_spectrum():
    assert spectral_dimensions(np.diag(np.sqrt([90.0, 4.0, 3.0, 3.0]))) == 3
    assert spectral_dimensions(np.eye(4)) == 4
    assert spectral_dimensions(np.empty((0, 3))) == 0
    assert np.isnan(spectral_dimensions(np.ones(4)))


def test_stored_part_is_not_measured_again(tmp_path):
    log = tmp_path / "calls"

    def measure(number):
        with log.open("a") as file:
            file.write(f"{number}\n")
        return np.full(2, number)

    for resume in (True, False, True):
        kept = kept_parts("name", Settings(resume=resume), tmp_path).cache(measure)
        assert [kept(number).tolist() for number in (1, 2)] == [[1, 1], [2, 2]]
    assert log.read_text().split() == ["1", "2", "1", "2"]
