"""Tests of repeated scans: new, changed, moved, retagged, missing and returned files, and the data kept with songs."""

import os
import shutil

import mutagen
import numpy as np
import pytest
import soundfile

from musicsim.errors import AudioError, LibraryError
from musicsim.library import Library
from musicsim.library.scan import analysis
from musicsim.library.scan.analysis import AnalysisTask, analyze
from musicsim.library.stores.files import NO_SOUND, SHORT, SILENT
from tests.sounds import SAMPLE_RATE, write_song


@pytest.fixture
def music(tmp_path):
    """Write four songs in two folders."""
    for n, place in enumerate(("a/one", "a/two", "b/three", "b/four")):
        write_song(tmp_path / "music" / f"{place}.flac", seed=n, seconds=1.5, title=place[2:])
    return tmp_path / "music"


def ids(library, **options):
    return {song.title: song.id for song in library.songs(**options)}


def say_something(library, song_id):
    """Add a play, a tag, a thumb and a playlist."""
    library.add_plays([{"listener": "me", "song_id": song_id, "count": 3}])
    library.add_tags([{"song_id": song_id, "tag": "calm", "weight": 1.0}])
    library.set_feedback(song_id, 1)
    library.add_playlists([("mine", None, [song_id])], source="test")


def what_was_said(library, song_id):
    return (
        library.tags().get(song_id),
        library.feedback().get(song_id),
        [p.song_ids for p in library.playlists() if song_id in p.song_ids],
        library.counts()["plays"],
    )


def test_only_new_and_changed_files_are_analyzed(store, music):
    store.add(music)
    write_song(music / "a/five.flac", seed=5, seconds=1.5, title="five")
    write_song(music / "b/four.flac", "noise", seed=6, seconds=1.5, title="another four")
    report = store.add(music)
    assert (report.n_found, report.n_unchanged, report.n_added) == (5, 3, 2)
    assert sorted(ids(store)) == ["another four", "five", "one", "three", "two"]


def test_deleted_file_is_missing_until_it_returns(store, music, tmp_path):
    store.add(music)
    song_id = ids(store)["one"]
    say_something(store, song_id)
    said = what_was_said(store, song_id)
    (music / "a/one.flac").rename(tmp_path / "aside.flac")
    report = store.add(music)
    assert (report.n_missing, report.n_added) == (1, 0)
    assert "one" not in ids(store)
    (gone,) = [song for song in store.songs(missing=True) if song.is_missing]
    assert (gone.id, gone.path) == (song_id, music / "a/one.flac")
    assert what_was_said(store, song_id) == said
    assert (len(store), store.counts()["missing"]) == (3, 1)
    (tmp_path / "aside.flac").rename(music / "a/one.flac")
    report = store.add(music)
    assert (report.n_back, report.n_unchanged, report.seconds) == (1, 4, 0.0)
    assert ids(store)["one"] == song_id
    assert what_was_said(store, song_id) == said


@pytest.mark.long
def test_moved_file_keeps_song_without_decoding(store, music):
    store.add(music)
    song_id = ids(store)["two"]
    say_something(store, song_id)
    said = what_was_said(store, song_id)
    (music / "c").mkdir()
    (music / "a/two.flac").rename(music / "c/a new name.flac")
    frames = store.frame_files.path(store.song(song_id).content_hash)
    written = frames.stat().st_mtime_ns
    report = store.add(music)
    assert (report.n_added, report.n_known, report.n_missing) == (0, 1, 1)
    assert store.song(song_id).path == music / "c/a new name.flac"
    assert what_was_said(store, song_id) == said
    assert frames.stat().st_mtime_ns == written
    assert set(store.files.list_known()) == {song.path for song in store.songs()}, "the old place is forgotten"


def test_exact_copies_are_tracked(store, music):
    store.add(music)
    assert store.files.copies() == {}
    song_id = ids(store)["two"]
    copies = [music / "a/two.flac", music / "b/again.flac", music / "c.flac"]
    for copy in copies[1:]:
        copy.write_bytes(copies[0].read_bytes())
    (music / "broken.mp3").write_text("no music")
    report = store.add(music)
    assert store.files.copies() == {song_id: copies}
    assert (report.n_found, report.n_known) == (report.n_unchanged + 3, 2)
    known = "2 files already in the library (copied, moved or with changed tags)"
    assert report.words == f"{known}, {report.n_unchanged} files unchanged, 1 file failed"
    copies[1].unlink()
    copies[2].unlink()
    store.add(music)
    assert store.files.copies() == {}


@pytest.mark.long
def test_new_file_tags_update_song_and_keep_its_data(store, music):
    store.add(music)
    song_id = ids(store)["three"]
    say_something(store, song_id)
    said = what_was_said(store, song_id)
    audio = mutagen.File(music / "b/three.flac", easy=True)
    audio["title"] = "drei"
    audio.save()
    report = store.add(music)
    assert (report.n_added, report.n_known) == (0, 1)
    assert ids(store)["drei"] == song_id
    assert what_was_said(store, song_id) == said
    assert store.frame_files.list_stored() == {song.content_hash for song in store.songs()}


@pytest.mark.long
def test_moved_and_retagged_file_is_recognized_by_sound(store, music):
    store.add(music)
    song_id = ids(store)["three"]
    (music / "b/three.flac").rename(music / "a/3.flac")
    audio = mutagen.File(music / "a/3.flac", easy=True)
    audio["title"] = "drei"
    audio.save()
    assert store.add(music).n_added == 0
    assert ids(store)["drei"] == song_id
    assert not [song for song in store.songs(missing=True) if song.is_missing]


@pytest.mark.long
def test_files_that_swap_names_keep_their_songs(store, music, tmp_path):
    store.add(music)
    before = ids(store)
    for song_id in before.values():
        say_something(store, song_id)
    (music / "a/one.flac").rename(tmp_path / "x")
    (music / "a/two.flac").rename(music / "a/one.flac")
    (tmp_path / "x").rename(music / "a/two.flac")
    store.add(music)
    assert ids(store) == before
    assert store.song(before["one"]).path == music / "a/two.flac"


@pytest.mark.long
def test_new_music_under_old_name_is_new_song(store, music):
    store.add(music)
    before = ids(store)
    say_something(store, before["one"])
    for name in ("one", "two"):
        write_song(music / f"a/{name}.flac", "clicks", seed=ord(name[0]), seconds=1.5, title=f"new {name}")
    store.add(music)
    after = ids(store, missing=True)
    assert after["new one"] not in before.values()
    assert after["one"] == before["one"], "listeners spoke of it: it waits for its file"
    assert store.song(before["one"]).is_missing
    assert "two" not in after, "nobody spoke of it"


@pytest.mark.long
def test_exact_copy_is_same_song(store, music):
    store.add(music)
    shutil.copy2(music / "a/one.flac", music / "b/copy.flac")
    assert store.add(music).n_known == 1
    song_id = ids(store)["one"]
    (music / "a/one.flac").unlink()
    store.add(music)
    assert store.song(song_id).path == music / "b/copy.flac"
    assert not store.song(song_id).is_missing


def test_single_folder_can_be_scanned(store, music):
    store.add([music / "a", music / "b"])
    (music / "a/one.flac").unlink()
    (music / "b/three.flac").unlink()
    assert store.add(music / "a").n_missing == 1
    assert sorted(ids(store)) == ["four", "three", "two"]
    assert store.files.roots() == [music / "a", music / "b"]


def test_songs_of_absent_folder_are_missing_until_it_returns(store, music, tmp_path):
    store.add([music / "a", music / "b"])
    before = ids(store)
    (music / "b").rename(tmp_path / "unplugged")
    with pytest.raises(LibraryError, match="no such file or folder"):
        store.add(store.files.roots())
    report = store.add(store.files.roots(), absent_ok=True)
    assert (report.absent, report.n_missing) == ([music / "b"], 2)
    assert sorted(ids(store)) == ["one", "two"]
    (tmp_path / "unplugged").rename(music / "b")
    assert store.add(store.files.roots(), absent_ok=True).n_back == 2
    assert ids(store) == before


def test_ignored_songs_are_missing_until_unignored(store, music):
    store.add(music)
    (music / ".musicsimignore").write_text("b/\n")
    assert store.add(music).n_missing == 2
    assert sorted(ids(store)) == ["one", "two"]
    (music / ".musicsimignore").unlink()
    assert store.add(music).n_back == 2


def test_subfolder_is_not_added_as_folder(store, music):
    store.add(music)
    store.add(music / "a")
    assert store.files.roots() == [music]


def test_removing_folder_removes_only_its_songs(store, music):
    store.add([music / "a", music / "b"])
    (music / "b/broken.mp3").write_text("no music")
    store.add(music / "b")
    assert store.files.forget_root(music / "b") == 2
    assert sorted(ids(store)) == ["one", "two"]
    assert store.files.failures() == []
    assert (music / "b/three.flac").exists()


def test_removing_missing_songs_keeps_present_ones(store, music):
    store.add(music)
    (music / "a/one.flac").unlink()
    store.add(music)
    everything = [song.id for song in store.songs(missing=True)]
    assert store.files.forget_songs(everything) == 1
    assert sorted(ids(store, missing=True)) == ["four", "three", "two"]


# --- files that are not songs -----------------------------------------------------------------------


@pytest.fixture
def oddities(tmp_path):
    """Write a song, a jingle, silence and a text."""
    folder = tmp_path / "odd"
    write_song(folder / "song.flac", seconds=21)
    write_song(folder / "jingle.flac", seed=1, seconds=5)
    soundfile.write(folder / "silence.wav", np.zeros(25 * SAMPLE_RATE), SAMPLE_RATE)
    (folder / "text.mp3").write_text("no music at all\n" * 50)
    return folder


def test_unsuitable_files_are_skipped_with_reason(tmp_path, oddities):
    with Library.open(tmp_path / "library") as library:
        report = library.add(oddities)
        assert [song.title for song in library.songs()] == ["song"]
        kinds = {failure.path.stem: failure.kind for failure in library.files.failures()}
        assert kinds == {"jingle": SHORT, "silence": SILENT, "text": NO_SOUND}
        assert report.n_skipped == 2
        assert all(str(f.path) in f.reason for f in report.failures)
        assert library.add(oddities).seconds == 0.0, "nothing is opened again"
        counts = library.counts()
        assert (counts["failed"], counts["skipped"]) == (1, 2)


@pytest.mark.long
def test_skipped_files_can_be_added_explicitly(tmp_path, oddities):
    with Library.open(tmp_path / "library") as library:
        library.add(oddities)
        library.add(oddities / "jingle.flac")
        assert sorted(s.title for s in library.songs()) == ["jingle", "song"]
        library.add(oddities, anyway=True)
        assert sorted(s.title for s in library.songs()) == ["jingle", "silence", "song"]
        write_song(oddities / "jingle.flac", seed=2, seconds=4, title="another jingle")
        library.add(oddities)
        assert sorted(s.title for s in library.songs()) == ["another jingle", "silence", "song"]


def test_lower_limit_adds_short_files(tmp_path, oddities):
    with Library.open(tmp_path / "library") as library:
        library.add(oddities)
        library.set_setting("shortest_s", 4.0)
        assert library.add(oddities).n_added == 1
        assert [f.kind for f in library.files.failures()] == [SILENT, NO_SOUND]


# --- concurrent writes --------------------------------------------------------------------


def test_file_changed_during_analysis_is_read_again(store, tmp_path, monkeypatch):
    path = write_song(tmp_path / "a.flac", seed=1, seconds=1.5)
    real, calls = analysis.analyze_sound, []

    def slow(source, **options):
        sound = real(source, **options)
        calls.append(source)
        if len(calls) == 1:
            write_song(path, seed=2, seconds=2)
        return sound

    monkeypatch.setattr(analysis, "analyze_sound", slow)
    outcome = analyze(AnalysisTask(path, path.stat().st_size, tmp_path / "frames"))
    assert len(calls) == 2
    assert outcome.sound.duration_s == pytest.approx(2.0)
    assert outcome.size == path.stat().st_size


def test_constantly_changing_file_gives_clear_error(tmp_path, monkeypatch):
    path = write_song(tmp_path / "a.flac", seed=1, seconds=1.5)
    real = analysis.analyze_sound

    def slow(source, **options):
        sound = real(source, **options)
        os.utime(path, ns=(1, path.stat().st_mtime_ns + 1))
        return sound

    monkeypatch.setattr(analysis, "analyze_sound", slow)
    with pytest.raises(AudioError, match=r"a\.flac changed while it was being read: scan again"):
        analyze(AnalysisTask(path, path.stat().st_size, tmp_path / "frames"))
    monkeypatch.undo()
    assert analyze(AnalysisTask(path, path.stat().st_size, tmp_path / "frames")).sound.n_frames > 9
