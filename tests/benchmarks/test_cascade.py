"""Each stage of the cascade ranks the songs that the stage before leaves."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from benchmarks.support.cascade import HammingCascade
from tests.search.test_hamming import by_definition, codes_of

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
