"""Tests of the recall and time of each kind of index, compared with brute force."""

import numpy as np
import pytest

from benchmarks.large_library import write_library
from musicsim.errors import ModelError
from musicsim.explorer.evaluation import search_speed
from musicsim.explorer.evaluation.search_speed import K, measure_search
from musicsim.explorer.snapshot.neighbors import KINDS, build_partition
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.progress import Canceled

MIN_RECALL = {"partition": 0.95, "exact": 1.0}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("measured") / "library"
    write_library(folder, 1500, random_state=5).close()
    return folder


@pytest.mark.long
def test_partition_reaches_its_recall(rng):
    centers = rng.normal(size=(60, 40))
    X = (centers[rng.integers(60, size=6000)] + rng.normal(size=(6000, 40))).astype(np.float32)
    queries = X[:80] + rng.normal(scale=0.1, size=(80, 40)).astype(np.float32)
    truth = np.argsort(((queries[:, None, :] - X[None]) ** 2).sum(axis=2), axis=1)[:, :K]
    _, ids = build_partition(X).query(queries, K)
    recall = np.mean([len(set(a) & set(b)) / K for a, b in zip(ids, truth, strict=True)])
    assert recall >= MIN_RECALL["partition"]


@pytest.mark.long
def test_all_kinds_are_measured_on_same_songs(library, monkeypatch):
    monkeypatch.setattr(search_speed, "_N_QUERIES", 50)
    library.set_setting("index_kind", "partition")
    steps = []
    found = measure_search(take_snapshot(library), progress=lambda *step: steps.append(step))
    assert [row.kind for row in found.rows] == list(KINDS)
    assert [row.kind for row in found.rows if row.is_chosen] == ["partition"]
    assert all(row.recall >= MIN_RECALL[row.kind] and row.ms > 0 for row in found.rows)
    assert (found.n_songs, found.n_compared, found.n_queries) == (1500, 1500, 50)
    done = [step[1] for step in steps]
    assert done == sorted(done)
    assert steps[-1][1:] == (len(KINDS), len(KINDS))
    assert not (library.models.path(library.models.get().id) / "index").exists()


@pytest.mark.long
def test_very_large_library_is_sampled(library, monkeypatch):
    monkeypatch.setattr(search_speed, "_MAX_SONGS", 1100)
    found = measure_search(take_snapshot(library))
    assert (found.n_songs, found.n_compared) == (1500, 1100)
    assert "a sample of 1,100" in found.caption


def test_measurement_can_be_canceled(library):
    def stop(message: str, done: int, total: int) -> None:
        if done == 1:
            raise Canceled

    with pytest.raises(Canceled):
        measure_search(take_snapshot(library), progress=stop)


def test_rejects_small_library(tiny_library):
    with pytest.raises(ModelError, match="at least 1,000 songs; this library has 12"):
        measure_search(take_snapshot(tiny_library))
