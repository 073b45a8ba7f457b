"""The tasks of the benchmark of metric learning: what they say of themselves is so, for every seed."""

import numpy as np
import pytest

from benchmarks.support.ranking_tasks import cal10k_like, nearly_separable


def relevant_pairs(relevance):
    """R[q, x]: x is relevant to q."""
    return np.array([relevance.judgments([q])[0] == 1 for q in range(len(relevance))])


@pytest.fixture(scope="module")
def cal10k():
    return cal10k_like(seed=3)


def test_cal10k_shape_and_relevance_match_original(cal10k):
    assert cal10k.X.shape == (2122, 253)
    assert len(cal10k.relevance) == cal10k.relevance.n_items == 2122
    counts = relevant_pairs(cal10k.relevance).sum(axis=1)
    # the mean of 2,122 Poisson numbers of mean 37 deviates by 0.13
    assert counts.mean() == pytest.approx(37, abs=0.6)
    assert counts.min() >= 1


def test_cal10k_spectrum_decays(cal10k):
    deviations = cal10k.X.std(axis=0)
    # each is known to 1.5 %
    np.testing.assert_allclose(deviations, np.exp(-np.arange(253) / 60), rtol=0.08)


def test_cal10k_relevance_is_asymmetric_and_intransitive(cal10k):
    R = relevant_pairs(cal10k.relevance)
    answered = (R & R.T).sum() / R.sum()
    assert 0.1 < answered < 0.9
    two_steps = (R.astype(np.float32) @ R.astype(np.float32)) > 0
    np.fill_diagonal(two_steps, False)
    assert (two_steps & ~R).sum() > R.sum()


def test_cal10k_relevance_correlates_weakly_with_distance(cal10k):
    """A metric has something to find: relevant songs are somewhat nearer, by far not the nearest."""
    X = cal10k.X
    squares = (X**2).sum(axis=1)
    D = squares[:, None] + squares[None] - 2 * X @ X.T
    np.fill_diagonal(D, np.inf)
    R = relevant_pairs(cal10k.relevance)
    nearest = np.argpartition(D, 36, axis=1)[:, :37]
    precision = np.take_along_axis(R, nearest, axis=1).mean()
    assert 2 * 37 / 2122 < precision < 0.5


def test_nearly_separable_classes_are_balanced():
    task = nearly_separable(seed=3)
    assert task.X.shape == (1000, 100)
    assert task.queries.shape == (500, 100)
    sizes = np.bincount(task.y)
    assert len(sizes) == 26
    assert set(sizes) == {38, 39}
    R = relevant_pairs(task.relevance)
    np.testing.assert_array_equal(R, (task.y[:, None] == task.y) & ~np.eye(1000, dtype=bool))


def test_held_out_queries_target_their_class():
    task = nearly_separable(seed=3, n_songs=200, d=12, n_held_out=50)
    relevance = task.query_relevance
    assert (len(relevance), relevance.n_items) == (50, 200)
    assert (relevance.own == -1).all()
    np.testing.assert_array_equal(relevant_pairs(relevance), task.query_y[:, None] == task.y)


def test_classes_separate_in_requested_dimensions():
    """Between the means of the classes there are `n_hidden` large directions, held-out songs' among them."""
    task = nearly_separable(seed=3, n_songs=4000, d=20, n_relevant=399, n_hidden=4, n_held_out=4000)
    both = [
        np.array([X[y == c].mean(axis=0) for c in range(10)])
        for X, y in ((task.X, task.y), (task.queries, task.query_y))
    ]
    singular = np.linalg.svd(both[0] - both[0].mean(axis=0), compute_uv=False)
    # in the other dimensions a mean of 400 deviates by 0.05, over ten of them hardly by more than 0.4 in all
    assert singular[3] > 1.0
    assert singular[4] < 0.5
    np.testing.assert_allclose(*both, atol=0.4)


@pytest.mark.parametrize("make", [cal10k_like, nearly_separable])
def test_same_seed_gives_same_task(make):
    one, same, other = (make(seed, n_songs=120, d=9) for seed in (5, 5, 6))
    np.testing.assert_array_equal(one.X, same.X)
    np.testing.assert_array_equal(relevant_pairs(one.relevance), relevant_pairs(same.relevance))
    assert not np.array_equal(one.X, other.X)
    assert not np.array_equal(relevant_pairs(one.relevance), relevant_pairs(other.relevance))


def test_songs_are_independent_of_held_out_queries():
    few, many = (nearly_separable(n_songs=120, d=9, n_held_out=n) for n in (10, 300))
    np.testing.assert_array_equal(few.X, many.X)
    np.testing.assert_array_equal(few.y, many.y)
