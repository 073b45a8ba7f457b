"""Tests of the automatic work: what it notices, which jobs it starts, and when it does nothing."""

import json
import os
from datetime import datetime, timedelta

import pytest

from musicsim.explorer import jobs
from musicsim.extensions.daily.mixes import SOURCE, read_state
from musicsim.extensions.daily.options import DailyOptions, DailySettings, change_settings, read_settings, watch_folder
from musicsim.extensions.daily.watching import Watcher, find_changes
from tests.command import run
from tests.extensions.daily.test_limits import EMPTYING, supplies
from tests.sounds import write_song
from tests.waiting import until


@pytest.fixture(autouse=True)
def _mains(tmp_path, monkeypatch):
    """Let the machine have no battery, even if tests run on a laptop."""
    monkeypatch.setattr("musicsim.extensions.daily.options.POWER_SUPPLIES", tmp_path / "supplies")
    monkeypatch.setattr("sys.platform", "linux")


def state_of(library):
    """Return everything that can be written, except the program's log."""
    tables = library.jobs.recent(), library.playlists(), read_state(library), library.revision
    files = [path for path in library.folder.rglob("*") if "-" not in path.suffix and "logs" not in path.parts]
    return tables, {path: path.stat().st_mtime_ns for path in files}


def test_changes_are_noticed_without_reading_files(tiny_library, own_music):
    tiny_library.add(own_music, n_workers=1)
    assert find_changes(tiny_library, tiny_library.files.roots()).folders == []
    files = sorted(own_music.rglob("*.flac"))
    digests = {find_changes(tiny_library, tiny_library.files.roots()).digest}
    for change in (
        lambda: write_song(own_music / "new.flac", seed=77),
        lambda: os.utime(files[0], (1, 1)),
        files[1].unlink,
        lambda: files[2].rename(own_music / "moved.flac"),
    ):
        change()
        changes = find_changes(tiny_library, tiny_library.files.roots())
        assert changes.folders == [str(own_music)]
        assert changes.digest not in digests
        digests.add(changes.digest)
    own_music.rename(own_music.with_name("unplugged"))
    assert find_changes(tiny_library, tiny_library.files.roots()).folders == [], "an unplugged drive is not a change"


def test_watch_picks_up_files_and_makes_mixes(tiny_library, own_music):
    write_song(own_music / "new.flac", "clicks", seed=77, title="New song")
    (own_music / "broken.flac").write_bytes(b"not audio")
    out, _ = run("watch", "--once", library=tiny_library.folder)
    assert out.splitlines()[0] == f"Picking up new files in {own_music}."
    assert out.splitlines()[-1] == "There are no new files, and today's mixes are made."
    assert "New song" in {song.title for song in tiny_library.songs()}
    assert [job.kind for job in tiny_library.jobs.recent()] == ["daily", "pickup"]
    assert {job.state for job in tiny_library.jobs.recent()} == {"done"}
    assert tiny_library.is_refreshed
    assert tiny_library.playlists(source=SOURCE)
    before = state_of(tiny_library)
    assert run("watch", "--once", library=tiny_library.folder)[0].splitlines() == [
        "There are no new files, and today's mixes are made."
    ]
    assert state_of(tiny_library) == before, "the broken file is not tried again"


def test_nothing_is_written_on_battery(tiny_library, own_music, tmp_path):
    write_song(own_music / "new.flac", seed=77)
    supplies(tmp_path / "supplies", BAT0=EMPTYING)
    before = state_of(tiny_library)
    words, is_last = Watcher(tiny_library).step(DailySettings(automatic=True))
    assert "battery" in words
    assert is_last
    assert "battery" in run("watch", "--once", library=tiny_library.folder)[0]
    assert "--ignore-battery" in run("daily", library=tiny_library.folder)[1]
    assert state_of(tiny_library) == before
    run("daily", "--ignore-battery", library=tiny_library.folder)
    assert tiny_library.playlists(source=SOURCE)


def test_nothing_happens_outside_the_hours(tiny_library):
    start = (datetime.now() + timedelta(hours=2)).hour
    before = state_of(tiny_library)
    words, _ = Watcher(tiny_library).step(DailySettings(hours=f"{start}-{(start + 1) % 24}"))
    assert words.startswith("Nothing is done outside the hours")
    assert state_of(tiny_library) == before


def test_steps_wait_for_other_jobs(tiny_library, own_music):
    write_song(own_music / "new.flac", seed=77)
    job_id = tiny_library.jobs.create("backup", {"path": "x"}, pid=os.getpid())
    watcher = Watcher(tiny_library)
    assert watcher.step(DailySettings()) == ("Backing up the library.", False)
    tiny_library.jobs.update(job_id, state="done")
    words, is_last = watcher.step(DailySettings())
    assert words.startswith("Picking up new files")
    assert not is_last
    job = jobs.current(tiny_library)
    assert job.arguments == {"folders": [str(own_music)], "hours": "", "cpu": 50, "ignore_battery": False}
    jobs.cancel(tiny_library, job.id)
    until(lambda: jobs.current(tiny_library) is None)


def test_switches_decide_what_the_app_does(tiny_library, own_music):
    write_song(own_music / "new.flac", seed=77)
    watcher = Watcher(tiny_library, obeys_switches=True)
    assert watcher.step(DailySettings()) == ("There are no new files.", True)
    assert state_of(tiny_library)[0][0] == []
    words, _ = watcher.step(DailySettings(automatic=False, watched=(str(own_music),)))
    assert words == f"Picking up new files in {own_music}."
    job = jobs.current(tiny_library)
    if job is not None:
        jobs.cancel(tiny_library, job.id)
    until(lambda: jobs.current(tiny_library) is None)


def test_switch_of_version_1_watches_all_folders(tiny_library, own_music):
    tiny_library.set_text("machine.daily", json.dumps({"automatic": True}))
    settings = read_settings(tiny_library)
    assert [settings.watches(root) for root in tiny_library.files.roots()] == [True]
    watch_folder(tiny_library, own_music, is_on=False)
    assert not read_settings(tiny_library).watches(own_music)
    assert read_settings(tiny_library).automatic
    change_settings(tiny_library, DailyOptions(watched=("all",)))
    assert read_settings(tiny_library).watches(own_music)


@pytest.mark.long
def test_canceled_pickup_waits_for_other_changes(tiny_library, own_music):
    watcher = Watcher(tiny_library)
    tiny_library.set_text("machine.daily_mixes", json.dumps({"last_day": f"{datetime.now().date()}"}))
    settings = DailySettings(every=0)
    write_song(own_music / "new.flac", seed=77)
    for name in ("new", "newer"):
        write_song(own_music / f"{name}.flac", seed=78)
        assert watcher.step(settings).words.startswith("Picking up")
        job = jobs.current(tiny_library)
        if job is not None:
            jobs.cancel(tiny_library, job.id)
        until(lambda: jobs.current(tiny_library) is None)
        tiny_library.jobs.update(tiny_library.jobs.recent(1)[0].id, cancel_requested=True, state="cancelled")
        assert watcher.step(settings).words == "There are no new files, and today's mixes are made."
