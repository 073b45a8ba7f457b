"""Tests of separation oracles against every ranking of small sets, and slow programs on larger ones."""

import itertools

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musicsim.metric import oracles
from musicsim.metric._pairs import Pairs
from musicsim.metric.oracles import LOSSES, Oracle
from tests.metric.programmes import delta, slow_programme

# sums of some dozen products of numbers near 1, in another order than in the oracle
CLOSE = {"rel": 1e-11, "abs": 1e-11}


class Sets:
    """Relevance given by two lists of lists."""

    def __init__(self, relevant, irrelevant):
        self._relevant, self._irrelevant = relevant, irrelevant

    def relevant(self, i):
        return np.array(self._relevant[i], dtype=int)

    def irrelevant(self, i):
        return np.array(self._irrelevant[i], dtype=int)

    def __len__(self):
        return len(self._relevant)


def only(sets, queries):
    """Return the sets without the relevant songs of all other queries."""
    n = len(sets)
    relevant = [sets.relevant(q) if q in queries else [] for q in range(n)]
    return Sets(relevant, [sets.irrelevant(q) for q in range(n)])


def violation(loss, order, relevant, s, k):
    """Compute Delta(y*, y) - <W, psi(y*) - psi(y)> of the ranking `order`, pair by pair."""
    place = {item: i for i, item in enumerate(order)}
    irrelevant = [item for item in order if item not in relevant]
    scale = 1 / (len(relevant) * len(irrelevant))
    inner = sum(2 * scale * (s[i] - s[j]) for i in relevant for j in irrelevant if place[j] < place[i])
    return delta(loss, [item in relevant for item in order], k) - inner


def interleavings(relevant, irrelevant, s):
    """Yield every ranking that keeps each class in the order of its scores."""
    relevant = sorted(relevant, key=lambda i: -s[i])
    irrelevant = sorted(irrelevant, key=lambda i: -s[i])
    n = len(relevant) + len(irrelevant)
    for places in itertools.combinations(range(n), len(relevant)):
        of_class = iter(relevant), iter(irrelevant)
        yield [next(of_class[i not in places]) for i in range(n)]


def most_violated(loss, relevant, irrelevant, s, k):
    return max(violation(loss, order, set(relevant), s, k) for order in interleavings(relevant, irrelevant, s))


def cut_of_scores(loss, s, relevant, irrelevant, k):
    """Return the cut of one query with scores exactly `s`, and the weights of the items.

    The query is the origin, item i the unit vector e_i and W = diag(-s), so that dPsi_ii = -weight_i. Mirror images of
    the items, in neither set, keep the mean at the origin.
    """
    n = len(s)
    X = np.vstack([np.eye(n), -np.eye(n), np.zeros(n)])
    sets = Sets([[]] * 2 * n + [relevant], [[]] * 2 * n + [irrelevant])
    cut = Oracle(X, sets, loss, k).cut(np.diag(-np.asarray(s, dtype=float)))
    return cut, -np.diag(cut.dpsi)


def assert_most_violated(loss, s, p, k, truth):
    """Assert that the cut of items 0..p-1 against the others is that of a real ranking, and reaches `truth`."""
    n = len(s)
    relevant, irrelevant = list(range(p)), list(range(p, n))
    cut, weights = cut_of_scores(loss, s, relevant, irrelevant, k)
    assert cut.slack == pytest.approx(truth, **CLOSE)
    assert cut.inner == pytest.approx(weights @ s, **CLOSE)
    counts = weights * p * (n - p) / 2
    before, after = np.sort(counts[:p]), -np.sort(counts[p:])
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-9)
    before, after = np.round(before).astype(int), np.round(after).astype(int)
    # the number of irrelevant items before each item fixes the ranking, and the number of relevant ones after it
    assert after.tolist() == [np.sum(before > c) for c in range(n - p)]
    ranked = [False] * n
    for a, c in enumerate(before):
        ranked[a + c] = True
    assert cut.loss == pytest.approx(delta(loss, ranked, k), **CLOSE)


def scores_with_ties(n):
    halves = st.integers(-6, 0).map(lambda v: v / 2)
    fine = st.integers(-40, 0).map(lambda v: v / 32)
    kinds = [st.integers(-3, 0).map(float), halves, fine, st.floats(-2, 0)]
    return st.one_of([st.lists(kind, min_size=n, max_size=n) for kind in kinds])


@st.composite
def small_queries(draw, largest=4):
    p, m = draw(st.integers(1, largest)), draw(st.integers(1, largest))
    return p, np.array(draw(scores_with_ties(p + m)))


@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=50, derandomize=True)
@given(query=small_queries(), k=st.integers(1, 6))
def test_oracle_matches_all_interleavings(loss, query, k):
    p, s = query
    truth = most_violated(loss, range(p), range(p, len(s)), s, k)
    assert_most_violated(loss, s, p, k, truth)


@pytest.mark.long
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("k", range(1, 7))
def test_oracle_matches_all_small_sizes(loss, k, rng):
    for p, m in itertools.product(range(1, 5), repeat=2):
        s = -rng.integers(0, 4, p + m) / rng.choice([1, 2, 8, 32])
        truth = most_violated(loss, range(p), range(p, p + m), s, k)
        assert_most_violated(loss, s, p, k, truth)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("p", "m"), [(1, 3), (2, 2), (3, 2), (2, 3)])
def test_oracle_is_at_least_as_violated_as_permutations(loss, p, m, rng):
    for k in (1, 2, 4):
        s = -rng.integers(0, 5, p + m) / 8
        orders = itertools.permutations(range(p + m))
        truth = max(violation(loss, order, set(range(p)), s, k) for order in orders)
        assert_most_violated(loss, s, p, k, truth)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("p", "m", "k"), [(1, 90, 3), (15, 80, 10), (40, 40, 60), (70, 9, 25), (12, 3, 99)])
@pytest.mark.parametrize("scale", [0.0, 0.02, 0.3, 5.0])
def test_oracle_matches_slow_reference(loss, p, m, k, scale, rng):
    for grid in (0, 8):
        s = -scale * rng.random(p + m) - 0.5 * (np.arange(p + m) >= p) * rng.random()
        if grid:
            s = np.round(s * grid) / grid
        assert_most_violated(loss, s, p, k, slow_programme(loss, s, p, k))


@pytest.mark.parametrize("loss", LOSSES)
def test_margin_of_half_suffices_for_auc_only(loss):
    s = np.array([-1.0, -1.0, -1.5, -1.5, -2.0])
    cut, weights = cut_of_scores(loss, s, [0, 1], [2, 3, 4], 2)
    if loss == "auc":
        assert cut.loss == cut.inner == 0.0
        assert not weights.any()
    else:
        # the average margin does not reveal where in the ranking the errors would be
        assert cut.slack == pytest.approx(most_violated(loss, [0, 1], [2, 3, 4], s, 2), **CLOSE)
        assert cut.slack > 0.0


def test_precision_loss_with_fewer_relevant_than_k():
    s = np.array([-9.0, 0.0, 0.0, 0.0])
    cut, _ = cut_of_scores("precision", s, [0], [1, 2, 3], 3)
    assert cut.loss == pytest.approx(1 / 3)


@pytest.fixture
def collection(rng):
    """Return fifteen songs: relevance of every density, some songs in neither set, two queries without a set."""
    n = 15
    X = 3.0 + rng.standard_normal((n, 4))
    relevant, irrelevant = [], []
    for q in range(n):
        others = rng.permutation(np.delete(np.arange(n), q))
        p, m = rng.integers(1, 4), rng.integers(1, 5)
        relevant.append(others[:p].tolist())
        irrelevant.append(others[p : p + m].tolist() if q % 2 else others[p:].tolist())
    relevant[4], irrelevant[7] = [], []
    return X, Sets(relevant, irrelevant)


@pytest.fixture
def metric(rng):
    factor = 0.4 * rng.standard_normal((3, 4))
    return factor.T @ factor, factor


def literal_cut(X, sets, W, loss, k, queries):
    """Return the mean loss and mean triple sum of outer products over the most violated interleavings."""
    lost, dpsi = [], []
    for q in queries:
        relevant, irrelevant = sets.relevant(q).tolist(), sets.irrelevant(q).tolist()
        phi = [-np.outer(X[q] - x, X[q] - x) for x in X]
        s = [float(np.sum(W * f)) for f in phi]
        order = max(
            interleavings(relevant, irrelevant, s), key=lambda order: violation(loss, order, set(relevant), s, k)
        )
        psi = []
        for ranking in (relevant + irrelevant, order):
            signed = [
                (1 if ranking.index(i) < ranking.index(j) else -1) * (phi[i] - phi[j])
                for i, j in itertools.product(relevant, irrelevant)
            ]
            psi.append(sum(signed) / len(signed))
        lost.append(delta(loss, [item in relevant for item in order], k))
        dpsi.append(psi[0] - psi[1])
    return np.mean(lost), np.mean(dpsi, axis=0)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("k", [1, 3])
def test_plane_matches_sum_of_outer_products(loss, k, collection, metric):
    X, sets = collection
    W, L = metric
    queries = [q for q in range(15) if q not in {4, 7}]
    lost, dpsi = literal_cut(X, sets, W, loss, k, queries)
    oracle = Oracle(X, sets, loss, k)
    assert oracle.queries.tolist() == queries
    for cut in (oracle.cut(W), oracle.cut(W, [L])):
        assert cut.loss == pytest.approx(lost, **CLOSE)
        np.testing.assert_allclose(cut.dpsi, dpsi, rtol=0, atol=1e-11)
        assert np.sum(W * cut.dpsi) == pytest.approx(cut.inner, **CLOSE)


def test_song_pairs_match_sum_of_outer_products(rng, metric):
    n, (W, L) = 15, metric
    X, relevant, irrelevant = 3.0 + rng.standard_normal((n, 4)), [], []
    for q in range(n):
        others = rng.permutation(np.delete(np.arange(n), q))
        p = rng.integers(1, 4)
        relevant.append(others[:p].tolist())
        irrelevant.append(others[p + rng.integers(0, 3) :].tolist())
    relevant[4], irrelevant[7] = [], []
    sets = Sets(relevant, irrelevant)
    lost, dpsi = literal_cut(X, sets, W, "auc", 1, [q for q in range(n) if q not in {4, 7}])
    oracle = Oracle(X, sets, "auc")
    assert oracle.pairs is not None
    for cut in (oracle.cut(W), oracle.cut(W, [L])):
        assert cut.loss == pytest.approx(lost, **CLOSE)
        np.testing.assert_allclose(cut.dpsi, dpsi, rtol=0, atol=1e-11)
        assert np.sum(W * cut.dpsi) == pytest.approx(cut.inner, **CLOSE)


@pytest.mark.parametrize("scale", [0.0, 0.1, 1.0, 100.0])
@pytest.mark.parametrize("is_tied", [False, True])
def test_song_pairs_match_single_queries(scale, is_tied, rng):
    n = 300  # three tiles
    classes = np.repeat([0, 1, 2, 3, 4], [10, 20, 70, 100, 100])  # 69 relevant songs are found by bisection
    X = rng.standard_normal((n, 6)) + classes[:, None] * [3.0, 0, 0, 0, 0, 0]
    if is_tied:
        X = np.round(X)
    shown = rng.random((n, n)) < 0.9
    relevant = [np.flatnonzero((classes == classes[q]) & shown[q] & (np.arange(n) != q)) for q in range(n)]
    irrelevant = [np.flatnonzero((classes != classes[q]) & shown[q]) for q in range(n)]
    for q in range(0, n, 10):
        relevant[q] = relevant[q][:0]
    sets, w = Sets(relevant, irrelevant), scale * np.array([1.0, 0, 0, 1, 2, 0])
    for options, W in (
        ({}, np.diag(w)),
        ({"structure": "diagonal"}, w),
        ({"widths": [2, 4]}, np.concatenate([np.diag(w[:2]).ravel(), np.diag(w[2:]).ravel()])),
    ):
        oracle = Oracle(X, sets, "auc", **options)
        assert oracle.pairs is not None
        pairs, queries = oracle.cut(W), oracle.cut(W, slots=np.arange(oracle.n_queries))
        assert pairs.slack == pytest.approx(queries.slack, **CLOSE)
        assert np.sum(W * pairs.dpsi) == pytest.approx(pairs.inner, **CLOSE)
        if not is_tied:  # otherwise rounding may choose another ranking that is violated equally
            size = max(1.0, np.abs(queries.dpsi).max())
            np.testing.assert_allclose(pairs.dpsi, queries.dpsi, rtol=0, atol=1e-12 * size)
            assert pairs.loss == pytest.approx(queries.loss, **CLOSE)


def test_few_queries_match_single_queries(larger_collection):
    X, sets, W = larger_collection
    oracle = Oracle(X, only(sets, [1, 2, 3]), "auc")
    assert oracle.pairs is None
    each = [Oracle(X, only(sets, [q]), "auc").cut(W).dpsi for q in (1, 2, 3)]
    np.testing.assert_allclose(oracle.cut(W).dpsi, np.mean(each, axis=0), rtol=0, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_diagonal_matches_full_plane(loss, collection):
    X, sets = collection
    w = np.array([0.3, 0.0, 1.2, 0.05])
    full = Oracle(X, sets, loss, 3).cut(np.diag(w))
    diagonal = Oracle(X, sets, loss, 3, structure="diagonal").cut(w)
    np.testing.assert_allclose(diagonal.dpsi, np.diag(full.dpsi), rtol=0, atol=1e-11)
    assert (diagonal.loss, diagonal.inner) == pytest.approx((full.loss, full.inner), **CLOSE)


@pytest.mark.parametrize("loss", LOSSES)
def test_plane_never_exceeds_slack(loss, collection, metric, rng):
    X, sets = collection
    oracle = Oracle(X, sets, loss, 3)
    cut = oracle.cut(metric[0])
    for _ in range(20):
        L = rng.standard_normal((4, 4)) * rng.choice([0.1, 0.5, 2.0])
        assert oracle.cut(L.T @ L, [L]).slack >= cut.loss - np.sum((L.T @ L) * cut.dpsi) - 1e-11


@pytest.mark.parametrize("loss", LOSSES)
def test_wide_margin_has_no_slack(loss):
    X = np.array([[0.0], [1.0], [2.0], [90.0], [91.0]])
    labels = np.array([0, 0, 0, 1, 1])
    sets = Sets(
        [[i for i in range(5) if labels[i] == labels[q] and i != q] for q in range(5)],
        [np.flatnonzero(labels != labels[q]).tolist() for q in range(5)],
    )
    cut = Oracle(X, sets, loss).cut(np.eye(1))
    assert cut.loss == cut.inner == 0.0
    assert not cut.dpsi.any()


@pytest.mark.parametrize("loss", LOSSES)
def test_zero_metric_has_worst_loss(loss, collection):
    X, sets = collection
    cut = Oracle(X, only(sets, [1, 3]), loss, 3).cut(np.zeros((4, 4)))
    worst = []
    for q in (1, 3):
        p, m = len(sets.relevant(q)), len(sets.irrelevant(q))
        worst.append(delta(loss, [False] * m + [True] * p, 3))
    assert cut.loss == pytest.approx(np.mean(worst), **CLOSE)
    assert cut.inner == 0.0


@pytest.fixture
def larger_collection(rng):
    n = 90
    X, labels = rng.standard_normal((n, 6)), rng.integers(0, 5, n)
    sets = Sets(
        [np.flatnonzero((labels == labels[q]) & (np.arange(n) != q)).tolist() for q in range(n)],
        [np.flatnonzero(labels != labels[q]).tolist() for q in range(n)],
    )
    return X, sets, np.diag(rng.random(6))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("rows", [1, 7, 64])
def test_block_size_does_not_change_result(loss, rows, larger_collection, monkeypatch):
    X, sets, W = larger_collection
    whole = Oracle(X, sets, loss).cut(W)
    monkeypatch.setattr(oracles, "BLOCK_ROWS", rows)
    cut = Oracle(X, sets, loss).cut(W)
    np.testing.assert_allclose(cut.dpsi, whole.dpsi, rtol=0, atol=1e-12)
    assert (cut.loss, cut.inner) == pytest.approx((whole.loss, whole.inner), **CLOSE)


@pytest.mark.parametrize("structure", ["full", "diagonal"])
def test_loops_over_pairs_read_rows_of_data_frames(structure, larger_collection, monkeypatch):
    X, sets, W = larger_collection
    read = []
    rankings = Pairs.rankings

    def note(self, *arrays):
        read.extend(arrays[:4])
        return rankings(self, *arrays)

    monkeypatch.setattr(Pairs, "rankings", note)
    Oracle(np.asfortranarray(X), sets, structure=structure).cut(W if structure == "full" else np.diag(W))
    assert len(read) == 4
    assert all(array.flags.c_contiguous for array in read), "column order is slow"


@pytest.mark.parametrize("loss", LOSSES)
def test_thread_count_does_not_change_result(loss, larger_collection):
    X, sets, W = larger_collection
    oracle = Oracle(X, sets, loss)
    before = numba.get_num_threads()
    cuts = []
    try:
        for n_threads in (1, before, before):
            numba.set_num_threads(n_threads)
            cuts.append(oracle.cut(W))
    finally:
        numba.set_num_threads(before)
    for cut in cuts[1:]:
        assert (cut.loss, cut.inner) == (cuts[0].loss, cuts[0].inner)
        np.testing.assert_array_equal(cut.dpsi, cuts[0].dpsi)


def test_query_subsets_match_separate_oracles(collection, metric):
    X, sets = collection
    oracle = Oracle(X, only(sets, [9, 4, 2, 11]), "map")
    assert oracle.queries.tolist() == [2, 9, 11]
    of_two = Oracle(X, only(sets, [11, 9]), "map").cut(metric[0])
    of_slots = oracle.cut(metric[0], slots=np.array([1, 2]))
    np.testing.assert_allclose(of_slots.dpsi, of_two.dpsi, rtol=0, atol=1e-12)
    assert of_slots.loss == pytest.approx(of_two.loss, **CLOSE)
    # queries drawn repeatedly count repeatedly
    thrice = oracle.cut(metric[0], slots=np.array([1, 1, 0]))
    once = [oracle.cut(metric[0], slots=np.array([slot])) for slot in (1, 0)]
    np.testing.assert_allclose(3 * thrice.dpsi, 2 * once[0].dpsi + once[1].dpsi, rtol=0, atol=1e-12)


def test_large_offset_keeps_precision(collection, metric):
    X, sets = collection
    near, far = (Oracle(X + shift, sets, "auc").cut(metric[0]) for shift in (0.0, 2.0**20))
    # the shift itself rounds X to 2**-33
    np.testing.assert_allclose(far.dpsi, near.dpsi, rtol=0, atol=1e-8)


def test_rejects_songs_without_two_sets(collection):
    X, sets = collection
    with pytest.raises(ValueError, match="no query has both"):
        Oracle(X, only(sets, [4, 7]))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("structure", ["full", "diagonal"])
def test_weighted_plane_is_that_of_repeated_queries(loss, structure, collection, metric):
    X, relevance = collection
    W = metric[0] if structure == "full" else np.diag(metric[0]).copy()
    oracle = Oracle(X, relevance, loss, 3, structure)
    weights = np.arange(len(X)) % 4
    cut = Oracle(X, relevance, loss, 3, structure, query_weights=weights.astype(float)).cut(W)
    singles = [oracle.cut(W, slots=np.array([s])) for s in range(oracle.n_queries)]
    repeated = [each for each, q in zip(singles, oracle.queries, strict=True) for _ in range(weights[q])]
    for part in ("loss", "dpsi", "inner"):
        np.testing.assert_allclose(getattr(cut, part), np.mean([getattr(each, part) for each in repeated], axis=0))
