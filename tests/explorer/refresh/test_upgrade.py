"""After an update: songs of an older feature version are analysed again, and nothing is lost on the way."""

import os
import signal

import numpy as np
import pytest

from musicsim.audio import FEATURE_CHANGES, FEATURE_VERSION
from musicsim.explorer import jobs
from musicsim.explorer.models.schema import SOUND
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.refresh.outdated import pending_upgrade
from musicsim.explorer.refresh.refresh import refresh
from musicsim.explorer.refresh.upgrade import bring_up_to_date
from musicsim.explorer.search.query import find_similar, read_example
from musicsim.explorer.search.why_sides import explained
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library.db import schema
from musicsim.progress import no_progress
from tests.old_features import make_feature_version_2, set_feature_version
from tests.progress import cancel_when
from tests.sounds import write_collection, write_song
from tests.waiting import until


@pytest.fixture
def older(tiny_library):
    """A library whose songs and models are of the feature version before this one."""
    return make_feature_version_2(tiny_library)


def test_every_version_says_what_became_better():
    assert set(FEATURE_CHANGES) == set(range(2, FEATURE_VERSION + 1))


def test_a_library_of_today_has_nothing_to_do(tiny_library):
    assert pending_upgrade(tiny_library) is None


def test_what_will_be_done_and_why_is_said(older):
    upgrade = pending_upgrade(older)
    assert upgrade.n_songs == 12
    assert upgrade.reasons == (FEATURE_CHANGES[FEATURE_VERSION],)
    assert "12 songs are analysed again" in upgrade.words
    assert FEATURE_CHANGES[FEATURE_VERSION] in upgrade.words


def test_all_songs_are_analysed_again_and_keep_their_ids(older):
    before = {song.id: song.title for song in older.songs()}
    assert bring_up_to_date(older, progress=no_progress)
    assert pending_upgrade(older) is None
    assert {song.id: song.title for song in older.songs()} == before
    snapshot = take_snapshot(older)
    assert len(snapshot.songs_at()) == 12
    assert snapshot.model is not None, "a model of this version is in use"


def test_until_all_is_done_everything_works_as_before(older, collection, tmp_path):
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
    _, _, why = explained(snapshot, example, hit.song.id)
    assert sum(part.similarity for part in why.parts) == pytest.approx(why.similarity_before, abs=1e-5)
    older.add(write_song(tmp_path / "new.flac", "noise", seed=77))
    assert refresh(older)
    assert older.models.active().id == old
    assert len(take_snapshot(older).songs_at()) == 13


def test_then_sound_is_fitted_again_on_what_was_analysed(older):
    old = older.models.active()
    bring_up_to_date(older, progress=no_progress)
    snapshot = take_snapshot(older)
    assert snapshot.record.id != old.id
    assert (snapshot.record.kind, snapshot.record.name) == ("native", "Sound")
    assert snapshot.model.representation == SOUND
    assert all(older.frame_files.frames(song.content_hash).fluctuation is not None for song in older.songs())
    assert np.isfinite(snapshot.vectors_at(np.arange(12))).all()


def test_codewords_are_the_same_before_and_after(older):
    codewords = older.models.codewords()
    model, before = (SimilarityModel.load(older.models.path(codewords.id)), older.vectors(codewords.id).X.copy())
    bring_up_to_date(older, progress=no_progress)
    assert older.models.codewords() == codewords
    np.testing.assert_array_equal(older.vectors(codewords.id).X, before)
    songs = {song.id: song for song in older.songs()}
    frames = [older.frame_files.frames(songs[i].content_hash) for i in older.vectors(codewords.id).song_ids.tolist()]
    np.testing.assert_array_equal(model.transform(frames), before)


def test_a_file_that_can_be_read_no_more_does_not_hold_up_the_rest(older):
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


@pytest.mark.slow
def test_a_killed_update_goes_on_where_it_was(store, tmp_path):
    store.add(write_collection(tmp_path / "music", n_songs=8, seconds=40))
    refresh(store)
    make_feature_version_2(store)
    old = store.models.active().id

    def n_done():
        return 24 - len(store.files.outdated())

    job_id = jobs.start(store, "upgrade")
    until(lambda: n_done() >= 3 or not store.jobs.get(job_id).is_active)
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


def test_adding_a_song_first_brings_up_what_is_old(older, tmp_path):
    from musicsim.explorer.refresh.add_music import add_and_refresh

    add_and_refresh(older, [write_song(tmp_path / "new.flac", "noise", seed=77)], progress=no_progress)
    assert pending_upgrade(older) is None
    assert len(take_snapshot(older).songs_at()) == 13


def test_a_song_whose_file_has_gone_does_not_hold_up_the_rest(older, collection, tmp_path):
    song = older.songs()[0]
    with older.write() as connection:
        files = schema.files
        connection.execute(files.update().where(files.c.song_id == song.id).values(path=tmp_path / "gone.flac"))
    bring_up_to_date(older, progress=no_progress)
    assert pending_upgrade(older) is None
    assert older.song(song.id).is_missing


# --- a native model of an older version, whose songs need not be analysed again -------------------


@pytest.fixture
def with_older_native(twelve):
    set_feature_version(twelve, twelve.models.native(), 2)
    return twelve


def test_the_native_model_is_updated_without_reading_a_file(with_older_native):
    old = with_older_native.models.native()
    with with_older_native.write() as connection:
        connection.exec_driver_sql("UPDATE files SET path = '/gone' || path")  # nothing there can be read
    upgrade = pending_upgrade(with_older_native)
    assert upgrade.n_songs == 0
    assert "without reading the files again" in upgrade.words
    assert bring_up_to_date(with_older_native, progress=no_progress)
    assert pending_upgrade(with_older_native) is None
    snapshot = take_snapshot(with_older_native)
    assert (snapshot.record.kind, snapshot.record.name) == ("native", "Sound")
    assert snapshot.record.id != old.id
    assert len(snapshot.row_ids) == 24


def test_without_stored_audio_features_the_old_model_stays(with_older_native):
    old = with_older_native.models.native()
    with_older_native.frame_files.drop(with_older_native.songs()[0].content_hash)
    assert pending_upgrade(with_older_native) is None
    assert refresh(with_older_native)
    assert with_older_native.models.native() == old
    assert len(take_snapshot(with_older_native).row_ids) == 24


# --- what can be heard of songs, which was not said before -----------------------------------------

HEARD = ("tempo", "key", "mode", "loudness", "brightness", "energy")


def heard(library):
    return {song.id: tuple(getattr(song, name) for name in HEARD) for song in library.songs(missing=True)}


@pytest.fixture
def undescribed(tiny_library):
    """A library of a version that did not say what can be heard."""
    nothing = dict.fromkeys(HEARD) | {"descriptor_version": 0}
    with tiny_library.write() as connection:
        connection.execute(schema.songs.update().values(**nothing))
    tiny_library.note_refreshed()
    return tiny_library


def test_what_can_be_heard_is_worked_out_from_what_is_kept(undescribed):
    with undescribed.write() as connection:  # no file can be read
        for song in undescribed.songs():
            where = schema.files.c.song_id == song.id
            gone = song.path.with_suffix(".gone")
            connection.execute(schema.files.update().where(where).values(path=gone))
    undescribed.note_refreshed()
    upgrade = pending_upgrade(undescribed)
    assert (upgrade.n_songs, upgrade.n_undescribed) == (0, 12)
    assert "12 songs are worked out in the background, without reading the files again" in upgrade.words
    assert bring_up_to_date(undescribed, progress=no_progress)
    assert pending_upgrade(undescribed) is None
    assert undescribed.is_refreshed, "models are left as they are"
    for tempo, _, _, loudness, brightness, energy in heard(undescribed).values():
        assert -60 < loudness < 0
        assert 100 < brightness < 11025
        assert energy > 0
        assert tempo is None or 30 < tempo < 450


def test_it_is_the_same_as_when_the_song_is_analysed(store, tmp_path):
    store.add(write_song(tmp_path / "new.flac", "tones", seed=5), n_workers=1)
    before = heard(store)
    assert None not in next(iter(before.values()))[3:]
    with store.write() as connection:
        connection.execute(schema.songs.update().values(**dict.fromkeys(HEARD), descriptor_version=0))
    assert bring_up_to_date(store, progress=no_progress)
    assert heard(store) == before


def test_songs_of_which_nothing_is_kept_do_not_hold_it_up(undescribed):
    for song in undescribed.songs():
        undescribed.frame_files.drop(song.content_hash)
    assert bring_up_to_date(undescribed, progress=no_progress)
    assert pending_upgrade(undescribed) is None
    assert set(heard(undescribed).values()) == {(None,) * 6}


def test_songs_without_harmony_and_rhythm_have_no_key_and_tempo(undescribed):
    for path in undescribed.frame_files.folder.glob("??/*.npz"):
        path.unlink()
    assert bring_up_to_date(undescribed, progress=no_progress)
    assert all(of[:3] == (None, None, None) and of[3] is not None for of in heard(undescribed).values())


def test_describing_can_be_stopped(undescribed):
    assert not bring_up_to_date(undescribed, progress=cancel_when(lambda *_: True))
    assert pending_upgrade(undescribed).n_undescribed == 12
