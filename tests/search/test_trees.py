"""Tests of the nodes of spill trees against algorithm 6.2, and of their arrays."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musicsim.search import SpillForest, SpillTree
from musicsim.search.code_kernels import BLOCK, decode
from musicsim.search.split_kernels import RULES
from tests.search.answers import along_axes
from tests.search.naive_trees import links_of, nodes_of, thresholds

# Sums of products in float32, of the length of a row and of a direction of length 1.
TOLERANCE = 1e-6


def rows_with_ties(n, d, n_values, seed):
    """Return whole numbers, so coordinates, thresholds and distances are exact, and many are equal."""
    return np.random.default_rng(seed).integers(0, n_values, (n, d)).astype(np.float32)


def songs(n, d, seed=0):
    """Return columns of decreasing variance."""
    X = np.random.default_rng(seed).standard_normal((n, d)) / np.sqrt(np.arange(1, d + 1))
    return X.astype(np.float32)


def root_of(index):
    return next(nodes_of(index))


def shape_of(index):
    """Return directions, thresholds and leaves in order, which define a tree independently of its memory layout."""
    return [tuple(node.rows) if node.is_leaf else (node.w.tobytes(), node.b_r, node.b_l) for node in nodes_of(index)]


def assert_arrays_are_sound(index):
    """Assert that every reference has exactly one target, and every slot belongs to one leaf."""
    trees = index.trees_
    n_inner, n_leaves, n_slots = trees.sizes
    links, leaves = links_of(trees), trees.leaves[:n_leaves]
    targets = np.concatenate([trees.roots, links[:, :2].ravel()])
    expected = np.concatenate([np.arange(n_inner), -1 - np.arange(n_leaves)])
    np.testing.assert_array_equal(np.sort(targets), np.sort(expected))
    for parent, children in enumerate(links[:, :2]):
        for child in children:
            assert (links[child, 2] if child >= 0 else leaves[-1 - child, 3]) == parent
    for root in trees.roots:
        assert (links[root, 2] if root >= 0 else leaves[-1 - root, 3]) == -1
    owner = np.full(n_slots, -1)
    for leaf, (first, n, room, _) in enumerate(leaves):
        assert 0 <= n <= room
        assert first % BLOCK == room % BLOCK == 0
        assert (owner[first : first + room] == -1).all()
        owner[first : first + room] = leaf
        rows = trees.items[first : first + n]
        assert len(set(rows.tolist())) == n
        assert (rows >= 0).all()


def assert_split_as_printed(index, X, spill, whole=0):
    """Assert that sides and thresholds of every node follow from the projections of its rows, up to rounding."""
    n_split = 0
    for node in nodes_of(index):
        if node.is_leaf:
            continue
        n_split += 1
        projections = X[node.rows].astype(np.float64) @ node.w
        slack = TOLERANCE * float(np.linalg.norm(X[node.rows], axis=1).max())
        left, right = np.isin(node.rows, node.left.rows), np.isin(node.rows, node.right.rows)
        assert left[projections <= node.b_l - slack].all()
        assert not left[projections > node.b_l + slack].any()
        assert right[projections > node.b_r + slack].all()
        assert not right[projections <= node.b_r - slack].any()
        assert (node.b_r, node.b_l) == pytest.approx(thresholds(projections, spill, whole), abs=slack)
    return n_split


@settings(max_examples=80)
@given(
    n=st.integers(0, 120),
    d=st.integers(1, 5),
    n_values=st.sampled_from([1, 2, 4, 100]),
    spill=st.sampled_from([0.0, 0.0625, 0.125, 0.25]),  # exact in binary
    leaf_size=st.integers(1, 12),
    max_depth=st.sampled_from([None, 0, 1, 3, 6]),
    seed=st.integers(0, 2**31),
)
def test_every_node_is_that_of_algorithm_6_2(n, d, n_values, spill, leaf_size, max_depth, seed):
    X = rows_with_ties(n, d, n_values, seed)
    tree = SpillTree("kd", spill, max_depth, leaf_size, n_sample=None, n_jobs=1).fit(X)
    assert_arrays_are_sound(tree)
    assert root_of(tree).rows == list(range(n))
    for node in nodes_of(tree):
        rows = X[node.rows].astype(np.float64)
        ends = len(rows) <= leaf_size or node.depth == max_depth or (rows == rows[:1]).all()
        assert node.is_leaf == ends
        if node.is_leaf:
            continue
        projections = rows @ node.w
        assert (node.b_r, node.b_l) == thresholds(projections, spill)
        ids = np.array(node.rows)
        assert node.left.rows == ids[projections <= node.b_l].tolist()
        assert node.right.rows == ids[projections > node.b_r].tolist()
    assert tree.n_leaves_ == sum(node.is_leaf for node in nodes_of(tree))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("spill", [0.0, 0.1])
def test_sides_and_thresholds_of_every_rule(rule, spill):
    X = songs(1500, 9)
    tree = SpillTree(rule, spill, leaf_size=20, n_sample=100, n_jobs=1, random_state=0).fit(X)
    assert assert_split_as_printed(tree, X, spill) > 60
    for node in nodes_of(tree):
        if not node.is_leaf:
            assert np.linalg.norm(node.w) == pytest.approx(1.0, abs=1e-6)
            assert abs(len(node.left.rows) / len(node.rows) - 0.5 - spill) * len(node.rows) <= 1.5
            assert abs(len(node.right.rows) / len(node.rows) - 0.5 - spill) * len(node.rows) <= 1.5


@given(st.integers(0, 2**31))
@settings(max_examples=10)
def test_kd_is_the_coordinate_of_greatest_variance(seed):
    X = songs(200, 6, seed)
    tree = SpillTree("kd", 0.0, leaf_size=10, n_sample=None, n_jobs=1).fit(X)
    for node in nodes_of(tree):
        if not node.is_leaf:
            assert sorted(node.w) == [0, 0, 0, 0, 0, 1]
            variances = X[node.rows].astype(np.float64).var(axis=0)
            assert variances @ node.w >= (1 - 1e-5) * variances.max()


def share_of_leading_variance(node, X):
    covariance = np.cov(X[node.rows].astype(np.float64).T, bias=True)
    return node.w @ covariance @ node.w / np.linalg.eigvalsh(covariance)[-1]


def test_pca_is_the_direction_of_greatest_variance():
    X = np.random.default_rng(0).standard_normal((4000, 12)) * 0.7 ** np.arange(12)
    X = X.astype(np.float32)
    tree = SpillTree("pca", 0.0, leaf_size=64, n_sample=None, n_jobs=1, random_state=0).fit(X)
    shares = [share_of_leading_variance(node, X) for node in nodes_of(tree) if not node.is_leaf]
    assert shares[0] > 0.99
    # if two eigenvalues nearly tie, power iterations end between their vectors
    assert np.mean(np.array(shares) > 0.99) > 0.9
    assert min(shares) > 0.7


def test_a_start_across_the_leading_axis_does_not_end_there():
    # in the plane, one start in fifty is so close to the minor axis that the first steps hardly turn
    X = (np.random.default_rng(1).standard_normal((64, 2)) * [1.0, 0.5]).astype(np.float32)
    shares = [
        share_of_leading_variance(root_of(SpillTree("pca", 0.0, 1, 1, n_jobs=1, random_state=seed).fit(X)), X)
        for seed in range(300)
    ]
    assert min(shares) > 0.99


def test_two_means_points_from_one_cluster_to_the_other(rng):
    # the spread within a cluster exceeds the gap in every direction except one
    blobs = rng.standard_normal((2, 300, 8)) * np.r_[0.2, np.full(7, 1.0)]
    blobs[1, :, 0] += 8.0
    X = blobs.reshape(-1, 8).astype(np.float32)
    root = root_of(SpillTree("2means", 0.0, 1, 1, n_sample=None, n_jobs=1).fit(X))
    means = blobs.mean(axis=1)
    direction = (means[1] - means[0]) / np.linalg.norm(means[1] - means[0])
    assert abs(root.w @ direction) > 0.99
    assert {row < 300 for row in root.left.rows} != {row < 300 for row in root.right.rows}
    assert len({row < 300 for row in root.left.rows}) == 1


def test_a_row_far_from_all_others_does_not_decide_two_means(rng):
    # centroids start at random rows; the farthest row would be one of two, alone
    blobs = rng.standard_normal((2, 300, 8)).astype(np.float32)
    blobs[1, :, 0] += 8.0
    X = np.vstack([*blobs, [[4.0, *[0.0] * 6, 300.0]]]).astype(np.float32)
    along = [
        abs(root_of(SpillTree("2means", 0.0, 1, 1, n_sample=None, n_jobs=1, random_state=seed).fit(X)).w[0])
        for seed in range(20)
    ]
    assert np.median(along) > 0.95


def test_random_has_the_largest_projected_diameter_of_64(rng):
    X = songs(300, 20)
    directions = rng.standard_normal((4000, 20))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    diameters = np.sort(np.ptp(X @ directions.T, axis=0))
    chosen = [
        np.ptp(X @ root_of(SpillTree("random", 0.0, 1, 1, n_sample=None, n_jobs=1, random_state=seed).fit(X)).w)
        for seed in range(40)
    ]
    ranks = np.searchsorted(diameters, chosen) / len(diameters)
    # the largest of 64: ranks are distributed as u^(1/64), mean 64/65, deviation 0.015; of 40 draws 0.0024
    assert ranks.mean() == pytest.approx(64 / 65, abs=5 * 0.0024)
    assert len(set(chosen)) == 40


def test_a_direction_does_not_depend_on_where_the_rows_lie(rng):
    # sums of 200,000 numbers near 2,000 exceed the precision of float32
    X = (2000.0 + rng.standard_normal((200_000, 2)) * [1.0, 0.1]).astype(np.float32)
    for rule in ("pca", "kd"):
        root = root_of(SpillTree(rule, 0.0, 1, 1, n_sample=None, n_jobs=1, random_state=0).fit(X))
        assert abs(root.w[0]) > 0.99


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("exponent", [-60, -40, 30, 55])
def test_a_tree_does_not_depend_on_the_unit(rule, exponent):
    # powers of two scale every number without rounding; 2^-60 is 1e-18, 2^55 is 4e16
    X = songs(600, 4)
    for n_sample in (None, 50):
        options = {"leaf_size": 10, "n_sample": n_sample, "n_jobs": 1, "random_state": 0}
        ours = SpillTree(rule, 0.0, **options).fit(np.ldexp(X, exponent))
        assert ours.n_leaves_ == SpillTree(rule, 0.0, **options).fit(X).n_leaves_
        assert max(len(node.rows) for node in nodes_of(ours) if node.is_leaf) <= 10


@pytest.mark.parametrize("rule", RULES)
def test_a_sample_of_copies_does_not_hide_the_other_rows(rule):
    # 0.1 added repeatedly is not a multiple of 0.1: the mean of copies must be the copy
    X = np.full((3000, 3), 0.1, np.float32)
    X[::300, 1] += np.arange(1, 11)
    tree = SpillTree(rule, 0.0, leaf_size=4, n_sample=3, n_jobs=1, random_state=0).fit(X)
    for node in nodes_of(tree):
        assert not node.is_leaf or len(node.rows) <= 4 or (X[node.rows] == X[node.rows[0]]).all()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("X", [songs(1000, 5), rows_with_ties(1000, 5, 3, 0)], ids=["songs", "ties"])
def test_spill_0_is_a_partition(rule, X):
    for n in (1000, 300):
        tree = SpillTree(rule, 0.0, leaf_size=7, n_jobs=1).fit(X[:n])
        tree.add(X[n:])
        leaves = [node.rows for node in nodes_of(tree) if node.is_leaf]
        assert sorted(row for rows in leaves for row in rows) == list(range(1000))


def test_copies_grow_as_one_and_two_spills_to_the_depth():
    X = songs(4096, 6)
    for spill in (0.05, 0.1, 0.2):
        tree = SpillTree("kd", spill, max_depth=5, leaf_size=1, n_jobs=1).fit(X)
        n_held = sum(len(node.rows) for node in nodes_of(tree) if node.is_leaf)
        # each of 62 sides is rounded by less than a row, which is copied at further levels
        assert abs(n_held - 4096 * (1 + 2 * spill) ** 5) <= 62 * (1 + 2 * spill) ** 4


def test_options_end_a_tree():
    X = songs(500, 3)
    assert SpillTree(max_depth=0).fit(X).n_leaves_ == 1
    assert SpillTree(leaf_size=500).fit(X).n_leaves_ == 1
    assert SpillTree(leaf_size=499).fit(X).n_leaves_ == 2
    assert SpillTree(spill=0.0, max_depth=3, leaf_size=1).fit(X).n_leaves_ == 8
    assert SpillTree(spill=0.0, max_depth=None, leaf_size=1).fit(X).n_leaves_ == 500
    assert SpillTree(spill=0.0, max_depth=4, leaf_size=200).fit(X).n_leaves_ == 4


@pytest.mark.long
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("X", [songs(2000, 7), rows_with_ties(2000, 7, 3, 0)], ids=["songs", "ties"])
def test_the_trees_are_the_same_with_any_number_of_threads(rule, X):
    for make in (
        lambda n: SpillTree(rule, 0.05, leaf_size=20, n_sample=100, n_jobs=n, random_state=3),
        lambda n: SpillForest(3, 16, split=rule, n_jobs=n, random_state=3),
    ):
        shapes = [shape_of(make(n).fit(X)) for n in (1, 2, 5)]
        assert shapes[0] == shapes[1] == shapes[2]


def test_a_chain_of_nodes_is_no_trouble_to_many_threads():
    # kd separates one row after another: 99 levels, more than a node's number has bits
    X = np.repeat(np.eye(100, dtype=np.float32), 3, axis=0)
    trees = [SpillTree("kd", 0.0, leaf_size=1, n_jobs=n, random_state=0).fit(X) for n in (1, 40)]
    assert [max(node.depth for node in nodes_of(tree)) for tree in trees] == [99, 99]
    assert shape_of(trees[0]) == shape_of(trees[1])


@pytest.mark.parametrize("spill", [0.0, 0.1])
@pytest.mark.parametrize("n", [0, 1, 31, 64, 65, 1000])
def test_arrays_of_forests_are_sound(n, spill):
    X = songs(n, 5)
    forest = SpillForest(3, 16, spill=spill, random_state=0).fit(X)
    assert_arrays_are_sound(forest)
    roots = [node for node in nodes_of(forest) if node.depth == 0]
    assert [root.rows for root in roots] == [list(range(n))] * 3
    if spill == 0.0:
        assert_split_as_printed(forest, along_axes(forest, X), spill, whole=16)


def test_leaves_of_a_forest_are_full():
    forest = SpillForest(4, 32, random_state=0).fit(songs(1000, 5))
    for tree in np.split(np.array([len(n.rows) for n in nodes_of(forest) if n.is_leaf]), 4):
        assert sorted(tree)[1:] == [32] * 31
        assert tree.sum() == 1000


def test_trees_of_a_forest_differ():
    forest = SpillForest(4, 32, random_state=0).fit(songs(1000, 5))
    roots = [node.left.rows for node in nodes_of(forest) if node.depth == 0]
    assert all(roots[i] != roots[j] for i in range(4) for j in range(i))


def test_the_same_seed_gives_the_same_trees():
    X = songs(800, 5)
    for make in (lambda seed: SpillTree("random", random_state=seed), lambda seed: SpillForest(2, random_state=seed)):
        shapes = [shape_of(make(seed).fit(X)) for seed in (0, 0, 1, np.random.default_rng(0))]
        assert shapes[0] == shapes[1] == shapes[3]
        assert shapes[0] != shapes[2]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("spill", [0.0, 0.1])
def test_rows_added_later_lie_where_the_nodes_send_them(rule, spill):
    X = songs(700, 4)
    tree = SpillTree(rule, spill, leaf_size=16, n_jobs=1, random_state=0).fit(X[:100])
    for start in (100, 101, 350):
        tree.add(X[start : {100: 101, 101: 350, 350: 700}[start]])
        assert_arrays_are_sound(tree)
    assert root_of(tree).rows == list(range(700))
    for node in nodes_of(tree):
        if node.is_leaf:
            assert len(node.rows) < 32  # a leaf that has doubled is split
            continue
        projections = X[node.rows].astype(np.float64) @ node.w
        slack = TOLERANCE * np.linalg.norm(X[node.rows], axis=1)
        assert set(node.left.rows) >= set(np.array(node.rows)[projections <= node.b_l - slack])
        assert set(node.right.rows) >= set(np.array(node.rows)[projections > node.b_r + slack])
        assert len(node.left.rows) < len(node.rows) > len(node.right.rows)


@pytest.mark.parametrize("leaf_size", [1, 20, 127])
def test_a_leaf_is_split_when_it_has_doubled(leaf_size):
    X = songs(4 * leaf_size, 4)
    tree = SpillTree("kd", 0.0, leaf_size=leaf_size, n_jobs=1).fit(X[:leaf_size])
    for n in range(leaf_size + 1, 2 * leaf_size + 1):
        assert tree.n_leaves_ == 1
        tree.add(X[n - 1 : n])
    assert tree.n_leaves_ == 2
    # rows that could not be separated are tried again when there are twice as many
    copies = SpillTree("kd", 0.0, leaf_size=leaf_size, n_jobs=1).fit(np.zeros((2 * leaf_size, 2)))
    copies.add(np.ones((2 * leaf_size - 1, 2)))
    assert copies.n_leaves_ == 1
    copies.add(np.ones((1, 2)))
    assert copies.n_leaves_ == 2


def test_room_that_leaves_have_left_is_used_again():
    forest = SpillForest(2, 16, random_state=0).fit(songs(200, 4))
    for block in range(30):
        forest.add(songs(200, 4, seed=block + 1))
        assert_arrays_are_sound(forest)
    used = forest.trees_.leaves[: forest.n_leaves_, 2].sum()
    assert forest.trees_.sizes[2] <= 2 * used


def test_added_rows_may_not_go_deeper_than_max_depth():
    tree = SpillTree(spill=0.0, max_depth=2, leaf_size=1, random_state=0).fit(songs(10, 3))
    tree.add(songs(500, 3, seed=1))
    assert (max(node.depth for node in nodes_of(tree)), tree.n_leaves_) == (2, 4)


def test_codes_are_the_rows_along_the_axes_in_steps():
    X = songs(500, 6)
    forest = SpillForest(3, 16, random_state=0).fit(X[:300])
    forest.add(3 * X[300:310])  # too few to build the forest again
    trees, d = forest.trees_, forest.n_axes_
    Y = along_axes(forest, np.concatenate([X[:300], 3 * X[300:310]])).astype(np.float64)
    codes = np.empty((trees.sizes[2], d), np.float32)
    decode(trees.codes, 0, np.float32(1), codes)
    expected = np.clip(Y / trees.step, -127, 127)
    assert np.abs(expected[:300]).max() == pytest.approx(127, abs=1e-3)
    for first, n, _, _ in trees.leaves[: forest.n_leaves_]:
        rows = trees.items[first : first + n]
        # half a step, plus the float32 rounding of 127 steps
        assert np.abs(codes[first : first + n] - expected[rows]).max(initial=0) <= 0.5 + 1e-4
