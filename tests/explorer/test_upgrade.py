"""After an update: songs of an older version are analysed again, and nothing is lost on the way."""

import json

import pytest

from musicsim.audio import FEATURE_CHANGES, FEATURE_VERSION
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.explorer.upkeep.upgrade import bring_up_to_date, pending_upgrade
from musicsim.library.db import schema
from tests.sounds import write_song


def report(**_values):
    """Nobody listens."""


@pytest.fixture
def older(tiny_library):
    """A library as the version before this one left it."""
    with tiny_library.write() as connection:
        connection.execute(schema.songs.update().values(feature_version=FEATURE_VERSION - 1))
    about = tiny_library.models.path(tiny_library.models.active().id) / "model.json"
    told = json.loads(about.read_text()) | {"feature_version": FEATURE_VERSION - 1}
    about.write_text(json.dumps(told))
    return tiny_library


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
    assert bring_up_to_date(older, report=report)
    assert pending_upgrade(older) is None
    assert {song.id: song.title for song in older.songs()} == before
    snapshot = take_snapshot(older)
    assert len(snapshot.songs_at()) == 12
    assert snapshot.model is not None, "a model of this version is in use"


def test_until_all_is_done_the_old_model_stays(older):
    old = older.models.active().id
    assert not bring_up_to_date(older, report=lambda **values: values.get("done", 0) >= 4)
    assert 0 < pending_upgrade(older).n_songs < 12
    assert older.models.active().id == old
    assert len(take_snapshot(older).songs_at()) == 12


def test_adding_a_song_first_brings_up_what_is_old(older, tmp_path):
    from musicsim.explorer.upkeep.add_music import add_and_refresh

    add_and_refresh(older, [write_song(tmp_path / "new.flac", "noise", seed=77)], report=report)
    assert pending_upgrade(older) is None
    assert len(take_snapshot(older).songs_at()) == 13


def test_a_song_whose_file_has_gone_does_not_hold_up_the_rest(older, collection, tmp_path):
    song = older.songs()[0]
    with older.write() as connection:
        files = schema.files
        connection.execute(
            files.update().where(files.c.song_id == song.id).values(path=tmp_path / "gone.flac")
        )
    bring_up_to_date(older, report=report)
    assert pending_upgrade(older) is None
    assert older.song(song.id).is_missing
