"""Tests of k-means cells, probed nearest first.

Saving and loading are tested with those of trees, in test_spill_tree.
"""

import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from musicsim.search import ExactIndex, PartitionIndex
from musicsim.search import partition as partition_module
from musicsim.search import tree_index as module
from musicsim.search.code_kernels import code_size, decode
from musicsim.search.partition import k_means
from tests.search.answers import assert_answers, rows_of, shapes, songs
from tests.search.naive_trees import same_answers

ALL_CELLS = 10**6

partitions = st.builds(
    PartitionIndex,
    st.sampled_from([0.1, 1.0, 4.0, 100.0]),
    st.sampled_from([1, 5, ALL_CELLS]),
    explained=st.sampled_from([0.5, 0.99, 1.0]),
    ranked=st.sampled_from([1.5, 4.0]),
    n_jobs=st.just(1),
    random_state=st.just(0),
)


def recall(found, true):
    return np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(found.tolist(), true.tolist(), strict=True)])


@settings(max_examples=80)
@given(shape=shapes, index=partitions, k=st.sampled_from([1, 3, 10_000]), gone=st.sampled_from([0.0, 0.4, 0.97]))
@pytest.mark.parametrize("rows_a_leaf", [0, 10**9])
def test_answers_are_distinct_allowed_and_exact(shape, index, k, gone, rows_a_leaf):
    X, rng = rows_of(**shape), np.random.default_rng(shape["seed"])
    index.fit(X)
    Q = np.concatenate([X[:6], X[:3] + np.float32(0.3)])
    assert_answers(X, Q, index.query(Q, k), k)
    shown = rng.random(len(X)) >= gone
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "ROWS_PER_LEAF", rows_a_leaf)
        assert_answers(X, Q, index.query(Q, k, allowed=shown), k, shown)
        index.remove(np.flatnonzero(~shown))
        assert_answers(X, Q, index.query(Q, k), k, shown)
        assert_answers(X, Q, index.query(Q, k, n_probes=1), k, shown)


@settings(max_examples=60)
@given(shape=shapes, index=partitions, first=st.integers(0, 300), k=st.sampled_from([1, 3, 10_000]))
def test_all_rows_of_all_cells_are_the_exact_answer(shape, index, first, k):
    # at least 1.5 k + 10 rows are ranked: with two thirds of all rows or more, that is every row
    X = rows_of(**shape)
    k = max(k, 2 * len(X) // 3)
    Q = rows_of(6, shape["d"], 4, shape["seed"] + 1)
    index.fit(X[:first])
    assert index.add(X[first:]).tolist() == list(range(min(first, len(X)), len(X)))
    same_answers(index.query(Q, k, n_probes=ALL_CELLS), ExactIndex().fit(X).query(Q, k))


def test_the_nearest_cells_are_looked_into():
    X, Q = songs(4000, 6), songs(40, 6, seed=1)
    index = PartitionIndex(1.0, explained=1.0, n_jobs=1, random_state=0).fit(X)
    cells = index.trees_
    rows = [cells.items[start : start + n] for start, n in cells.leaves[1:, :2]]
    assert sorted(np.concatenate(rows).tolist()) == list(range(4000))
    assert index.n_leaves_ == len(rows) == 63
    centres = np.array([X[of].mean(axis=0) for of in rows])
    shares = []
    for q in Q:
        near = np.argsort(np.linalg.norm(centres - q, axis=1))[:6]
        met = np.concatenate([rows[cell] for cell in near])
        order = np.argsort(np.linalg.norm(X[met].astype(np.float64) - q, axis=1))
        found = index.query(q[None], 10, n_probes=6)[1][0]
        shares.append(len(set(found.tolist()) & set(met[order[:10]].tolist())) / 10)
    assert np.mean(shares) > 0.97  # k-means has not fully converged, and codes of centers are rounded


def test_rows_lie_in_the_cell_of_the_nearest_centre():
    X = songs(4000, 6)
    index = PartitionIndex(2.0, explained=1.0, n_jobs=1, random_state=0).fit(X[:3500])
    index.add(X[3500:])
    cells = index.trees_
    cell_of = np.empty(4000, int)
    for cell, (start, n) in enumerate(cells.leaves[1:, :2]):
        cell_of[cells.items[start : start + n]] = cell
    centres = np.array([X[cell_of == cell].mean(axis=0) for cell in range(index.n_leaves_)])
    distances = np.linalg.norm(X[:, None] - centres, axis=2)
    own = distances[np.arange(4000), cell_of]
    assert np.mean(own <= 1.1 * distances.min(axis=1)) > 0.9


@pytest.mark.parametrize("explained", [0.9, 1.0])
def test_all_cells_find_nearly_all_neighbors(explained):
    # only codes and axes cause misses, which disappear if more rows are ranked
    X, Q = songs(5000, 24), songs(100, 24, seed=1)
    true = ExactIndex().fit(X).query(Q, 10)[1]
    index = PartitionIndex(explained=explained, ranked=2.0 if explained == 1.0 else 20.0, random_state=0).fit(X)
    assert recall(index.query(Q, 10, n_probes=ALL_CELLS)[1], true) > 0.98


def test_how_far_rows_lie_from_the_axes_counts():
    # two of three axes: of rows equally near along these, the one near the plane comes first
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((6000, 3)) * [10, 9, 3]).astype(np.float32)
    Q = (rng.standard_normal((200, 3)) * [10, 9, 0]).astype(np.float32)
    index = PartitionIndex(1.0, explained=0.9, ranked=1.0, random_state=0).fit(X)
    assert index.n_axes_ == 2
    true = ExactIndex().fit(X).query(Q, 10)[1]
    assert recall(index.query(Q, 10, n_probes=ALL_CELLS)[1], true) > 0.95


def test_recall_grows_with_probes():
    X, Q = songs(5000, 24), songs(200, 24, seed=1)
    true = ExactIndex().fit(X).query(Q, 10)[1]
    index = PartitionIndex(random_state=0).fit(X)
    few, some, many = (recall(index.query(Q, 10, n_probes=n)[1], true) for n in (1, 8, 64))
    assert 0.1 < few < some - 0.1 < many - 0.2


def test_rows_like_the_first_are_added_to_the_cells_there_are():
    X = songs(4000, 12)
    index = PartitionIndex(n_jobs=1, random_state=0).fit(X[:2000])
    for start in range(2000, 4000, 100):
        index.add(X[start : start + 100])
    assert index.n_built_ == 2000
    index.add(X[:1])
    assert index.n_built_ == 4001  # it has more than doubled
    Q = songs(100, 12, seed=1)
    grown = PartitionIndex(n_jobs=1, random_state=0).fit(X[:2000])
    grown.add(X[2000:])
    true = ExactIndex().fit(X).query(Q, 10)[1]
    new = PartitionIndex(n_jobs=1, random_state=0).fit(X)
    recalls = [recall(of.query(Q, 10, n_probes=ALL_CELLS)[1], true) for of in (grown, new)]
    assert recalls[0] > recalls[1] - 0.02


def test_slots_that_cells_left_are_given_back(tmp_path):
    X = songs(4000, 6)
    index = PartitionIndex(1.0, n_jobs=1, random_state=0).fit(X[:2001])
    for start in range(2001, 4000, 50):
        index.add(X[start : start + 50])
    cells = index.trees_
    assert cells.sizes[2] <= 1.5 * cells.leaves[:, 2].sum()
    index.save(tmp_path / "index")
    same_answers(PartitionIndex.load(tmp_path / "index", X).query(X[:50], 9), index.query(X[:50], 9))


def test_k_means_finds_groups_that_lie_apart(rng):
    centres = 100 * rng.standard_normal((5, 3))
    Y = (np.repeat(centres, 60, axis=0) + rng.standard_normal((300, 3))).astype(np.float32)
    with ThreadPoolExecutor(2) as pool:
        found = k_means(rng.permutation(Y), 40, np.random.default_rng(0), pool)
        of_none, of_few = (k_means(Y[:n], 4, np.random.default_rng(0), pool) for n in (0, 3))
    near = np.linalg.norm(found[:, None] - centres, axis=2).min(axis=1)
    assert len(found) == 40
    assert near.max() < 5
    assert (len(of_none), len(of_few)) == (0, 3)


def test_threads_change_nothing():
    X = songs(3000, 12)
    one, two = (PartitionIndex(n_jobs=n, random_state=3).fit(X) for n in (1, 2))
    same_answers(one.query(X[:200], 7), two.query(X[:200], 7))
    one.add(X[:100])
    two.add(X[:100])
    same_answers(one.query(X[:200], 7), two.query(X[:200], 7))


@pytest.fixture
def in_small_blocks(monkeypatch):
    monkeypatch.setattr(partition_module, "BLOCK_ROWS", 512)


@pytest.fixture
def mapped(tmp_path):
    def written(X):
        X.tofile(tmp_path / "rows.f32")
        return np.memmap(tmp_path / "rows.f32", np.float32, mode="r", shape=X.shape)

    return written


def test_rows_of_a_file_in_blocks_make_the_index_of_those_in_memory(mapped, monkeypatch):
    X, index = songs(5000, 24), PartitionIndex(explained=0.9, n_jobs=1, random_state=3)
    whole = clone(index).fit(X).trees_
    monkeypatch.setattr(partition_module, "BLOCK_ROWS", 512)
    blocks = clone(index).fit(X).trees_
    of_file = clone(index).set_params(n_jobs=2).fit(mapped(X)).trees_
    for part in ("leaves", "items", "codes", "step"):
        np.testing.assert_array_equal(getattr(of_file, part), getattr(blocks, part))
    np.testing.assert_array_equal(blocks.items, whole.items)
    # products of other shapes round differently
    said = np.empty((2, len(whole.items), 4 * (whole.code_size // 4 - 1)), np.float32)
    for cells, numbers in zip((blocks, whole), said, strict=True):
        decode(cells.codes, 0, np.float32(1), numbers)
    different = said[0] - said[1]
    assert np.abs(different).max() <= 1
    assert np.count_nonzero(different) < 20


def test_building_takes_less_memory_than_the_rows(mapped, in_small_blocks):
    X = mapped(songs(60_000, 64))
    index = PartitionIndex(0.5, explained=1.0, n_jobs=1, random_state=0)
    index.fit(X[:2000])  # compiles
    tracemalloc.start()
    try:
        index.fit(X)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert index.nbytes_ < most < 0.75 * X.nbytes


def test_memory_is_what_the_arrays_take():
    X = songs(4096, 12)
    index = PartitionIndex(random_state=0).fit(X)
    cells = index.trees_
    slots = cells.leaves[:, 2].sum()
    assert index.nbytes_ == slots * (4 + code_size(index.n_axes_ + 1)) + 32 * len(cells.leaves)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cells": 0.0}, "cells=0"),
        ({"cells": float("inf")}, "cells=inf"),
        ({"ranked": 0.5}, r"ranked=0\.5"),
        ({"n_probes": 0}, "n_probes=0"),
        ({"n_probes": 2.5}, r"n_probes=2\.5"),
        ({"explained": 0.0}, "explained=0"),
        ({"n_jobs": 0}, "n_jobs=0"),
    ],
)
def test_options_out_of_range_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        PartitionIndex().set_params(**options).fit(songs(20))


def test_clone_keeps_the_options():
    index = PartitionIndex(2.0, 9, explained=0.8, ranked=3.0, n_jobs=1, random_state=4)
    assert clone(index).get_params() == index.get_params()


def test_few_rows_that_lie_together_are_compared_where_that_is_quicker_than_cells(rng):
    X = rng.standard_normal((60_000, 12)).astype(np.float32)
    Q = rng.standard_normal((20, 12)).astype(np.float32)
    far = np.linalg.norm(X - 3, axis=1)
    allowed = far <= np.partition(far, 2_500)[2_500]
    # 48 of 122 cells are probed, and contain .94 to .97 of the results
    index = PartitionIndex(0.5, n_probes=2, random_state=0).fit(X)
    _, ids = index.query(Q, 5, allowed=allowed)
    np.testing.assert_array_equal(ids, ExactIndex().fit(X).query(Q, 5, allowed=allowed)[1])


def test_a_few_new_rows_find_room_in_the_cells(rng):
    X = rng.standard_normal((60_300, 12)).astype(np.float32)
    index = PartitionIndex(0.5, random_state=0).fit(X[:60_000])
    codes = index.trees_.codes
    index.add(X[60_000:])
    assert index.trees_.codes is codes  # copying ten million rows takes seconds
