"""Tests that temporary files of a library are deleted after the work and after a killed process."""

import subprocess
import sys
from pathlib import Path

import pytest

from musicsim.errors import AudioError, StorageError
from musicsim.library.disk.scratch import Scratch
from tests.disks import make_read_only, small_disk
from tests.waiting import HANG_S

KEEPER = """
import sys, time
from pathlib import Path
from musicsim.library.disk.scratch import Scratch

with Scratch(Path(sys.argv[1])).folder() as folder:
    (folder / "upload").write_bytes(b"half a file")
    print("ready", flush=True)
    if sys.argv[2] == "wait":
        time.sleep(float(sys.argv[3]))
"""


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")


def keeper(folder: Path, what: str) -> subprocess.Popen:
    process = subprocess.Popen([sys.executable, "-c", KEEPER, str(folder), what, str(HANG_S)], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    return process


def test_scratch_folder_is_deleted_after_error(tmp_path):
    def work() -> None:
        with Scratch(tmp_path).folder() as folder:
            (folder / "x").touch()
            assert files(tmp_path) == ["x"]
            raise AudioError("no sound")

    with pytest.raises(AudioError):
        work()
    assert files(tmp_path) == []


def test_only_folders_of_killed_processes_are_deleted(tmp_path):
    with keeper(tmp_path, "wait") as killed, keeper(tmp_path, "wait") as living:
        killed.kill()
        killed.wait()
        assert files(tmp_path) == ["upload", "upload"]
        own = Scratch(tmp_path)
        assert files(tmp_path) == ["upload"]
        assert len(list(tmp_path.glob("*.lock"))) == 2
        living.kill()
    assert Scratch(tmp_path) is not own
    assert files(tmp_path) == []


def test_finished_process_leaves_nothing(tmp_path):
    with keeper(tmp_path, "end") as process:
        assert process.wait() == 0
    assert list(tmp_path.iterdir()) == []


def test_read_only_disk_is_named_in_error(tmp_path):
    with small_disk(tmp_path / "disk") as disk:
        make_read_only(disk)
        with pytest.raises(StorageError, match=f"{disk} is read-only"):
            Scratch(disk / "scratch")
