"""Tests that leftovers of killed processes are deleted, but not files in use or of the listener."""

import os
import signal
import subprocess
import sys
import time

from musicsim.library.disk.scratch import scratch_of
from tests.waiting import PATIENCE_S

OLD = time.time() - 2 * 24 * 3600
_DIES = """
import os, signal, sys
from musicsim.library import Library
from musicsim.library.disk.scratch import scratch_of
with Library.open(sys.argv[1]) as library, library.exclusive(), scratch_of(library.folder).folder() as scratch:
    (scratch / "model.npz").write_bytes(b"x" * 1000)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def left(path, *, old=True, data=b"x"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    if old:
        os.utime(path, (OLD, OLD))
    return path


def test_scratch_folder_of_killed_process_is_deleted(store):
    done = subprocess.run([sys.executable, "-c", _DIES, str(store.folder)], check=False, timeout=PATIENCE_S)
    assert done.returncode == -signal.SIGKILL
    assert list(store.folder.glob("scratch/*/*/model.npz"))
    with store.exclusive():
        assert not list(store.folder.glob("scratch/*"))


def test_scratch_folder_of_running_process_stays(store):
    with scratch_of(store.folder).folder() as scratch:
        (scratch / "model.npz").write_bytes(b"x")
        with store.exclusive():
            assert (scratch / "model.npz").exists()
    assert not scratch.exists()


def test_partial_files_are_deleted_after_a_day(store):
    half = [
        left(store.folder / "models" / "native-1" / ".map-0123456789ab.npz"),
        left(store.folder / "cache" / ".songs-0123456789ab.npz"),
        left(store.folder / "cache" / ".abc.01234567.ogg"),
        left(store.folder / "uploads" / ".mine-0123456789ab.musicsim"),
        left(store.folder / ".walk_sources-0123456789ab.npz"),
        left(store.folder / "tag_backups" / ".writing-0123456789ab.json"),
        left(store.folder / "tag_backups" / "2026-11-26-074512" / ".00000001-0123456789ab.undo"),
    ]
    with store.exclusive():
        assert not any(path.exists() for path in half)


def test_other_files_stay(store):
    kept = [
        left(store.folder / "cache" / ".songs-0123456789ab.npz", old=False),
        left(store.folder / "uploads" / "song-0123456789ab.flac"),
        left(store.folder / "tmp" / "song.flac"),
        left(store.folder / "tmpmusic_99" / "song.flac"),
        left(store.folder / ".notes"),
        left(store.folder / ".musicsimignore"),
        left(store.folder / "tag_backups" / "2026-11-26-074512" / "00000001.undo"),
    ]
    (store.folder / "tmpempty_99").mkdir()
    with store.exclusive():
        pass
    assert all(path.exists() for path in kept)
    assert (store.folder / "tmpempty_99").exists()
