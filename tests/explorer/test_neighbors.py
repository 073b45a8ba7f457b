"""Tests of the choice of an index for a library, and of its updates when songs change."""

import json
import pickle
import shutil
import threading

import numpy as np
import pytest

from benchmarks.large_library import write_library
from musicsim.explorer.requests.filters import Filters
from musicsim.explorer.search.query import find_similar
from musicsim.explorer.snapshot import neighbors
from musicsim.explorer.snapshot.neighbors import Neighbors, update_index
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library.db import schema
from musicsim.search import ExactIndex, PartitionIndex, SpillForest
from tests.waiting import PATIENCE_S

N = 1200


@pytest.fixture(autouse=True)
def _indexes_from_a_thousand(monkeypatch):
    monkeypatch.setattr(neighbors, "INDEXED_FROM", 1000)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("many") / "library"
    write_library(folder, N, random_state=3).close()
    return folder


@pytest.fixture
def vectors(rng):
    return rng.standard_normal((N, 12)).astype(np.float32)


def _model_folder(library):
    return library.models.path(library.models.get().id)


def _index(library):
    return take_snapshot(library).index.index


def _forget(library, song_ids):
    f = schema.files.c
    with library.write() as connection:
        connection.execute(schema.files.delete().where(f.song_id.in_(song_ids)))
    assert library.files.forget_songs(song_ids) == len(song_ids)


def test_small_library_uses_exact_index(library, monkeypatch):
    monkeypatch.setattr(neighbors, "INDEXED_FROM", N + 1)
    assert not update_index(_model_folder(library), take_snapshot(library).X)
    assert isinstance(_index(library), ExactIndex)


def test_large_library_switches_to_partition(library):
    before = find_similar(take_snapshot(library), 7, 10)
    assert isinstance(_index(library), ExactIndex)
    assert update_index(_model_folder(library), take_snapshot(library).X)
    now = take_snapshot(library)
    assert isinstance(now.index.index, PartitionIndex)
    # 500 candidates with a recall of 0.95 contain all of the nearest ten
    assert [hit.song.id for hit in find_similar(now, 7, 10)] == [hit.song.id for hit in before]
    assert not update_index(_model_folder(library), now.X)


def test_removed_songs_are_not_in_partition_results(library):
    update_index(_model_folder(library), take_snapshot(library).X)
    gone = [hit.song.id for hit in find_similar(take_snapshot(library), 7, 10)]
    _forget(library, gone[:4])
    now = take_snapshot(library)
    assert isinstance(now.index.index, PartitionIndex)
    again = [hit.song.id for hit in find_similar(now, 7, 10)]
    assert not set(gone[:4]) & set(again)
    truth = ExactIndex().fit(now.X)
    for row in (0, 5, 600, now.n_indexed - 1):
        found = now.index.query(now.X[row : row + 1], 20)
        np.testing.assert_array_equal(found[1], truth.query(now.X[row : row + 1], 20)[1])


def test_pickled_index_maps_partition_files(library):
    update_index(_model_folder(library), take_snapshot(library).X)
    _forget(library, [1, 2, 500])
    now = take_snapshot(library)
    sent = pickle.dumps(now.index)
    assert len(sent) < 10 * N, "8 bytes a song: neither vectors nor trees"
    for mine, theirs in zip(now.index.query(now.X[:9], 20), pickle.loads(sent).query(now.X[:9], 20), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    (_model_folder(library) / "vectors.f32").unlink()
    with pytest.raises(FileNotFoundError):
        pickle.loads(sent).query(now.X[:9], 20)


def test_pickled_exact_index_contains_vectors(library, monkeypatch):
    monkeypatch.setattr(neighbors, "INDEXED_FROM", N + 1)
    now = take_snapshot(library)
    sent = pickle.dumps(now.index)
    shutil.rmtree(_model_folder(library))
    for mine, theirs in zip(now.index.query(now.X[:9], 20), pickle.loads(sent).query(now.X[:9], 20), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_filters_apply_to_partition_results(library):
    update_index(_model_folder(library), take_snapshot(library).X)
    _forget(library, [1, 2, 500])
    now = take_snapshot(library)
    genre = now.columns.genre.names[0]
    hits = find_similar(now, 7, 10, filters=Filters(genres=frozenset({genre})))
    assert hits
    assert {hit.song.genre for hit in hits} == {genre}


def test_new_rows_are_saved_only_if_many(vectors, tmp_path):
    assert update_index(tmp_path, vectors[:1100])
    few = vectors[:1110]  # less than 2 %
    assert not update_index(tmp_path, few)
    assert PartitionIndex.count_saved_rows(tmp_path / "index") == (1100, 1100)
    index = PartitionIndex.load(tmp_path / "index", few)
    assert index.query(few[1105:1106], 1)[1].item() == 1105
    assert update_index(tmp_path, vectors)
    assert PartitionIndex.count_saved_rows(tmp_path / "index") == (N, 1100)


def test_partition_is_rebuilt_after_growing_by_half(rng, tmp_path):
    X = rng.standard_normal((1700, 6)).astype(np.float32)
    update_index(tmp_path, X[:1000])
    assert update_index(tmp_path, X)
    assert PartitionIndex.count_saved_rows(tmp_path / "index") == (1700, 1700)


def test_changed_rows_rebuild_partition(vectors, tmp_path):
    update_index(tmp_path, vectors)
    assert update_index(tmp_path, vectors[::-1].copy())
    PartitionIndex.load(tmp_path / "index", vectors[::-1].copy())


@pytest.mark.long
@pytest.mark.parametrize("damage", ["leaves.npy", "index.json", "trees.json"])
def test_damaged_partition_falls_back_and_is_rebuilt(library, damage):
    X = take_snapshot(library).X
    update_index(_model_folder(library), X)
    file = _model_folder(library) / "index" / damage
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    assert isinstance(take_snapshot(library).index.index, ExactIndex)
    assert update_index(_model_folder(library), X)
    assert isinstance(_index(library), PartitionIndex)


def test_index_without_description_is_rebuilt(library):
    X = take_snapshot(library).X
    update_index(_model_folder(library), X)
    (_model_folder(library) / "index" / "index.json").unlink()
    assert isinstance(take_snapshot(library).index.index, ExactIndex)
    assert update_index(_model_folder(library), X)
    assert isinstance(_index(library), PartitionIndex)


def test_shapeless_partition_falls_back_and_is_rebuilt(library):
    X = take_snapshot(library).X
    update_index(_model_folder(library), X)
    meta = _model_folder(library) / "index" / "index.json"
    meta.write_text(json.dumps(json.loads(meta.read_text()) | {"shape": None}))
    assert isinstance(take_snapshot(library).index.index, ExactIndex)
    assert update_index(_model_folder(library), X)
    assert isinstance(_index(library), PartitionIndex)


def test_index_of_former_kind_is_replaced(library):
    """Version 1.0 could search a forest, a tree or bit codes."""
    X = take_snapshot(library).X
    SpillForest(random_state=0).fit(X).save(_model_folder(library) / "index")
    assert isinstance(_index(library), ExactIndex)
    assert update_index(_model_folder(library), X)
    assert isinstance(_index(library), PartitionIndex)


def test_half_written_index_is_deleted(vectors, tmp_path):
    (tmp_path / ".index-abc").mkdir()
    (tmp_path / ".index-abc" / "nodes.npy").write_bytes(b"half")
    update_index(tmp_path, vectors)
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["index"]


def test_concurrent_build_is_skipped(vectors, tmp_path):
    import filelock

    with filelock.FileLock(tmp_path / "index.lock"):
        assert not update_index(tmp_path, vectors)


def test_neighbors_returns_library_rows(vectors):
    here = np.flatnonzero(np.arange(N) % 3)
    X = vectors[here]
    found = Neighbors(PartitionIndex(n_probes=10_000, random_state=0).fit(vectors), here)
    truth = ExactIndex().fit(X)
    allowed = np.arange(len(X)) % 2 == 0
    for mask in (None, allowed):
        distances, rows = found.query(X[:30], 8, allowed=mask)
        expected = truth.query(X[:30], 8, allowed=mask)
        np.testing.assert_array_equal(rows, expected[1])
        np.testing.assert_allclose(distances, expected[0], rtol=1e-5, atol=1e-6)  # float32 sums


def test_opening_large_library_builds_index_in_background(library):
    snapshot = take_snapshot(library)
    snapshot.model_rows.build_index_in_background()
    for thread in threading.enumerate():
        if thread.name == "index":
            thread.join(timeout=PATIENCE_S)
    assert isinstance(snapshot.index.index, PartitionIndex)


def test_setting_chooses_index_kind(library, monkeypatch):
    monkeypatch.setattr(neighbors, "INDEXED_FROM", N + 1)
    expected = [hit.song.id for hit in find_similar(take_snapshot(library), 7, 5)]
    library.set_setting("index_kind", "partition")
    snapshot = take_snapshot(library)
    assert isinstance(snapshot.index.index, ExactIndex), "it compares every song until the index is built"
    assert update_index(_model_folder(library), snapshot.X, "partition")
    assert isinstance(_index(library), PartitionIndex)
    assert [hit.song.id for hit in find_similar(take_snapshot(library), 7, 5)] == expected
    library.set_setting("index_kind", "exact")
    assert isinstance(_index(library), ExactIndex)
    library.set_setting("index_kind", "automatic")
    assert isinstance(_index(library), ExactIndex), "automatic uses no index for so few songs"


def test_changed_setting_builds_index_in_background(library):
    for choice, kind in (("exact", ExactIndex), ("partition", PartitionIndex)):
        library.set_setting("index_kind", choice)
        snapshot = take_snapshot(library)
        snapshot.model_rows.build_index_in_background()
        for thread in threading.enumerate():
            if thread.name == "index":
                thread.join(timeout=PATIENCE_S)
        assert isinstance(snapshot.index.index, kind)


def test_tiny_library_ignores_index_choice(vectors, tmp_path):
    assert not update_index(tmp_path, vectors[: neighbors.CHOSEN_FROM - 1], "partition")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["forest", "tree", "codes"])
def test_stored_settings_of_former_kinds_mean_automatic(library, kind):
    library.set_text("settings", json.dumps({"index_kind": kind, "index_memory_mb": 9, "shortest_s": 11}))
    assert library.settings["index_kind"] == "automatic"
    assert "index_memory_mb" not in library.settings
    assert update_index(_model_folder(library), take_snapshot(library).X, library.settings["index_kind"])
    assert isinstance(_index(library), PartitionIndex)
    library.set_setting("shortest_s", 12)
    assert json.loads(library.text("settings"))["index_kind"] == "automatic"


def test_rejects_unknown_index_kind(library):
    with pytest.raises(ValueError, match="index_kind='best' should be one of automatic, partition, exact"):
        library.set_setting("index_kind", "best")
