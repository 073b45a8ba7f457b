"""The exact index equals the definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from musicsim.search import ExactIndex


def _by_definition(X, Q, k, allowed=None):
    D = np.linalg.norm(Q[:, None, :].astype(np.float64) - X[None, :, :], axis=2)
    if allowed is not None:
        D[:, ~allowed] = np.inf
    ids = np.argsort(D, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(D, ids, axis=1), ids


# whole numbers: products and sums are exact, so ties are ties on both sides
@settings(deadline=None, max_examples=50)
@given(
    st.integers(1, 30), st.integers(1, 4), st.integers(1, 35), st.integers(0, 2**31), st.integers(1, 5)
)  # fmt: skip
def test_query_equals_the_definition_ties_included(n, d, k, seed, block_rows):
    rng = np.random.default_rng(seed)
    X, Q = rng.integers(0, 3, (n, d)).astype(np.float32), rng.integers(0, 3, (4, d)).astype(np.float32)
    distances, ids = ExactIndex(block_rows=block_rows).fit(X).query(Q, k)
    truth, truth_ids = _by_definition(X, Q, k)
    np.testing.assert_array_equal(ids, truth_ids)
    np.testing.assert_allclose(distances, truth, rtol=1e-6)  # float32 square roots


def test_only_allowed_rows_are_answers(rng):
    X = rng.standard_normal((50, 6)).astype(np.float32)
    allowed = rng.random(50) < 0.3
    distances, ids = ExactIndex().fit(X).query(X[:5], 4, allowed=allowed)
    np.testing.assert_array_equal(ids, _by_definition(X, X[:5], 4, allowed)[1])
    assert distances.shape == (5, 4)


def test_no_allowed_row_gives_no_answer(rng):
    X = rng.standard_normal((5, 2)).astype(np.float32)
    distances, ids = ExactIndex().fit(X).query(X, 3, allowed=np.zeros(5, dtype=bool))
    assert distances.shape == ids.shape == (5, 0)


def test_a_row_is_at_distance_zero_of_itself_though_far_from_the_origin(rng):
    X = (1e4 + rng.standard_normal((20, 8))).astype(np.float32)
    distances, ids = ExactIndex().fit(X).query(X[7:8], 20)
    assert distances[0][ids[0] == 7] == 0.0


def test_added_rows_are_found_under_new_ids(rng):
    X, new = rng.standard_normal((10, 3)), rng.standard_normal((2, 3))
    index = ExactIndex().fit(X)
    assert index.add(new).tolist() == [10, 11]
    assert index.query(new, 1)[1].ravel().tolist() == [10, 11]


@pytest.mark.parametrize(
    ("Q", "k", "message"),
    [
        (np.zeros((1, 4)), 1, "4 columns, the index has 3"),
        (np.zeros((1, 3)), 0, "k=0"),
        (np.zeros(3), 1, "two-dimensional"),
        (np.full((1, 3), np.nan), 1, "NaN"),
    ],
)
def test_bad_queries_name_the_argument(Q, k, message):
    with pytest.raises(ValueError, match=message):
        ExactIndex().fit(np.zeros((5, 3))).query(Q, k)


def test_clone_keeps_the_parameters():
    assert clone(ExactIndex(block_rows=7)).block_rows == 7
