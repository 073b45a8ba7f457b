"""UCI sets, the error of nearest neighbors on them, and the rivals of the table against general solvers."""

import cvxpy
import numba
import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.neighbors import KNeighborsClassifier

from benchmarks.support.parts import kept_parts
from benchmarks.support.report import Settings
from experiments.support.uci import SETS, knn_errors, load_isolet, one_core_each
from experiments.support.uci_rivals import collapse_classes, collapsing_loss, rank_by_support_vectors
from experiments.uci import spectral_dimensions
from musicsim.evaluation.ranking import distance_scores
from musicsim.relevance import Relevance
from tests.metric.programmes import slow_programme
from tests.metric.truth import as_sets
from tests.shared import needs_data

# --- uci -------------------------------------------------------------------------------------------------


needs_uci = needs_data("uci")


@needs_uci
@pytest.mark.parametrize(
    ("name", "d", "counts"),
    [
        ("Balance", 4, [49, 288, 288]),
        ("Ionosphere", 34, [126, 225]),
        ("WDBC", 30, [357, 212]),
        ("Wine", 13, [59, 71, 48]),
    ],
)
def test_data_sets_have_published_sizes(name, d, counts):
    X, y = SETS[name]()
    assert X.shape == (sum(counts), d)
    assert np.bincount(y).tolist() == counts
    assert np.isfinite(X).all()


@pytest.mark.parametrize(("name", "load"), [("WDBC", load_breast_cancer), ("Wine", load_wine)])
def test_data_sets_of_scikit_learn_need_no_file(name, load, no_data):
    X, y = SETS[name]()
    truth, labels = load(return_X_y=True)
    assert np.array_equal(X, truth)
    # B, M are 0, 1 here and 1, 0 there
    assert np.array_equal(y, 1 - labels if name == "WDBC" else labels)


@needs_uci
def test_isolet_parts_share_no_row():
    X, y, X_test, y_test = load_isolet()
    assert X.shape == (1560, 617)
    assert X_test.shape == (1559, 617)
    assert set(y) == set(y_test) == set(range(1, 27))
    assert not {row.tobytes() for row in X} & {row.tobytes() for row in X_test}
    # the figure that came with the data, 18.6 % for 3 neighbors, is of votes as scikit-learn counts them
    assert 1 - KNeighborsClassifier(3).fit(X, y).score(X_test, y_test) == pytest.approx(0.186, abs=5e-4)


def test_isolet_of_openml_has_rows_of_thesis(shared, monkeypatch):
    monkeypatch.setattr("experiments.support.uci.load", lambda name: (np.arange(7797.0)[:, None], np.arange(7797)))
    X, y, X_test, y_test = load_isolet()
    assert (len(X), len(X_test)) == (6238, 1559)
    assert np.array_equal(np.r_[X[:, 0], X_test[:, 0]], np.r_[y, y_test])


def test_class_column_is_separated_from_features(shared):
    (shared / "uci").mkdir()
    (shared / "uci" / "ionosphere.data").write_text("1,2,g\n3,4,b\n")
    X, y = SETS["Ionosphere"]()
    assert X.tolist() == [[1, 2], [3, 4]]
    assert y.tolist() == [1, 0]


def test_errors_match_scikit_learn_without_ties(rng):
    y, y_test = rng.integers(2, size=80), rng.integers(2, size=60)
    X, X_test = rng.normal(size=(80, 3)) + y[:, None], rng.normal(size=(60, 3)) + y_test[:, None]
    ks = (1, 3, 5, 9)  # odd, two classes: no ties
    truth = [1 - KNeighborsClassifier(k).fit(X, y).score(X_test, y_test) for k in ks]
    np.testing.assert_allclose(knn_errors(X, y, X_test, y_test, ks), truth, atol=1e-12)


def test_tied_vote_goes_to_nearest_row():
    X = np.array([[1.0], [2.0], [3.0], [4.0]])
    y = np.array([2, 0, 0, 2])
    origin = np.zeros((1, 1))
    # 2 is nearest; then one vote each; then two against one; then two each
    assert knn_errors(X, y, origin, np.array([2]), (1, 2, 3, 4)).tolist() == [0, 0, 1, 0]


# --- uci rivals ------------------------------------------------------------------------------------------


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


def test_pool_has_single_threaded_processes():
    with one_core_each() as pool:
        assert pool.submit(numba.get_num_threads).result() == 1
