"""A library with something to learn: generated songs, and listeners with a taste."""

import shutil
from pathlib import Path

import pytest

from benchmarks.libraries import generated_library
from musicsim.explorer.upkeep.refresh import refresh
from musicsim.library import Library
from tests.sounds import KINDS, open_library, write_song


@pytest.fixture(scope="session")
def taught_folder(tmp_path_factory):
    """200 songs of 100 artists, 128 codewords, 600 listeners; never changed by a test."""
    folder = tmp_path_factory.mktemp("taught") / "library"
    generated_library(folder, 200, n_artists=100, n_listeners=600, n_codewords=128).close()
    return folder


@pytest.fixture
def taught(taught_folder: Path, tmp_path: Path):
    """A copy that the test may change."""
    folder = tmp_path / "taught"
    shutil.copytree(taught_folder, folder)
    with Library.open(folder) as library:
        yield library


@pytest.fixture(scope="session")
def twelve_artists(tmp_path_factory):
    """A described library of 24 songs, four artists a kind of sound, with genres; never changed by a test."""
    folder = tmp_path_factory.mktemp("twelve")
    for a in range(12):
        for s in range(2):
            name = f"Artist {a}"
            tags = {"title": f"Song {a}{s}", "artist": name, "genre": KINDS[a % 3]}
            write_song(
                folder / "music" / name / f"{s}.flac", KINDS[a % 3], seed=10 * a + s, seconds=3, **tags
            )
    with open_library(folder / "library") as library:
        library.add(folder / "music", n_workers=1)
        refresh(library)
    return folder / "library"


@pytest.fixture
def twelve(twelve_artists, tmp_path):
    """A copy that the test may change."""
    shutil.copytree(twelve_artists, tmp_path / "twelve")
    with Library.open(tmp_path / "twelve") as library:
        yield library
