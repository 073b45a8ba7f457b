"""Tests of runs: files, the library and undo; crashes; and the command line."""

import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import mutagen
import pytest

from musicsim.errors import NotFoundError, OwnerOnlyError
from musicsim.explorer.health.doctor import examine
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.tag_writing.backups import Backups
from musicsim.extensions.tag_writing.plan import preview
from musicsim.extensions.tag_writing.request import Property, TagRequest
from musicsim.extensions.tag_writing.undoing import undo_tags
from musicsim.extensions.tag_writing.writing import write_tags
from musicsim.library import Library
from musicsim.progress import no_progress
from tests.children import complaint
from tests.command import run, run_to_end
from tests.extensions.tag_writing.sounds import FORMATS, write_format
from tests.interruptions import CRASHED, interrupt_each_change
from tests.waiting import PATIENCE_S

EVERYTHING = tuple(Property)


def bytes_of(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def facts(library):
    """Return everything that a wrong record of a file would change."""
    songs = [(song.id, song.title, song.path) for song in library.songs(missing=True)]
    stored = library.frame_files.list_stored(), library.frame_files.list_stored_aspects()
    assert stored == (set(library.content_hashes()),) * 2
    return songs, library.counts(), library.tags()


@pytest.fixture
def every_format(store, tmp_path):
    """A library with one song per format, and a play of each."""
    music = tmp_path / "music"
    for n, ending in enumerate(FORMATS):
        write_format(music / f"song {n}{ending}", seed=n)
    assert store.add(music).n_added == len(FORMATS)
    store.add_plays([{"listener": "me", "song_id": song.id, "count": 2} for song in store.songs()])
    return store, music


def test_every_format_is_written_and_undone_byte_for_byte(every_format):
    library, music = every_format
    before, known = bytes_of(music), facts(library)
    report = write_tags(library, EVERYTHING, TagRequest())
    assert (report.problems, report.n_files) == ([], len(FORMATS))
    written = bytes_of(music)
    assert written.keys() == before.keys(), "no temporary file stays"
    assert all(written[path] != before[path] for path in before)
    gains = {str(mutagen.File(path).get("replaygain_track_gain")) for path in music.glob("*.flac")}
    assert "None" not in gains
    assert facts(library) == known
    again = library.add(music)
    assert (again.n_added, again.n_known, again.n_unchanged) == (0, 0, len(FORMATS)), "the scan has nothing to read"
    undone = undo_tags(library)
    assert (undone.problems, undone.n_files) == ([], len(FORMATS))
    assert bytes_of(music) == before
    assert facts(library) == known
    assert library.add(music).n_unchanged == len(FORMATS)
    assert Backups(library.folder).runs() == []


def test_existing_values_stay_unless_replaced(tiny_library, own_music):
    song = next(song for song in tiny_library.songs() if song.tempo)
    audio = mutagen.File(song.path)
    audio["bpm"] = "33"
    audio.save()
    tiny_library.add(own_music)
    only = {"songs": frozenset({song.id})}
    assert write_tags(tiny_library, ["tempo"], TagRequest(**only)).n_unchanged == 1
    planned = preview(take_snapshot(tiny_library), ["tempo"], TagRequest(**only, replace=True))
    assert planned.files[0].changes == {"tempo": (("33",), (f"{song.tempo:.0f}",))}
    assert mutagen.File(song.path)["bpm"] == ["33"], "a preview changes nothing"
    assert write_tags(tiny_library, ["tempo"], TagRequest(**only, replace=True)).n_values == 1
    assert mutagen.File(song.path)["bpm"] == [f"{song.tempo:.0f}"]


def test_values_come_from_the_library(tiny_library, own_music):
    snapshot = take_snapshot(tiny_library)
    bright = sorted(tiny_library.songs(), key=lambda song: song.brightness)
    write_tags(tiny_library, ["key", "mood", "region"], TagRequest())
    tags = {song.id: mutagen.File(song.path) for song in bright}
    assert "dark" in tags[bright[0].id]["mood"]
    assert "bright" in tags[bright[-1].id]["mood"]
    for song in bright:
        expected = [song.key + ("m" if song.mode == "minor" else "")] if song.key else None
        assert tags[song.id].get("initialkey") == expected
    assert snapshot.n_songs == len(tags)


def test_files_that_must_not_change_are_reported(tiny_library, own_music):
    changed, second, third, *_ = tiny_library.songs()
    with changed.path.open("ab") as stream:
        stream.write(b"x")
    second.path.unlink()
    (own_music / "link.flac").symlink_to(third.path)
    third_bytes = third.path.read_bytes()
    before = bytes_of(own_music)
    report = write_tags(tiny_library, ["mood", "key"], TagRequest(songs=frozenset({changed.id, second.id})))
    assert report.n_files == 0
    assert any("has changed since the last scan" in problem for problem in report.problems)
    assert any("cannot be read" in problem for problem in report.problems)
    assert bytes_of(own_music) == before
    assert Backups(tiny_library.folder).runs() == []
    assert third.path.read_bytes() == third_bytes


def test_links_and_copies_stay_one_song(tiny_library, own_music):
    song = tiny_library.songs()[0]
    copy, link = own_music / "copy.flac", own_music / "link.flac"
    copy.write_bytes(song.path.read_bytes())
    link.symlink_to(song.path)
    tiny_library.add(own_music)
    before, n_songs = bytes_of(own_music), len(tiny_library)
    assert write_tags(tiny_library, ["key", "tempo", "replaygain"], TagRequest(songs={song.id})).n_files == 2
    assert link.is_symlink()
    assert copy.read_bytes() == song.path.read_bytes() != before[copy]
    assert tiny_library.add(own_music).n_unchanged == n_songs + 2
    assert len(tiny_library) == n_songs
    undo_tags(tiny_library)
    assert bytes_of(own_music) == before
    assert tiny_library.add(own_music).n_unchanged == n_songs + 2


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may write everywhere")
def test_read_only_files_are_reported(tiny_library, own_music):
    song = tiny_library.songs()[0]
    song.path.chmod(0o444)
    (problem,) = write_tags(tiny_library, ["replaygain"], TagRequest(songs={song.id})).problems
    assert "is read-only" in problem


def test_mode_stays_and_time_changes(tiny_library, own_music):
    song = tiny_library.songs()[0]
    song.path.chmod(0o640)
    os.utime(song.path, ns=(10**18, tiny_library.files.list_known()[song.path].mtime_ns))
    before = song.path.stat()
    assert write_tags(tiny_library, ["replaygain"], TagRequest(songs={song.id})).n_files == 1
    after = song.path.stat()
    assert after.st_mode == before.st_mode
    assert after.st_mtime_ns > before.st_mtime_ns


def test_undo_refuses_files_that_changed_since(tiny_library, own_music):
    first, second, *_ = tiny_library.songs()
    original = second.path.read_bytes()
    report = write_tags(tiny_library, ["replaygain"], TagRequest(songs={first.id, second.id}))
    assert (report.problems, report.n_files) == ([], 2)
    audio = mutagen.File(first.path)
    audio["title"] = "Edited since"
    audio.save()
    edited = first.path.read_bytes()
    undone = undo_tags(tiny_library, report.run)
    assert undone.n_files == 1
    assert "has changed since its tags were written" in undone.problems[0]
    assert (first.path.read_bytes(), second.path.read_bytes()) == (edited, original)
    assert [len(run.files()) for run in Backups(tiny_library.folder).runs()] == [1]
    with pytest.raises(NotFoundError, match="no run 2020"):
        undo_tags(tiny_library, "2020")


def test_old_bytes_that_were_added_meanwhile_stay_their_own_song(tiny_library, own_music):
    song = tiny_library.songs()[0]
    original, n_songs = song.path.read_bytes(), len(tiny_library)
    assert write_tags(tiny_library, ["replaygain"], TagRequest(songs={song.id})).problems == []
    (own_music / "from a backup.flac").write_bytes(original)
    tiny_library.add(own_music)
    assert undo_tags(tiny_library).n_files == 1
    assert song.path.read_bytes() == original
    assert tiny_library.song(song.id).path == song.path
    assert tiny_library.add(own_music).n_unchanged == n_songs + 1


def test_visitors_cannot_write(tiny_library, own_music, monkeypatch):
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    for act in (lambda: write_tags(tiny_library, ["key"], TagRequest()), lambda: undo_tags(tiny_library)):
        with pytest.raises(OwnerOnlyError):
            act()


# --- crashes ----------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_killed_runs_leave_old_or_new_bytes(store, tmp_path):
    n_files, n_kills = 40, 12
    music = tmp_path / "music"
    for n in range(n_files):
        write_format(music / f"{n:02d}{('.mp3', '.flac', '.ogg', '.wav')[n % 4]}", seed=n, seconds=1.2)
    store.add(music)
    old, known = bytes_of(music), facts(store)
    write_tags(store, ["replaygain"], TagRequest())
    new = bytes_of(music)
    undo_tags(store)
    assert bytes_of(music) == old
    rng = random.Random(0)
    n_cut = 0
    for n in range(n_kills):
        verb = ["write", "replaygain", "--yes"] if n % 2 == 0 else ["undo"]
        n_cut += kill_midway(verb, store.folder, rng)
        for path, data in bytes_of(music).items():
            if path in old:
                assert data in (old[path], new[path]), f"{path} after kill {n}"
            else:
                assert path.name.startswith(".musicsim-"), path
    assert n_cut, "no process was killed at work"
    while Backups(store.folder).runs():
        assert undo_tags(store).problems == []
    write_tags(store, ["replaygain"], TagRequest(songs={store.songs()[0].id}))  # cleans up, even with nothing to undo
    undo_tags(store)
    assert bytes_of(music) == old
    report = store.add(music)
    assert (report.n_added, report.n_missing) == (0, 0)
    assert facts(store) == known


def kill_midway(verb, library: Path, rng) -> bool:
    """Run a command, and kill it at a random time after its first change; return whether it was still running."""
    process = subprocess.Popen(
        [sys.executable, "-m", "musicsim", "tags", *verb, "--library", str(library)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    note = library / "tag_backups" / "writing.json"
    until = time.monotonic() + PATIENCE_S
    while process.poll() is None and not note.exists() and time.monotonic() < until:
        time.sleep(0.002)
    time.sleep(rng.uniform(0.0, 0.6))  # the moment of the kill
    was_running = process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    return was_running


def examined(library):
    """Return the findings of `musicsim doctor`, except on jobs: a crash leaves one that did not finish."""
    return [finding for finding in examine(library, no_progress) if finding.what != "jobs"]


@pytest.mark.long
@pytest.mark.parametrize("verb", ["write", "undo"])
def test_crash_before_each_change_is_healed_by_the_next_run(store, tmp_path, verb):
    place, music = store.folder.parent, store.folder.parent / "music"
    for n, ending in enumerate((".flac", ".mp3")):
        write_format(music / f"{n}{ending}", seed=n, seconds=1.2)
    store.add(music)
    old, known = bytes_of(music), facts(store)
    findings = examined(store)
    if verb == "undo":
        write_tags(store, ["replaygain"], TagRequest())
    kept = shutil.copytree(place, tmp_path / "kept")
    if verb == "write":
        write_tags(store, ["replaygain"], TagRequest())
    new = bytes_of(music)
    assert not old.items() & new.items()
    store.close()

    def prepare():
        shutil.rmtree(place)
        shutil.copytree(kept, place)

    arguments = ("tags", "write", "replaygain", "--yes") if verb == "write" else ("tags", "undo")
    for crash in interrupt_each_change("crash", prepare, *arguments, library=store.folder, within=place):
        assert crash.code == CRASHED, crash
        for path, data in bytes_of(music).items():
            assert data in (old.get(path), new.get(path)) or path.name.startswith(".musicsim-"), crash
        again = crash.run_again()
        is_undone = "there is nothing to undo" in again.said  # it crashed after its last change of the music
        assert is_undone or complaint(again) == "", crash
        assert bytes_of(music) == (new if verb == "write" else old), crash
        with Library.open(store.folder) as library:
            assert facts(library) == known, crash
            assert examined(library) == findings, crash
            assert library.add(music).n_unchanged == len(old), crash
            while Backups(library.folder).runs():
                assert undo_tags(library).problems == [], crash
            assert facts(library) == known, crash
        assert bytes_of(music) == old, crash


# --- command line -----------------------------------------------------------------------------------------------------


def test_commands_preview_write_list_and_undo(tiny_library, own_music, monkeypatch):
    library, before = tiny_library.folder, bytes_of(own_music)
    song = tiny_library.songs()[0]
    arguments = ("tags", "write", "replaygain", "mood", "--song", song.id)
    out, problems = run(*arguments, "--dry-run", library=library)
    assert problems == ""
    assert "measured when written" in out
    planned = json.loads(run(*arguments, "--dry-run", "--json", library=library)[0])
    assert {change["tag"] for change in planned["changes"]} >= {"gain", "peak"}
    assert bytes_of(own_music) == before
    monkeypatch.setattr("sys.stdin", io.StringIO())
    _, err, code = run_to_end(*arguments, library=library)
    assert code == 1, "without an answer, nothing is written"
    assert "Write" in err
    assert bytes_of(own_music) == before
    report = json.loads(run(*arguments, "--yes", "--json", library=library)[0])
    assert (report["files"], report["problems"]) == (1, [])
    assert json.loads(run("tags", "runs", "--json", library=library)[0]) == [{"run": report["run"], "files": 1}]
    assert report["run"] in run("tags", "runs", library=library)[0]
    assert "1 file restored" in run("tags", "undo", library=library)[0]
    assert bytes_of(own_music) == before
    _, err, code = run_to_end("tags", "undo", library=library)
    assert code != 0
    assert "there is nothing to undo" in err


def test_filters_choose_songs(tiny_library, own_music):
    planned = json.loads(
        run("tags", "write", "replaygain", "--artist", "Artist tones", "--dry-run", "--json",
            library=tiny_library.folder)[0]
    )  # fmt: skip
    chosen = {change["song"] for change in planned["changes"]}
    assert chosen == {song.id for song in tiny_library.songs() if song.artist == "Artist tones"}
