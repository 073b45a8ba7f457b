"""Tests of an update: songs of an older feature version are analyzed again, and nothing is lost."""

import os
import signal

import numpy as np
import pytest

from musicsim.audio import DESCRIPTORS, FEATURE_CHANGES, FEATURE_VERSION
from musicsim.explorer import jobs
from musicsim.explorer.models.schema import SOUND
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.refresh.add_music import bring_up_to_date, scan_again
from musicsim.explorer.refresh.outdated import pending_upgrade
from musicsim.explorer.refresh.refresh import refresh
from musicsim.explorer.search.query import find_similar, read_example
from musicsim.explorer.search.why_sides import explain_result
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library.db import schema
from musicsim.progress import no_progress
from tests.halts import halt_first_job
from tests.old_features import make_feature_version_3, set_feature_version
from tests.progress import cancel_when
from tests.sounds import write_collection, write_song
from tests.waiting import until


@pytest.fixture
def older(tiny_library):
    """Open a library whose songs and models have the previous feature version."""
    return make_feature_version_3(tiny_library)


def test_every_feature_version_has_change_description():
    assert set(FEATURE_CHANGES) == set(range(2, FEATURE_VERSION + 1))


def test_current_library_needs_no_upgrade(tiny_library):
    assert pending_upgrade(tiny_library) is None


def test_pending_upgrade_states_scope_and_reasons(older):
    upgrade = pending_upgrade(older)
    assert upgrade.n_songs == 12
    assert upgrade.reasons == (FEATURE_CHANGES[FEATURE_VERSION],)
    assert "12 songs will be analyzed again" in upgrade.words
    assert FEATURE_CHANGES[FEATURE_VERSION] in upgrade.words


def test_upgrade_reanalyzes_songs_and_keeps_ids(older):
    before = {song.id: song.title for song in older.songs()}
    assert bring_up_to_date(older, progress=no_progress)
    assert pending_upgrade(older) is None
    assert {song.id: song.title for song in older.songs()} == before
    snapshot = take_snapshot(older)
    assert len(snapshot.songs_at()) == 12
    assert snapshot.model is not None, "a model of this version is in use"


@pytest.mark.long
def test_library_works_during_upgrade(older, collection, tmp_path):
    old, before = older.models.active().id, take_snapshot(older)
    song = older.songs()[0]
    assert refresh(older)
    assert not bring_up_to_date(older, progress=cancel_when(lambda _, done, total: done >= 4))
    assert 0 < pending_upgrade(older).n_songs < 12
    assert refresh(older)
    assert older.models.active().id == old
    snapshot = take_snapshot(older)
    np.testing.assert_array_equal(snapshot.vectors_at(np.arange(12)), before.vectors_at(np.arange(12)))
    example = read_example(snapshot, song.path, "a copy")
    np.testing.assert_allclose(example.vector, snapshot.vectors_at(snapshot.rows_of([song.id]))[0], atol=1e-4)
    hit = find_similar(snapshot, example, 1, max_per_artist=None)[0]
    _, _, why = explain_result(snapshot, example, hit.song.id)
    parts = sum(part.stages[-1].similarity for part in why.parts)
    assert parts == pytest.approx(why.stages[-1].similarity, abs=1e-5)
    older.add(write_song(tmp_path / "new.flac", "noise", seed=77))
    assert refresh(older)
    assert older.models.active().id == old
    assert len(take_snapshot(older).songs_at()) == 13


def test_upgrade_refits_sound_model(older):
    old = older.models.active()
    bring_up_to_date(older, progress=no_progress)
    snapshot = take_snapshot(older)
    assert snapshot.record.id != old.id
    assert (snapshot.record.kind, snapshot.record.name) == ("native", "Sound")
    assert snapshot.model.representation == SOUND
    frames = [older.frame_files.frames(song.content_hash) for song in older.songs()]
    assert all(of.spectral_shape is not None and of.parts is not None for of in frames)
    assert snapshot.model.n_features == older.models.native().n_features > old.n_features
    assert np.isfinite(snapshot.vectors_at(np.arange(12))).all()


def test_upgrade_keeps_codewords_unchanged(older):
    codewords = older.models.codewords()
    model, before = (SimilarityModel.load(older.models.path(codewords.id)), older.vectors(codewords.id).X.copy())
    bring_up_to_date(older, progress=no_progress)
    assert older.models.codewords() == codewords
    np.testing.assert_array_equal(older.vectors(codewords.id).X, before)
    songs = {song.id: song for song in older.songs()}
    frames = [older.frame_files.frames(songs[i].content_hash) for i in older.vectors(codewords.id).song_ids.tolist()]
    np.testing.assert_array_equal(model.transform(frames), before)


def test_unreadable_file_does_not_block_upgrade(older):
    broken = older.songs()[0]
    copy = broken.path.read_bytes()
    path = older.folder / "broken.flac"
    path.write_bytes(copy)
    with older.write() as connection:
        files = schema.files
        connection.execute(files.update().where(files.c.song_id == broken.id).values(path=path))
    path.write_bytes(b"no music any more")
    bring_up_to_date(older, progress=no_progress)
    assert pending_upgrade(older) is None
    assert take_snapshot(older).model.representation == SOUND
    assert len(take_snapshot(older).songs_at()) == 11


@pytest.mark.long
def test_killed_upgrade_resumes(store, tmp_path):
    store.add(write_collection(tmp_path / "music", n_songs=8, seconds=40))
    refresh(store)
    make_feature_version_3(store)
    old = store.models.active().id

    def n_done():
        return 24 - len(store.files.find_outdated())

    halt_first_job(store.folder, "done", 3)
    job_id = jobs.start(store, "upgrade")
    until(lambda: store.jobs.get(job_id).state == "paused" or not store.jobs.get(job_id).is_active)
    os.killpg(store.jobs.get(job_id).pid, signal.SIGKILL)
    until(lambda: jobs.current(store) is None)
    had = n_done()
    assert 3 <= had < 24
    assert store.models.active().id == old
    assert len(take_snapshot(store).songs_at()) == 24
    job_id = jobs.start(store, "upgrade")
    until(lambda: jobs.current(store) is None)
    job = store.jobs.get(job_id)
    assert (job.state, n_done()) == ("done", 24)
    assert take_snapshot(store).model.representation == SOUND


@pytest.mark.long
def test_adding_song_upgrades_old_songs_first(older, tmp_path):
    from musicsim.explorer.refresh.add_music import add_and_refresh

    add_and_refresh(older, [write_song(tmp_path / "new.flac", "noise", seed=77)], progress=no_progress)
    assert pending_upgrade(older) is None
    assert len(take_snapshot(older).songs_at()) == 13


@pytest.mark.long
def test_missing_file_does_not_block_upgrade(older, collection, tmp_path):
    song = older.songs()[0]
    with older.write() as connection:
        files = schema.files
        connection.execute(files.update().where(files.c.song_id == song.id).values(path=tmp_path / "gone.flac"))
    bring_up_to_date(older, progress=no_progress)
    assert pending_upgrade(older) is None
    assert older.song(song.id).is_missing


# --- built-in model of an older version, whose songs do not need a new analysis -------------------


@pytest.fixture
def with_older_native(twelve):
    set_feature_version(twelve, twelve.models.native(), 3)
    return twelve


def test_native_model_upgrades_without_reading_files(with_older_native):
    old = with_older_native.models.native()
    with with_older_native.write() as connection:
        connection.exec_driver_sql("UPDATE files SET path = '/gone' || path")  # nothing there is readable
    upgrade = pending_upgrade(with_older_native)
    assert upgrade.n_songs == 0
    assert "without reading the files again" in upgrade.words
    assert bring_up_to_date(with_older_native, progress=no_progress)
    assert pending_upgrade(with_older_native) is None
    snapshot = take_snapshot(with_older_native)
    assert (snapshot.record.kind, snapshot.record.name) == ("native", "Sound")
    assert snapshot.record.id != old.id
    assert len(snapshot.row_ids) == 24


def test_native_model_stays_without_stored_features(with_older_native):
    old = with_older_native.models.native()
    with_older_native.frame_files.drop(with_older_native.songs()[0].content_hash)
    assert pending_upgrade(with_older_native) is None
    assert refresh(with_older_native)
    assert with_older_native.models.native() == old
    assert len(take_snapshot(with_older_native).row_ids) == 24


# --- descriptors that older versions did not store -----------------------------------------

DESCRIBED = ("key", "mode", *DESCRIPTORS)


def heard(library):
    return {song.id: tuple(getattr(song, name) for name in DESCRIBED) for song in library.songs(missing=True)}


@pytest.fixture
def undescribed(tiny_library):
    """Open a library of a version that did not store descriptors."""
    nothing = dict.fromkeys(DESCRIBED) | {"descriptor_version": 0}
    with tiny_library.write() as connection:
        connection.execute(schema.songs.update().values(**nothing))
    with tiny_library.note_refresh():
        pass
    return tiny_library


def test_descriptors_are_computed_from_stored_features(undescribed):
    with undescribed.write() as connection:  # no file is readable
        for song in undescribed.songs():
            where = schema.files.c.song_id == song.id
            gone = song.path.with_suffix(".gone")
            connection.execute(schema.files.update().where(where).values(path=gone))
    with undescribed.note_refresh():
        pass
    upgrade = pending_upgrade(undescribed)
    assert (upgrade.n_songs, upgrade.n_undescribed) == (0, 12)
    assert "12 songs will be computed in the background, without reading the files again" in upgrade.words
    assert bring_up_to_date(undescribed, progress=no_progress)
    assert pending_upgrade(undescribed) is None
    assert undescribed.is_refreshed, "models are left as they are"
    for song in undescribed.songs():
        assert -60 < song.loudness < 0
        assert 100 < song.brightness < 11025
        assert song.energy > 0
        assert song.tempo is None or 30 < song.tempo < 450


def test_scan_computes_descriptors(undescribed):
    """Documentation tells people to use `musicsim scan` if they do not open the app after an upgrade."""
    assert scan_again(undescribed, progress=cancel_when(lambda *_: True)).canceled
    assert pending_upgrade(undescribed).n_undescribed == 12
    assert not scan_again(undescribed, progress=no_progress).canceled
    assert pending_upgrade(undescribed) is None


def test_upgraded_descriptors_equal_analyzed_descriptors(store, tmp_path):
    store.add(write_song(tmp_path / "new.flac", "tones", seed=5), n_workers=1)
    before = heard(store)
    assert None not in next(iter(before.values()))[3:]
    with store.write() as connection:
        connection.execute(schema.songs.update().values(**dict.fromkeys(DESCRIBED), descriptor_version=0))
    assert bring_up_to_date(store, progress=no_progress)
    assert heard(store) == before


def test_songs_without_stored_features_do_not_block_upgrade(undescribed):
    for song in undescribed.songs():
        undescribed.frame_files.drop(song.content_hash)
    assert bring_up_to_date(undescribed, progress=no_progress)
    assert pending_upgrade(undescribed) is None
    assert set(heard(undescribed).values()) == {(None,) * len(DESCRIBED)}


def test_songs_without_harmony_and_rhythm_lack_key_and_tempo(undescribed):
    for path in undescribed.frame_files.folder.glob("??/*.npz"):
        path.unlink()
    assert bring_up_to_date(undescribed, progress=no_progress)
    assert all(of[:3] == (None, None, None) and of[3] is not None for of in heard(undescribed).values())


def test_descriptor_upgrade_can_be_canceled(undescribed):
    assert not bring_up_to_date(undescribed, progress=cancel_when(lambda *_: True))
    assert pending_upgrade(undescribed).n_undescribed == 12
    with undescribed.note_refresh():
        pass
    assert not bring_up_to_date(undescribed, progress=cancel_when(lambda _, done, total: done == total))
    assert pending_upgrade(undescribed) is None
    assert undescribed.is_refreshed
