"""Tests of the exact index against the definition, and of arguments that every index refuses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from musicsim.search import ExactIndex, PartitionIndex, SpillForest, SpillTree
from musicsim.search import exact as module

every_kind = pytest.mark.parametrize(
    "index",
    [ExactIndex(), SpillTree(n_jobs=1), SpillForest(2, n_jobs=1), PartitionIndex(n_jobs=1)],
    ids=["exact", "tree", "forest", "partition"],
)


def _by_definition(X, Q, k, allowed=None):
    D = np.linalg.norm(Q[:, None, :].astype(np.float64) - X[None, :, :], axis=2)
    if allowed is not None:
        D[:, ~allowed] = np.inf
        k = min(k, int(allowed.sum()))
    ids = np.argsort(D, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(D, ids, axis=1), ids


def _assert_by_definition(answers, X, Q, k, allowed=None):
    distances, ids = answers
    truth, truth_ids = _by_definition(X, Q, k, allowed)
    np.testing.assert_array_equal(ids, truth_ids)
    np.testing.assert_allclose(distances, truth, rtol=1e-6)  # float32 square roots
    assert (distances.dtype, ids.dtype) == (np.float32, np.int64)


def test_exact_index_says_that_it_cannot_be_saved(rng, tmp_path):
    with pytest.raises(NotImplementedError, match="save its rows, and fit it to them again"):
        ExactIndex().fit(rng.normal(size=(3, 2))).save(tmp_path / "index")
    assert list(tmp_path.iterdir()) == []


# whole numbers: products and sums are exact, so ties agree on both sides
@settings(max_examples=50)
@given(st.integers(1, 30), st.integers(1, 4), st.integers(1, 35), st.integers(0, 2**31))
def test_query_equals_the_definition_ties_included(n, d, k, seed):
    rng = np.random.default_rng(seed)
    X, Q = rng.integers(0, 3, (n, d)).astype(np.float32), rng.integers(0, 3, (4, d)).astype(np.float32)
    _assert_by_definition(ExactIndex().fit(X).query(Q, k), X, Q, k)


@settings(max_examples=80)
@given(
    n=st.integers(0, 120), n_values=st.sampled_from([1, 2, 40]), k=st.integers(1, 130), seed=st.integers(0, 2**31),
    entries=st.integers(1, 300), block_rows=st.integers(1, 5), share=st.sampled_from([None, 0.0, 0.2, 0.9]),
)  # fmt: skip
def test_rows_compared_part_by_part_give_the_same(n, n_values, k, seed, entries, block_rows, share):
    rng = np.random.default_rng(seed)
    X, Q = (rng.integers(0, n_values, (m, 3)).astype(np.float32) for m in (n, 6))
    allowed = None if share is None else rng.random(n) < share
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PART_ENTRIES", entries)
        patch.setattr(module, "BLOCK_QUERIES", block_rows)
        answers = ExactIndex().fit(X).query(Q, k, allowed=allowed)
    _assert_by_definition(answers, X, Q, k, allowed)


def test_more_copies_than_are_kept_for_rounding(monkeypatch):
    # the lowest ids of 1,000 equal rows, although every block has equally near ones
    X = np.ones((1000, 3), np.float32)
    X[500:510] = 0.0
    monkeypatch.setattr(module, "PART_ENTRIES", 100)
    _, ids = ExactIndex().fit(X).query(np.zeros((2, 3)), 30)
    assert ids.tolist() == [[*range(500, 510), *range(20)]] * 2
    assert ExactIndex().fit(X[::-1]).query(np.ones((1, 3)), 7)[1].tolist() == [[*range(7)]]


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


@every_kind
@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("n_queries", [0, 1, 4])
def test_shapes_of_answers(index, n, n_queries, rng):
    X, Q = rng.standard_normal((n, 2)), rng.standard_normal((n_queries, 2))
    index = clone(index).fit(X)
    for k in (1, 2, 50, 10**12, np.int64(3)):
        for answers in (index.query(Q, k), index.query(Q, k, allowed=np.ones(n, bool))):
            assert [part.shape for part in answers] == [(n_queries, min(k, n))] * 2
        assert [part.shape for part in index.query(Q, k, allowed=np.zeros(n, bool))] == [(n_queries, 0)] * 2


@every_kind
@pytest.mark.parametrize("shape", [(), (4,), (6,), (1, 5), (5, 1)])
def test_masks_of_another_shape_are_refused(index, shape):
    with pytest.raises(ValueError, match=r"allowed has shape .*; it must be \(5,\)"):
        clone(index).fit(np.eye(5)).query(np.eye(5), 1, allowed=np.ones(shape, bool))


def test_a_row_is_at_distance_zero_of_itself_though_far_from_the_origin(rng):
    X = (1e4 + rng.standard_normal((20, 8))).astype(np.float32)
    distances, ids = ExactIndex().fit(X).query(X[7:8], 20)
    assert distances[0][ids[0] == 7] == 0.0


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e4])
def test_neighbors_far_from_the_origin(offset, rng):
    # |x|^2 is up to 10^9 there, and float32 has steps of 64
    X, Q = ((offset + rng.standard_normal((n, 8))).astype(np.float32) for n in (2000, 10))
    _assert_by_definition(ExactIndex().fit(X).query(Q, 10), X, Q, 10)
    index = ExactIndex().fit(X[:700])
    index.add(X[700:])
    _assert_by_definition(index.query(Q, 10), X, Q, 10)


@pytest.mark.parametrize("jitter", [1e-3, 1e-4, 1e-5])
@pytest.mark.parametrize("hidden", [0.0, 0.5])
def test_more_near_copies_than_are_kept_for_rounding(jitter, hidden, rng):
    songs = np.sqrt(rng.dirichlet(np.ones(20), 30))
    X = (np.repeat(songs, 100, axis=0) + jitter * rng.standard_normal((3000, 20))).astype(np.float32)
    allowed = rng.random(3000) >= hidden
    distances, _ = ExactIndex().fit(X).query(X[::300], 10, allowed=allowed)
    truth, _ = _by_definition(X, X[::300], 10, allowed)
    # float32 rounds differences of rows, so ids of nearly equal distances may be swapped
    np.testing.assert_allclose(distances, truth, rtol=1e-4, atol=1e-9)


def test_added_rows_are_found_under_new_ids(rng):
    X, new = rng.standard_normal((10, 3)), rng.standard_normal((2, 3))
    index = ExactIndex().fit(X)
    assert index.add(new).tolist() == [10, 11]
    assert index.query(new, 1)[1].ravel().tolist() == [10, 11]


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 5)), max_size=12), st.integers(0, 2**31))
def test_rows_come_and_go(steps, seed):
    rng = np.random.default_rng(seed)
    X, shown, index = np.zeros((0, 3), np.float32), np.zeros(0, bool), ExactIndex().fit(np.zeros((0, 3)))
    for n_new, n_gone in steps:
        new = rng.integers(0, 4, (n_new, 3)).astype(np.float32)
        assert index.add(new).tolist() == list(range(len(X), len(X) + n_new))
        X, shown = np.concatenate([X, new]), np.concatenate([shown, np.ones(n_new, bool)])
        gone = rng.integers(0, len(X), n_gone if len(X) else 0)
        index.remove(gone)
        shown[gone] = False
        Q, allowed = rng.integers(0, 4, (3, 3)).astype(np.float32), rng.random(len(X)) < 0.5
        _assert_by_definition(index.query(Q, 9), X, Q, 9, shown)
        _assert_by_definition(index.query(Q, 9, allowed=allowed), X, Q, 9, allowed & shown)


def test_given_rows_are_used_in_place_and_never_written(rng):
    mine = rng.standard_normal((30, 4)).astype(np.float32)
    X = mine.view()
    X.flags.writeable = False
    index = ExactIndex().fit(X)
    mine[7] += 1e-4
    assert [found.item() for found in index.query(mine[7:8], 1)] == [0.0, 7], "the index has its own copy of the rows"
    index.add(X[:3])
    index.add(X[:0])
    assert index.query(X[:3], 2)[1].tolist() == [[0, 30], [1, 31], [2, 32]]
    mine = X.copy()
    ExactIndex().fit(mine).add(np.ones((5, 4)))
    np.testing.assert_array_equal(mine, X)


@every_kind
@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([True, False], "bool"),
        ([0.0], "float64"),
        (np.float32(1), "float32"),
        ("0", "integers"),
        (None, "object"),
        (-1, "-1 to -1, but the index has 5 rows"),
        ([0, 5], "0 to 5, but the index has 5 rows"),
    ],
)
def test_ids_that_were_never_given_are_refused(index, ids, message):
    index = clone(index).fit(np.eye(5))
    with pytest.raises(ValueError, match=message):
        index.remove(ids)
    assert index.query(np.eye(5), 5)[1].shape == (5, 5)


@every_kind
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.zeros((1, 4)), "4 columns, but the index has 3"),
        (np.zeros(3), "two-dimensional"),
        (np.zeros((1, 1, 3)), "two-dimensional"),
        (3.0, "two-dimensional"),
        ([], "two-dimensional"),
        (np.full((1, 3), np.nan), "NaN or infinite"),
        ([[0.0, np.inf, 0.0]], "NaN or infinite"),
        ([[0.0, -np.inf, np.nan]], "NaN or infinite"),
        ([[1e30, 0.0, 0.0]], "contains 1e.30; values must be below"),
        ([[0.0, -1e30, 0.0]], "contains 1e.30; values must be below"),
    ],
)
def test_bad_rows_name_the_argument(index, rows, message):
    index = clone(index).fit(np.zeros((5, 3)))
    with pytest.raises(ValueError, match=f"^Q .*{message}"):
        index.query(rows)
    with pytest.raises(ValueError, match=f"^X .*{message}"):
        index.add(rows)
    if "columns" not in message:
        with pytest.raises(ValueError, match=f"^X .*{message}"):
            index.fit(rows)
    assert index.n_samples_ == 5


@every_kind
@pytest.mark.parametrize("k", [0, -1])
def test_k_below_1_is_refused(index, k):
    with pytest.raises(ValueError, match=f"k={k}"):
        clone(index).fit(np.zeros((5, 3))).query(np.zeros((1, 3)), k)


def test_one_bad_row_among_many_is_found():
    # rows are checked in blocks
    X = np.zeros((200_000, 1), np.float32)
    X[199_999] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        ExactIndex().fit(X)


def test_nothing_can_be_asked_before_fit():
    for act in (lambda i: i.query([[0.0]]), lambda i: i.add([[0.0]]), lambda i: i.remove(0)):
        with pytest.raises(NotFittedError):
            act(ExactIndex())


def test_clone_keeps_the_parameters():
    assert clone(PartitionIndex(7.0)).cells == 7.0
    assert clone(ExactIndex(n_jobs=2)).get_params() == {"n_jobs": 2}
