"""Jobs run in processes of their own, can be cancelled, and go on after a kill."""

import os
import re
import signal
import time

import pytest

from musicsim.errors import StoreLockedError
from musicsim.explorer import job_process, jobs
from musicsim.explorer.refresh.add_music import forget_leftovers, keep_upload
from musicsim.explorer.snapshot.snapshot import take_snapshot
from tests.sounds import write_collection, write_song
from tests.waiting import until

pytestmark = pytest.mark.slow


def _wait(library, job_id, until, seconds=90.0):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        jobs.current(library)
        job = library.jobs.get(job_id)
        if until(job):
            return job
        time.sleep(0.05)
    raise AssertionError(f"job is still {job}; its log: {library.jobs.log_path(job_id).read_text()}")


def test_a_folder_is_added_with_its_failures_while_nobody_waits(store, tmp_path):
    folder = write_collection(tmp_path / "music", n_songs=2, seconds=2)
    (folder / "broken.mp3").write_text("no music")
    job_id = jobs.start(store, "add", {"paths": [str(folder)]})
    assert jobs.current(store).id == job_id
    with pytest.raises(StoreLockedError, match="a job is running"):
        jobs.start(store, "refresh")
    job = _wait(store, job_id, lambda j: not j.is_active)
    assert (job.state, job.done, job.total, job.failed) == ("done", 7, 7, 1)
    log = store.folder / "logs" / "musicsim.log"
    until(log.exists)  # the job writes its line after its state
    assert re.search(r": job 1 \(add\): done in [\d.]+ s “6 added · 1 failed”$", log.read_text(), re.MULTILINE)
    assert len(store) == 6
    assert store.models.active() is not None
    assert jobs.current(store) is None


def test_the_first_count_of_a_short_job_is_stored_at_once(store, monkeypatch):
    stored = []

    def count(_library, *, progress):
        progress("looking for music")
        progress("", 1, 2)
        stored.append(store.jobs.get(job_id))
        progress("", 2, 2)
        stored.append(store.jobs.get(job_id))
        return True

    monkeypatch.setattr(job_process, "_walk", count)
    monkeypatch.setattr(job_process, "_WRITE_EVERY_S", 1e9)
    job_id = store.jobs.create("walk", {})
    assert job_process.run(store, job_id) == "done"
    stored.append(store.jobs.get(job_id))
    assert [(job.done, job.total) for job in stored] == [(1, 2), (1, 2), (2, 2)]


# 24 songs of 40 s take more than a second: time enough to be asked to stop in between


def test_a_cancelled_job_keeps_what_it_had_and_a_restart_finishes(store, tmp_path):
    folder = write_collection(tmp_path / "music", n_songs=8, seconds=40)
    job_id = jobs.start(store, "add", {"paths": [str(folder)]})
    _wait(store, job_id, lambda j: len(store) >= 3)
    jobs.cancel(store, job_id)
    job = _wait(store, job_id, lambda j: not j.is_active)
    assert job.state == "cancelled"
    had = len(store)
    assert 3 <= had < 24
    again = _wait(store, jobs.start(store, job.kind, job.arguments), lambda j: not j.is_active)
    assert again.state == "done"
    assert len(store) == 24


def test_a_paused_job_rests_and_goes_on_where_it_was(store, tmp_path):
    folder = write_collection(tmp_path / "music", n_songs=8, seconds=40)
    job_id = jobs.start(store, "add", {"paths": [str(folder)]})
    _wait(store, job_id, lambda j: len(store) >= 2)
    jobs.pause(store, job_id)
    job = _wait(store, job_id, lambda j: j.state == "paused")
    assert job.is_active
    assert jobs.current(store).id == job_id
    had = len(store)
    assert had < 24
    time.sleep(1.5)  # in which it would have gone on
    assert len(store) == had
    jobs.resume(store, job_id)
    assert _wait(store, job_id, lambda j: not j.is_active).state == "done"
    assert len(store) == 24


def test_a_paused_job_can_be_cancelled(store, tmp_path):
    folder = write_collection(tmp_path / "music", n_songs=8, seconds=40)
    job_id = jobs.start(store, "add", {"paths": [str(folder)]})
    jobs.pause(store, job_id)
    _wait(store, job_id, lambda j: j.state == "paused")
    jobs.cancel(store, job_id)
    assert _wait(store, job_id, lambda j: not j.is_active).state == "cancelled"


def test_a_scan_marks_what_has_gone_and_finds_what_is_new(store, tmp_path):
    folder = write_collection(tmp_path / "music", n_songs=1, seconds=2)
    _wait(store, jobs.start(store, "add", {"paths": [str(folder)]}), lambda j: not j.is_active)
    gone = store.songs()[0]
    gone.path.unlink()
    write_song(folder / "new.flac", seed=9, seconds=2, title="new")
    job = _wait(store, jobs.start(store, "scan"), lambda j: not j.is_active)
    assert job.state == "done"
    assert store.song(gone.id).is_missing
    assert "new" in {song.title for song in store.songs()}
    assert take_snapshot(store).rows_of([gone.id])[0] == -1


def test_a_killed_job_is_interrupted_not_running_for_ever(store, tmp_path):
    folder = write_collection(tmp_path / "music", n_songs=8, seconds=8)
    job_id = jobs.start(store, "add", {"paths": [str(folder)]})
    job = _wait(store, job_id, lambda j: len(store) >= 1)
    os.killpg(job.pid, signal.SIGKILL)
    job = _wait(store, job_id, lambda j: not j.is_active)
    assert job.state == "interrupted"
    done = _wait(store, jobs.start(store, job.kind, job.arguments), lambda j: not j.is_active)
    assert done.state == "done"
    assert len(store) == 24


def test_a_killed_job_of_another_server_is_interrupted_at_once(store, tmp_path, monkeypatch):
    folder = write_collection(tmp_path / "music", n_songs=8, seconds=8)
    job_id = jobs.start(store, "add", {"paths": [str(folder)]})
    # not ours to wait for: the process keeps its number after its end until its parent asks
    monkeypatch.setattr(jobs, "_children", [])
    assert jobs.current(store).id == job_id
    os.killpg(store.jobs.get(job_id).pid, signal.SIGKILL)
    _wait(store, job_id, lambda job: not job.is_active, seconds=5.0)
    assert store.jobs.get(job_id).state == "interrupted"


def test_a_job_that_cannot_be_done_says_why(store):
    job_id = jobs.start(store, "add", {"paths": ["/nowhere/at/all"]})
    job = _wait(store, job_id, lambda j: not j.is_active)
    assert job.state == "failed"
    assert "/nowhere/at/all: there is no such file or folder" in job.message
    log = store.folder / "logs" / "musicsim.log"
    line = rf" ERROR +\S+: job {job_id} \(add\): failed in [\d.]+ s “/nowhere/at/all: "
    until(lambda: re.search(line, log.read_text()))  # written after the job's state


def test_every_kind_of_job_is_one_that_its_process_can_do():
    assert all(callable(job_process._target(kind)) for kind in jobs.job_kinds())


def test_what_jobs_of_long_ago_wrote_makes_room(store, monkeypatch):
    monkeypatch.setattr(jobs, "MAX_KEPT", 1)
    kinds = [jobs.start(store, "refresh") for _ in range(2) if _wait_for_none(store)]
    _wait_for_none(store)
    assert [store.jobs.log_path(job_id).exists() for job_id in kinds] == [False, True]


def _wait_for_none(store):
    while (job := jobs.current(store)) is not None:
        _wait(store, job.id, lambda job: not job.is_active)
    return True


def test_an_unknown_kind_of_job_is_refused(store):
    with pytest.raises(ValueError, match="kind='dance'"):
        jobs.start(store, "dance")


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "..", "", "a\x00b.mp3", "x" * 400 + ".mp3"])
def test_an_upload_stays_in_the_librarys_folder_whatever_its_name(store, name):
    path = keep_upload(store, name, b"data")
    assert path.parent == store.folder / "uploads"
    assert path.read_bytes() == b"data"


def test_two_uploads_of_one_name_are_two_files_and_the_same_bytes_one(store):
    first = keep_upload(store, "a.mp3", b"one")
    second = keep_upload(store, "a.mp3", b"two")
    assert first != second
    assert (first.read_bytes(), second.read_bytes()) == (b"one", b"two")
    assert keep_upload(store, "a.mp3", b"two") == second


def test_uploads_that_became_no_song_make_room_those_sent_first(store):
    song = keep_upload(store, "song.flac", write_song(store.folder / "x.flac", seconds=2).read_bytes())
    bad = [keep_upload(store, f"{n}.mp3", bytes([n]) * 1000) for n in range(3)]
    store.add([song, *bad], n_workers=1)
    for age, path in enumerate((song, *bad)):
        os.utime(path, (1e9 + age, 1e9 + age))
    keep_upload(store, "0.mp3", bytes([0]) * 1000)  # sent again
    forget_leftovers(store, max_bytes=3000)
    assert all(path.exists() for path in (song, *bad))
    forget_leftovers(store, max_bytes=2999)
    assert [path.exists() for path in (song, *bad)] == [True, True, False, True]
    assert [failure.path for failure in store.files.failures()] == [bad[0], bad[2]]
    assert bad[1] not in store.files.roots(), "it is no drive that is away"
    forget_leftovers(store, max_bytes=0)
    assert song.exists()
    assert store.files.failures() == []
    assert len(store) == 1
