"""Tests of defeatist search against algorithm 6.3 and the exact index, and of features of all indexes of trees."""

import itertools
import json
import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from musicsim import _npy
from musicsim.search import ExactIndex, PartitionIndex, SpillForest, SpillTree
from musicsim.search.split_kernels import RULES
from tests.search.answers import assert_answers, assert_each_finds_itself, rows_of, shapes, songs
from tests.search.naive_trees import backed_up, nodes_of, retrieved, same_answers

# One thread and small leaves give several levels even for few rows.
TREE = SpillTree(leaf_size=8, n_jobs=1, random_state=0)
FOREST = SpillForest(3, 8, 6, n_jobs=1, random_state=0)
PARTITION = PartitionIndex(2.0, 3, n_jobs=1, random_state=0)
both_kinds = pytest.mark.parametrize("index", [TREE, FOREST], ids=["tree", "forest"])
every_kind = pytest.mark.parametrize("index", [TREE, FOREST, PARTITION], ids=["tree", "forest", "partition"])

trees = st.one_of(
    st.builds(
        SpillTree,
        st.sampled_from(RULES),
        st.sampled_from([0.0, 0.01, 0.1]),
        st.sampled_from([None, 0, 2, 20]),
        st.integers(1, 40),
        n_sample=st.sampled_from([None, 2, 30]),
        n_jobs=st.just(1),
        random_state=st.just(0),
    ),
    st.builds(SpillTree, st.sampled_from(RULES), st.just(0.3), leaf_size=st.just(30), n_jobs=st.just(1)),
)


def root_of(tree):
    return next(nodes_of(tree))


def nearest_among(X, q, rows, k):
    """Return exact distances in float64, nearest first; ties go to the lower id."""
    rows = np.array(sorted(rows), np.int64)
    distances = np.linalg.norm(X[rows].astype(np.float64) - q, axis=1)
    order = np.lexsort((rows, distances))[:k]
    return distances[order], rows[order]


@pytest.mark.long
@settings(max_examples=60)
@given(shape=shapes, tree=trees, shift=st.sampled_from([0.0, 0.25]), depth=st.sampled_from([None, 0, 1, 4]))
def test_retrieval_sets_are_those_of_algorithm_6_3(shape, tree, shift, depth):
    X, Q = rows_of(**shape), rows_of(**shape)[:5] + np.float32(shift)
    tree.fit(X)
    sets, root = tree.retrieve(Q, depth=depth), root_of(tree)
    for q, found in zip(Q.astype(np.float64), sets, strict=True):
        assert found.dtype == np.int64
        assert len(set(found.tolist())) == len(found)
        # if the query is at a threshold up to rounding, both sides are searched; float32 tolerates slightly more
        assert retrieved(root, q, depth=depth, rounding=0.0) <= set(found.tolist())
        assert set(found.tolist()) <= retrieved(root, q, depth=depth, rounding=2e-6)
        if tree.split == "kd":
            assert set(found.tolist()) == retrieved(root, q, depth=depth)


@pytest.mark.long
@settings(max_examples=60)
@given(
    shape=shapes, spill=st.sampled_from([0.0, 0.1]), leaf_size=st.integers(1, 20), k=st.integers(1, 400),
    gone=st.sampled_from([0.0, 0.3, 0.95]), data=st.data(),
)  # fmt: skip
def test_a_query_that_reaches_too_few_backs_up_to_the_parents(shape, spill, leaf_size, k, gone, data):
    X, rng = rows_of(**shape), np.random.default_rng(shape["seed"])
    tree = SpillTree("kd", spill, leaf_size=leaf_size, n_jobs=1).fit(X)
    Q = rng.integers(0, shape["n_values"], (4, shape["d"])).astype(np.float32)
    shown = rng.random(len(X)) >= gone
    if data.draw(st.booleans()):
        tree.remove(np.flatnonzero(~shown))
        distances, ids = tree.query(Q, k)
    else:
        distances, ids = tree.query(Q, k, allowed=shown)
    assert_answers(X, Q, (distances, ids), k, shown)
    root = root_of(tree)
    for i, q in enumerate(Q.astype(np.float64)):
        among = backed_up(root, q, min(k, shown.sum()), set(np.flatnonzero(shown).tolist()))
        np.testing.assert_array_equal(ids[i], nearest_among(X, q, among, k)[1])


@settings(max_examples=60)
@given(shape=shapes, k=st.integers(1, 320))
def test_one_leaf_answers_as_the_exact_index(shape, k):
    X = rows_of(**shape)
    Q = rows_of(6, shape["d"], 4, shape["seed"] + 1)
    allowed = np.random.default_rng(shape["seed"]).random(len(X)) < 0.5
    tree, exact = SpillTree(max_depth=0, n_jobs=1).fit(X), ExactIndex().fit(X)
    same_answers(tree.query(Q, k), exact.query(Q, k))
    same_answers(tree.query(Q, k, allowed=allowed), exact.query(Q, k, allowed=allowed))


@pytest.mark.long
@settings(max_examples=60)
@given(shape=shapes, tree=trees, k=st.sampled_from([1, 3, 10_000]), share=st.floats(0, 1), block=st.integers(1, 90))
def test_every_row_finds_itself_whenever_it_was_added(shape, tree, k, share, block):
    X = rows_of(**shape)
    first = int(share * len(X))
    tree.fit(X[:first])
    for start in range(first, len(X), block):
        ids = tree.add(X[start : start + block])
        np.testing.assert_array_equal(ids, np.arange(start, min(start + block, len(X))))
    assert tree.n_samples_ == len(X)
    assert_answers(X, X[:20], tree.query(X[:20], k), k)
    assert_each_finds_itself(tree, X)


@pytest.mark.parametrize("rule", RULES)
def test_sums_in_another_order_do_not_lose_a_row(rule, rng):
    # far from the origin, the summed products are up to 100 times the differences of rows
    X = (30.0 + rng.standard_normal((3000, 150))).astype(np.float32)
    tree = SpillTree(rule, 0.0, leaf_size=2, n_sample=64, n_jobs=1, random_state=0).fit(X[:1500])
    tree.add(X[1500:])
    assert_each_finds_itself(tree, X, np.arange(3000))


@pytest.mark.long
def test_rows_added_one_by_one_to_an_empty_index():
    X = songs(300)
    for index in (clone(TREE), SpillForest(3, 8, 6, n_jobs=1, random_state=0).fit(songs(200, seed=1))):
        if index is not None and not hasattr(index, "n_samples_"):
            index.fit(X[:0])
        first = index.n_samples_
        for row in range(len(X)):
            assert index.add(X[row : row + 1]).tolist() == [first + row]
        assert_each_finds_itself(index, X, np.arange(first, first + 300))


@pytest.mark.long
@every_kind
@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_rows(index, n):
    X = songs(3)
    index = clone(index).fit(X[:n])
    assert_answers(X[:n], X, index.query(X, 5), 5)
    assert index.add(X[n:]).tolist() == list(range(n, 3))
    assert_answers(X, X, index.query(X, 2), 2)


@every_kind
@pytest.mark.parametrize("make", [np.zeros, np.ones, lambda shape: np.full(shape, 0.1)], ids=["0", "1", "0.1"])
def test_thousands_of_equal_rows(index, make):
    X = make((4000, 5)).astype(np.float32)
    index = clone(index).fit(X[:2000])
    index.add(X[2000:])
    distances, ids = index.query(X[:3], 50)
    np.testing.assert_array_equal(distances, 0.0)
    assert [len(set(row.tolist())) for row in ids] == [50] * 3
    assert index.query(X[:1], 5000)[1].shape == (1, 4000)
    assert_answers(X, X[:2] + 1, index.query(X[:2] + 1, 7), 7)


@every_kind
def test_half_the_rows_equal_and_half_not(index):
    X = songs(4000)
    X[::2] = X[0]
    for n in (4000, 1000):
        index = clone(index).fit(X[:n])
        index.add(X[n:])
        assert_each_finds_itself(index, X[1::2], np.arange(1, 4000, 2))
        distances, ids = index.query(X[:1], 2000)
        np.testing.assert_array_equal(distances, 0.0)
        np.testing.assert_array_equal(np.sort(ids[0]), np.arange(0, 4000, 2))


@every_kind
def test_two_values_are_parted(index):
    X = np.zeros((3000, 2), np.float32)
    X[1::3] = 1.0
    index = clone(index).fit(X)
    distances, ids = index.query([[0.0, 0.0], [1.0, 1.0]], 1000)
    np.testing.assert_array_equal(distances, 0.0)
    assert set((ids[0] % 3).tolist()) == {0, 2}
    assert set((ids[1] % 3).tolist()) == {1}


@every_kind
@pytest.mark.parametrize("scale", [1e18, 1e9, 1e-12, 1e-18], ids=str)
def test_huge_and_tiny_values(index, scale):
    X = (np.random.default_rng(0).standard_normal((500, 8)) * scale / 4).astype(np.float32)
    index = clone(index).fit(X[:400])
    index.add(X[400:])
    assert_each_finds_itself(index, X, np.arange(500))
    assert_answers(X, X[:20], index.query(X[:20], 10), 10)


@every_kind
@pytest.mark.parametrize("scale", [1e-30, 1e-44], ids=str)
def test_values_whose_squares_are_0_in_float32_are_all_as_near(index, scale):
    X = (np.random.default_rng(0).standard_normal((300, 4)) * scale).astype(np.float32)
    distances, ids = clone(index).fit(X).query(X[:9], 20)
    np.testing.assert_array_equal(distances, ExactIndex().fit(X).query(X[:9], 20)[0])
    assert [len(set(row.tolist())) for row in ids] == [20] * 9


@every_kind
@pytest.mark.parametrize("size", [1e6, 1e18])
def test_a_query_far_from_all_rows(index, size):
    X, Q = songs(500), np.full((2, 6), size, np.float32)
    assert_answers(X, Q, clone(index).fit(X).query(Q, 30), 30)


@every_kind
def test_constant_columns_and_one_column(index):
    X = songs(600, 4)
    beside = np.column_stack([np.full(600, 7.0), X, np.zeros(600)]).astype(np.float32)
    for rows in (beside, X[:, :1]):
        assert_each_finds_itself(clone(index).fit(rows), rows)


@every_kind
def test_removed_rows_are_answers_no_more(index, rng):
    X = songs(400)
    index = clone(index).fit(X)
    gone = np.array([0, 7, 7, 399])
    index.remove(gone)
    index.remove(gone)  # repeating it has no effect
    index.remove([])
    shown = ~np.isin(np.arange(400), gone)
    assert_answers(X, X, index.query(X, 400), 400, shown)
    assert index.add(X[:3]).tolist() == [400, 401, 402]  # ids are not reused
    assert index.query(X[:1], 1)[1].tolist() == [[400]]
    index.remove(401)
    index.remove(np.arange(400))
    assert_answers(np.concatenate([X, X[:3]]), X, index.query(X, 9), 9, np.isin(np.arange(403), [400, 402]))
    index.remove(np.arange(403))
    distances, ids = index.query(X, 9)
    assert distances.shape == ids.shape == (400, 0)
    assert index.add(X[5:6]).tolist() == [403]
    assert index.query(X[:2], 9)[1].tolist() == [[403], [403]]
    # a new fit does not keep it
    assert index.fit(X).query(X, 400)[1].shape == (400, 400)


def test_removed_rows_are_in_no_retrieval_set():
    X = songs(400)
    tree = clone(TREE).fit(X)
    before = tree.retrieve(X[:20])
    tree.remove(np.arange(0, 400, 2))
    for old, new in zip(before, tree.retrieve(X[:20]), strict=True):
        assert set(new.tolist()) == {row for row in old.tolist() if row % 2}


@every_kind
def test_allowed_and_removed_go_together(index, rng):
    X = songs(500)
    index, allowed = clone(index).fit(X), rng.random(500) < 0.4
    index.remove(np.arange(0, 500, 3))
    shown = allowed & (np.arange(500) % 3 != 0)
    for mask in (allowed, allowed.tolist(), np.repeat(allowed, 2)[::2]):
        assert_answers(X, X[:9], index.query(X[:9], 500, allowed=mask), 500, shown)
    assert index.query(X[:9], 5, allowed=np.zeros(500, bool))[1].shape == (9, 0)


@every_kind
def test_rows_are_taken_as_they_are(index):
    X = songs(200)
    expected = clone(index).fit(X).query(X, 5)
    wide = np.zeros((200, 12), np.float32)
    wide[:, ::2] = X
    for rows in (X.astype(np.float64), X.tolist(), np.asfortranarray(X), wide[:, ::2]):
        same_answers(clone(index).fit(rows).query(rows, 5), expected)
    given = X.copy()
    fitted = clone(index).fit(given)
    fitted.add(given[:50])
    fitted.query(given, 3)
    np.testing.assert_array_equal(given, X)


@every_kind
def test_threads_give_the_same_answers(index):
    X = songs(1000)
    index = clone(index).fit(X)
    expected = index.query(X, 7)
    same_answers(clone(index).set_params(n_jobs=2).fit(X).query(X, 7), expected)
    same_answers(clone(index).set_params(n_jobs=-1).fit(X).query(X, 7), expected)
    one_by_one = [index.query(X[i : i + 1], 7) for i in range(1000)]
    with ThreadPoolExecutor(4) as pool:
        at_once = list(pool.map(lambda i: index.query(X[i : i + 1], 7), range(1000)))
    for answers in (one_by_one, at_once):
        same_answers([np.concatenate(part) for part in zip(*answers, strict=True)], expected)


@every_kind
def test_an_index_comes_back_from_its_folder(index, tmp_path):
    X = songs(600)
    index = clone(index).fit(X[:400])
    index.add(X[400:])
    index.remove([3, 500])
    expected = index.query(X, 9)
    index.save(tmp_path / "index")
    assert [path.name for path in tmp_path.iterdir()] == ["index"]
    again = type(index).load(tmp_path / "index", X)
    assert again.get_params() == clone(index).set_params(random_state=None).get_params()
    assert (again.n_samples_, again.n_features_in_) == (600, 6)
    assert again.n_leaves_ == index.n_leaves_
    same_answers(again.query(X, 9), expected)
    # later changes stay in this process
    for changed in (index, again):
        changed.add(songs(300, seed=1))
        changed.remove([4])
    same_answers(again.query(X, 9), index.query(X, 9))
    same_answers(type(index).load(tmp_path / "index", X).query(X, 9), expected)


@every_kind
@pytest.mark.parametrize("n", [0, 1, 40])
def test_small_indexes_come_back(index, n, tmp_path):
    X = songs(n)
    index = clone(index).fit(X)
    index.save(tmp_path / "index")
    same_answers(type(index).load(tmp_path / "index", X).query(songs(5), 3), index.query(songs(5), 3))


@every_kind
def test_rows_after_the_saved_ones_are_added(index, tmp_path):
    X = songs(600)
    index = clone(index).fit(X[:400])
    index.remove([3])
    index.save(tmp_path / "index")
    index.add(X[400:])
    longer = type(index).load(tmp_path / "index", X)
    assert longer.n_samples_ == 600
    same_answers(longer.query(X, 9), index.query(X, 9))
    assert_each_finds_itself(longer, X[4:], np.arange(4, 600))


@every_kind
def test_other_rows_are_refused(index, tmp_path):
    X = songs(300)
    index = clone(index).fit(X)
    index.save(tmp_path / "index")
    for other in (songs(300, seed=1), X[:299], X[::-1], songs(300, 5), X[:0], np.roll(X, 1, axis=0)):
        with pytest.raises(ValueError, match="built from different rows"):
            type(index).load(tmp_path / "index", other)
    with pytest.raises(ValueError, match="NaN"):
        type(index).load(tmp_path / "index", np.vstack([X, np.full((1, 6), np.nan)]))


@every_kind
def test_saving_again_replaces_the_whole_folder(index, tmp_path):
    X = songs(300)
    clone(FOREST).fit(X).save(tmp_path / "index")
    (tmp_path / "index" / "left over").write_text("of another version")
    index = clone(index).fit(X[:200])
    index.save(tmp_path / "index")
    assert [path.name for path in tmp_path.iterdir()] == ["index"]
    assert not (tmp_path / "index" / "left over").exists()
    same_answers(type(index).load(tmp_path / "index", X[:200]).query(X, 4), index.query(X, 4))


@every_kind
def test_an_index_can_be_saved_where_it_was_loaded_from(index, tmp_path):
    X = songs(300)
    clone(index).fit(X[:200]).save(tmp_path / "index")
    loaded = type(index).load(tmp_path / "index", X)
    expected = loaded.query(X, 4)
    loaded.save(tmp_path / "index")
    same_answers(loaded.query(X, 4), expected)
    same_answers(type(index).load(tmp_path / "index", X).query(X, 4), expected)


@every_kind
def test_a_folder_that_cannot_be_written_stays_as_it_was(index, tmp_path, monkeypatch):
    X = songs(300)
    clone(index).fit(X).save(tmp_path / "index")
    monkeypatch.setattr(_npy, "write_array", lambda *_: (_ for _ in ()).throw(OSError("no space left")))
    with pytest.raises(OSError, match="no space"):
        clone(index).fit(X[:100]).save(tmp_path / "index")
    assert [path.name for path in tmp_path.iterdir()] == ["index"]
    assert type(index).load(tmp_path / "index", X).n_samples_ == 300


@both_kinds
def test_options_may_be_numbers_of_numpy(index, tmp_path):
    X = songs(100)
    index = clone(index).set_params(leaf_size=np.int64(8), spill=np.float32(0)).fit(X)
    index.save(tmp_path / "index")
    same_answers(type(index).load(tmp_path / "index", X).query(X, 3), index.query(X, 3))


@every_kind
def test_damaged_folders_are_refused(index, tmp_path):
    X = songs(300)
    index = clone(index).fit(X)
    index.remove([1])
    index.save(tmp_path / "index")
    names = sorted(path.name for path in (tmp_path / "index").iterdir())
    assert {"index.json", "trees.json", "codes.npy", "items.npy", "leaves.npy", "shown.npy"} <= set(names)
    for name in names:
        content = (tmp_path / "index" / name).read_bytes()
        for harm in (None, b"", content[: len(content) // 2], bytes(len(content))):
            if name == "index.json" and harm is None:
                continue
            shutil.copytree(tmp_path / "index", tmp_path / "harmed", dirs_exist_ok=True)
            (tmp_path / "harmed" / name).unlink()
            if harm is not None:
                (tmp_path / "harmed" / name).write_bytes(harm)
            with pytest.raises(ValueError, match=r"The index in .*harmed is damaged .* rebuild it"):
                type(index).load(tmp_path / "harmed", X)


@every_kind
@pytest.mark.parametrize(
    ("name", "number"),
    [
        *itertools.product(("nodes", "leaves", "items"), (0, 1, -1, 2**30)),  # 0: lost by a disk after a power failure
        *itertools.product(("roots",), (1, -1, 2**30)),
    ],
)
def test_numbers_that_lead_nowhere_are_refused(index, name, number, tmp_path):
    X = songs(300)
    index = clone(index).fit(X)
    index.save(tmp_path / "index")
    if not (tmp_path / "index" / f"{name}.npy").exists():
        pytest.skip("a partition has no such array")
    array = np.load(tmp_path / "index" / f"{name}.npy")
    if name == "nodes":
        array.view(np.int32)[:, -3:] = number  # a cycle, or outside the arrays
    else:
        array[...] = number
    np.save(tmp_path / "index" / f"{name}.npy", array)
    with pytest.raises(ValueError, match="damaged"):
        type(index).load(tmp_path / "index", X)


@pytest.mark.long
@every_kind
@pytest.mark.parametrize("name", ["leaves", "items", "shown"])
def test_a_flipped_bit_of_a_header_is_damage(index, name, tmp_path):
    _assert_flipped_bits_are_damage(index, name, tmp_path)


@pytest.mark.long
@both_kinds
@pytest.mark.parametrize("name", ["nodes", "roots"])
def test_a_flipped_bit_of_the_header_of_nodes_is_damage(index, name, tmp_path):
    _assert_flipped_bits_are_damage(index, name, tmp_path)


def _assert_flipped_bits_are_damage(index, name, tmp_path):
    X = songs(300)
    index = clone(index).fit(X)
    index.remove(7)
    index.save(tmp_path / "index")
    path = tmp_path / "index" / f"{name}.npy"
    content = path.read_bytes()
    for at in range(128):
        for bit in (1, 4, 16):
            path.write_bytes(content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :])
            try:
                loaded = type(index).load(tmp_path / "index", X)
            except ValueError as error:
                assert "damaged" in str(error)  # noqa: PT017 - some flips change nothing that counts
            else:
                loaded.query(X[:40], 3)
                loaded.add(X[:2])


@every_kind
@pytest.mark.parametrize(
    ("file", "key", "value"),
    [
        ("index.json", "options", None),
        ("index.json", "options", {"n_jobs": "8"}),
        ("index.json", "options", {"n_jobs": 0}),
        ("trees.json", "step", None),
        ("trees.json", "step", 0.0),
        ("trees.json", "copies", "1"),
        ("trees.json", "seeds", [0.5]),
        ("trees.json", "sizes", [1, 2]),
    ],
)
def test_json_of_other_types_is_damage(index, file, key, value, tmp_path):
    X = songs(300)
    clone(index).fit(X).save(tmp_path / "index")
    path = tmp_path / "index" / file
    meta = json.loads(path.read_text())
    assert key in meta
    path.write_text(json.dumps(meta | {key: value}))
    with pytest.raises(ValueError, match="damaged"):
        type(index).load(tmp_path / "index", X)
    path.write_text("[]")
    with pytest.raises(ValueError, match="damaged"):
        type(index).load(tmp_path / "index", X)


@every_kind
def test_equal_distances_of_different_squares_go_by_the_id(index):
    # the squares 3.2500014 and 3.2500010 have the same float32 square root
    X = np.array([[1.5000005, 1.0], [1.5000004, 1.0]], np.float32)
    squares = (X * X).sum(axis=1)
    assert squares[0] > squares[1]
    for rows in (X, X[::-1]):
        index = clone(index).fit(rows)
        for k in (1, 2):
            same_answers(index.query(np.zeros((1, 2)), k), ExactIndex().fit(rows).query(np.zeros((1, 2)), k))


def test_rows_denser_than_the_first_do_not_multiply(tmp_path):
    # they are in the overlap of both sides of every node, and would be copied at every split
    rng = np.random.default_rng(0)
    X, k = (np.concatenate([s * rng.standard_normal((400, 8)) for s in (100, 1, 0.001)]).astype(np.float32), 400)
    tree = SpillTree("pca", 0.15, leaf_size=8, n_jobs=1, random_state=0).fit(X[:k])
    tree.add(X[k : 2 * k])
    tree.save(tmp_path / "index")
    for grown in (tree, SpillTree.load(tmp_path / "index", X[: 2 * k])):
        grown.add(X[2 * k :])
        again = SpillTree("pca", 0.15, leaf_size=8, n_jobs=1, random_state=0).fit(X)
        held = [sum(len(node.rows) for node in nodes_of(tree) if node.is_leaf) for tree in (grown, again)]
        assert held[0] <= 2 * held[1]
        assert_each_finds_itself(grown, X, np.arange(3 * k))


def test_rows_like_the_first_are_added_to_the_tree_there_is():
    X = songs(3000)
    tree = SpillTree("pca", 0.1, leaf_size=16, n_jobs=1, random_state=0).fit(X[:1000])
    for start in range(1000, 3000, 100):
        tree.add(X[start : start + 100])
    assert tree.n_built_ == 1000


@every_kind
def test_a_folder_without_an_index_is_not_found(index, tmp_path):
    with pytest.raises(FileNotFoundError):
        type(index).load(tmp_path / "none", songs(3))


def test_other_kinds_and_versions_are_refused(tmp_path):
    X = songs(50)
    clone(TREE).fit(X).save(tmp_path / "tree")
    with pytest.raises(ValueError, match="contains a SpillTree, not a SpillForest"):
        SpillForest.load(tmp_path / "tree", X)
    for name, key, value in (("trees.json", "format", 99), ("index.json", "options", {"color": "red"})):
        shutil.copytree(tmp_path / "tree", tmp_path / "other", dirs_exist_ok=True)
        meta = json.loads((tmp_path / "other" / name).read_text())
        (tmp_path / "other" / name).write_text(json.dumps(meta | {key: value}))
        with pytest.raises(ValueError, match="has a different version; rebuild it"):
            SpillTree.load(tmp_path / "other", X)


@every_kind
def test_what_is_saved_says_how_many_rows(index, tmp_path):
    X = songs(300)
    index = clone(index).fit(X[:200])
    index.add(X[200:])
    index.save(tmp_path / "index")
    assert type(index).count_saved_rows(tmp_path / "index") == (300, 200)
    assert type(index).load(tmp_path / "index", X).n_built_ == 200


@every_kind
def test_nothing_can_be_asked_before_fit(index, tmp_path):
    index = clone(index)
    for act in (
        lambda: index.query([[1.0]]), lambda: index.add([[1.0]]), lambda: index.remove(0), lambda: index.save(tmp_path)
    ):  # fmt: skip
        with pytest.raises(NotFittedError):
            act()


@both_kinds
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": "pcs"}, "split='pcs'.* pca, kd, 2means, random"),
        ({"spill": 0.5}, "spill=0.5"),
        ({"spill": -0.01}, "spill=-0.01"),
        ({"spill": float("nan")}, "spill=nan"),
        ({"leaf_size": 0}, "leaf_size=0"),
        ({"leaf_size": 2.5}, "leaf_size=2.5 .* integer"),
        ({"n_sample": 1}, "n_sample=1"),
        ({"n_sample": 99.5}, "n_sample=99.5"),
        ({"n_jobs": 0}, "n_jobs=0"),
    ],
)
def test_options_out_of_range_are_named(index, options, message):
    with pytest.raises(ValueError, match=message):
        clone(index).set_params(**options).fit(songs(20))


@pytest.mark.parametrize(("depth", "message"), [(-1, "max_depth=-1"), (2.5, "max_depth=2.5")])
def test_max_depth_out_of_range_is_named(depth, message):
    with pytest.raises(ValueError, match=message):
        SpillTree(max_depth=depth).fit(songs(20))


def test_retrieve_refuses_what_query_refuses():
    tree = clone(TREE).fit(songs(20))
    with pytest.raises(ValueError, match="depth=-1"):
        tree.retrieve(songs(1), depth=-1)
    with pytest.raises(ValueError, match="5 columns, but the index has 6"):
        tree.retrieve(songs(1, 5))


def test_a_failed_fit_or_add_leaves_the_index_as_it_was():
    X = songs(100)
    for index in (clone(TREE).fit(X), clone(FOREST).fit(X)):
        expected = index.query(X, 5)
        for act in (index.fit, index.add):
            with pytest.raises(ValueError, match="NaN"):
                act(np.full((3, 6), np.nan))
        same_answers(index.query(X, 5), expected)
        assert index.n_samples_ == 100


@both_kinds
def test_clone_and_set_params_keep_the_options(index):
    assert clone(index).get_params() == index.get_params()
    assert clone(index.fit(songs(30))).set_params(leaf_size=3).leaf_size == 3
