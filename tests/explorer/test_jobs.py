"""Tests of jobs: they run in processes of their own, can be cancelled, and resume after a kill."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest

from musicsim.errors import LibraryError
from musicsim.explorer import job_process, jobs
from musicsim.explorer.playlists import fit
from musicsim.explorer.refresh.add_music import delete_leftovers, keep_upload
from musicsim.explorer.snapshot.snapshot import take_snapshot
from tests.halts import halt_first_job
from tests.sounds import write_collection, write_song
from tests.waiting import until


def _wait(library, job_id, condition):
    """Return the job, once a condition on it holds."""

    def holds():
        jobs.current(library)
        return condition(library.jobs.get(job_id))

    try:
        until(holds)
    except AssertionError as error:
        error.add_note(f"{library.jobs.get(job_id)}; its log: {library.jobs.log_path(job_id).read_text()}")
        raise
    return library.jobs.get(job_id)


def _wait_for_halt(library, job_id):
    """Return the job, once it has obeyed the pause that the database requests."""
    return _wait(library, job_id, lambda job: job.state == "paused" or not job.is_active)


def test_background_add_reports_failures(store, tmp_path):
    folder = write_collection(tmp_path / "music", n_songs=2, seconds=2)
    (folder / "broken.mp3").write_text("no music")
    halt_first_job(store.folder)
    job_id = jobs.start(store, "add", {"paths": [str(folder)]})
    assert jobs.current(store).id == job_id
    _wait_for_halt(store, job_id)
    store.jobs.update(job_id, pause_requested=False)
    job = _wait(store, job_id, lambda j: not j.is_active)
    assert (job.state, job.done, job.total, job.failed) == ("done", 7, 7, 1)
    log = store.folder / "logs" / "musicsim.log"
    line = re.compile(r": job 1 \(add\): done in [\w. ]+ “6 songs added, 1 file failed”$", re.MULTILINE)
    until(lambda: log.exists() and line.search(log.read_text()))  # the job writes its line after its state
    assert len(store) == 6
    assert store.models.active() is not None
    assert jobs.current(store) is None


def test_address_with_password_is_refused_and_not_stored(store):
    with pytest.raises(LibraryError, match="FSSPEC_"):
        jobs.start(store, "add", {"paths": ["/music", "smb://me:S3CRET@host/x"]})
    assert store.jobs.recent() == []


def test_second_job_waits_then_runs_by_itself(store, tmp_path, monkeypatch):
    folder = write_collection(tmp_path / "music", n_songs=1, seconds=2)
    halt_first_job(store.folder)
    first = jobs.start(store, "add", {"paths": [str(folder)]})
    second, third = jobs.start(store, "scan"), jobs.start(store, "refresh")
    assert jobs.start(store, "scan") == second, "a second click starts nothing"
    _wait_for_halt(store, first)
    monkeypatch.setattr(jobs, "children", [])  # the app was restarted
    assert [(job.id, job.state) for job in jobs.active(store)] == [
        (first, "paused"), (second, "waiting"), (third, "waiting"),
    ]  # fmt: skip
    jobs.cancel(store, third)
    store.jobs.update(first, pause_requested=False)
    until(lambda: not store.jobs.active())  # nobody looks at the page
    states = [store.jobs.get(job_id).state for job_id in (first, second, third)]
    assert states == ["done", "done", "cancelled"]


def test_equal_job_starts_once(store, monkeypatch):
    monkeypatch.setattr(jobs, "_start_process", lambda *_: None)
    running = jobs.start(store, "add", {"paths": ("/music",)})
    store.jobs.update(running, state="running", pid=os.getpid())
    assert jobs.start(store, "add", {"paths": ["/music"]}) == running
    assert jobs.start(store, "add", {"paths": ["/other"]}) != running
    store.jobs.update(running, cancel_requested=True)
    again = jobs.start(store, "add", {"paths": ["/music"]})
    assert again != running, "the job that is being canceled can be started again"
    assert len(store.jobs.recent()) == 3


def test_equal_jobs_of_several_processes_are_one(store, tmp_path):
    code = (
        "import sys; from musicsim.library import Library\n"
        "with Library.open(sys.argv[1]) as library:\n"
        "    print(flush=True); sys.stdin.readline()\n"
        "    print(library.jobs.create('scan', {'folders': []}, is_single=True))"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(store.folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    for process in processes:
        process.stdout.readline()  # it has opened the library
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    ids = {int(process.communicate()[0]) for process in processes}
    assert [process.returncode for process in processes] == [0, 0]
    assert [job.id for job in store.jobs.recent()] == list(ids)


@pytest.mark.long
def test_waiting_job_runs_after_killed_one(store, tmp_path):
    folder = write_collection(tmp_path / "music", n_songs=1, seconds=2)
    halt_first_job(store.folder)
    first = jobs.start(store, "add", {"paths": [str(folder)]})
    second = jobs.start(store, "refresh")
    os.killpg(_wait_for_halt(store, first).pid, signal.SIGKILL)
    _wait(store, second, lambda job: not job.is_active)
    assert [store.jobs.get(job_id).state for job_id in (first, second)] == ["interrupted", "done"]


@pytest.mark.long
def test_job_waits_for_program_that_is_not_a_job(store, tmp_path):
    folder = write_collection(tmp_path / "music", n_songs=1, seconds=2)
    with store.exclusive("adding songs"):
        job_id = jobs.start(store, "add", {"paths": [str(folder)]})
        _wait(store, job_id, lambda job: "another musicsim" in job.message)
    assert _wait(store, job_id, lambda job: not job.is_active).state == "done"


def _start_command(store, *arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "musicsim", *map(str, arguments)], stderr=subprocess.PIPE, text=True,
        env=os.environ | {"MUSICSIM_LIBRARY": str(store.folder)},
    )  # fmt: skip


def test_command_is_a_job_that_others_wait_for_and_can_cancel(store, tmp_path):
    folder = write_collection(tmp_path / "music", n_songs=1, seconds=2)
    halt_first_job(store.folder)
    command = _start_command(store, "add", folder)
    until(store.jobs.recent)
    job = _wait_for_halt(store, 1)
    assert (job.kind, job.pid, job.arguments["paths"]) == ("add", command.pid, [str(folder)])
    assert job.total
    waiting = _start_command(store, "scan")
    assert waiting.stderr.readline() == "Waiting for the current job: Adding songs. This command starts when it ends.\n"
    until(lambda: [job.state for job in jobs.active(store)] == ["paused", "waiting"])
    jobs.cancel(store, job.id)
    assert "canceled in the app" in command.communicate()[1]
    waiting.communicate()
    assert (command.returncode, waiting.returncode) == (130, 0)
    assert [job.state for job in store.jobs.recent()] == ["done", "cancelled"]


@pytest.mark.long
@pytest.mark.parametrize("ends", ["wait", "kill"])
def test_stopped_command_is_no_running_job(store, tmp_path, ends):
    folder = write_collection(tmp_path / "music", n_songs=1, seconds=2)
    halt_first_job(store.folder)
    command = _start_command(store, "add", folder)
    until(store.jobs.recent)
    _wait_for_halt(store, 1)
    command.send_signal(signal.SIGINT if ends == "wait" else signal.SIGKILL)
    said = command.communicate()[1]
    assert ("stopped; finished work is kept" in said, command.returncode) == (
        (True, 130) if ends == "wait" else (False, -9)
    )
    _wait(store, 1, lambda job: not job.is_active)
    assert store.jobs.get(1).state == ("cancelled" if ends == "wait" else "interrupted")


def test_short_job_stores_first_count_immediately(store, monkeypatch):
    stored = []

    def count(_library, progress):
        progress("looking for music")
        progress("", 1, 2)
        stored.append(store.jobs.get(job_id))
        progress("", 2, 2)
        stored.append(store.jobs.get(job_id))
        return True

    monkeypatch.setattr(fit, "refit_walks", count)
    monkeypatch.setattr(job_process, "WRITE_EVERY_S", 1e9)
    job_id = store.jobs.create("walk", {})
    assert job_process.run(store, job_id) == "done"
    stored.append(store.jobs.get(job_id))
    assert [(job.done, job.total) for job in stored] == [(1, 2), (1, 2), (2, 2)]


@pytest.mark.long
def test_canceled_job_keeps_progress_and_resumes(store, tmp_path):
    folder = write_collection(tmp_path / "music", n_songs=8, seconds=40)
    halt_first_job(store.folder, "done", 3)
    job_id = jobs.start(store, "add", {"paths": [str(folder)]})
    _wait_for_halt(store, job_id)
    jobs.cancel(store, job_id)
    job = _wait(store, job_id, lambda j: not j.is_active)
    assert job.state == "cancelled"
    had = len(store)
    assert 3 <= had < 24
    again = _wait(store, jobs.start(store, job.kind, job.arguments), lambda j: not j.is_active)
    assert again.state == "done"
    assert len(store) == 24


@pytest.mark.long
def test_paused_job_resumes_where_it_stopped(store, tmp_path):
    folder = write_collection(tmp_path / "music", n_songs=8, seconds=40)
    halt_first_job(store.folder, "done", 2)
    job_id = jobs.start(store, "add", {"paths": [str(folder)]})
    job = _wait_for_halt(store, job_id)
    assert job.is_active
    assert jobs.current(store).id == job_id
    had = len(store)
    assert had < 24
    time.sleep(1.5)  # a job that does not rest would usually add songs meanwhile
    assert len(store) == had
    store.jobs.update(job_id, pause_requested=False)
    assert _wait(store, job_id, lambda j: not j.is_active).state == "done"
    assert len(store) == 24


@pytest.mark.long
def test_paused_job_can_be_canceled(store, tmp_path):
    folder = write_collection(tmp_path / "music", n_songs=8, seconds=40)
    halt_first_job(store.folder)
    job_id = jobs.start(store, "add", {"paths": [str(folder)]})
    store.jobs.update(job_id, pause_requested=True)
    assert _wait_for_halt(store, job_id).state == "paused"
    jobs.cancel(store, job_id)
    assert _wait(store, job_id, lambda j: not j.is_active).state == "cancelled"


@pytest.mark.long
def test_scan_finds_missing_and_new_files(store, tmp_path):
    folder = write_collection(tmp_path / "music", n_songs=1, seconds=2)
    _wait(store, jobs.start(store, "add", {"paths": [str(folder)]}), lambda j: not j.is_active)
    gone = store.songs()[0]
    gone.path.unlink()
    write_song(folder / "new.flac", seed=9, seconds=2, title="new")
    job = _wait(store, jobs.start(store, "scan"), lambda j: not j.is_active)
    assert (job.state, job.message) == ("done", "1 song added, 2 files unchanged, 1 file missing")
    assert store.song(gone.id).is_missing
    assert "new" in {song.title for song in store.songs()}
    assert take_snapshot(store).rows_of([gone.id])[0] == -1


@pytest.mark.long
def test_killed_job_becomes_interrupted(store, tmp_path):
    folder = write_collection(tmp_path / "music", n_songs=8, seconds=40)
    halt_first_job(store.folder, "done")
    job_id = jobs.start(store, "add", {"paths": [str(folder)]})
    job = _wait_for_halt(store, job_id)
    os.killpg(job.pid, signal.SIGKILL)
    job = _wait(store, job_id, lambda j: not j.is_active)
    assert job.state == "interrupted"
    done = _wait(store, jobs.start(store, job.kind, job.arguments), lambda j: not j.is_active)
    assert done.state == "done"
    assert len(store) == 24


@pytest.mark.long
def test_killed_job_of_another_server_is_interrupted(store, tmp_path, monkeypatch):
    folder = write_collection(tmp_path / "music", n_songs=1, seconds=8)
    halt_first_job(store.folder)
    job_id = jobs.start(store, "add", {"paths": [str(folder)]})
    _wait_for_halt(store, job_id)
    # We cannot wait for a process that is not our child. It keeps its number until its parent reaps it.
    monkeypatch.setattr(jobs, "children", [])
    assert jobs.current(store).id == job_id
    os.killpg(store.jobs.get(job_id).pid, signal.SIGKILL)
    _wait(store, job_id, lambda job: not job.is_active)
    assert store.jobs.get(job_id).state == "interrupted"


def test_failed_job_reports_reason(store):
    job_id = jobs.start(store, "add", {"paths": ["/nowhere/at/all"]})
    job = _wait(store, job_id, lambda j: not j.is_active)
    assert job.state == "failed"
    assert "/nowhere/at/all: no such file or folder" in job.message
    log = store.folder / "logs" / "musicsim.log"
    line = rf" ERROR +\S+: job {job_id} \(add\): failed in [\d.]+ s “/nowhere/at/all: "
    until(lambda: log.exists() and re.search(line, log.read_text()))  # written after the state of the job


def test_every_job_kind_is_implemented():
    assert all(callable(job_process.load_target(kind)) for kind in jobs.job_kinds())


@pytest.mark.long
def test_old_job_logs_are_deleted(store, monkeypatch):
    monkeypatch.setattr(jobs, "MAX_KEPT", 1)
    kinds = [jobs.start(store, "refresh") for _ in range(2) if _wait_for_none(store)]
    _wait_for_none(store)
    assert [store.jobs.log_path(job_id).exists() for job_id in kinds] == [False, True]


def _wait_for_none(store):
    while (job := jobs.current(store)) is not None:
        _wait(store, job.id, lambda job: not job.is_active)
    return True


def test_rejects_unknown_job_kind(store):
    with pytest.raises(ValueError, match="kind='dance'"):
        jobs.start(store, "dance")


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "..", "", "a\x00b.mp3", "x" * 400 + ".mp3"])
def test_upload_stays_in_library_folder(store, name):
    path = keep_upload(store, name, b"data")
    assert path.parent == store.folder / "uploads"
    assert path.read_bytes() == b"data"


def test_uploads_are_distinguished_by_content(store):
    first = keep_upload(store, "a.mp3", b"one")
    second = keep_upload(store, "a.mp3", b"two")
    assert first != second
    assert (first.read_bytes(), second.read_bytes()) == (b"one", b"two")
    assert keep_upload(store, "a.mp3", b"two") == second


def test_oldest_unusable_uploads_are_deleted_first(store):
    song = keep_upload(store, "song.flac", write_song(store.folder / "x.flac", seconds=2).read_bytes())
    bad = [keep_upload(store, f"{n}.mp3", bytes([n]) * 1000) for n in range(3)]
    store.add([song, *bad], n_workers=1)
    for age, path in enumerate((song, *bad)):
        os.utime(path, (1e9 + age, 1e9 + age))
    keep_upload(store, "0.mp3", bytes([0]) * 1000)  # sent a second time
    delete_leftovers(store, max_bytes=3000)
    assert all(path.exists() for path in (song, *bad))
    delete_leftovers(store, max_bytes=2999)
    assert [path.exists() for path in (song, *bad)] == [True, True, False, True]
    assert [failure.path for failure in store.files.failures()] == [bad[0], bad[2]]
    assert bad[1] not in store.files.roots(), "it is no drive that is away"
    delete_leftovers(store, max_bytes=0)
    assert song.exists()
    assert store.files.failures() == []
    assert len(store) == 1
