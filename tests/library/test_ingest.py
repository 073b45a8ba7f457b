"""Tests of scanning: good files become songs, bad ones get a reason, and nothing is done twice."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from musicsim.audio import delta_mfcc, load
from musicsim.errors import LibraryError, NoSoundError
from musicsim.library.processes.pools import LocalPool
from musicsim.library.processes.workers import OverTimeError, WorkerDied
from musicsim.library.stores.files import Failure
from tests.fork_server import fork_server_pid
from tests.progress import Steps, cancel_when
from tests.sounds import write_collection, write_song
from tests.waiting import PATIENCE_S


@pytest.fixture
def music(tmp_path):
    """Write three good files and five without music."""
    folder = tmp_path / "music"
    for n in range(3):
        write_song(folder / f"{n}.flac", seed=n, title=f"song {n}")
    (folder / "empty.mp3").touch()
    (folder / "text.mp3").write_text("this is no music\n" * 100)
    (folder / "cut.flac").write_bytes((folder / "0.flac").read_bytes()[:40])
    (folder / "short.wav").write_bytes(write_song(tmp_path / "s.wav", seconds=0.02).read_bytes())
    (folder / "folder.mp3").mkdir()
    (folder / "notes.txt").write_text("not looked at")
    return folder


def test_bad_files_are_listed_with_reasons(store, music):
    report = store.add(music)
    assert report.n_added == 3
    assert {f.path.name for f in report.failures} == {"empty.mp3", "text.mp3", "cut.flac", "short.wav"}
    assert {s.title for s in store.songs()} == {"song 0", "song 1", "song 2"}
    for failure in store.files.failures():
        assert failure.path.name in failure.reason
        assert len(failure.reason) > len(str(failure.path)) + 15, "a reason, not only a name"


def test_second_scan_opens_no_files(store, music):
    store.add(music)
    again = store.add(music)
    assert (again.n_added, again.n_unchanged, again.failures) == (0, again.n_found, [])
    assert again.seconds == 0.0, "no worker was started"


def test_retry_opens_failed_files_again(store, music):
    store.add(music)
    path = music / "empty.mp3"
    stat = path.stat()
    shutil.copy(music / "1.flac", path)
    os.truncate(path, 0)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert len(store.add(music, retry=True).failures) == 4


def test_repaired_file_leaves_failure_list(store, music):
    store.add(music)
    write_song(music / "text.mp3", "noise", seed=9)
    report = store.add(music)
    assert report.n_added == 1
    assert "text.mp3" not in {f.path.name for f in store.files.failures()}


def test_changed_file_replaces_its_song(store, tmp_path):
    path = write_song(tmp_path / "music" / "a.flac", seed=1, title="before")
    store.add(path)
    write_song(path, "noise", seed=2, title="after")
    store.add(path)
    assert [s.title for s in store.songs()] == ["after"]


def test_identical_files_are_one_song(store, tmp_path):
    path = write_song(tmp_path / "music" / "a.flac", title="one")
    shutil.copy(path, path.with_name("b.flac"))
    report = store.add(path.parent)
    assert (report.n_found, report.n_added, len(store)) == (2, 1, 1)


def test_moved_file_is_same_song(store, tmp_path):
    path = write_song(tmp_path / "music" / "a.flac", title="one")
    store.add(path.parent)
    before = store.songs()[0].id
    path.rename(path.with_name("z.flac"))
    store.add(path.parent)
    assert [s.id for s in store.songs()] == [before]


def test_stored_frames_match_decoded_file(store, tmp_path):
    path = write_song(tmp_path / "a.flac", "noise")
    store.add(path)
    np.testing.assert_allclose(store.frames(store.songs()[0]), delta_mfcc(load(path)), atol=0.26)


def test_outline_matches_sound(store, tmp_path):
    import soundfile

    y = np.concatenate([np.zeros(40_000), np.full(40_000, 0.5)]).astype(np.float32)
    soundfile.write(tmp_path / "half.wav", y, 22050)
    store.add(tmp_path / "half.wav")
    outline = store.outline(store.songs()[0].id)
    assert outline.max() == 1.0
    assert outline[: len(outline) // 2 - 2].max() == 0.0


def test_nonexistent_folder_is_error_before_scan(store, tmp_path):
    with pytest.raises(LibraryError, match="no such file or folder"):
        store.add([tmp_path, tmp_path / "nowhere"])
    assert store.files.roots() == []


def test_progress_counts_all_files(store, music):
    steps = Steps()
    store.add(music, progress=steps)
    # progress is reported twice per second even while no file is finished
    assert list(dict.fromkeys(done for _, done, _, _ in steps if done)) == list(range(1, 8))
    _, _, total, facts = steps[-1]
    assert (total, facts["failed"]) == (7, 4)


def test_canceled_scan_keeps_analyzed_songs(store, tmp_path):
    write_collection(tmp_path / "music", seconds=1)
    report = store.add(tmp_path / "music", progress=cancel_when(lambda _, done, total: done >= 4))
    assert report.canceled
    assert len(store) == 4
    assert store.add(tmp_path / "music").n_unchanged == 4
    assert len(store) == 12


@pytest.mark.long
def test_script_without_main_guard_can_add_songs(tmp_path):
    song = write_song(tmp_path / "music" / "a.flac")
    script = tmp_path / "script.py"
    script.write_text(
        "from musicsim.library import Library\n"
        f"with Library.open({str(tmp_path / 'library')!r}) as library:\n"
        f"    print(library.add({str(song)!r}).n_added)\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (done.stdout, done.stderr) == ("1\n", "")


@pytest.mark.long
def test_good_files_survive_killed_workers(store, tmp_path, rng, capfd):
    """The system kills all workers and their fork server at once, as it does when memory runs out."""
    for n in range(70):
        write_song(tmp_path / "music" / f"{n:02d}.flac", seed=n, seconds=20.0)
    seen, killed, n_servers = set(), set(), 0

    def kill(_message, done, _total, /, **_):
        """Kill 15 workers and two fork servers before any file is done again. A file killed twice is not analyzed."""
        nonlocal n_servers
        server, n_kills = fork_server_pid(), len(killed) + n_servers
        seen.update(map(int, Path(f"/proc/{server}/task/{server}/children").read_text().split()))
        alive = seen - killed
        if n_kills == 17 or done < 3 * n_kills or not alive:
            return
        time.sleep(rng.uniform(0, 0.2))
        if n_kills in (5, 10):
            n_servers += 1
            os.kill(server, signal.SIGKILL)
        else:
            killed.add(min(alive))
            os.kill(min(alive), signal.SIGKILL)

    report = store.add(tmp_path / "music", n_workers=2, progress=kill)
    assert (len(killed), n_servers) == (15, 2)
    assert (report.n_added, report.failures, store.files.failures()) == (70, [], [])
    assert "Traceback" not in capfd.readouterr().err


def reject(library, path, reason):
    """List a file among the failures, in its current state."""
    stat = path.stat()
    library.files.reject(Failure(path, reason), size=stat.st_size, mtime_ns=stat.st_mtime_ns, duration_s=None)


@pytest.mark.parametrize(
    "reason",
    [
        "cannot be read as sound: it is not an audio file, or it is damaged or cut off; copy it again.",
        "reading took more than 600 s and was stopped. Re-encode the file.",
        "the decoder crashed twice (exit code -11). Re-encode the file.",
    ],
)
def test_bad_files_are_not_retried(store, tmp_path, reason):
    path = write_song(tmp_path / "music" / "a.flac", seconds=1.5)
    reject(store, path, f"{path}: {reason}")
    assert store.add(path.parent).n_unchanged == 1


@pytest.mark.parametrize(
    ("outcome", "words", "is_kept"),
    [
        (WorkerDied(-signal.SIGKILL), "stopped its analysis twice", False),
        (WorkerDied(-signal.SIGTERM), "stopped its analysis twice", False),
        (WorkerDied(None), "stopped its analysis twice", False),
        (WorkerDied(-signal.SIGSEGV), "crashed twice (exit code -11)", True),
        (WorkerDied(1), "crashed twice (exit code 1)", True),
        (OverTimeError(), "took more than 600 s", True),
        (MemoryError(), "took more than 1024 MB", True),
        (OSError(errno.EIO, "Input/output error"), "cannot be read (Input/output error)", False),
        (OSError(errno.ESTALE, "Stale file handle"), "cannot be read (Stale file handle)", False),
        (PermissionError(errno.EACCES, "Permission denied"), "cannot be read (Permission denied)", False),
        (NoSoundError("a.flac is a picture"), "a.flac is a picture", True),
    ],
)
def test_temporary_failures_are_retried_by_next_scan(store, tmp_path, monkeypatch, outcome, words, is_kept):
    path = write_song(tmp_path / "music" / "a.flac", seconds=1.5)
    with monkeypatch.context() as patch:
        # crashes of decoders and errors of disks cannot be provoked on every machine
        patch.setattr(LocalPool, "outcomes", lambda self, function, tasks, **_: ((task, outcome) for task in tasks))
        assert words in store.add(path.parent).failures[0].reason
    assert [failure.path for failure in store.files.failures()] == [path], "it is listed either way"
    report = store.add(path.parent)
    assert (report.n_added, report.n_unchanged) == ((0, 1) if is_kept else (1, 0))
