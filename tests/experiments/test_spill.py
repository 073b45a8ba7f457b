"""The spill tree experiment: recall by its definition, the generated songs, what tables and claims say."""

import itertools
import math

import numpy as np
import pytest

from experiments import spill
from experiments.spill import DEPTHS, RULES, SPILLS, WITH, WITHOUT, Point, at_share, hits, measure
from experiments.support.song_vectors import intrinsic_dimension, metric_spectrum, song_vectors, spectrum
from musicsim.search import SpillTree


def brute_sets(tree_rows, w, low, high, q):
    """Retrieval set of a tree with one split: rows up to `high` go left, those above `low` right."""
    projections, own = tree_rows @ w, q @ w
    found = set()
    if own <= high:
        found |= set(np.flatnonzero(projections <= high))
    if own > low:
        found |= set(np.flatnonzero(projections > low))
    return found


def nearest(X, Q, k):
    D = np.linalg.norm(X[None] - Q[:, None], axis=2)
    return np.argsort(D, axis=1, kind="stable")[:, :k]


def test_recall_is_share_of_true_neighbors_retrieved(rng):
    true = np.array([[3, 1, 4], [0, 2, 5], [7, 8, 9]])
    retrieved = [np.array([4, 0, 3]), np.empty(0, np.int64), np.arange(10)]
    assert hits(retrieved, true, 10).tolist() == [[True, False, True], [False] * 3, [True] * 3]


@pytest.mark.parametrize("tau", [0.0, 0.1])
def test_tree_is_measured_at_requested_depth(rng, tau):
    # on a line with one wide coordinate KD splits along it: the sets are known
    X = np.c_[rng.normal(0, 9, 200), rng.normal(size=200)].astype(np.float32)
    Q = np.c_[rng.normal(0, 9, 40), rng.normal(size=40)].astype(np.float32)
    true = nearest(X, Q, 20)
    tree = SpillTree("kd", tau, 3, leaf_size=1, n_sample=None, random_state=0).fit(X)
    order = np.sort(X[:, 0])
    low, high = (order[math.ceil((0.5 + side) * 200) - 1] for side in (-tau, tau))
    sets = [brute_sets(X, np.array([1.0, 0.0]), low, high, q) for q in Q]
    point = measure(tree, Q, true, 1)
    assert point.sizes.tolist() == [len(s) for s in sets]
    # means of 20 and of 10 truths
    expected = [len(s & set(t)) / 20 for s, t in zip(sets, true, strict=True)]
    assert point.recall == pytest.approx(expected)
    near = [len(s & set(t[:10])) / 10 for s, t in zip(sets, true, strict=True)]
    assert point.recall_near == pytest.approx(near)
    whole = measure(tree, Q, true, 0)
    assert set(whole.sizes) == {200}
    assert set(whole.recall) == {1.0}
    deeper = measure(tree, Q, true, 3)
    assert np.all(deeper.sizes < point.sizes)
    assert np.all(deeper.recall <= point.recall)


def test_recall_at_share_interpolates_between_depths():
    # the geometric mean of two shares lies half way
    assert at_share(2.0, [4.0, 1.0], [0.8, 0.4]) == pytest.approx(0.6)
    assert at_share(1.0, [4.0, 1.0], [0.8, 0.4]) == pytest.approx(0.4)
    assert at_share(0.9, [4.0, 1.0], [0.8, 0.4]) is None
    assert at_share(5.0, [4.0, 1.0], [0.8, 0.4]) is None


def test_real_data_sets_are_defined():
    assert set(spill.REAL) <= spill.REAL_SETS.keys()


def test_depths_keep_leaves_large_enough():
    assert spill.depths_for(10_240, 0.0) == list(range(3, 11))  # 10,240 / 2 ** 10 = 10
    assert spill.depths_for(10_239, 0.0) == list(range(3, 10))
    assert spill.depths_for(10**9, 0.0) == list(range(3, 14))


# --- generated songs ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def songs():
    return song_vectors(9_000, 200, seed=3)  # more than one block


def test_songs_do_not_depend_on_core_count(songs, monkeypatch):
    X, Q = songs
    assert (X.shape, Q.shape, X.dtype, Q.dtype) == ((9_000, 222), (200, 222), np.float32, np.float32)
    monkeypatch.setattr("experiments.support.song_vectors.effective_n_jobs", lambda _: 3)
    X_again, Q_again = song_vectors(9_000, 200, seed=3)
    assert np.array_equal(X, X_again)
    assert np.array_equal(Q, Q_again)
    X_other, _ = song_vectors(9_000, 200, seed=4)
    assert not np.isclose(X, X_other).all(axis=1).any()


def test_songs_are_unique(songs):
    X, Q = songs
    assert len(np.unique(np.concatenate([X, Q]), axis=0)) == 9_200


def test_metric_keeps_spectrum_share_from_thesis():
    kept = metric_spectrum(222, 512, 0.95)
    ratio = kept[1] / kept[0]
    assert len(kept) == 222
    assert kept[1:] / kept[:-1] == pytest.approx(ratio)
    assert kept.sum() / (ratio ** np.arange(512)).sum() == pytest.approx(0.95, abs=1e-9)


def test_spectrum_matches_covariance(songs):
    X, _ = songs
    values = spectrum(X)
    centred = X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
    singular = np.linalg.svd(centred, compute_uv=False) ** 2 / (len(X) - 1)
    # all of the 9,000 rows are taken; rounding of float64 only
    assert values == pytest.approx(singular, rel=1e-6, abs=1e-12)
    few, _ = song_vectors(2_000, 10, n_topics=5, seed=3)
    # mixtures of five have four dimensions, square roots bend them; the frames' noise has all
    held = [values[:4].sum() / values.sum() for values in (spectrum(few), values)]
    assert held[0] > 0.6
    assert held[1] < 0.5
    assert values[:111].sum() / values.sum() > 0.95  # half of the columns: correlated


def test_queries_are_distributed_like_songs(songs):
    X, Q = songs
    # 200 draws: ten standard errors of the mean
    assert np.all(np.abs(Q.mean(axis=0) - X.mean(axis=0)) < 10 * X.std(axis=0) / math.sqrt(200))
    to_rows = np.sqrt(((Q[:, None, :20] - X[None, :, :20]) ** 2).sum(axis=2)).min(axis=1)
    among = np.sqrt(((X[:200, None, :20] - X[None, 200:, :20]) ** 2).sum(axis=2)).min(axis=1)
    assert np.median(to_rows) == pytest.approx(np.median(among), rel=0.2)


@pytest.mark.parametrize("d", [2, 6])
def test_intrinsic_dimension_of_flat_cloud(rng, d):
    X = 2 * rng.random((20_000, d)) - 1
    middle = X[np.abs(X).max(axis=1).argsort()[:100]]  # far from the edges
    D = np.sort(np.linalg.norm(X[None] - middle[:, None], axis=2), axis=1)[:, 1:51]
    assert intrinsic_dimension(D) == pytest.approx(d, rel=0.1)  # 100 queries, which share neighbors
    with_copy = np.concatenate([D, np.zeros((1, 50))])
    assert intrinsic_dimension(with_copy) == intrinsic_dimension(D)


# --- tables and claims --------------------------------------------------------------------------------


def points_of(recall):
    """Points of a made-up run: `recall(rule, tau, depth)`, as many rows examined as a leaf holds."""
    return {
        (r, t, d): Point(
            np.full(3, round(10_000 * (0.5 + t) ** d)), np.array([0.0, recall(r, t, d), 1.0]), np.full(3, 0.5)
        )
        for r, t, d in itertools.product(RULES, SPILLS, DEPTHS)
    }


def good(rule, tau, depth):
    """As the thesis has it."""
    strength = {"pca": 1.0, "kd": 0.9, "2means": 0.5, "random": 0.4}[rule]
    return strength * (0.2 + 5 * tau) * 0.97**depth


TIMINGS = [
    {"timed, tau": tau, "k": k, "times faster": times} for tau, times in ((0.05, 120.0), (0.1, 18.0)) for k in (10, 100)
]


def claims_by_words(points, timings):
    return {c.claim: c for c in spill.claims(points, 10_000, timings)}


def test_claims_hold_for_thesis_results():
    found = claims_by_words(points_of(good), TIMINGS)
    orders = [c for words, c in found.items() if words.startswith("share of")]
    assert len(orders) == 7
    assert all(c.holds for c in orders)
    assert all(c.value == 1.0 for c in orders)
    gain = next(c for words, c in found.items() if words.startswith("gain"))
    mean = np.mean([0.5 * 0.1 * 0.97**d for d in DEPTHS])  # PCA's lead over KD in what 0.1 of spill adds
    assert gain.value == pytest.approx(mean)
    times = next(c for words, c in found.items() if "nearly doubled" in words)
    assert times.value == pytest.approx(good(*WITH) / good(*WITHOUT))
    assert [c.holds for words, c in found.items() if "faster" in words] == [True, True]


def test_failed_claims_report_difference():
    def worse(rule, tau, depth):
        if (rule, tau, depth) == ("random", 0.0, 5):
            return 1.0
        return good(rule, tau, depth)

    found = claims_by_words(points_of(worse), [TIMINGS[0] | {"times faster": 3.0}, *TIMINGS[1:]])
    # one of 36 places, of 12 x 9 steps in tau
    assert found["share of tau and depth where pca finds more than random"].value == pytest.approx(35 / 36)
    assert not found["share of tau and depth where kd finds more than random"].holds
    assert found["share of tau and depth where pca finds more than 2means"].holds
    assert found["share of steps up in tau in which recall grows or stays"].value == pytest.approx(107 / 108)
    faster = [c for words, c in found.items() if "faster" in words]
    assert [(c.value, c.holds) for c in faster] == [(3.0, False), (18.0, True)]


def test_unmeasured_claims_fail():
    found = claims_by_words(points_of(lambda *_: 0.0), [])
    unmeasured = [c for words, c in found.items() if "faster" in words or "nearly doubled" in words]
    assert [(c.value, c.holds) for c in unmeasured] == [(None, False)] * 3


def test_rows_show_medians_next_to_thesis_values():
    point = Point(np.array([10, 30, 20, 20]), np.array([0.1, 0.9, 0.5, 0.3]), np.array([1.0, 1.0, 0.0, 1.0]))
    rows = list(spill.curve_rows({WITH: point, ("kd", 0.1, 13): point}, 1_000))
    assert rows[0] == {
        "rule": "pca", "tau": 0.1, "depth": 13, "rows examined": 20.0, "thesis rows examined": 6_819,
        "share examined, %": 2.0, "recall@100": pytest.approx(0.4), "thesis recall@100": 0.53,
        "lower quartile": pytest.approx(0.25), "upper quartile": pytest.approx(0.6), "recall@10": 1.0,
    }  # fmt: skip
    assert rows[1]["thesis recall@100"] is None
