"""The benchmark of bit codes measures what its head says: its data, its truth, what its claims compare."""

import numpy as np
import pytest

from benchmarks.hamming import Built, Case, Contender, claims, differing, measure, truth
from benchmarks.support.hamming_data import KINDS, bytes_of
from tests.rivals import built_to_crash

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
