"""The indexes of faiss keep to what the others promise."""

import sys

import numpy as np
import pytest

from musicsim.search import ExactIndex, FaissIndex

pytest.importorskip("faiss", reason="an option: pip install faiss-cpu")


@pytest.fixture
def rows(rng):
    return rng.standard_normal((500, 8)).astype(np.float32)


@pytest.mark.parametrize(("factory", "breadth"), [("IVF16,Flat", 16), ("HNSW16", 400), ("Flat", 1)])
def test_searched_broadly_enough_it_finds_what_is_there(rows, rng, factory, breadth):
    index = FaissIndex(factory, breadth=breadth, random_state=0).fit(rows[:400])
    np.testing.assert_array_equal(index.add(rows[400:]), np.arange(400, 500))
    Q = rng.standard_normal((20, 8)).astype(np.float32)
    for ours, truth in zip(index.query(Q, 10), ExactIndex().fit(rows).query(Q, 10), strict=True):
        np.testing.assert_allclose(ours, truth, rtol=1e-5)  # norms of float32


def test_only_rows_that_are_allowed_and_not_removed_are_answers(rows):
    index = FaissIndex("IVF16,Flat", breadth=1, random_state=0).fit(rows)
    index.remove(np.arange(0, 500, 2))
    distances, ids = index.query(rows[:5], 60, allowed=np.arange(500) < 100)
    assert distances.shape == ids.shape == (5, 50)
    assert all(set(row) == set(range(1, 100, 2)) for row in ids.tolist())
    assert (np.diff(distances, axis=1) >= 0).all()


def test_equal_rows_come_by_id_and_few_rows_are_enough(rows):
    index = FaissIndex("Flat").fit(np.repeat(rows[:1], 5, axis=0))
    assert index.query(rows[:1], 10)[1].tolist() == [[0, 1, 2, 3, 4]]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"factory": "magic"}, "factory='magic'"),
        ({"factory": "IVF1024,Flat"}, "1024 lists"),
        ({"breadth": 0}, "breadth=0"),
        # built, but not searched in some of the rows
        ({"factory": "LSH"}, "factory='LSH': faiss cannot"),
        ({"factory": "Flat,RFlat"}, "factory='Flat,RFlat'"),
        ({"factory": "PCA4,IVF10,Flat"}, "factory='PCA4,IVF10,Flat'"),
        ({"factory": "IVF0,Flat"}, "factory='IVF0,Flat'"),
        # not built
        ({"factory": "IDMap,Flat"}, "factory='IDMap,Flat'"),
        ({"factory": "PQ8x10"}, "factory='PQ8x10': faiss cannot build it from 500 rows"),
    ],
)
def test_options_that_make_no_sense_are_named(rows, options, words):
    with pytest.raises(ValueError, match=words):
        FaissIndex(**options).fit(rows)


def test_without_faiss_it_says_what_to_install(rows, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ImportError, match="pip install faiss-cpu"):
        FaissIndex().fit(rows)
