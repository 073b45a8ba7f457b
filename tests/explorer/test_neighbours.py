"""Which index answers for a library, and that it follows what happens to the songs."""

import json
import pickle
import shutil
import threading

import numpy as np
import pytest

from benchmarks.large_library import write_library
from musicsim.explorer.requests.filters import Filters
from musicsim.explorer.search.query import find_similar
from musicsim.explorer.snapshot import neighbours
from musicsim.explorer.snapshot.neighbours import Neighbours, update_index
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library.db import schema
from musicsim.search import CompactIndex, ExactIndex, PartitionIndex, SpillForest, SpillTree

N = 1200


@pytest.fixture(autouse=True)
def _indexes_from_a_thousand(monkeypatch):
    monkeypatch.setattr(neighbours, "INDEXED_FROM", 1000)


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
    return take_snapshot(library).index._index


def _forget(library, song_ids):
    f = schema.files.c
    with library.write() as connection:
        connection.execute(schema.files.delete().where(f.song_id.in_(song_ids)))
    assert library.files.forget_songs(song_ids) == len(song_ids)


def test_a_small_library_compares_with_every_song(library, monkeypatch):
    monkeypatch.setattr(neighbours, "INDEXED_FROM", N + 1)
    assert not update_index(_model_folder(library), take_snapshot(library).X)
    assert isinstance(_index(library), ExactIndex)


def test_a_large_library_compares_until_it_has_a_partition_and_then_asks_it(library):
    before = find_similar(take_snapshot(library), 7, 10)
    assert isinstance(_index(library), ExactIndex)
    assert update_index(_model_folder(library), take_snapshot(library).X)
    now = take_snapshot(library)
    assert isinstance(now.index._index, PartitionIndex)
    # 500 candidates with a recall of 0.95: the nearest ten are all among them
    assert [hit.song.id for hit in find_similar(now, 7, 10)] == [hit.song.id for hit in before]
    assert not update_index(_model_folder(library), now.X)


def test_forgotten_songs_are_no_answers_of_the_partition(library):
    update_index(_model_folder(library), take_snapshot(library).X)
    gone = [hit.song.id for hit in find_similar(take_snapshot(library), 7, 10)]
    _forget(library, gone[:4])
    now = take_snapshot(library)
    assert isinstance(now.index._index, PartitionIndex)
    again = [hit.song.id for hit in find_similar(now, 7, 10)]
    assert not set(gone[:4]) & set(again)
    truth = ExactIndex().fit(now.X)
    for row in (0, 5, 600, now.n_indexed - 1):
        found = now.index.query(now.X[row : row + 1], 20)
        np.testing.assert_array_equal(found[1], truth.query(now.X[row : row + 1], 20)[1])


def test_another_process_maps_the_files_of_a_forest_and_says_so_where_it_does_not_see_them(library):
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


def test_another_process_is_sent_the_vectors_that_have_no_index_in_files(library, monkeypatch):
    monkeypatch.setattr(neighbours, "INDEXED_FROM", N + 1)
    now = take_snapshot(library)
    sent = pickle.dumps(now.index)
    shutil.rmtree(_model_folder(library))
    for mine, theirs in zip(now.index.query(now.X[:9], 20), pickle.loads(sent).query(now.X[:9], 20), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_filters_reach_through_to_rows_of_the_file(library):
    update_index(_model_folder(library), take_snapshot(library).X)
    _forget(library, [1, 2, 500])
    now = take_snapshot(library)
    genre = now.columns.genre.names[0]
    hits = find_similar(now, 7, 10, filters=Filters(genres=frozenset({genre})))
    assert hits
    assert {hit.song.genre for hit in hits} == {genre}


def test_new_rows_are_added_when_the_partition_is_read_and_kept_when_they_are_many(vectors, tmp_path):
    assert update_index(tmp_path, vectors[:1100])
    few = vectors[:1110]  # less than 2 %
    assert not update_index(tmp_path, few)
    assert PartitionIndex.saved_rows(tmp_path / "index") == (1100, 1100)
    index = PartitionIndex.load(tmp_path / "index", few)
    assert index.query(few[1105:1106], 1)[1].item() == 1105
    assert update_index(tmp_path, vectors)
    assert PartitionIndex.saved_rows(tmp_path / "index") == (N, 1100)


def test_a_partition_that_has_grown_by_half_is_built_again(rng, tmp_path):
    X = rng.standard_normal((1700, 6)).astype(np.float32)
    update_index(tmp_path, X[:1000])
    assert update_index(tmp_path, X)
    assert PartitionIndex.saved_rows(tmp_path / "index") == (1700, 1700)


def test_rows_that_are_others_now_make_a_new_partition(vectors, tmp_path):
    update_index(tmp_path, vectors)
    assert update_index(tmp_path, vectors[::-1].copy())
    PartitionIndex.load(tmp_path / "index", vectors[::-1].copy())


@pytest.mark.parametrize("damage", ["leaves.npy", "index.json", "trees.json"])
def test_a_damaged_partition_leaves_searching_exact_and_is_built_again(library, damage):
    X = take_snapshot(library).X
    update_index(_model_folder(library), X)
    file = _model_folder(library) / "index" / damage
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    assert isinstance(take_snapshot(library).index._index, ExactIndex)
    assert update_index(_model_folder(library), X)
    assert isinstance(_index(library), PartitionIndex)


def test_an_index_that_lost_its_description_is_built_again(library):
    X = take_snapshot(library).X
    update_index(_model_folder(library), X)
    (_model_folder(library) / "index" / "index.json").unlink()
    assert isinstance(take_snapshot(library).index._index, ExactIndex)
    assert update_index(_model_folder(library), X)
    assert isinstance(_index(library), PartitionIndex)


@pytest.mark.parametrize("damage", ["hash.npz", "shown.npy", "index.json", "shape"])
def test_damaged_codes_leave_searching_exact_and_are_built_again(library, damage):
    X = take_snapshot(library).X
    library.set_setting("index_memory_mb", 0)
    folder = _model_folder(library) / "index"
    update_index(_model_folder(library), X, memory_mb=0)
    if damage == "shape":
        meta = json.loads((folder / "index.json").read_text())
        (folder / "index.json").write_text(json.dumps(meta | {"shape": None}))
    else:
        data = (folder / damage).read_bytes()
        (folder / damage).write_bytes(data[: len(data) - 50])
    assert isinstance(take_snapshot(library).index._index, ExactIndex)
    assert update_index(_model_folder(library), X, memory_mb=0)
    assert isinstance(_index(library), CompactIndex)


def test_what_a_process_left_half_written_is_swept(vectors, tmp_path):
    (tmp_path / ".index-abc").mkdir()
    (tmp_path / ".index-abc" / "nodes.npy").write_bytes(b"half")
    update_index(tmp_path, vectors)
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["index"]


def test_two_processes_do_not_build_at_once(vectors, tmp_path):
    import filelock

    with filelock.FileLock(tmp_path / "index.lock"):
        assert not update_index(tmp_path, vectors)


def test_neighbours_give_rows_of_the_library_not_of_the_file(vectors):
    here = np.flatnonzero(np.arange(N) % 3)
    X = vectors[here]
    found = Neighbours(PartitionIndex(n_probes=10_000, random_state=0).fit(vectors), here)
    truth = ExactIndex().fit(X)
    allowed = np.arange(len(X)) % 2 == 0
    for mask in (None, allowed):
        distances, rows = found.query(X[:30], 8, allowed=mask)
        expected = truth.query(X[:30], 8, allowed=mask)
        np.testing.assert_array_equal(rows, expected[1])
        np.testing.assert_allclose(distances, expected[0], rtol=1e-5, atol=1e-6)  # float32 sums


def test_opening_a_large_library_prepares_its_index_beside_the_service(library):
    snapshot = take_snapshot(library)
    snapshot.build_index_in_background()
    for thread in threading.enumerate():
        if thread.name == "index":
            thread.join(timeout=120)
    assert isinstance(snapshot.index._index, PartitionIndex)


def test_where_a_partition_would_take_too_much_memory_codes_are_searched(library):
    before = find_similar(take_snapshot(library), 7, 10)
    library.set_setting("index_memory_mb", 0)
    snapshot = take_snapshot(library)
    assert update_index(_model_folder(library), snapshot.X, memory_mb=0)
    now = take_snapshot(library)
    assert isinstance(now.index._index, CompactIndex)
    assert [hit.song.id for hit in find_similar(now, 7, 10)] == [hit.song.id for hit in before]
    assert not update_index(_model_folder(library), now.X, memory_mb=0)
    # with more memory a partition takes its place
    assert update_index(_model_folder(library), now.X, memory_mb=4096)
    assert isinstance(_index(library), PartitionIndex)


CHOICES = {"partition": PartitionIndex, "forest": SpillForest, "tree": SpillTree, "codes": CompactIndex}


@pytest.mark.parametrize("choice", CHOICES)
def test_the_setting_chooses_the_kind_of_index(library, monkeypatch, choice):
    monkeypatch.setattr(neighbours, "INDEXED_FROM", N + 1)
    expected = [hit.song.id for hit in find_similar(take_snapshot(library), 7, 5)]
    library.set_setting("index_kind", choice)
    snapshot = take_snapshot(library)
    assert isinstance(snapshot.index._index, ExactIndex), "it compares every song until the index is built"
    assert update_index(_model_folder(library), snapshot.X, choice=choice)
    assert type(_index(library)) is CHOICES[choice]
    assert [hit.song.id for hit in find_similar(take_snapshot(library), 7, 5)] == expected
    library.set_setting("index_kind", "exact")
    assert isinstance(_index(library), ExactIndex)
    library.set_setting("index_kind", "automatic")
    assert isinstance(_index(library), ExactIndex), "automatic uses no index for so few songs"


def test_another_choice_replaces_the_index_in_the_background(library):
    for choice in ("forest", "partition"):
        library.set_setting("index_kind", choice)
        snapshot = take_snapshot(library)
        snapshot.build_index_in_background()
        for thread in threading.enumerate():
            if thread.name == "index":
                thread.join(timeout=120)
        assert type(snapshot.index._index) is CHOICES[choice]


def test_a_choice_does_not_apply_to_a_tiny_library(vectors, tmp_path, monkeypatch):
    assert not update_index(tmp_path, vectors[: neighbours.CHOSEN_FROM - 1], choice="forest")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_kind_of_index_is_refused(library):
    with pytest.raises(ValueError, match="index_kind='best' should be one of automatic, partition"):
        library.set_setting("index_kind", "best")
