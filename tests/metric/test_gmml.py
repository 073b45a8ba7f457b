"""Tests of geometric means against identities and a general root, and of the metric against its equation and loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg, sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier

from musicsim.metric import GMML, geometric_mean
from musicsim.metric.scatter import (
    label_scatters,
    pair_scatter,
    relevance_scatters,
    sample_pairs,
    scatter_across,
    scatter_within,
)
from musicsim.relevance import Relevance
from tests.metric import truth

# condition numbers of up to 1e4 lose as many of 16 digits
CLOSE = {"rtol": 1e-9, "atol": 1e-10}


def definite(rng, d, condition=1e4):
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return (Q * np.logspace(0, np.log10(condition), d) / np.sqrt(condition)) @ Q.T


matrices = st.builds(
    lambda seed, d: tuple(definite(np.random.default_rng([seed, part]), d) for part in (0, 1)),
    st.integers(0, 10_000),
    st.integers(1, 8),
)
shares = st.floats(0, 1)


# --- the mean ----------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(matrices, shares)
def test_geometric_mean_is_symmetric_in_t(pair, t):
    A, B = pair
    np.testing.assert_allclose(geometric_mean(A, B, t), geometric_mean(B, A, 1 - t), **CLOSE)


@settings(max_examples=40)
@given(matrices, shares)
def test_geometric_mean_of_equal_matrices_and_endpoints(pair, t):
    A, B = pair
    np.testing.assert_allclose(geometric_mean(A, A, t), A, **CLOSE)
    np.testing.assert_allclose(geometric_mean(A, B, 0.0), A, **CLOSE)
    np.testing.assert_allclose(geometric_mean(A, B, 1.0), B, **CLOSE)
    # continuous: the difference is t times the logarithms of the eigenvalues, which are up to 9
    np.testing.assert_allclose(geometric_mean(A, B, 1e-9), A, rtol=1e-6, atol=1e-5)


@settings(max_examples=40)
@given(matrices, shares, st.integers(0, 1000))
def test_geometric_mean_is_congruence_invariant(pair, t, seed):
    A, B = pair
    d = len(A)
    C = np.eye(d) + 0.5 * np.random.default_rng(seed).standard_normal((d, d)) / np.sqrt(d)
    moved = geometric_mean(C @ A @ C.T, C @ B @ C.T, t)
    np.testing.assert_allclose(moved, C @ geometric_mean(A, B, t) @ C.T, rtol=1e-7, atol=1e-8)


@settings(max_examples=40)
@given(matrices)
def test_geometric_mean_solves_riccati_equation(pair):
    A, B = pair
    G = geometric_mean(A, B)
    np.testing.assert_allclose(G @ np.linalg.solve(A, G), B, rtol=1e-7, atol=1e-8)
    inverse = geometric_mean(np.linalg.inv(A), np.linalg.inv(B))
    np.testing.assert_allclose(inverse @ G, np.eye(len(A)), atol=1e-7)
    assert np.linalg.slogdet(G)[1] == pytest.approx((np.linalg.slogdet(A)[1] + np.linalg.slogdet(B)[1]) / 2, abs=1e-7)


@settings(max_examples=20)
@given(matrices)
def test_geometric_mean_matches_matrix_square_roots(pair):
    A, B = pair
    root = linalg.sqrtm(A)
    inverse = np.linalg.inv(root)
    naive = root @ linalg.sqrtm(inverse @ B @ inverse) @ root
    np.testing.assert_allclose(geometric_mean(A, B), naive.real, rtol=1e-7, atol=1e-8)


def test_diagonals_and_scalars_match_closed_form():
    a, b = np.array([1.0, 4.0, 9.0]), np.array([16.0, 1.0, 0.25])
    np.testing.assert_allclose(geometric_mean(np.diag(a), np.diag(b), 0.3), np.diag(a**0.7 * b**0.3), atol=1e-12)
    np.testing.assert_allclose(geometric_mean([[2.0]], [[8.0]]), [[4.0]])


@pytest.mark.parametrize(
    ("A", "B", "message"),
    [
        (np.zeros((2, 2)), np.eye(2), "A is not positive definite"),
        (np.eye(2), np.diag([1.0, -1.0]), "B is not positive definite"),
        (np.eye(2), np.diag([1.0, 1e-17]), "B is not positive definite"),
        (np.ones((3, 3)), np.eye(3), "A is not positive definite"),
        (np.array([[1.0, 0.5], [0.0, 1.0]]), np.eye(2), "A is not symmetric"),
        (np.eye(2), np.eye(3), "shapes"),
        (np.ones((2, 3)), np.eye(2), r"A has shape \(2, 3\)"),
        (np.full((2, 2), np.nan), np.eye(2), "A contains NaN"),
    ],
)
def test_geometric_mean_rejects_bad_matrices(A, B, message):
    with pytest.raises(ValueError, match=message):
        geometric_mean(A, B)


@pytest.mark.parametrize("t", [-0.1, 1.1, np.nan, "half"])
def test_rejects_t_out_of_range(t):
    with pytest.raises(ValueError, match="t="):
        geometric_mean(np.eye(2), np.eye(2), t)


# --- scatters ----------------------------------------------------------------------------------------------------


def looped(X, y):
    """Sum over pairs, from the sets of every query that has both."""
    totals, counts = np.zeros((2, X.shape[1], X.shape[1])), [0, 0]
    relevance = y if isinstance(y, Relevance) else Relevance.from_labels(y)
    for i in range(len(X)):
        sets = relevance.relevant(i), relevance.irrelevant(i)
        if len(sets[0]) and len(sets[1]):
            for kind, rows in enumerate(sets):
                totals[kind] += (X[i] - X[rows]).T @ (X[i] - X[rows])
                counts[kind] += len(rows)
    return totals, counts


def test_label_scatter_matches_loop_over_pairs(rng):
    X, y = rng.normal(size=(40, 4)) + 100, rng.integers(-1, 4, 40)
    y[0] = 9  # alone in its class
    totals, counts = looped(X, y)
    for found in (label_scatters(X, y), relevance_scatters(X, Relevance.from_labels(y))):
        assert [s.n_pairs for s in found] == counts
        for scatter, total in zip(found, totals, strict=True):
            np.testing.assert_allclose(scatter.total, total, rtol=1e-9)


def test_list_scatter_matches_loop_over_pairs(rng):
    X, y = (
        rng.normal(size=(30, 3)),
        Relevance.from_lists([rng.choice(30, rng.integers(0, 5), replace=False) for _ in range(30)]).exclude_own_group(
            np.arange(30) // 2
        ),
    )
    totals, counts = looped(X, y)
    found = relevance_scatters(X, y)
    assert [s.n_pairs for s in found] == counts
    for scatter, total in zip(found, totals, strict=True):
        np.testing.assert_allclose(scatter.total, total, rtol=1e-9)
    some = relevance_scatters(X, y, np.arange(12)), relevance_scatters(X, y, np.arange(12, 30))
    np.testing.assert_allclose(some[0][1].total + some[1][1].total, totals[1], rtol=1e-9)


def test_set_and_pair_scatter_match_loops(rng):
    A, B = rng.normal(size=(7, 3)) + 5, rng.normal(size=(4, 3))
    inside = sum(np.outer(a - b, a - b) for a in A for b in A)
    across = sum(np.outer(a - b, a - b) for a in A for b in B)
    np.testing.assert_allclose(scatter_within(A).total, inside)
    np.testing.assert_allclose(scatter_across(A, B).total, across)
    pairs = rng.integers(7, size=(20, 2))
    expected = sum(np.outer(A[i] - A[j], A[i] - A[j]) for i, j in pairs)
    np.testing.assert_allclose(pair_scatter(A, pairs).total, expected)


def test_sampled_pairs_are_uniform(rng):
    relevance = Relevance.from_lists([[1, 2, 3], [0], [], [4, 5], [3], []])
    similar, dissimilar = sample_pairs(relevance, 30_000, rng)
    counts = np.zeros((6, 6))
    np.add.at(counts, tuple(similar.T), 1)
    assert {tuple(p) for p in np.argwhere(counts)} == {(0, 1), (0, 2), (0, 3), (1, 0), (3, 4), (3, 5), (4, 3)}
    # 30,000 / 7 with a deviation of 61; the tolerance is five of them
    assert np.abs(counts[counts > 0] - 30_000 / 7).max() < 305
    assert all(j in relevance.irrelevant(i) and len(relevance.relevant(i)) for i, j in dissimilar[:500])
    assert not len(sample_pairs(Relevance.from_labels([0, 0]), 5, rng)[0])


# --- the metric --------------------------------------------------------------------------------------------------


def test_metric_solves_its_equation(rng):
    X, y = truth.problem("wine")
    gmml = GMML(reg=0.0).fit(X, y)
    (S, D), (n_similar, n_dissimilar) = looped(X, y)
    np.testing.assert_allclose(gmml.similar_, S / n_similar, rtol=1e-9, atol=1e-12)
    M = gmml.metric_
    np.testing.assert_allclose(M @ S @ M / n_similar, D / n_dissimilar, atol=1e-9)
    np.testing.assert_allclose(gmml.components_.T @ gmml.components_, M, atol=1e-10)
    np.testing.assert_allclose(gmml.transform(X) @ gmml.transform(X).T, X @ M @ X.T, atol=1e-8)

    def objective(M):
        return np.trace(M @ gmml.similar_) + np.trace(np.linalg.solve(M, gmml.dissimilar_))

    # equation 6, in any direction
    for _ in range(5):
        E = rng.standard_normal(M.shape) * 1e-3
        E = np.sqrt(np.abs(M).max()) * (E + E.T)
        assert objective(M) <= min(objective(M + E @ M @ E), objective(M + 1e-3 * M), objective(M - 1e-3 * M))


@pytest.mark.parametrize("prior", [None, "covariance", "given"])
def test_metric_converges_to_prior_in_any_unit(prior, rng):
    X, y = truth.problem("iris")
    P = definite(rng, 4, 100.0) if prior == "given" else None
    expected = {"given": P, "covariance": np.linalg.inv(np.cov(X.T)), None: np.eye(4)}[prior]
    M = GMML(prior=P if prior == "given" else prior, reg=1e9).fit(X, y).metric_
    np.testing.assert_allclose(M / np.trace(M), expected / np.trace(expected), atol=1e-5)  # 1e-6 I in the covariance
    if prior != "given":
        first, second = (GMML(prior=prior).fit(s * X, y).metric_ for s in (1.0, 1000.0))
        np.testing.assert_allclose(first / np.trace(first), second / np.trace(second), rtol=1e-8, atol=1e-12)


def test_prior_is_used_as_documented(rng):
    X, y = truth.problem("iris")
    P, reg, t = definite(rng, 4, 100.0), 0.3, 0.7
    free = GMML(reg=0.0).fit(X, y)
    s, e = np.trace(free.similar_ @ P) / 4, np.trace(free.dissimilar_ @ np.linalg.inv(P)) / 4
    S, D = free.similar_ + reg * s * np.linalg.inv(P), free.dissimilar_ + reg * e * P
    gmml = GMML(t=t, prior=P, reg=reg).fit(X, y)
    np.testing.assert_allclose(gmml.metric_, geometric_mean(np.linalg.inv(S), D, t), rtol=1e-8, atol=1e-10)


def test_labels_relevance_and_pairs_agree(rng):
    X, y = truth.problem("wine")
    first = GMML().fit(X, y)
    relevance = Relevance.from_labels(y)
    pairs = [[(i, j) for i in range(len(y)) for j in of(i)] for of in (relevance.relevant, relevance.irrelevant)]
    rows = rng.permutation(len(y))
    for other in (
        GMML().fit(X, relevance),
        GMML().fit(X, [f"class {c}" for c in y]),
        GMML().fit(X[rows], np.asarray(y)[rows]),
        GMML().fit_pairs(X, *pairs),
    ):
        np.testing.assert_allclose(other.metric_, first.metric_, rtol=1e-8, atol=1e-10)


def test_sampled_fit_converges_and_is_reproducible():
    X, y = truth.problem("iris")
    every = GMML().fit(X, y).metric_
    some = [GMML(n_pairs=20_000, random_state=seed).fit(X, y).metric_ for seed in (0, 0, 1)]
    np.testing.assert_array_equal(some[0], some[1])
    assert not np.array_equal(some[0], some[2])
    # one over the root of 20,000 is 0.7 %
    np.testing.assert_allclose(some[0], every, rtol=0.05, atol=0.03 * np.abs(every).max())


@pytest.mark.parametrize("name", ["cancer", "wine"])
def test_neighbors_are_no_worse_than_euclidean(name):
    X, y = truth.problem(name)
    X = X * np.logspace(0, 1, X.shape[1])  # one column dominates the others

    def accuracy(Z):
        return KNeighborsClassifier(5).fit(Z[::2], y[::2]).score(Z[1::2], y[1::2])

    assert accuracy(GMML(reg=0.01).fit(X[::2], y[::2]).transform(X)) >= accuracy(X)


def test_equal_similar_songs_rely_on_prior():
    X = np.repeat([[0.0, 0], [1, 0], [1, 3]], 2, axis=0)
    M = GMML(reg=0.1).fit(X, np.arange(6) // 2).metric_
    assert np.isfinite(M).all()
    assert M[1, 1] > M[0, 0]


@pytest.mark.parametrize("d", [5, 200])
@pytest.mark.parametrize("reg", [1e-2, 1e-4, 1e-8, 1e-15])
def test_singular_scatter_needs_prior(reg, d, rng):
    y = np.arange(60) % 3
    for X in (rng.normal(size=(3, d))[y], np.outer(rng.normal(size=60), rng.normal(size=d))):
        M = GMML(reg=reg).fit(X, y).metric_
        assert np.linalg.eigvalsh(M)[0] > 0
        with pytest.raises(ValueError, match=r"not positive definite .*reg"):
            GMML(reg=0.0).fit(X, y)


@pytest.mark.parametrize("reg", [0.0, 0.1])
def test_rejects_identical_songs(reg):
    with pytest.raises(ValueError, match="All pairs consist of equal rows"):
        GMML(reg=reg).fit(np.ones((6, 2)), np.arange(6) // 2)


@pytest.mark.parametrize("t", [0.0, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("unit", [1e-140, 1e-78, 1e80, 1e140])
def test_song_unit_only_rescales_metric(t, unit):
    X, y = truth.problem("iris")
    expected = GMML(t=t, reg=0.0).fit(X, y).metric_
    # S^-1 #_t D scales with the unit to the power 4 t - 2
    found = GMML(t=t, reg=0.0).fit(unit * X, y).metric_ * unit ** (1.0 - 2.0 * t) * unit ** (1.0 - 2.0 * t)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_more_dimensions_than_songs_need_prior(rng):
    X, y = rng.normal(size=(50, 300)), np.arange(50) % 5
    gmml = GMML().fit(X, y)
    assert gmml.metric_.shape == (300, 300)
    with pytest.raises(ValueError, match=r"not positive definite in double precision; .*reg"):
        GMML(reg=0.0).fit(X, y)


def test_follows_scikit_learn_conventions():
    X, y = truth.problem("iris")
    given = {"t": 0.3, "prior": np.eye(4), "reg": 0.5, "n_pairs": 100, "random_state": 3}
    gmml = GMML(**given)
    assert gmml.get_params() == given
    again = clone(gmml).fit(X, y)
    np.testing.assert_array_equal(again.metric_, gmml.fit(X, y).metric_)
    assert gmml.n_features_in_ == 4
    assert list(gmml.get_feature_names_out()) == [f"gmml{i}" for i in range(len(gmml.components_))]
    with pytest.raises(NotFittedError):
        GMML().transform(X)
    with pytest.raises(ValueError, match="4 features"):
        gmml.transform(X[:, :3])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"t": 2}, "t=2"),
        ({"reg": -1}, "reg=-1"),
        ({"n_pairs": 0}, "n_pairs=0"),
        ({"prior": "euclid"}, "prior='euclid'"),
        ({"prior": np.eye(3)}, r"prior has shape \(3, 3\)"),
        ({"prior": -np.eye(4)}, "prior is not positive definite"),
    ],
)
def test_rejects_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        GMML(**parameters).fit(*truth.problem("iris"))


def test_rejects_bad_input():
    X, y = truth.problem("iris")
    with pytest.raises(ValueError, match="labels"):
        GMML().fit(X, y[:-1])
    with pytest.raises(ValueError, match="nothing to learn from"):
        GMML().fit(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match="nothing to learn from"):
        GMML(n_pairs=10).fit(X, np.arange(len(X)))
    with pytest.raises(ValueError, match="similar has shape"):
        GMML().fit_pairs(X, [], [[0, 1]])
    with pytest.raises(ValueError, match="dissimilar has type float64; row numbers of X must be integers"):
        GMML().fit_pairs(X, [[0, 1]], [[0.0, 1.0]])
    with pytest.raises(ValueError, match="dissimilar contains row"):
        GMML().fit_pairs(X, [[0, 1]], [[0, len(X)]])


def test_sparse_songs_have_the_metric_of_dense_songs(rng):
    X = sparse.random_array((40, 6), density=0.5, rng=rng, format="csr")
    dense, found = GMML().fit(X.toarray(), np.arange(40) % 3), GMML().fit(X, np.arange(40) % 3)
    np.testing.assert_allclose(found.metric_, dense.metric_)
    np.testing.assert_allclose(found.transform(X), dense.transform(X.toarray()))


def test_too_many_columns_are_refused(rng):
    X = sparse.random_array((20, 10_001), density=0.01, rng=rng, format="csr")
    with pytest.raises(ValueError, match=r"accepts at most 10000 columns; reduce X first"):
        GMML().fit(X, np.arange(20) % 2)
