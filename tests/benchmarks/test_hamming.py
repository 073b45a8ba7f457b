"""Bit codes: the data, the truth and the claims of the benchmark, and the stages of a cascade."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from benchmarks.hamming import Built, Case, Contender, claims, differing, measure, truth
from benchmarks.support.cascade import HammingCascade
from benchmarks.support.hamming_data import KINDS, bytes_of
from tests.rivals import built_to_crash
from tests.search.test_hamming import by_definition, codes_of

# --- hamming ---------------------------------------------------------------------------------------------


every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
@pytest.mark.parametrize("n_bits", [32, 64, 256])
def test_seed_determines_codes(kind, n_bits):
    draw = KINDS[kind]
    first, again, other = draw(300, 20, n_bits, 3), draw(300, 20, n_bits, 3), draw(300, 20, n_bits, 4)
    for one, two, different in zip(first, again, other, strict=True):
        np.testing.assert_array_equal(one, two)
        assert (one != different).any()
    X, Q = first
    assert (X.shape, Q.shape) == ((300, -(-n_bits // 64)), (20, -(-n_bits // 64)))
    assert X.dtype == np.uint64
    if n_bits == 32:
        assert X.max() < 1 << 32
    share = np.bitwise_count(X).sum() / (300 * n_bits)
    assert 0.4 < share < 0.6


@pytest.mark.parametrize(("kind", "turned"), [("clustered", 0.05), ("loose", 0.15)])
def test_bits_flip_at_given_rate(kind, turned):
    # 100,000 codes, some ten of each centre: the nearest of another's pairs turn 2 p (1 - p) of the bits
    X, Q = KINDS[kind](100_000, 20, 256, 0)
    nearest = [np.sort(differing(X, q))[:3].mean() / 256 for q in Q]
    expected = 2 * turned * (1 - turned)
    assert 0.6 * expected < np.mean(nearest) < expected  # the least of some ten lie below the mean


def test_bytes_match_code():
    X = np.array([[0x0123456789ABCDEF, 1]], np.uint64)
    assert bytes_of(X[:, :1], 32).tolist() == [[0xEF, 0xCD, 0xAB, 0x89]]
    assert bytes_of(X, 128).shape == (1, 16)


def test_truth_matches_hand_computed_example():
    X = np.array([[0], [1], [3], *[[0xFF]] * 20], np.uint64)
    Q = np.zeros((1, 1), np.uint64)
    assert differing(X, Q[0])[:4].tolist() == [0, 1, 2, 8]
    true = truth(X, Q)
    assert (true.tenth.tolist(), true.n_near) == ([8], 3)
    # a tie of the tenth is as good, the same id twice counts once, -1 is nothing
    whole = Built(lambda Q: np.array([[0, 1, 2, 9, 10, 11, 12, 13, 14, 22]]), lambda Q: [np.array([2, 0, 1])])
    assert true.shares(whole) == (1.0, 1.0)
    half = Built(lambda Q: np.array([[0, 1, 2, 3, 4, 4, 4, -1, -1, -1]]), lambda Q: [np.array([2, 2, 5])])
    assert true.shares(half) == (0.5, 1 / 3)
    assert true.shares(Built(whole.nearest)) == (1.0, None)


def test_case_gives_one_row_per_index():
    def everything(X, _):
        def nearest(Q):
            return np.argsort([differing(X, q) for q in Q], axis=1, kind="stable")[:, :10]

        return Built(nearest, n_bytes=3_000_000)

    made = [Contender("all", everything), Contender("absent", everything, "no-such-distribution")]
    (row,) = measure(Case("clustered", 200, 64, made), 0, lambda line: None)
    assert (row["index"], row["recall"], row["within"], row["radius2_us"]) == ("all", 1.0, None, None)
    assert (row["mb"], row["codes"]) == (3.0, 200)
    assert row["top10_us"] > 0
    assert row["one_us"] > 0


def test_crashed_index_is_reported_in_its_row():
    made = [Contender("crashes", built_to_crash, "numpy")]
    (row,) = measure(Case("clustered", 200, 64, made), 0, lambda line: None)
    assert (row["index"], row["bits"], row["failed"]) == ("crashes", 64, "its process was ended by SIGILL")


def _row(index, top10, one, radius, recall=1.0, within=1.0):
    return {"index": index, "top10_us": top10, "one_us": one, "radius2_us": radius, "recall": recall, "within": within}


def test_claims_compare_expected_values():
    rows = [
        _row("musicsim scan", 100.0, 200.0, 90.0),
        _row("musicsim balls", 10.0, 40.0, 20.0, recall=0.99),
        _row("faiss BinaryFlat", 300.0, 250.0, 400.0),
        _row("faiss BinaryHash", 30.0, 30.0, 30.0, within=0.9),
        _row("faiss BinaryMultiHash", 5.0, 50.0, 50.0, recall=0.97),
    ]
    short = claims(Case("clustered", 1_460_000, 32, []), rows)
    assert [claim.value for claim in short] == [3.0, 1.25, 20.0, 1.5, 1.0, 1.0, 0.99]
    assert [claim.goal for claim in short] == [1.5, 1.5, 13.7, 1.0, 1.0, 1.0, 1.0]
    assert [claim.holds for claim in short] == [True, False, False, True, True, True, False]
    assert "recall is 0.900" in short[3].claim
    long = claims(Case("clustered", 1_460_000, 256, []), rows)
    assert [claim.goal for claim in long] == [1.0, 1.0, 1.0, 242.0, 1.0, 1.0]
    assert [claim.value for claim in long] == [3.0, 1.25, 0.5, 10.0, 1.0, 0.99]
    assert len(claims(Case("loose", 1_460_000, 64, []), rows)) == 5


def test_claims_without_rivals_fail():
    rows = [_row("musicsim scan", 100.0, 200.0, 90.0), _row("musicsim balls", 10.0, 40.0, 5.0, within=None)]
    made = claims(Case("clustered", 1_460_000, 32, []), rows)
    assert [claim.holds for claim in made] == [False, False, True, False, True, True]


# --- cascade ---------------------------------------------------------------------------------------------


both = pytest.mark.parametrize("method", ["scan", "balls"])


@pytest.fixture
def songs(rng):
    """Vectors, and the signs of projections of them as short and long codes."""
    X = rng.standard_normal((400, 6)).astype(np.float32)
    bits = X @ rng.standard_normal((6, 138)) > 0
    return codes_of(bits[:, :8]), codes_of(bits[:, 8:]), X


def test_shortlist_contains_whole_bins(songs):
    short, long, _ = songs
    cascade = HammingCascade(50, 10, n_short_bits=8, n_jobs=1).fit(short, long)
    distances, _ = by_definition(short, short[:9], 400)
    for ids, apart in zip(cascade.shortlist(short[:9]), distances, strict=True):
        assert len(ids) == np.count_nonzero(apart <= apart[49])


@both
def test_each_stage_ranks_previous_shortlist(method, songs):
    short, long, X = songs
    codes = HammingCascade(60, 20, method=method, n_short_bits=8, n_long_bits=130, n_jobs=1).fit(short, long)
    vectors = clone(codes).fit(short, long, X)
    lists = codes.shortlist(short[:9])
    apart, ids = codes.query(short[:9], long[:9], k=15)
    lengths, nearest = vectors.query(short[:9], long[:9], X[:9], k=5)
    for i, shortlist in enumerate(lists):
        left = np.sort(shortlist)
        truth, places = by_definition(long[left], long[i : i + 1], 20)
        assert ids[i].tolist() == left[places[0, :15]].tolist()
        assert apart[i].tolist() == truth[0, :15].tolist()
        best = left[places[0]]
        exact = np.linalg.norm(X[best] - X[i], axis=1)
        assert nearest[i].tolist() == best[np.lexsort((best, exact))[:5]].tolist()
        np.testing.assert_allclose(lengths[i], np.sort(exact)[:5], rtol=1e-6)  # float32 sums


def test_cascade_without_cuts_is_exact(songs):
    short, long, X = songs
    cascade = HammingCascade(1000, 1000, n_short_bits=8, n_jobs=1)
    truth, ids = by_definition(long, long[:5], 700)
    for ours, theirs in zip(cascade.fit(short, long).query(short[:5], long[:5], k=700), (truth, ids), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    nearest = cascade.fit(short, long, X).query(short[:5], long[:5], X[:5], 3)[1]
    np.testing.assert_array_equal(nearest[:, 0], np.arange(5))
    assert cascade.nbytes_ == cascade.short_.nbytes_ + long.nbytes


def test_empty_cascade_and_empty_queries(songs):
    short, long, X = songs
    empty = HammingCascade(n_short_bits=8).fit(short[:0], long[:0])
    assert [part.shape for part in empty.query(short[:3], long[:3])] == [(3, 0)] * 2
    full = HammingCascade(n_short_bits=8).fit(short, long, X)
    assert [part.shape for part in full.query(short[:0], long[:0], X[:0])] == [(0, 10)] * 2


def test_rejects_mismatched_inputs(songs):
    short, long, X = songs
    cascade = HammingCascade(50, 10, n_short_bits=8).fit(short, long, X)
    for message, act in {
        "n_long=60 should be 1 to n_short=50": lambda: HammingCascade(50, 60).fit(short, long),
        "short has 399 rows, long 400": lambda: HammingCascade().fit(short[1:], long),
        "vectors 399: they should be of the same songs": lambda: HammingCascade().fit(short, long, X[1:]),
        "k=11 should be 1 to 10": lambda: cascade.query(short, long, X, 11),
        "k=0": lambda: cascade.query(short, long, X, 0),
        "long has 1 words, those of the songs 3": lambda: cascade.query(short, long[:, :1], X),
        "short has 1 rows, long 2": lambda: cascade.query(short[:1], long[:2], X[:2]),
        "vectors should be given": lambda: cascade.query(short, long),
        "vectors has shape": lambda: cascade.query(short[:2], long[:2], X[:3]),
        "^long must be uint64": lambda: cascade.query(short, X, X),
    }.items():
        with pytest.raises(ValueError, match=message):
            act()
    with pytest.raises(NotFittedError):
        HammingCascade().query(short, long)
