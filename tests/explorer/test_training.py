"""Tests of fitting a model, of only placing songs, and of state after a stop or a kill."""

import shutil

import numpy as np
import pytest

from musicsim.errors import FeatureVersionError, ModelError
from musicsim.explorer.models.files import save_model_file
from musicsim.explorer.refresh.fitting import RepresentationSettings
from musicsim.explorer.refresh.model_catalogue import add_representation
from musicsim.explorer.refresh.placing import cluster_sizes
from musicsim.explorer.refresh.refresh import needs_fit, refresh
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import Library
from musicsim.library.stores.frames import FrameStore
from tests.learning import hush
from tests.progress import cancel_when
from tests.sounds import open_library, write_collection, write_song


@pytest.mark.long
def test_new_song_is_placed_without_moving_others(tiny_library, tmp_path):
    before = take_snapshot(tiny_library)
    places = {s.id: before.map[before.rows_of([s.id])[0]].tolist() for s in before.library.songs()}
    tiny_library.add(write_song(tmp_path / "new.flac", "noise", seed=55, title="new"))
    assert refresh(tiny_library)
    after = take_snapshot(tiny_library)
    assert after.record.id == before.record.id, "one song more is no reason to fit again"
    new = next(s for s in after.library.songs() if s.title == "new")
    assert np.isfinite(after.map[after.rows_of([new.id])[0]]).all()
    assert all((labels >= 0).all() for labels in after.clusters.values())
    for song_id, place in places.items():
        assert after.map[after.rows_of([song_id])[0]].tolist() == place


@pytest.mark.long
@pytest.mark.parametrize("n_new", [0, 1])
def test_refresh_reads_only_new_songs(tiny_library, tmp_path, monkeypatch, n_new):
    """A million song objects take a minute and 2 GB."""
    if n_new:
        tiny_library.add(write_song(tmp_path / "new.flac", "noise", seed=55, title="new"))
    tiny_library.note_change()
    read = []

    read_songs = Library.songs

    def songs(library, ids=None, *, missing=False):
        found = read_songs(library, ids, missing=missing)
        read.extend(song.title for song in found)
        return found

    def kept(_):
        raise AssertionError("frames of all songs were listed")

    monkeypatch.setattr(Library, "songs", songs)
    monkeypatch.setattr(FrameStore, "list_stored", kept)
    assert refresh(tiny_library)
    assert set(read) == ({"new"} if n_new else set())
    assert tiny_library.is_refreshed
    assert tiny_library.duplicates.not_compared() == set()
    for record in tiny_library.models.all():
        assert len(tiny_library.vectors(record.id).song_ids) == 12 + n_new


@pytest.mark.long
def test_doubled_library_is_refitted(tiny_library, tmp_path):
    before = tiny_library.models.active()
    write_collection(tmp_path / "more", n_songs=4, seconds=3)
    tiny_library.add(tmp_path / "more")
    assert needs_fit(tiny_library, before, len(tiny_library))
    refresh(tiny_library)
    after = tiny_library.models.active()
    assert after.id != before.id
    assert after.n_songs_fitted == 24
    assert [m.id for m in tiny_library.models.all()] == [after.id, tiny_library.models.codewords().id]
    assert not tiny_library.models.path(before.id).exists()


@pytest.mark.long
def test_same_songs_give_same_model(tiny_library, collection, tmp_path):
    with open_library(tmp_path / "again") as again:
        again.add(collection)
        refresh(again)
        one, two = take_snapshot(tiny_library), take_snapshot(again)
        by_title = {s.title: two.X[two.rows_of([s.id])[0]] for s in two.songs_at()}
        for song in one.songs_at():
            np.testing.assert_array_equal(one.X[one.rows_of([song.id])[0]], by_title[song.title])


@pytest.mark.long
@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_tiny_libraries_have_map_and_neighbors(store, tmp_path, n):
    from musicsim.explorer.search.query import find_similar

    for i in range(n):
        write_song(tmp_path / "music" / f"{i}.flac", seed=i, title=str(i))
    (tmp_path / "music").mkdir(exist_ok=True)
    store.add(tmp_path / "music")
    assert refresh(store)
    snapshot = take_snapshot(store)
    assert len(snapshot.songs_at()) == n
    assert np.isfinite(snapshot.map).all()
    for song in snapshot.library.songs():
        assert len(find_similar(snapshot, song.id)) == n - 1


def test_canceled_refresh_keeps_active_model(tiny_library):
    before = take_snapshot(tiny_library)
    assert not refresh(tiny_library, force=True, progress=cancel_when(lambda message, *_: "map" in message))
    after = take_snapshot(tiny_library)
    assert after.record == before.record
    np.testing.assert_array_equal(after.X, before.X)
    folders = [p.name for p in tiny_library.models.folder.iterdir()]
    kept = [before.record.id, tiny_library.models.codewords().id]
    assert sorted(folders) == sorted(kept), "nothing half made is left"


def test_force_refits_model(tiny_library):
    before = tiny_library.models.active().id
    refresh(tiny_library, force=True)
    assert tiny_library.models.active().id != before


def test_unreadable_model_is_refitted_and_logged_once(tiny_library, caplog):
    record = tiny_library.models.active()
    (tiny_library.models.path(record.id) / "model.npz").write_bytes(b"broken")
    assert needs_fit(tiny_library, record, 12)
    refresh(tiny_library)
    assert tiny_library.models.active().id != record.id
    assert sum("cannot be read" in message for message in caplog.messages) == 1


@pytest.mark.parametrize("name", ["vectors.f32", "histograms.f32"])
def test_model_with_missing_rows_is_refitted(tiny_library, name):
    before = tiny_library.models.active()
    (tiny_library.models.path(before.id) / name).unlink()
    assert needs_fit(tiny_library, before, 0)
    assert refresh(tiny_library)
    after = take_snapshot(tiny_library)
    assert after.record.id != before.id
    assert len(after.X) == 12


@pytest.mark.long
def test_broken_model_does_not_block_new_songs(tiny_library, tmp_path):
    mine = add_representation(tiny_library, RepresentationSettings("rhythm"), "mine", hush)
    (tiny_library.models.path(mine) / "vectors.f32").unlink()
    tiny_library.add(write_song(tmp_path / "new.flac", "noise", seed=55, title="new"))
    assert refresh(tiny_library)
    seen = take_snapshot(tiny_library, tiny_library.models.native().id)
    assert len(seen.X) == 13
    assert np.isfinite(seen.map).all()
    with pytest.raises(ModelError, match="'mine' are missing"):
        save_model_file(tiny_library, _without_files(tiny_library, mine), tmp_path / "mine.model")


def _without_files(library, model_id):
    shutil.rmtree(library.models.path(model_id))
    return model_id


@pytest.mark.long
def test_disabled_frame_storage_deletes_frames(tiny_library, tmp_path):
    tiny_library.set_setting("keep_frames", False)
    refresh(tiny_library)
    assert not tiny_library.frame_files.list_stored()
    tiny_library.add(write_song(tmp_path / "new.flac", "clicks", seed=66))
    refresh(tiny_library)
    assert len(take_snapshot(tiny_library).songs_at()) == 13


@pytest.mark.long
def test_refit_requires_all_frames(tiny_library, collection):
    tiny_library.set_setting("keep_frames", False)
    refresh(tiny_library)
    with pytest.raises(FeatureVersionError, match="12 songs were not stored"):
        refresh(tiny_library, force=True)
    assert tiny_library.add(collection).n_unchanged == 12
    tiny_library.set_setting("keep_frames", True)
    report = tiny_library.add(collection)
    assert (report.n_unchanged, report.n_added, len(tiny_library)) == (0, 0, 12)
    assert refresh(tiny_library, force=True)
    assert len(take_snapshot(tiny_library).songs_at()) == 12


def test_missing_model_and_frames_error_names_remedy(store, tmp_path):
    store.add(write_song(tmp_path / "a.flac"))
    store.frame_files.drop(store.songs()[0].content_hash)
    with pytest.raises(FeatureVersionError, match="Turn on “Store audio features”"):
        refresh(store)


@pytest.mark.parametrize(
    ("n", "sizes"), [(1, [1]), (8, [2]), (64, [16]), (255, [16]), (256, [16, 64]), (1024, [16, 64, 256])]
)
def test_clusters_have_at_least_four_songs(n, sizes):
    assert cluster_sizes(n) == sizes
