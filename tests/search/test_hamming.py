"""Tests that search in bit codes equals brute force, with and without tables."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from musicsim.search import HammingIndex, hamming
from tests.shared import SHARED

METHODS = ("scan", "balls")
both = pytest.mark.parametrize("method", METHODS)

# Assumed nanoseconds per code of a scan: tables are used never, if they pay off, always.
NEVER, AS_PAYS, ALWAYS = 0.0, 30.0, 1e9
PRICES = (NEVER, AS_PAYS, ALWAYS)


def codes_of(bits):
    """Pack rows of booleans into codes, the first in the lowest bit."""
    n, n_bits = bits.shape
    packed = np.zeros((n, 8 * -(-n_bits // 64)), np.uint8)
    packed[:, : -(-n_bits // 8)] = np.packbits(bits, axis=1, bitorder="little")
    return packed.view(np.uint64)


def clustered(rng, n, n_bits, flips=0.1, n_clusters=5):
    centres = rng.random((n_clusters, n_bits)) < 0.5
    return codes_of(centres[rng.integers(n_clusters, size=n)] ^ (rng.random((n, n_bits)) < flips))


def by_definition(X, Q, k, allowed=None):
    """Return distances and ids by counting bits word by word; ties go to the lower id."""
    D = np.zeros((len(Q), len(X)), np.int64)
    for word in range(X.shape[1]):
        D += np.bitwise_count(X[None, :, word] ^ Q[:, None, word])
    if allowed is not None:
        D[:, ~allowed] = 1 << 30
        k = min(k, int(allowed.sum()))
    ids = np.argsort(D, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(D, ids, axis=1), ids


def assert_nearest(index, X, Q, k, allowed=None, mask=None):
    distances, ids = index.query(Q, k, allowed=mask)
    truth, true_ids = by_definition(X, Q, k, allowed)
    np.testing.assert_array_equal(ids, true_ids)
    np.testing.assert_array_equal(distances, truth)
    assert (distances.dtype, ids.dtype) == (np.int32, np.int64)


def assert_within(index, X, Q, r, allowed=None, mask=None):
    distances, ids = index.radius(Q, r, allowed=mask)
    truth, true_ids = by_definition(X, Q, len(X), allowed)
    assert len(distances) == len(ids) == len(Q)
    for i, radius in enumerate(np.broadcast_to(r, len(Q))):
        n_near = np.count_nonzero(truth[i] <= radius)
        assert ids[i].tolist() == true_ids[i, :n_near].tolist()
        assert distances[i].tolist() == truth[i, :n_near].tolist()


@pytest.fixture(params=PRICES, ids=["never", "as it pays", "always"])
def price(request, monkeypatch):
    """Set the assumed cost of a scan relative to a table look-up."""
    monkeypatch.setattr(hamming, "SCAN_CODE", request.param)


# --- the definition -----------------------------------------------------------------------------------


@pytest.mark.long
@settings(max_examples=150)
@given(
    n=st.integers(0, 300), n_bits=st.integers(1, 300), k=st.integers(1, 320), n_first=st.integers(0, 300),
    flips=st.sampled_from([0.0, 0.02, 0.1, 0.5]), share=st.sampled_from([None, 0.0, 0.1, 0.8]),
    price=st.sampled_from(PRICES), method=st.sampled_from(METHODS), seed=st.integers(0, 2**31),
)  # fmt: skip
def test_answers_equal_the_definition_ties_included(n, n_bits, k, n_first, flips, share, price, method, seed):
    rng = np.random.default_rng(seed)
    X, Q = clustered(rng, n, n_bits, flips), clustered(rng, 4, n_bits, flips)
    Q[:2] = X[:2] if n > 1 else Q[:2]
    allowed = None if share is None else rng.random(n) < share
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hamming, "SCAN_CODE", price)
        index = HammingIndex(method, n_bits=n_bits, n_jobs=1).fit(X[:n_first])
        assert index.add(X[n_first:]).tolist() == list(range(min(n_first, n), n))
        assert_nearest(index, X, Q, k, allowed, allowed)
        assert_within(index, X, Q, rng.integers(0, n_bits + 2, 4), allowed, allowed)
        assert_within(index, X, Q, int(rng.integers(0, 8)), allowed, allowed)


@both
@pytest.mark.parametrize("n_bits", [32, 64, 256])
def test_thousands_of_codes(method, n_bits, price, rng):
    X = clustered(rng, 9000, n_bits, 0.05, 50)
    index = HammingIndex(method, n_bits=n_bits, n_jobs=1).fit(X)
    Q = clustered(rng, 20, n_bits, 0.05, 50)  # from other clusters
    Q[::2] = X[:2000:200]
    assert_nearest(index, X, Q, 10)
    assert_within(index, X, Q, 3)


@both
def test_duplicates_by_the_thousand(method, price, rng):
    X = np.repeat(clustered(rng, 5, 64), 1500, axis=0)
    rng.shuffle(X)
    index = HammingIndex(method, n_jobs=1).fit(X)
    assert_nearest(index, X, X[:6], 40)
    assert_within(index, X, X[:6], 0)


@both
@pytest.mark.parametrize("n_bits", [1, 8, 40, 130])
def test_all_codes_equal(method, n_bits, price):
    X = np.zeros((500, -(-n_bits // 64)), np.uint64)
    index = HammingIndex(method, n_bits=n_bits, n_jobs=1).fit(X)
    Q = codes_of(np.ones((2, n_bits), bool))
    assert index.query(X[:1], 5)[1].tolist() == [[0, 1, 2, 3, 4]]
    assert index.query(Q, 3)[0].tolist() == [[n_bits] * 3] * 2
    assert [len(ids) for ids in index.radius(Q, n_bits)[1]] == [500, 500]
    assert [len(ids) for ids in index.radius(Q, n_bits - 1)[1]] == [0, 0]


@both
def test_nearer_codes_that_come_late_are_found(method, price):
    # each code is nearer than the previous one, so every tile has candidates
    n_bits = 256
    X = codes_of(np.arange(n_bits)[None] >= np.arange(n_bits + 1)[:, None])
    index = HammingIndex(method, n_jobs=1).fit(X)
    assert_nearest(index, X, np.zeros((1, 4), np.uint64), 7)
    assert_within(index, X, X[::50], 60)


@both
def test_no_code_and_more_asked_for_than_there_are(method, rng):
    X = clustered(rng, 3, 64)
    for n in (0, 1, 3):
        index = HammingIndex(method, n_jobs=1).fit(X[:n])
        for n_queries in (0, 1, 3):
            for k in (1, 2, 50, 10**12, np.int64(3)):
                shapes = [part.shape for part in index.query(X[:n_queries], k)]
                assert shapes == [(n_queries, min(k, n))] * 2
            assert [len(part) for part in index.radius(X[:n_queries], 64)] == [n_queries] * 2
        assert_within(index, X[:n], X, 10**6)


@both
def test_codes_of_images(method):
    path = SHARED / "mnist/mnist_t10k.npz"
    if not path.exists():
        pytest.skip("no MNIST: set MUSICSIM_SHARED_DATA to the folder of public data sets")
    with np.load(path, allow_pickle=False) as file:
        pixels = file["X"].reshape(len(file["X"]), -1).astype(np.float32)
    directions = np.random.default_rng(0).standard_normal((pixels.shape[1], 96), dtype=np.float32)
    X = codes_of((pixels - pixels.mean(axis=0)) @ directions > 0)
    index = HammingIndex(method, n_bits=96, n_jobs=1).fit(X)
    assert_nearest(index, X, X[:40], 10)
    assert_within(index, X, X[:40], 8)


# --- adding and removing codes --------------------------------------------------------------------------------


@both
def test_codes_come_and_go(method, price, monkeypatch, rng):
    monkeypatch.setattr(hamming, "ALWAYS_ALLOWED_ADDED", 30)
    build, n_built = hamming.BucketTables.build, []

    def counted(rows, n_bits):
        n_built.append(len(rows))
        return build(rows, n_bits)

    monkeypatch.setattr(hamming.BucketTables, "build", counted)
    X, shown = clustered(rng, 20, 64), np.ones(20, bool)
    index = HammingIndex(method, n_jobs=1).fit(X)
    for n_new, n_gone in [(1, 0), (70, 10), (0, 3), (25, 40), (200, 0)]:
        new = clustered(rng, n_new, 64)
        assert index.add(new).tolist() == list(range(len(X), len(X) + n_new))
        X, shown = np.concatenate([X, new]), np.concatenate([shown, np.ones(n_new, bool)])
        gone = rng.integers(0, len(X), n_gone)
        index.remove(gone)
        shown[gone] = False
        mask = rng.random(len(X)) < 0.6
        assert_nearest(index, X, X[:5], 12, shown)
        assert_within(index, X, X[:5], 9, shown)
        assert_nearest(index, X, X[:5], 12, shown & mask, mask)
    if method == "balls":
        assert n_built[-1] > 250  # the tables were built again


def test_given_codes_are_neither_held_nor_written(rng):
    X = clustered(rng, 100, 64)
    mine = X.copy()
    index = HammingIndex("balls").fit(mine)
    mine[:] = 0
    assert_nearest(index, X, X[:5], 5)


# --- threads ------------------------------------------------------------------------------------------


@both
def test_threads_give_the_same(method, monkeypatch, rng):
    X, Q = clustered(rng, 3000, 64, 0.05, 20), clustered(rng, 130, 64, 0.05, 20)
    monkeypatch.setattr(hamming, "PART_QUERIES", 50)
    one, several = (HammingIndex(method, n_jobs=n).fit(X) for n in (1, 3))
    for ours, theirs in zip(one.query(Q, 7), several.query(Q, 7), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    for ours, theirs in zip(one.radius(Q, 5), several.radius(Q, 5), strict=True):
        assert [part.tolist() for part in ours] == [part.tolist() for part in theirs]
    assert_nearest(several, X, Q, 7)
    assert_within(several, X, Q, 5)


# --- folders ------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("n_bits", [32, 64, 200])
def test_saved_and_mapped_into_memory(method, n_bits, tmp_path, rng):
    X = clustered(rng, 700, n_bits)
    index = HammingIndex(method, n_bits=n_bits, n_jobs=1).fit(X[:600])
    index.add(X[600:650])
    index.remove([3, 4])
    index.save(tmp_path / "index")
    index.save(tmp_path / "index")  # replaces the previous one
    assert [path.name for path in tmp_path.iterdir()] == ["index"]
    loaded = HammingIndex.load(tmp_path / "index")
    assert loaded.get_params() == index.get_params()
    assert str(tmp_path / "index" / "planes.npy") in Path("/proc/self/maps").read_text()
    shown = ~np.isin(np.arange(700), [3, 4])
    assert_nearest(loaded, X[:650], X[:5], 9, shown[:650])
    assert_within(loaded, X[:650], X[:5], 9, shown[:650])
    loaded.add(X[650:])
    assert_nearest(loaded, X, X[645:655], 9, shown)
    assert_nearest(HammingIndex.load(tmp_path / "index"), X[:650], X[:5], 9, shown[:650])


def test_an_index_of_nothing_can_be_kept(tmp_path):
    HammingIndex("balls").fit(np.zeros((0, 2), np.uint64)).save(tmp_path / "index")
    loaded = HammingIndex.load(tmp_path / "index")
    assert loaded.add(np.ones((2, 2), np.uint64)).tolist() == [0, 1]
    assert loaded.query(np.zeros((1, 2), np.uint64))[0].tolist() == [[2, 2]]


def test_what_is_no_index_is_never_replaced(tmp_path):
    index = HammingIndex().fit(GOOD)
    music, vectors = tmp_path / "music", tmp_path / "vectors.npy"
    music.mkdir()
    (music / "song.mp3").write_text("mine")
    vectors.write_text("mine")
    for place in (music, vectors):
        with pytest.raises(FileExistsError, match="not an index"):
            index.save(place)
    assert (music / "song.mp3").read_text() == vectors.read_text() == "mine"
    empty = tmp_path / "empty"
    empty.mkdir()
    for _ in range(2):  # the second replaces the first
        index.save(empty)
    assert HammingIndex.load(empty).n_samples_ == len(GOOD)
    assert {place.name for place in tmp_path.iterdir()} == {"music", "vectors.npy", "empty"}


def test_a_failed_save_leaves_the_folder_as_it_was(tmp_path, monkeypatch, rng):
    X = clustered(rng, 50, 64)
    HammingIndex().fit(X).save(tmp_path / "index")
    monkeypatch.setattr(json, "dumps", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        HammingIndex().fit(X[:3]).save(tmp_path / "index")
    assert [path.name for path in tmp_path.iterdir()] == ["index"]
    assert HammingIndex.load(tmp_path / "index").n_samples_ == 50


def test_damaged_folders_are_refused(tmp_path, rng):
    HammingIndex("balls", n_bits=100).fit(clustered(rng, 300, 100)).save(tmp_path / "index")
    names = sorted(path.name for path in (tmp_path / "index").iterdir())
    assert names == ["codes.npy", "ids.npy", "index.json", "offsets.npy", "planes.npy", "rows.npy", "shown.npy"]

    def cut(path):
        path.write_bytes(path.read_bytes()[:-9])

    def shorten(path):
        np.save(path, np.load(path)[..., :-1])

    def raise_numbers(path):
        array = np.load(path)
        array.flat[array.size // 2] = 2**31
        np.save(path, array)

    harms = [(name, cut) for name in names if name not in {"codes.npy", "shown.npy"}]
    harms += [(name, shorten) for name in ("ids.npy", "offsets.npy", "planes.npy", "rows.npy")]
    harms += [(name, raise_numbers) for name in ("ids.npy", "offsets.npy")]
    harms += [(name, lambda path: path.unlink()) for name in names if name != "index.json"]
    harms += [("index.json", lambda path: path.write_text(json.dumps({"kind": "HammingIndex", "format": 99})))]
    for name, harm in harms:
        shutil.copytree(tmp_path / "index", tmp_path / "harmed")
        harm(tmp_path / "harmed" / name)
        with pytest.raises(ValueError, match=r"The index in .*harmed is damaged .* rebuild it"):
            HammingIndex.load(tmp_path / "harmed")
        shutil.rmtree(tmp_path / "harmed")
    with pytest.raises(FileNotFoundError):
        HammingIndex.load(tmp_path / "nothing")


# --- errors ----------------------------------------------------------------------------------

GOOD = np.zeros((5, 2), np.uint64)


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (GOOD.astype(np.int64), "must be uint64, .* not int64"),
        (GOOD.astype(np.uint32), "not uint32"),
        (GOOD > 0, "not bool"),
        ([[0.5]], "not float64"),
        (GOOD[0], "two-dimensional"),
        (GOOD[None], "two-dimensional"),
        (GOOD[:, :0], "two-dimensional"),
        (GOOD[:, :1], "its width must be 2"),
        (np.zeros((1, 3), np.uint64), "its width must be 2"),
        (np.full((1, 2), 1 << 36, np.uint64), "bits beyond n_bits=100"),
    ],
)
def test_bad_codes_name_the_argument(codes, message):
    index = HammingIndex(n_bits=100).fit(GOOD)
    for act in (index.query, index.add, lambda c: index.radius(c, 1), clone(index).fit):
        with pytest.raises(ValueError, match=f"^codes .*{message}"):
            act(codes)
    assert index.n_samples_ == 5


def test_words_are_compared_where_no_bits_were_named():
    with pytest.raises(ValueError, match="with n_bits=128, its width must be 2"):
        HammingIndex().fit(GOOD).query(GOOD[:, :1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "tree"}, "method='tree' should be one of scan, balls"),
        ({"n_bits": 0}, "n_bits=0"),
        ({"n_bits": 64.0}, "n_bits=64.0"),
        ({"n_bits": 64}, "with n_bits=64, its width must be 1"),
        ({"n_jobs": 0}, "n_jobs=0"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        HammingIndex(**options).fit(GOOD)


def test_bad_questions_are_named():
    index = HammingIndex().fit(GOOD)
    with pytest.raises(ValueError, match="k=0"):
        index.query(GOOD, 0)
    for r in (1.5, [1, 2], "2", None):
        with pytest.raises(ValueError, match=r"^r="):
            index.radius(GOOD, r)
    with pytest.raises(ValueError, match="r=-1"):
        index.radius(GOOD, -1)
    with pytest.raises(ValueError, match="allowed has shape"):
        index.query(GOOD, allowed=np.ones(4, bool))
    with pytest.raises(ValueError, match="codes has 32768 bits; at most 32767 are allowed"):
        HammingIndex().fit(np.zeros((1, 512), np.uint64))


def test_nothing_can_be_asked_before_fit():
    for act in (lambda i: i.query(GOOD), lambda i: i.radius(GOOD, 1), lambda i: i.add(GOOD)):
        with pytest.raises(NotFittedError):
            act(HammingIndex())


def test_clone_keeps_the_parameters():
    assert clone(HammingIndex("balls", n_bits=7, n_jobs=2)).get_params() == {
        "method": "balls", "n_bits": 7, "n_jobs": 2,
    }  # fmt: skip


def test_memory_is_what_the_arrays_take(rng):
    X = clustered(rng, 64_000, 32)
    assert HammingIndex(n_bits=32).fit(X).nbytes_ == 4 * 64_000
    tables = HammingIndex("balls", n_bits=32).fit(X)
    # planes, ids and codes of three tables of 11 bits, and their buckets
    assert tables.nbytes_ == (4 + 3 * 12) * 64_000 + 3 * 4 * (2**11 + 1)
