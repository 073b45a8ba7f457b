"""Tests of harmony and rhythm: stored and deleted with the frames, and computed if an older version did not."""

from contextlib import suppress

import numpy as np
import pytest

from musicsim.audio import analyze_sound
from musicsim.errors import FeatureVersionError, StorageError
from musicsim.library.stores.frames import FrameStore
from tests.sounds import write_song

HASH, OTHER = "ab" * 16, "cd" * 16


@pytest.fixture
def music(tmp_path):
    folder = tmp_path / "music"
    for n, kind in enumerate(("tones", "clicks")):
        write_song(folder / f"{kind}.flac", kind, seed=n, seconds=6.0, title=kind)
    return folder


def aspect_files(store):
    return sorted(store.frame_files.folder.glob("??/*.npz"))


@pytest.mark.long
def test_scan_stores_aspects_with_frames(store, music):
    store.add(music)
    songs = store.songs()
    hashes = [song.content_hash for song in songs]
    assert store.frame_files.list_stored_aspects() == set(hashes) == store.frame_files.list_stored()
    kept = store.frame_files.aspects(hashes)
    for row, song in enumerate(songs):
        sound = analyze_sound(song.path, aspects=True)
        np.testing.assert_array_equal(kept.harmony[row], sound.harmony)
        np.testing.assert_array_equal(kept.rhythm[row], sound.rhythm)
    assert max(path.stat().st_size for path in aspect_files(store)) < 4096


@pytest.mark.long
def test_older_songs_are_readable_and_get_aspects(store, music):
    store.add(music)
    ids = {song.title: song.id for song in store.songs()}
    for path in aspect_files(store):
        path.unlink()
    song = store.songs()[0]
    assert store.frames(song).shape[1] == 39
    with pytest.raises(FeatureVersionError, match="scan its folder again"):
        store.frame_files.aspects([song.content_hash])
    report = store.add(music)
    assert (report.n_added, report.n_unchanged) == (0, 0)
    assert store.frame_files.list_stored_aspects() == store.frame_files.list_stored()
    assert {song.title: song.id for song in store.songs()} == ids
    assert store.add(music).n_unchanged == 2, "nothing is analyzed a third time"


@pytest.mark.long
def test_aspects_can_be_disabled_and_enabled_later(store, music):
    store.set_setting("aspects", False)
    store.add(music)
    assert aspect_files(store) == []
    assert len(store.frame_files.list_stored()) == 2
    assert store.add(music).n_unchanged == 2
    store.set_setting("aspects", True)
    assert store.add(music).n_unchanged == 0
    assert len(aspect_files(store)) == 2


def test_library_without_frames_is_not_analyzed_again(store, music):
    store.set_setting("keep_frames", False)
    store.add(music)
    for song in store.songs():
        store.frame_files.drop(song.content_hash)
    assert aspect_files(store) == []
    assert store.add(music).n_unchanged == 2


def test_aspects_are_deleted_with_their_songs(tmp_path):
    frames = FrameStore(tmp_path)
    for content_hash in (HASH, OTHER):
        frames.keep_aspects(content_hash, np.zeros(156, np.float32), np.zeros(240, np.float32))
        np.save(frames.path(content_hash), np.zeros((9, 13), np.float16))
    older = tmp_path / "ab" / f"{HASH}.v0.npz"
    cut_off = tmp_path / "ab" / f".{HASH}.v1-xyz.npz"
    for path in (older, cut_off):
        path.touch()
    assert frames.list_stored_aspects() == {HASH, OTHER}
    frames.sweep([HASH])
    assert frames.list_stored_aspects() == frames.list_stored() == {HASH}
    assert not older.exists()
    assert not cut_off.exists()


def test_failed_write_leaves_old_values(tmp_path, monkeypatch):
    frames = FrameStore(tmp_path)
    first = np.arange(156, dtype=np.float32)
    frames.keep_aspects(HASH, first, np.zeros(240, np.float32))

    def full(file, **arrays):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(StorageError, match="no room left"):
        frames.keep_aspects(HASH, 2 * first, np.zeros(240, np.float32))
    np.testing.assert_array_equal(frames.aspects([HASH]).harmony[0], first)
    assert len(list((tmp_path / "ab").iterdir())) == 1


@pytest.mark.parametrize("is_aspects", [True, False])
def test_damaged_aspects_are_computed_again(store, tmp_path, rng, is_aspects):
    path = write_song(tmp_path / "music" / "a.flac", seconds=2)
    store.add(path.parent)
    (song,) = store.songs()
    file = store.frame_files.files(song.content_hash)[is_aspects]
    honest = file.read_bytes()
    n_damaged = 0
    for number in range(60):
        data = bytearray(honest)
        if number % 2:
            del data[rng.integers(len(data)) :]
        else:
            data[rng.integers(120)] ^= 1 << rng.integers(8)
        file.write_bytes(data)
        with suppress(FeatureVersionError):
            store.frame_files.aspects([song.content_hash])
            store.frame_files.frames(song.content_hash)
        n_damaged += not file.exists()
    assert n_damaged > 30
    file.unlink(missing_ok=True)
    store.add(path.parent)
    assert file.read_bytes() == honest
