"""Temporary files of a library: gone behind the work, and behind a process that was killed."""

import subprocess
import sys
from pathlib import Path

import pytest

from musicsim.errors import AudioError, StorageError
from musicsim.library.disk.scratch import Scratch
from tests.disks import make_read_only, small_disk

KEEPER = """
import sys, time
from pathlib import Path
from musicsim.library.disk.scratch import Scratch

with Scratch(Path(sys.argv[1])).folder() as folder:
    (folder / "upload").write_bytes(b"half a file")
    print("ready", flush=True)
    if sys.argv[2] == "wait":
        time.sleep(600)
"""


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")


def keeper(folder: Path, what: str) -> subprocess.Popen:
    process = subprocess.Popen([sys.executable, "-c", KEEPER, str(folder), what], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    return process


def test_a_folder_is_gone_behind_its_work_whatever_happens(tmp_path):
    def work() -> None:
        with Scratch(tmp_path).folder() as folder:
            (folder / "x").touch()
            assert files(tmp_path) == ["x"]
            raise AudioError("no sound")

    with pytest.raises(AudioError):
        work()
    assert files(tmp_path) == []


def test_what_a_killed_process_left_goes_and_what_a_living_one_needs_stays(tmp_path):
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


def test_a_process_that_ends_leaves_nothing(tmp_path):
    with keeper(tmp_path, "end") as process:
        assert process.wait() == 0
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_cannot_be_written_to_is_named(tmp_path):
    with small_disk(tmp_path / "disk") as disk:
        make_read_only(disk)
        with pytest.raises(StorageError, match=f"{disk} is read-only"):
            Scratch(disk / "scratch")
