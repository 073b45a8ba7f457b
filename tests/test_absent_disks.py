"""The disk of a library that goes away and returns while the app runs: nothing is created in its place."""

import json
import os
import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest

from musicsim import storage
from musicsim.errors import LibraryAwayError
from musicsim.explorer.libraries import create_library, open_library
from musicsim.library import Library
from tests.command import run
from tests.disks import small_disk
from tests.test_app_server import running

_AWAY = "library: the disk of this library is not there."


@pytest.fixture
def home(tmp_path, built_library, monkeypatch):
    """The folder of a library with twelve songs, which is the default one."""
    folder = tmp_path / "library"
    shutil.copytree(built_library, folder)
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(folder))
    return folder


def _ask(server, path, **options):
    status, content = server.answer(path, f"localhost:{server.port}", **options)
    return status, json.loads(content or "null")


def _is_away(server) -> bool:
    """Return whether every kind of route says that the disk is not there."""
    routes = ("/api/songs", "/api/models", "/songs/1/audio", "/songs/1/cover", "/songs/1/peaks", "/radio?song=1")
    answers = [_ask(server, path) for path in routes]
    answers.append(_ask(server, "/plays?song=1&kind=play", method="POST"))
    return all(status == 503 and said["error"].startswith(_AWAY) for status, said in answers)


def _n_songs(server) -> int:
    status, songs = _ask(server, "/api/songs")
    assert status == 200, songs
    return len(songs)


@pytest.mark.long
def test_app_has_all_songs_when_the_folder_returns(home, tmp_path):
    with running(home) as server:
        assert _n_songs(server) == 12
        home.rename(tmp_path / "away")
        assert _is_away(server)
        assert not home.exists()
        (tmp_path / "away").rename(home)
        assert _n_songs(server) == 12
        assert _ask(server, "/plays?song=1&kind=play", method="POST")[0] == 204
    with Library.open(home) as library:
        assert len(library.judgments.all("play")) == 1


@pytest.mark.long
def test_app_has_all_songs_when_another_device_returns(tmp_path, built_library):
    disk, disks = tmp_path / "disk", ExitStack()
    with ExitStack() as stack:
        stack.enter_context(disks)
        disks.enter_context(small_disk(disk))
        shutil.copytree(built_library, disk / "library")
        shutil.copytree(disk / "library", tmp_path / "saved")
        server = stack.enter_context(running(disk / "library"))
        assert _n_songs(server) == 12
        disks.close()
        assert _is_away(server)
        assert list(disk.iterdir()) == []
        disk.rmdir()
        disks.enter_context(small_disk(disk))
        shutil.copytree(tmp_path / "saved", disk / "library")
        assert _n_songs(server) == 12
        assert _ask(server, "/plays?song=1&kind=play", method="POST")[0] == 204
        with Library.open(disk / "library") as library:
            assert len(library.judgments.all("play")) == 1


def test_folder_that_was_open_is_not_created_again(home):
    known = open_library()
    shutil.rmtree(home)
    for name in (None, "library"):
        with pytest.raises(LibraryAwayError, match="is not there"):
            open_library(name)
    with pytest.raises(LibraryAwayError, match="is not there"):  # its engine does not create the file, either
        len(known)
    assert not home.exists()


def test_library_next_to_the_default_one_is_away(home):
    folder = create_library("Jazz")
    with open_library("Jazz").write():
        pass
    folder.rename(home.parent / "elsewhere")
    with pytest.raises(LibraryAwayError, match="Jazz: the disk of this library is not there"):
        open_library("Jazz")
    (home.parent / "elsewhere").rename(folder)
    assert open_library("Jazz").revision == 1


def test_other_file_in_the_same_place_is_opened_and_the_old_one_closed(home, built_library, tmp_path):
    known = open_library()
    assert len(known) == 12
    home.rename(tmp_path / "away")
    shutil.copytree(built_library, home)
    again = open_library()
    assert again is not known
    assert len(again) == 12
    if Path("/proc/self/fd").exists():
        # the folder of the open files itself is closed by now
        files = [os.readlink(file) for file in Path("/proc/self/fd").iterdir() if file.is_symlink()]
        assert not [file for file in files if file.startswith(str(tmp_path / "away"))]


def test_unused_library_does_not_replace_a_used_one(home, tmp_path):
    known = open_library()
    home.rename(tmp_path / "away")
    Library.open(home).close()
    with pytest.raises(LibraryAwayError, match="is not there"):
        open_library()
    shutil.rmtree(home)
    (tmp_path / "away").rename(home)
    assert open_library() is known


def test_library_whose_disk_comes_late_replaces_an_unused_one(home, tmp_path):
    home.rename(tmp_path / "late")
    assert len(open_library()) == 0
    home.rename(tmp_path / "unused")
    (tmp_path / "late").rename(home)
    assert len(open_library()) == 12


def test_nothing_is_created_where_a_disk_is_not_mounted(tmp_path, monkeypatch, collection):
    (tmp_path / "my disk").mkdir()
    monkeypatch.setattr(storage, "FSTAB", tmp_path / "fstab")
    place = str(tmp_path / "my disk").replace(" ", "\\040")
    storage.FSTAB.write_text(
        f"# disks\nUUID=1 / ext4 rw 0 1\n\nUUID=2 {place} ext4 nofail 0 2\nUUID=3 none swap sw 0 0\n"
    )
    folder = tmp_path / "my disk" / "music" / "library"
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(folder))
    with pytest.raises(LibraryAwayError, match="my disk is not mounted"):
        open_library()
    _, said = run("add", collection, library=folder, expect=4)
    assert said == f"error: {folder}: the disk at {tmp_path / 'my disk'} is not mounted. Mount it, and try again.\n"
    assert not list((tmp_path / "my disk").iterdir())
    Library.open(tmp_path / "library").close()
