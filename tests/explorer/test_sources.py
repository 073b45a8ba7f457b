"""Tests of several models as one space: concatenated, scaled alike, and learned with one block each."""

import numpy as np
import pytest

from musicsim.explorer.learning.from_answers import Answered, learn_from_answers, shares_in_order
from musicsim.explorer.learning.multi_kernel import SourceLearner, source_shares
from musicsim.explorer.models.joint_space import column_scales, fill, statistics
from musicsim.metric import MultipleKernelMLR
from musicsim.order import PartialOrderEmbedding
from musicsim.relevance import Relevance

BLOCKS = [slice(0, 3), slice(3, 7)]


# --- arithmetic -----------------------------------------------------------------------------------


def test_missing_values_are_conditional_means(rng):
    """For a normal distribution with known covariance, this is the regression of the missing part on the rest."""
    A = rng.standard_normal((7, 7))
    X = (rng.standard_normal((20_000, 7)) @ A).astype(np.float32)
    weights = statistics(X)
    lacking = X[:50].copy()
    lacking[:25, BLOCKS[1]], lacking[25:40, BLOCKS[0]] = np.nan, np.nan
    filled = fill(lacking, weights)
    S = A.T @ A
    wanted = X[:25, :3] @ np.linalg.solve(S[:3, :3], S[:3, 3:])
    np.testing.assert_allclose(filled[:25, 3:], wanted, atol=0.15)  # 20,000 samples of deviation 3: .02 per slope
    np.testing.assert_array_equal(filled[~np.isnan(lacking)], lacking[~np.isnan(lacking)])
    assert np.isfinite(filled).all()
    np.testing.assert_array_equal(filled[40:], X[40:50])


def test_missing_values_use_mean_without_complete_songs():
    X = np.array([[1, 2, np.nan], [3, 4, np.nan], [np.nan, np.nan, 5]], dtype=np.float32)
    filled = fill(X, statistics(X))
    np.testing.assert_allclose(filled, [[1, 2, 5], [3, 4, 5], [2, 3, 5]])


def test_every_source_has_same_variance(rng):
    X = (rng.standard_normal((200, 7)) * [1, 2, 3, 40, 50, 60, 0]).astype(np.float32)
    X[:150, BLOCKS[1]] = np.nan  # the songs that have it determine its variance
    scaled = X * column_scales(X, BLOCKS)
    assert np.var(scaled[:, :3], axis=0).sum() == pytest.approx(1, rel=1e-5)
    assert np.var(scaled[150:, 3:], axis=0).sum() == pytest.approx(1, rel=1e-5)
    assert column_scales(np.ones((5, 7), np.float32), BLOCKS).tolist() == [0.0] * 7


def _comparisons(X, n, seed):
    """Return which of two songs is nearer to a third, for a taste that depends on the last four columns only."""
    rng, asked = np.random.default_rng(seed), []
    while len(asked) < n:
        i, j, k = rng.choice(len(X), 3, replace=False)
        near, far = np.linalg.norm(X[[j, k], 3:] - X[i, 3:], axis=1)
        asked.append((i, j, i, k) if near < far else (i, k, i, j))
    return np.array(asked)


def test_source_embedding_matches_kernel_embedding(rng):
    """The out-of-sample map by kernels with training songs (equation 2.9) is the linear one."""
    X, new = rng.standard_normal((40, 7)), rng.standard_normal((9, 7))
    asked = _comparisons(X, 150, 0)
    ours = SourceLearner(BLOCKS, PartialOrderEmbedding("full", 20.0, tol=1e-3)).fit(X, asked)
    kernels = [X[:, b] @ X[:, b].T for b in BLOCKS]
    theirs = PartialOrderEmbedding("full", 20.0, tol=1e-3).fit(kernels, asked)
    there = theirs.transform([new[:, b] @ X[:, b].T for b in BLOCKS])
    here = new @ ours.components_.T
    squared = [((Y[:, None] - Y[None]) ** 2).sum(axis=2) for Y in (here, there)]
    np.testing.assert_allclose(*squared, atol=1e-8 * squared[1].max())  # eigenvectors of a kernel of rank 3
    assert ours.objective_ == theirs.objective_
    M = ours.components_.T @ ours.components_
    assert not M[BLOCKS[0], BLOCKS[1]].any()
    shares = source_shares(X, ours.components_, BLOCKS)
    assert sum(shares) == pytest.approx(1)
    np.testing.assert_allclose(shares, theirs.kernel_weights_, atol=1e-8)
    assert shares[1] > 0.8, "only the second is heard"


def test_source_ranking_matches_kernel_ranking(rng):
    labels = np.arange(36) % 3
    X = rng.standard_normal((36, 7))
    X[:, 3] += 3 * labels
    ours = SourceLearner(BLOCKS, MultipleKernelMLR(C=100.0, tol=1e-2)).fit(X, Relevance.from_labels(labels))
    kernels = [X[:, b] @ X[:, b].T for b in BLOCKS]
    theirs = MultipleKernelMLR(C=100.0, tol=1e-2).fit(kernels, labels)
    Y = theirs.transform(kernels)
    mine = X @ ours.components_.T
    squared = [((Z[:, None] - Z[None]) ** 2).sum(axis=2) for Z in (mine, Y)]
    np.testing.assert_allclose(*squared, atol=1e-8 * squared[1].max())
    steps = []
    learner = SourceLearner(BLOCKS, MultipleKernelMLR(tol=1e-2))
    path = learner.fit_path(X, labels, (1.0, 100.0, 1e4), lambda s: steps.append(s) or s["C"] > 99)
    assert [one.C for one in path] == [1.0, 100.0], "the path ends with the fit that was told to"
    assert steps[-1]["components"]() is not None


def test_answers_about_one_source_increase_its_weight():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((50, 7))
    asked = _comparisons(X, 120, 1)
    answered = Answered([row[None] for row in asked], [tuple(row) for row in asked.tolist()])
    judged = learn_from_answers(X, answered, Cs=(10.0,), blocks=BLOCKS, on_progress=lambda *_: False)
    assert judged.lead.low > 0
    assert source_shares(X, judged.L, BLOCKS)[1] > 0.8
    fresh = _comparisons(X, 300, 2)
    later = Answered([row[None] for row in fresh], [()] * 300)
    assert shares_in_order(X @ judged.L.T, later).mean() > shares_in_order(X, later).mean() + 0.1
