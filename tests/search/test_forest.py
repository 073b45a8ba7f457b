"""Tests of best-first search in many trees: probes, codes and allowed rows.

Common features of trees are tested in test_spill_tree.
"""

import heapq
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.base import clone

from musicsim.search import ExactIndex, SpillForest
from musicsim.search import tree_index as module
from musicsim.search.code_kernels import code_size
from musicsim.search.split_kernels import RULES
from tests.search.answers import along_axes, assert_answers, assert_each_finds_itself, rows_of, shapes, songs
from tests.search.naive_trees import same_answers

SMALL = SpillForest(3, 8, 6, n_jobs=1, random_state=0)
ALL_LEAVES = 10**6

forests = st.builds(
    SpillForest,
    st.integers(1, 5),
    st.integers(1, 70),
    st.sampled_from([1, 5, ALL_LEAVES]),
    split=st.sampled_from(RULES),
    spill=st.sampled_from([0.0, 0.05]),
    explained=st.sampled_from([0.5, 0.99, 1.0]),
    n_sample=st.sampled_from([None, 2, 30]),
    n_jobs=st.just(1),
    random_state=st.just(0),
)


@pytest.fixture(params=[0, 10**9], ids=["probed", "compared"])
def is_compared(request, monkeypatch):
    """Allowed rows are found through leaves or by a scan, depending on their number."""
    monkeypatch.setattr(module, "ROWS_PER_LEAF", request.param)
    return request.param > 0


def recall(found, true):
    return np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(found.tolist(), true.tolist(), strict=True)])


@settings(max_examples=80)
@given(shape=shapes, forest=forests, k=st.sampled_from([1, 3, 10_000]), gone=st.sampled_from([0.0, 0.4, 0.97]))
@pytest.mark.parametrize("rows_a_leaf", [0, 10**9])
def test_answers_are_distinct_and_exact(shape, forest, k, gone, rows_a_leaf):
    X, rng = rows_of(**shape), np.random.default_rng(shape["seed"])
    forest.fit(X)
    Q = np.concatenate([X[:6], X[:3] + np.float32(0.3)])
    assert_answers(X, Q, forest.query(Q, k), k)
    shown = rng.random(len(X)) >= gone
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "ROWS_PER_LEAF", rows_a_leaf)
        assert_answers(X, Q, forest.query(Q, k, allowed=shown), k, shown)
        forest.remove(np.flatnonzero(~shown))
        assert_answers(X, Q, forest.query(Q, k), k, shown)
        assert_answers(X, Q, forest.query(Q, k, n_probes=1), k, shown)


@settings(max_examples=60)
@given(shape=shapes, forest=forests, k=st.sampled_from([1, 3, 10_000]))
def test_all_rows_in_all_leaves_are_the_exact_answer(shape, forest, k):
    # k + k / 2 + 10 rows are ranked exactly: with two thirds of all rows or more, that is every row
    X = rows_of(**shape)
    k = max(k, 2 * len(X) // 3)
    Q = rows_of(6, shape["d"], 4, shape["seed"] + 1)
    same_answers(forest.fit(X).query(Q, k, n_probes=ALL_LEAVES), ExactIndex().fit(X).query(Q, k))


@settings(max_examples=60)
@given(shape=shapes, forest=forests, first=st.integers(1, 300), block=st.integers(1, 90))
def test_every_row_finds_itself_whenever_it_was_added(shape, forest, first, block):
    # all axes, and steps smaller than the distance of two whole numbers: codes distinguish all rows
    X = rows_of(**shape)
    X[:1], X[1:2] = 0, shape["n_values"] - 1
    forest.set_params(explained=1.0)
    first = max(first, 10 * shape["d"])
    forest.fit(X[:first])
    for start in range(first, len(X), block):
        ids = forest.add(X[start : start + block])
        np.testing.assert_array_equal(ids, np.arange(start, min(start + block, len(X))))
    distances, ids = forest.query(X, 1, n_probes=ALL_LEAVES)
    np.testing.assert_array_equal(distances, 0.0)
    np.testing.assert_array_equal(X[ids.ravel()], X)


def test_songs_find_themselves_with_few_probes():
    X = songs(6000, 20)
    forest = SpillForest(4, 32, 8, random_state=0).fit(X[:3000])
    for start in range(3000, 6000, 500):
        forest.add(X[start : start + 500])
    assert_each_finds_itself(forest, X, np.arange(6000))


@pytest.mark.long
@pytest.mark.parametrize("first", [0, 1, 3, 50, 1000])
def test_a_forest_that_grew_is_as_good_as_one_of_all_rows(first):
    X, Q = songs(3000, 20), songs(100, 20, seed=1)
    forest = SpillForest(4, 32, random_state=0).fit(X[:first])
    ends = [first, *range(first + 1, 60), 200, 1100, 1500, 2300, 3000]
    for start, end in itertools.pairwise(end for end in ends if end >= first):
        forest.add(X[start:end])
    forest.remove(7)
    assert_each_finds_itself(forest, X[8:], np.arange(8, 3000))
    true = ExactIndex().fit(X)
    true.remove(7)
    new = SpillForest(4, 32, random_state=0).fit(X)
    new.remove(7)
    recalls = [recall(index.query(Q, 10)[1], true.query(Q, 10)[1]) for index in (forest, new)]
    assert recalls[0] > recalls[1] - 0.02


def test_all_leaves_find_nearly_all_neighbors(rng):
    # only codes and axes cause misses
    X, Q = songs(5000, 24), songs(100, 24, seed=1)
    true = ExactIndex().fit(X).query(Q, 10)[1]
    assert recall(SpillForest(random_state=0).fit(X).query(Q, 10, n_probes=ALL_LEAVES)[1], true) > 0.99
    assert recall(SpillForest(1, explained=1.0).fit(X).query(Q, 10, n_probes=ALL_LEAVES)[1], true) > 0.99


def test_recall_grows_with_probes_and_trees():
    X, Q = songs(5000, 24), songs(200, 24, seed=1)
    true = ExactIndex().fit(X).query(Q, 10)[1]

    def of(n_trees, n_probes):
        return recall(SpillForest(n_trees, 32, random_state=0).fit(X).query(Q, 10, n_probes=n_probes)[1], true)

    few, some, many = of(4, 4), of(4, 16), of(4, 64)
    # one leaf per tree is a fiftieth of the rows at most
    assert 0.1 < few + 0.1 < some < many - 0.05
    assert of(1, 16) < some


def doubt(z):
    """Approximate -log Phi(z), the doubt about the side of a split, for a query z deviations inside."""
    return max(0.8326 - 0.479 * z, 0.0) ** 2


def odds(z):
    """Approximate log Phi(z) / Phi(-z), the evidence against the other side."""
    return z * (1.596 + 0.2 * z)


@pytest.mark.parametrize("z", np.linspace(0, 4, 17))
def test_margins_weigh_as_a_gaussian_step_says(z):
    inside, outside = stats.norm.logcdf([z, -z])
    # the order of leaves may be approximate: the square is 0 from 1.74 on, with .04 left
    assert doubt(z) == pytest.approx(-inside, abs=0.07)
    assert odds(z) == pytest.approx(inside - outside, rel=0.1, abs=0.05)


def leaves_met(forest, q, n_probes):
    """Return the rows of the leaves that best-first search visits, eight branches at a time."""
    trees, d, tie = forest.trees_, forest.n_axes_, itertools.count()
    y, links = along_axes(forest, q[None])[0].astype(np.float64), trees.nodes.view(np.int32)[:, -3:-1]
    queue, met = [], []

    def descend(node):
        """Return the leaf, the doubt about the way to it, and the other sides with the odds against them."""
        unsure, left = 0.0, []
        while node >= 0:
            b_r, b_l = trees.nodes[node, d : d + 2]
            margin = trees.nodes[node, :d] @ y - (float(b_r) + float(b_l)) / 2
            near, far = links[node, ::-1] if margin > 0 else links[node]
            z = abs(margin) * float(forest.sharpness_[0])
            left.append((odds(z), int(far)))
            unsure += doubt(z)
            node = int(near)
        return node, unsure, left

    for root in trees.roots:
        leaf, unsure, left = descend(int(root))
        for cost, node in (*left, (0.0, leaf)):
            heapq.heappush(queue, (unsure + cost, next(tie), node))
    while queue and n_probes:
        taken = [heapq.heappop(queue) for _ in range(min(8, len(queue), n_probes))]
        n_probes -= len(taken)
        for key, _, start in taken:
            leaf, _, left = descend(start)
            for cost, node in left:
                heapq.heappush(queue, (key + cost, next(tie), node))
            first, n = trees.leaves[-1 - leaf, :2]
            met += trees.items[first : first + n].tolist()
    return set(met)


@pytest.mark.parametrize("n_trees", [1, 3])
@pytest.mark.parametrize("spill", [0.0, 0.05])
def test_the_surest_leaves_are_looked_into_first(n_trees, spill):
    X = songs(3000, 5)
    forest = SpillForest(n_trees, 40, spill=spill, n_jobs=1, random_state=0).fit(X)
    for q in songs(20, 5, seed=1):
        for n_probes in (1, 2, 5, 12, 30):
            met = leaves_met(forest, q, n_probes)
            k = 2 * (len(met) - 10) // 3  # k + k / 2 + 10 rows are selected by their codes
            found = forest.query(q[None], k, n_probes=n_probes)[1][0]
            nearest = sorted(met, key=lambda row: np.linalg.norm(X[row].astype(np.float64) - q))[:k]
            # the last ones may miss one by the rounding of codes
            assert set(found.tolist()) <= met
            assert len(set(found.tolist()) & set(nearest)) >= k - 1


def test_more_leaves_than_asked_for_where_rows_are_too_few():
    X = songs(500)
    forest = clone(SMALL).fit(X)
    assert_answers(X, X[:5], forest.query(X[:5], 400, n_probes=1), 400)


def test_probes_grow_where_rows_are_hidden(is_compared):
    X, Q = songs(8000, 24), songs(100, 24, seed=1)
    forest = SpillForest(4, 32, 60, random_state=0).fit(X)
    allowed = np.random.default_rng(2).random(8000) < 0.1
    among = recall(forest.query(Q, 10, allowed=allowed)[1], ExactIndex().fit(X).query(Q, 10, allowed=allowed)[1])
    of_all = recall(forest.query(Q, 10)[1], ExactIndex().fit(X).query(Q, 10)[1])
    assert among == 1.0 if is_compared else among > of_all - 0.02


def test_allowed_rows_that_are_compared_are_answered_exactly(rng, is_compared):
    X, Q = songs(3000, 12), songs(20, 12, seed=1)
    forest, exact, allowed = SpillForest(random_state=0).fit(X), ExactIndex().fit(X), rng.random(3000) < 0.2
    answers = forest.query(Q, 9, n_probes=1, allowed=allowed)
    if is_compared:
        np.testing.assert_array_equal(answers[1], exact.query(Q, 9, allowed=allowed)[1])
        forest.remove(np.flatnonzero(~allowed))
        same_answers(forest.query(Q, 9, n_probes=1), answers)
    else:
        assert_answers(X, Q, answers, 9, allowed)


@pytest.mark.parametrize("n_probes", [10**9, 10**18, 10**30])
def test_more_probes_than_leaves(n_probes):
    X = songs(300)
    forest, allowed = clone(SMALL).fit(X), np.arange(300) % 3 == 0
    same_answers(forest.query(X, 5, n_probes=n_probes), forest.query(X, 5, n_probes=ALL_LEAVES))
    assert_answers(X, X, forest.query(X, 5, n_probes=n_probes, allowed=allowed), 5, allowed)


def test_rows_far_outside_the_first_ones_are_found():
    # their codes are clipped to the range
    X = songs(600, 8)
    forest = clone(SMALL).fit(X)
    forest.add(X[:50] + 2.0)
    far = np.concatenate([X, X[:50] + 2.0])[600:]
    distances, ids = forest.query(far, 1)
    np.testing.assert_array_equal(distances, 0.0)
    np.testing.assert_array_equal(ids.ravel(), np.arange(600, 650))


@pytest.mark.long
@pytest.mark.parametrize("kind", ["ten times as far", "off the axes", "first all equal"])
@pytest.mark.parametrize("is_loaded", [False, True])
def test_rows_that_codes_cannot_tell_apart_are_found(kind, is_loaded, tmp_path):
    rng = np.random.default_rng(0)
    if kind == "ten times as far":
        basis = rng.standard_normal((10, 40))
        X, new = (s * rng.standard_normal((n, 10)) @ basis for s, n in ((1, 4000), (10, 3000)))
    elif kind == "off the axes":
        X = rng.standard_normal((4000, 3)) @ rng.standard_normal((3, 20))
        new = rng.standard_normal((3000, 20))
    else:
        X, new = np.ones((4000, 5)), 1 + 0.01 * rng.standard_normal((3000, 5))
    rows = np.concatenate([X, new]).astype(np.float32)
    forest = SpillForest(n_jobs=1, random_state=0).fit(rows[:4000])
    if is_loaded:  # earlier additions count, too
        for start in range(0, 60, 5):
            forest.add(rows[4000 + start : 4005 + start])
            forest.save(tmp_path / "index")
            forest = SpillForest.load(tmp_path / "index", rows[: forest.n_samples_])
        assert (forest.n_built_ > 4000) == (kind != "off the axes")  # too few to change the axes
    forest.add(rows[forest.n_samples_ :])
    true, again = ExactIndex().fit(rows), SpillForest(n_jobs=1, random_state=0).fit(rows)
    Q = rows[4000::10]
    found, best = (recall(index.query(Q, 10)[1], true.query(Q, 10)[1]) for index in (forest, again))
    assert found > best - 0.02
    np.testing.assert_array_equal(forest.query(rows[4000:], 1)[1].ravel(), np.arange(4000, 7000))


@pytest.mark.parametrize("explained", [0.5, 0.99, 1.0])
def test_rows_like_the_first_are_added_to_the_trees_there_are(explained):
    X = np.random.default_rng(0).standard_t(4, (4000, 20)).astype(np.float32)
    forest = SpillForest(2, explained=explained, n_jobs=1, random_state=0).fit(X[:2000])
    for start in range(2000, 4000, 100):
        forest.add(X[start : start + 100])
    assert forest.n_built_ == 2000


def test_a_single_row_far_off_does_not_move_the_axes():
    X = songs(3000, 20)
    forest = SpillForest(4, 32, explained=0.9, n_jobs=1, random_state=0).fit(X)
    forest.add(np.full((1, 20), 1e6, np.float32))
    assert forest.n_built_ == 3000
    assert forest.query(np.full((1, 20), 1e6), 1)[1].tolist() == [[3000]]


def test_main_axes_keep_the_share_of_variance(rng):
    rotation = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    X = (rng.standard_normal((4000, 6)) * [8, 4, 2, 1, 0.5, 0] @ rotation + 3).astype(np.float32)
    variances = np.sort(np.linalg.eigvalsh(np.cov(X.T.astype(np.float64))))[::-1]
    shares = np.cumsum(variances) / variances.sum()
    for explained in (0.5, 0.9, 0.99, 0.999):
        forest = SpillForest(1, explained=explained).fit(X)
        assert forest.n_axes_ == np.searchsorted(shares, explained) + 1
        Y = along_axes(forest, X).astype(np.float64)
        assert Y.var(axis=0).sum() == pytest.approx(shares[forest.n_axes_ - 1] * variances.sum(), rel=1e-3)
        np.testing.assert_allclose(Y.mean(axis=0), 0.0, atol=1e-4)
        np.testing.assert_allclose(forest.axes_.T @ forest.axes_, np.eye(forest.n_axes_), atol=1e-6)
    assert SpillForest(1, explained=1.0).fit(X).n_axes_ == 5  # the sixth axis does not vary


def test_rows_may_be_a_read_only_map(tmp_path):
    X = songs(400)
    X.tofile(tmp_path / "rows.f32")
    rows = np.memmap(tmp_path / "rows.f32", dtype=np.float32, mode="r", shape=X.shape)
    forest = clone(SMALL).fit(rows)
    changed = np.memmap(tmp_path / "rows.f32", dtype=np.float32, mode="r+", shape=X.shape)
    changed[7] += 1e-4
    distances, ids = forest.query(changed[7:8], 1)
    assert (distances[0, 0], ids[0, 0]) == (0.0, 7), "the index has its own copy of the rows"
    changed[7] = X[7]
    same_answers(forest.query(X, 5), clone(SMALL).fit(X).query(X, 5))
    assert forest.add(X[:2]).tolist() == [400, 401]
    assert forest.query(X[:2], 2)[1].tolist() == [[0, 400], [1, 401]]


def test_memory_is_what_the_arrays_take():
    X = songs(4096, 12)
    forest = SpillForest(3, 64, random_state=0).fit(X)
    leaves = 3 * 4096 * (4 + code_size(forest.n_axes_))  # full leaves
    nodes = 3 * 63 * 4 * (forest.n_axes_ + 5) + 3 * 64 * 32
    assert forest.nbytes_ == leaves + nodes + 3 * 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_trees": 0}, "n_trees=0"),
        ({"n_trees": 2.5}, "n_trees=2.5"),
        ({"n_probes": 2.5}, "n_probes=2.5"),
        ({"n_probes": 0}, "n_probes=0"),
        ({"explained": 0.0}, "explained=0"),
        ({"explained": 1.01}, "explained=1.01"),
        ({"explained": float("nan")}, "explained=nan"),
    ],
)
def test_options_out_of_range_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        clone(SMALL).set_params(**options).fit(songs(20))


def test_probes_out_of_range_are_named():
    forest = clone(SMALL).fit(songs(20))
    with pytest.raises(ValueError, match="n_probes=0"):
        forest.query(songs(1), n_probes=0)
    with pytest.raises(ValueError, match=r"n_probes=2\.5"):
        forest.query(songs(1), n_probes=2.5)
    with pytest.raises(ValueError, match="n_probes=-3"):
        forest.set_params(n_probes=-3).query(songs(1))
