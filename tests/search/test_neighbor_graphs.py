"""Tests that indexes give scikit-learn's neighbors and graphs, and work before its methods that read graphs."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.manifold import Isomap
from sklearn.neighbors import KNeighborsClassifier, KNeighborsTransformer, NearestNeighbors
from sklearn.pipeline import make_pipeline

from musicsim.search import CompactIndex, ExactIndex, NeighborsTransformer, PartitionIndex, SpillForest, SpillTree

INDEXES = [ExactIndex(), SpillTree(n_jobs=1), SpillForest(2, n_jobs=1), PartitionIndex(n_jobs=1), CompactIndex(16)]


@pytest.fixture
def rows(rng):
    return rng.normal(size=(80, 5)).astype(np.float32)


@pytest.mark.parametrize("n_neighbors", [1, 5, 79])
@pytest.mark.parametrize("own", [True, False], ids=["own rows", "queries"])
def test_exact_neighbors_equal_scikit_learn(rows, rng, n_neighbors, own):
    X = None if own else rng.normal(size=(7, 5)).astype(np.float32)
    index, theirs = ExactIndex().fit(rows), NearestNeighbors(algorithm="brute").fit(rows)
    distances, ids = index.kneighbors(X, n_neighbors)
    true_distances, true_ids = theirs.kneighbors(X, n_neighbors)
    np.testing.assert_array_equal(ids, true_ids)
    np.testing.assert_allclose(distances, true_distances, rtol=1e-5)
    np.testing.assert_array_equal(index.kneighbors(X, n_neighbors, return_distance=False), ids)
    for mode in ("connectivity", "distance"):
        graph, truth = (each.kneighbors_graph(X, n_neighbors, mode) for each in (index, theirs))
        assert (graph.shape, graph.nnz, graph.dtype) == (truth.shape, truth.nnz, np.float64)
        np.testing.assert_allclose(graph.toarray(), truth.toarray(), rtol=1e-5)


@pytest.mark.parametrize("index", INDEXES, ids=lambda index: type(index).__name__)
def test_every_index_has_neighbors_other_than_the_row_itself(rows, index):
    distances, ids = index.fit(rows).kneighbors()
    assert distances.shape == ids.shape == (80, 5)
    assert not (ids == np.arange(80)[:, None]).any()
    found, _ = index.query(rows, 6)
    np.testing.assert_array_equal(distances, found[:, 1:])


def test_copies_and_removed_rows_have_as_many_neighbors_as_others(rows):
    index = ExactIndex().fit(np.repeat(rows[:2], 9, axis=0))
    index.remove([17])
    distances, ids = index.kneighbors(n_neighbors=4)
    assert (distances == 0).all()
    assert (ids[:9] < 9).all()
    assert (ids[9:] >= 9).all()
    assert not (ids == np.arange(18)[:, None]).any()
    assert not (ids == 17).any()
    assert index.kneighbors_graph(n_neighbors=4, mode="distance").nnz == 4 * 18


@pytest.mark.parametrize(("X", "n_neighbors"), [(None, 80), ([[0.0] * 5], 81), (None, 0)])
def test_too_many_or_no_neighbors_are_refused(rows, X, n_neighbors):
    with pytest.raises(ValueError, match=f"n_neighbors={n_neighbors}"):
        ExactIndex().fit(rows).kneighbors(X, n_neighbors)


@pytest.mark.parametrize("index", [None, SpillForest(2, n_jobs=1)], ids=["exact", "forest"])
def test_transformer_replaces_that_of_scikit_learn(rows, index):
    labels = (rows[:, 0] > 0).astype(int)
    ours, theirs = NeighborsTransformer(index, 8), KNeighborsTransformer(n_neighbors=8)
    graph, truth = ours.fit_transform(rows), theirs.fit_transform(rows)
    np.testing.assert_allclose(graph.toarray(), truth.toarray(), atol=1e-3)  # theirs has no exact 0 to itself
    for method in (Isomap(n_neighbors=8, metric="precomputed"), KNeighborsClassifier(metric="precomputed")):
        first, second = (make_pipeline(each, method).fit(rows[:60], labels[:60]) for each in (ours, theirs))
        name = "predict" if hasattr(method, "predict") else "transform"
        np.testing.assert_allclose(
            np.abs(getattr(first, name)(rows[60:])), np.abs(getattr(second, name)(rows[60:])), atol=1e-3
        )


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_number_of_threads_does_not_change_exact_neighbors(rows, n_jobs):
    for found, truth in zip(
        ExactIndex(n_jobs=n_jobs).fit(rows).query(rows, 9), ExactIndex().fit(rows).query(rows, 9), strict=True
    ):
        np.testing.assert_array_equal(found, truth)


def test_complex_queries_are_refused(rows):
    with pytest.raises(ValueError, match="Complex data not supported"):
        ExactIndex().fit(rows).query(rows[:2] + 1j)


def sparse_rows(rng, n, d=40):
    return sparse.random_array((n, d), density=0.1, rng=rng, format="csr", dtype=np.float32)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_sparse_rows_have_the_neighbors_of_dense_rows(rng, n_jobs):
    X, more, Q = sparse_rows(rng, 150), sparse_rows(rng, 30), sparse_rows(rng, 70)
    X[[5, 6, 7]] = 0  # copies
    index = ExactIndex(n_jobs=n_jobs).fit(X)
    theirs = ExactIndex().fit(X.toarray())
    for each, rows in ((index, more.toarray()), (theirs, more.toarray())):
        np.testing.assert_array_equal(each.add(rows), np.arange(150, 180))
        each.remove([3, 160])
    for queries in (Q, Q.toarray(), None):
        found, truth = (each.kneighbors(queries, 8) for each in (index, theirs))
        np.testing.assert_array_equal(found[1], truth[1])
        np.testing.assert_allclose(found[0], truth[0], rtol=1e-6)


def test_transformer_accepts_sparse_rows_if_its_index_does(rng):
    X = sparse_rows(rng, 50)
    graph = NeighborsTransformer().fit_transform(X)
    np.testing.assert_allclose(graph.toarray(), NeighborsTransformer().fit_transform(X.toarray()).toarray(), rtol=1e-6)
    with pytest.raises(TypeError, match="X is sparse"):
        NeighborsTransformer(SpillForest()).fit(X)


@pytest.mark.long
def test_wide_sparse_rows_are_never_dense(rng):
    X = sparse.random_array((2_000, 40_000), density=0.001, rng=rng, format="csr", dtype=np.float32)
    tracemalloc.start()
    index = ExactIndex().fit(X)
    distances, _ = index.kneighbors(n_neighbors=3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.6 * 4 * 2_000 * 40_000
    for i in (0, 1_999):
        truth = np.sort(np.linalg.norm(np.delete(X.toarray(), i, axis=0) - X[[i]].toarray(), axis=1))[:3]
        np.testing.assert_allclose(distances[i], truth, rtol=1e-5)
