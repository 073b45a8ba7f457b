"""Tests of ranking measures against all orders that the distances allow, scikit-learn, and closed forms."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats
from scipy.spatial.distance import cdist
from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score
from sklearn.neighbors import KNeighborsClassifier

from musicsim.evaluation import bootstrap_pairs, distance_scores, query_scores, ranking, ranking_scores
from musicsim.relevance import Relevance

MEASURES = ["auc", "map", "mrr", "ndcg", "precision"]
ORIGIN = np.zeros((1, 1))


def gain(rank):
    return 1.0 if rank == 1 else 1.0 / np.log2(rank)


def scores_of_order(order, k):
    """Compute section 3.4 of the thesis for one order, a list of 1 for relevant and 0 for irrelevant."""
    ranks = [r for r, hit in enumerate(order, start=1) if hit]
    pairs = [a > b for i, b in enumerate(order) for a in order[:i] if a != b]
    return {
        "auc": np.mean(pairs),
        "map": np.mean([sum(order[:r]) / r for r in ranks]),
        "mrr": 1 / ranks[0],
        "ndcg": sum(gain(r) for r in ranks if r <= k) / sum(gain(r) for r in range(1, k + 1)),
        "precision": sum(order[:k]) / k,
    }


def orders(distances, relevant):
    """Yield every order of the songs in which distances do not decrease."""
    for order in permutations(range(len(distances))):
        if (np.diff(np.asarray(distances)[list(order)]) >= 0).all():
            yield [relevant[i] for i in order]


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=2, max_size=6).filter(
        lambda songs: len({hit for _, hit in songs}) == 2
    ),
    st.integers(1, 8),
)
def test_ties_match_enumeration_of_all_orders(songs, k):
    distances, relevant = [d for d, _ in songs], [int(hit) for _, hit in songs]
    every = [scores_of_order(order, k) for order in orders(distances, relevant)]
    ours = ranking_scores(ORIGIN, np.array(distances, dtype=float)[:, None], [np.flatnonzero(relevant).tolist()], k)
    # a tie is half a pair in order, as the mean over the orders; the pessimistic score is the minimum over them
    assert ours["auc"] == pytest.approx(np.mean([s["auc"] for s in every]), abs=1e-12)
    for name in MEASURES[1:]:
        assert ours[name] == pytest.approx(min(s[name] for s in every), abs=1e-12)


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_scores_without_ties_match_scikit_learn(seed, k):
    rng = np.random.default_rng(seed)
    Q, X = rng.standard_normal((6, 3)), rng.standard_normal((25, 3))
    hits = rng.random((6, 25)) < 0.3
    hits[:, 0], hits[:, 1] = True, False
    ours = query_scores(Q, X, [np.flatnonzero(h) for h in hits], k)
    first = query_scores(Q, X, [np.flatnonzero(h) for h in hits], 1)
    D = np.linalg.norm(Q[:, None] - X[None], axis=2)
    for q in range(6):
        # relative error of sums of 25 terms in float64
        assert ours["auc"][q] == pytest.approx(roc_auc_score(hits[q], -D[q]), rel=1e-12)
        assert ours["map"][q] == pytest.approx(average_precision_score(hits[q], -D[q]), rel=1e-12)
        # scikit-learn discounts rank 2 and divides by the best score of this query: equal at k = 1 only
        assert first["ndcg"][q] == pytest.approx(ndcg_score(hits[[q]], -D[[q]], k=1), rel=1e-12)
        truth = scores_of_order(hits[q][np.argsort(D[q])].astype(int).tolist(), k)
        assert {name: ours[name][q] for name in MEASURES} == pytest.approx(truth, rel=1e-12)


@given(hnp.arrays(np.int64, 12, elements=st.integers(0, 3)), st.integers(1, 2**12 - 2))
def test_auc_with_ties_matches_scikit_learn(distances, mask):
    hits = np.array([mask >> i & 1 for i in range(12)])
    ours = ranking_scores(ORIGIN, distances[:, None], [np.flatnonzero(hits)])
    assert ours["auc"] == pytest.approx(roc_auc_score(hits, -distances), rel=1e-12)


def test_average_precision_is_pessimistic_about_ties():
    # two relevant songs and an irrelevant one at one distance: scikit-learn gives 2/3 for all of them
    ours = ranking_scores(ORIGIN, np.ones((3, 1)), [[0, 1]])
    assert ours["map"] == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert average_precision_score([1, 1, 0], [0, 0, 0]) == pytest.approx(2 / 3)


def test_perfect_and_worst_rankings_match_closed_form():
    line = np.arange(1.0, 11.0)[:, None]
    best = ranking_scores(ORIGIN, line, [[0, 1, 2]], k=5)
    assert best["auc"] == best["map"] == best["mrr"] == 1.0
    assert best["precision"] == pytest.approx(3 / 5)
    assert best["ndcg"] == pytest.approx((2 + 1 / np.log2(3)) / (2 + (1 / np.log2([3, 4, 5])).sum()))
    worst = ranking_scores(ORIGIN, line, [[7, 8, 9]], k=5)
    assert worst["auc"] == worst["ndcg"] == worst["precision"] == 0.0
    assert worst["mrr"] == pytest.approx(1 / 8)
    assert worst["map"] == pytest.approx((1 / 8 + 2 / 9 + 3 / 10) / 3)


def test_identical_songs_tie_exactly(rng):
    X = rng.standard_normal((40, 17)).astype(np.float32) * 1e3 + 1e4
    X = np.vstack([X, X])
    relevance = [(list(range(40)), list(range(40, 80)))] * 5
    # each irrelevant song is at the distance of its relevant twin
    ours = query_scores(rng.standard_normal((5, 17)), X, relevance, k=2)
    np.testing.assert_array_equal(ours["auc"], 0.5)
    np.testing.assert_array_equal(ours["mrr"], 0.5)


def test_songs_in_neither_set_do_not_count():
    line = np.arange(6.0)[:, None]
    ours = ranking_scores(ORIGIN, line, [([2, 4], [3])], k=2)
    assert ours["auc"] == 0.5
    assert ours["mrr"] == 1.0
    assert ours["precision"] == 0.5
    assert ours["map"] == pytest.approx((1 + 2 / 3) / 2)


def test_query_and_its_artist_do_not_count(rng):
    X = rng.standard_normal((30, 4))
    y, artists = rng.integers(3, size=30), rng.integers(8, size=30)
    relevance = Relevance.from_labels(y, groups=artists)
    ours = query_scores(X, X, relevance, k=3)
    for i in range(30):
        left = np.flatnonzero(artists != artists[i])
        order = left[np.argsort(np.linalg.norm(X[left] - X[i], axis=1))]
        truth = scores_of_order((y[order] == y[i]).astype(int).tolist(), 3)
        assert {name: ours[name][i] for name in MEASURES} == pytest.approx(truth, rel=1e-12)


@pytest.mark.filterwarnings("error")
def test_queries_with_empty_set_are_counted_as_skipped():
    line = np.arange(3.0)[:, None]
    queries = np.zeros((4, 1))
    ours = ranking_scores(queries, line, [[0], [], [0, 1, 2], [2]])
    assert (ours["n_queries"], ours["n_skipped"]) == (2, 2)
    assert ours["auc"] == 0.5
    one_by_one = query_scores(queries, line, [[0], [], [0, 1, 2], [2]])
    for name in MEASURES:
        assert np.isnan(one_by_one[name]).tolist() == [False, True, True, False]
    nothing = ranking_scores(queries[:1], line, [[]])
    assert np.isnan([nothing[name] for name in MEASURES]).all()
    assert (nothing["n_queries"], nothing["n_skipped"]) == (0, 1)


def test_block_size_does_not_change_scores(rng, monkeypatch):
    X = rng.integers(0, 3, size=(40, 2))
    relevance = Relevance.from_labels(rng.integers(5, size=40), groups=rng.integers(9, size=40))
    whole = query_scores(X, X, relevance, 4)
    for block_rows in (1, 7):
        monkeypatch.setattr(ranking, "_QUERY_ROWS", block_rows)
        np.testing.assert_equal(query_scores(X, X, relevance, 4), whole)
    means = ranking_scores(X, X, relevance, 4)
    assert {name: means[name] for name in whole} == pytest.approx(
        {name: np.nanmean(score) for name, score in whole.items()}
    )


@pytest.mark.parametrize("k", [1, 5])
def test_knn_of_two_classes_matches_scikit_learn(rng, k):
    X, y = rng.standard_normal((120, 3)), rng.integers(2, size=120)
    test, train = np.arange(40), np.arange(40, 120)
    relevance = Relevance.from_labels(y).restrict(test, train)
    scores = query_scores(X[test], X[train], relevance, k)
    predicted = KNeighborsClassifier(k).fit(X[train], y[train]).predict(X[test])
    np.testing.assert_array_equal(scores["knn"], predicted == y[test])
    # two classes: P@k as the thesis defines it
    np.testing.assert_array_equal(scores["knn"], scores["precision"] > 0.5)


@pytest.mark.parametrize(
    ("labels", "k", "knn"),
    [
        (["a", "a", "b", "c", "a"], 3, 0.0),  # one vote each: no majority
        (["a", "a", "b", "c", "a"], 4, 1.0),
        (["a", None, "a", None, "b"], 3, 1.0),  # unlabeled songs take positions but do not vote
        (["a", "b", "a", "a", "b"], 9, 0.0),  # fewer songs than k: two votes each
    ],
)
def test_knn_matches_hand_computed_example(labels, k, knn):
    line = np.arange(len(labels), dtype=float)[:, None]
    relevance = Relevance.from_labels(labels).restrict(queries=[0])
    assert ranking_scores(line[:1], line, relevance, k)["knn"] == knn


def test_knn_tie_prefers_irrelevant_song():
    X = np.array([[0.0], [1.0], [-1.0]])
    relevance = Relevance.from_labels(["a", "a", "b"]).restrict(queries=[0])
    assert ranking_scores(X[:1], X, relevance, 1)["knn"] == 0.0


def test_knn_is_absent_without_labels():
    assert "knn" not in ranking_scores(ORIGIN, np.ones((2, 1)), [[0]])


def test_rejects_queries_that_differ_from_rows(rng):
    X = rng.standard_normal((5, 3))
    lists = [[(i + 1) % 5] for i in range(5)]
    with pytest.raises(ValueError, match="query 0 is row 0"):
        ranking_scores(rng.standard_normal((5, 3)), X, Relevance.from_lists(lists))
    ranking_scores(X.astype(np.float32), X, Relevance.from_lists(lists))
    ranking_scores(rng.standard_normal((5, 3)), X, Relevance.from_lists(lists, 5, outside=True))


@pytest.mark.parametrize(
    ("queries", "database", "relevance", "k", "message"),
    [
        (ORIGIN, np.ones((2, 1)), [[0]], 0, "k=0"),
        (ORIGIN, np.ones((2, 3)), [[0]], 1, "1 features, but database has 3"),
        (np.zeros(3), np.ones((2, 3)), [[0]], 1, r"queries has shape \(3,\)"),
        (ORIGIN, np.array([[0.0], [np.nan]]), [[0]], 1, "database: row 1 is not finite"),
        (ORIGIN, np.ones((2, 1)), [[0], [1]], 1, "relevance has 2 queries and 2 songs, but the arguments have 1"),
        (ORIGIN, np.ones((2, 1)), Relevance.from_lists([[0]], n=3), 1, "1 queries and 3 songs"),
        (ORIGIN, np.ones((2, 1)), [[2]], 1, "has row 2"),
        (np.zeros((2, 1)), np.ones((2, 1)), [([0], [1]), [0]], 1, "or one tuple"),
        (ORIGIN, np.ones((2, 1)), [([0], [0])], 1, "row 0 is both"),
    ],
)
def test_rejects_bad_ranking_input(queries, database, relevance, k, message):
    with pytest.raises(ValueError, match=message):
        ranking_scores(queries, database, relevance, k)


def test_interval_matches_scipy_bootstrap(rng):
    a, b = rng.random(80), rng.random(80)
    mean, low, high = bootstrap_pairs(a, b, n=20_000, random_state=0)
    truth = stats.bootstrap((a - b,), np.mean, n_resamples=20_000, method="percentile", rng=1)
    assert mean == pytest.approx((a - b).mean())
    # ends of 20,000 resamples: standard error about 0.0007 each, standard deviation of the mean 0.046
    assert low == pytest.approx(truth.confidence_interval.low, abs=0.004)
    assert high == pytest.approx(truth.confidence_interval.high, abs=0.004)


def test_bootstrap_resamples_whole_artists(rng):
    of_artist = rng.standard_normal(60)
    artists = np.repeat(np.arange(60), 25)
    scores = of_artist[artists]
    mean, low, high = bootstrap_pairs(scores, np.zeros(1500), artists, n=4_000, random_state=0)
    by_artist = bootstrap_pairs(of_artist, np.zeros(60), n=4_000, random_state=0)
    # 25 equal songs by one artist give no more information than one
    assert (mean, low, high) == pytest.approx(by_artist, abs=1e-12)
    _, low_by_song, high_by_song = bootstrap_pairs(scores, np.zeros(1500), n=4_000, random_state=0)
    assert high - low > 3 * (high_by_song - low_by_song)  # in the limit, 5


def test_artists_are_weighted_by_query_count():
    # draws of two artists with 1 and 3 queries: both the first, both the second, or one of each
    a, artists = np.array([1.0, 0.0, 0.0, 0.0]), ["x", "y", "y", "y"]
    mean, low, high = bootstrap_pairs(a, np.zeros(4), artists, n=500, random_state=0)
    assert (mean, low, high) == (0.25, 0.0, 1.0)


def test_queries_skipped_by_either_method_are_excluded():
    a, b = np.array([1.0, np.nan, 3.0, 5.0]), np.array([0.0, 1.0, 2.0, np.nan])
    assert bootstrap_pairs(a, b, [None, 1, None, 1], random_state=0) == (1.0, 1.0, 1.0)


def test_seed_determines_interval(rng):
    a, b = rng.random(30), rng.random(30)
    assert bootstrap_pairs(a, b, random_state=3) == bootstrap_pairs(a, b, random_state=3)
    assert bootstrap_pairs(a, b, random_state=3) != bootstrap_pairs(a, b, random_state=4)


@pytest.mark.parametrize(
    ("a", "b", "groups", "n", "message"),
    [
        ([1, 2], [1, 2, 3], None, 10, "a has shape"),
        ([[1, 2]], [[1, 2]], None, 10, "a has shape"),
        ([1, 2], [1, 2], ["x"], 10, "1 entries for 2 queries"),
        ([1, 2], [1, 2], ["x", "x"], 10, "1 artists"),
        ([1, np.nan], [1, 2], None, 10, "1 queries"),
        ([1, 2], [1, 2], None, 0, "n=0"),
    ],
)
def test_rejects_bad_bootstrap_input(a, b, groups, n, message):
    with pytest.raises(ValueError, match=message):
        bootstrap_pairs(a, b, groups, n)


def test_distance_scores_match_vector_scores(rng):
    Q, X = rng.normal(size=(9, 4)), np.round(rng.normal(size=(30, 4)))
    X[7] = X[3]  # a tie
    relevance = Relevance.from_lists([rng.choice(30, 5, replace=False) for _ in Q], 30, outside=True)
    by_vectors = query_scores(Q, X, relevance, 7)
    by_distances = distance_scores(np.exp(cdist(Q, X, "sqeuclidean") / 10), relevance, 7)
    assert by_vectors.keys() == by_distances.keys()
    for name, scores in by_vectors.items():
        np.testing.assert_array_equal(by_distances[name], scores)  # the order is all that counts


def test_asymmetric_distance_scores_match_scikit_learn(rng):
    D = rng.normal(size=(12, 25))  # below 0 too
    y = rng.random((12, 25)) < 0.3
    y[0] = False  # nothing is relevant: not scored
    relevance = Relevance.from_lists([np.flatnonzero(row) for row in y], 25, outside=True)
    found = distance_scores(D, relevance)
    assert np.isnan([scores[0] for scores in found.values()]).all()
    for q in range(1, 12):
        assert found["auc"][q] == pytest.approx(roc_auc_score(y[q], -D[q]), abs=1e-12)
        assert found["map"][q] == pytest.approx(average_precision_score(y[q], -D[q]), abs=1e-12)
        assert found["mrr"][q] == 1 / (1 + np.flatnonzero(y[q][np.argsort(D[q])])[0])


def test_rejects_bad_distances():
    relevance = Relevance.from_lists([[0], [1]], 3, outside=True)
    with pytest.raises(ValueError, match=r"has shape \(3, 2\); it must be \(2, 3\)"):
        distance_scores(np.zeros((3, 2)), relevance)
    with pytest.raises(ValueError, match="row 1 is not finite"):
        distance_scores([[0, 1, 2], [0, np.nan, 2]], relevance)
    with pytest.raises(ValueError, match="k=0"):
        distance_scores(np.zeros((2, 3)), relevance, 0)
