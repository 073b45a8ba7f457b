"""Tests of bit codes in memory with vectors on disk: results, and that the index is restricted to its rows."""

import json

import numpy as np
import pytest

from benchmarks.support.search_data import hard
from musicsim.search import CompactIndex, ExactIndex, HammingIndex, SpillForest
from musicsim.search.compact import rows_within


@pytest.fixture(scope="module")
def data():
    return hard(6_000, 40, n_clusters=30, seed=1)


@pytest.fixture(scope="module")
def index(data):
    return CompactIndex(n_learned=1_500, random_state=0).fit(data[0])


def test_nearly_all_neighbors_are_found_with_exact_distances(index, data):
    X, Q = data
    distances, ids = index.query(Q, 10)
    truth = ExactIndex().fit(X).query(Q, 10)[1]
    # a sixth of the rows are candidates, so chance alone would find a sixth
    assert np.mean([np.isin(t, i).mean() for t, i in zip(truth, ids, strict=True)]) > 0.97
    exact = np.linalg.norm(X[ids] - Q[:, None, :], axis=2)
    np.testing.assert_allclose(distances, exact, rtol=1e-6)  # rounding of float32
    assert (np.diff(distances, axis=1) >= 0).all()


def test_every_row_is_found_by_its_own_vector_and_none_twice(index, data):
    X, _ = data
    distances, ids = index.query(X[::97], 20)
    np.testing.assert_array_equal(ids[:, 0], np.arange(len(X))[::97])
    assert (distances[:, 0] == 0).all()
    assert all(len(set(row)) == 20 for row in ids.tolist())


@pytest.mark.long
def test_only_rows_that_are_allowed_and_not_removed_are_answers(data):
    X, Q = data
    index = CompactIndex(n_learned=500, random_state=0).fit(X[:2_000])
    index.remove(np.arange(0, 2_000, 2))
    allowed = np.arange(2_000) < 1_000
    _, ids = index.query(Q, 600, allowed=allowed)
    assert ids.shape == (len(Q), 500)  # the full number
    assert set(ids.ravel().tolist()) == set(range(1, 1_000, 2))


@pytest.mark.long
def test_added_rows_are_found_and_ids_go_on(data):
    X, _ = data
    index = CompactIndex(n_learned=500, random_state=0).fit(X[:1_000])
    np.testing.assert_array_equal(index.add(X[1_000:1_200]), np.arange(1_000, 1_200))
    np.testing.assert_array_equal(index.query(X[1_000:1_200], 1)[1].ravel(), np.arange(1_000, 1_200))


def test_it_comes_back_from_a_folder_and_takes_more_rows(index, data, tmp_path):
    X, Q = data
    index.save(tmp_path / "index")
    assert CompactIndex.count_saved_rows(tmp_path / "index") == (len(X), len(X))
    more = np.concatenate([X, Q])
    again = CompactIndex.load(tmp_path / "index", more)
    assert again.n_samples_ == len(more)
    np.testing.assert_array_equal(again.query(Q, 1)[1].ravel(), np.arange(len(X), len(more)))
    same = CompactIndex.load(tmp_path / "index", X)
    for ours, theirs in zip(same.query(Q, 10), index.query(Q, 10), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_what_is_damaged_or_of_other_rows_is_refused(index, data, tmp_path):
    X, _ = data
    index.save(tmp_path / "index")
    with pytest.raises(ValueError, match="built from different rows"):
        CompactIndex.load(tmp_path / "index", X[::-1])
    with pytest.raises(ValueError, match="contains a CompactIndex, not a SpillForest"):
        SpillForest.load(tmp_path / "index", X)
    (tmp_path / "index" / "index.json").write_text(json.dumps([]))
    with pytest.raises(ValueError, match="damaged or has a different version"):
        CompactIndex.load(tmp_path / "index", X)


def _flipped(data):
    return data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 255]) + data[len(data) // 2 + 1 :]


@pytest.mark.parametrize(
    ("file", "damage"),
    [
        ("hash.npz", lambda data: data[:-50]),
        ("hash.npz", lambda data: data[:2]),
        ("hash.npz", _flipped),
        ("shown.npy", lambda data: data[:100]),
        ("codes/planes.npy", lambda data: data[:-1]),
        ("index.json", lambda data: json.dumps(json.loads(data) | {"shape": None}).encode()),
        ("index.json", lambda data: json.dumps(json.loads(data) | {"shape": [None, 40]}).encode()),
        ("index.json", lambda data: json.dumps(json.loads(data) | {"built": None}).encode()),
    ],
)
def test_damage_in_any_file_is_said(index, data, tmp_path, file, damage):
    index.save(tmp_path / "index")
    path = tmp_path / "index" / file
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match="damaged or has a different version"):
        CompactIndex.load(tmp_path / "index", data[0])


@pytest.mark.parametrize(
    ("name", "change"),
    [("exponents", lambda a: a[:-1]), ("exponents", lambda a: a.astype(float)), ("units", lambda a: a[:-1])],
)
def test_a_hash_that_does_not_fit_is_said(index, data, tmp_path, name, change):
    index.save(tmp_path / "index")
    with np.load(tmp_path / "index" / "hash.npz") as stored:
        arrays = dict(stored)
    np.savez(tmp_path / "index" / "hash.npz", **arrays | {name: change(arrays[name])})
    with pytest.raises(ValueError, match="damaged or has a different version"):
        CompactIndex.load(tmp_path / "index", data[0])


def test_a_mask_of_another_type_is_said(index, data, tmp_path):
    index.save(tmp_path / "index")
    np.save(tmp_path / "index" / "shown.npy", np.ones(len(data[0])))
    with pytest.raises(ValueError, match="damaged or has a different version"):
        CompactIndex.load(tmp_path / "index", data[0])


@pytest.mark.long
def test_rows_that_share_a_code_are_all_looked_at(rng):
    tight = rng.normal(0, 1e-3, (3_000, 20))
    X = np.concatenate([tight, rng.normal(5, 1, (3_000, 20))]).astype(np.float32)
    index = CompactIndex(n_learned=1_000, random_state=0).fit(X)
    assert len(np.unique(index.hash_.transform(X[:3_000]), axis=0)) < 10
    _, ids = index.query(X[:3_000:50], 10)
    np.testing.assert_array_equal(ids[:, 0], np.arange(0, 3_000, 50))
    truth = ExactIndex().fit(X).query(X[:3_000:50], 10)[1]
    # the 1,000 lowest ids alone would contain a third
    assert np.mean([np.isin(t, i).mean() for t, i in zip(truth, ids, strict=True)]) > 0.99


@pytest.mark.long
def test_of_more_rows_than_are_looked_at_a_draw_is_spread_over_all(rng):
    X = np.concatenate([np.ones((9_000, 4)), rng.normal(5, 1, (500, 4))]).astype(np.float32)
    index = CompactIndex(64, n_learned=1_000, random_state=0).fit(X)
    codes = HammingIndex().fit(index.hash_.transform(X))
    code = index.hash_.transform(X[:1])
    rows = rows_within(codes, code, 0, 4_000)
    assert len(set(rows.tolist())) == 4_000
    assert np.histogram(rows, 9, (0, 9_000))[0].min() > 400
    allowed = np.arange(len(X)) < 100
    assert rows_within(codes, code, 0, 4_000, allowed).tolist() == list(range(100))
    # bins nearer than the one that is sampled are complete
    other = index.hash_.transform(X[-1:])
    edge = codes.query(other, 501)[0][0, -1]
    (distances,), (near,) = codes.radius(other, edge)
    found = rows_within(codes, other, edge, 4_000)
    assert len(near) > len(found) == 4_000
    assert set(near[distances < edge].tolist()) <= set(found.tolist())


@pytest.mark.parametrize("rows", [np.zeros((5, 3)), np.ones((1, 3)), np.empty((0, 3)), np.eye(3)])
def test_few_or_equal_rows_are_a_case_like_others(rows):
    index = CompactIndex(random_state=0).fit(rows)
    distances, ids = index.query(np.ones((2, 3)), 10)
    assert distances.shape == ids.shape == (2, len(rows))
    np.testing.assert_allclose(np.sort(distances, axis=1), np.sort(np.linalg.norm(1 - rows, axis=1))[None].repeat(2, 0))


@pytest.mark.parametrize(
    ("options", "words"), [({"ratio": 0}, "ratio=0"), ({"n_learned": 1}, "n_learned=1"), ({"n_bits": 0}, "n_bits=0")]
)
def test_options_out_of_range_are_named(options, words):
    with pytest.raises(ValueError, match=words):
        CompactIndex(**options).fit(np.eye(5))


def test_nan_is_refused(index):
    with pytest.raises(ValueError, match="NaN"):
        index.query(np.full((1, 100), np.nan), 1)
