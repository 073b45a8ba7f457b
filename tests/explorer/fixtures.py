"""Library fixtures with generated songs, and with listeners whose taste can be learned."""

import shutil
from pathlib import Path

import pytest

from benchmarks.libraries import generated_library
from musicsim.explorer.refresh.refresh import refresh
from musicsim.library import Library
from tests.sounds import KINDS, open_library, write_song


@pytest.fixture(scope="session")
def taught_folder(made_once):
    """Build 200 songs by 100 artists, with 128 codewords and 600 listeners. Tests must not change it."""

    def generate(folder):
        generated_library(folder, 200, n_artists=100, n_listeners=600, n_codewords=128).close()

    return made_once("taught", generate)


@pytest.fixture
def taught(taught_folder: Path, tmp_path: Path):
    """Open a copy that the test may change."""
    folder = tmp_path / "taught"
    shutil.copytree(taught_folder, folder)
    with Library.open(folder) as library:
        yield library


@pytest.fixture(scope="session")
def twelve_artists(made_once):
    """Build a fitted library of 24 songs, with four artists per kind of sound, and genres. Tests must not change it."""

    def build(folder):
        for a in range(12):
            for s in range(2):
                name, kind = f"Artist {a}", KINDS[a % 3]
                path = folder / "music" / name / f"{s}.flac"
                write_song(path, kind, seed=10 * a + s, seconds=3, title=f"Song {a}{s}", artist=name, genre=kind)
        with open_library(folder / "library") as library:
            library.add(folder / "music", n_workers=1)
            refresh(library)

    return made_once("twelve", build) / "library"


@pytest.fixture
def twelve(twelve_artists, tmp_path):
    """Open a copy that the test may change."""
    shutil.copytree(twelve_artists, tmp_path / "twelve")
    with Library.open(tmp_path / "twelve") as library:
        yield library


@pytest.fixture
def library(written: Path, tmp_path: Path):
    """Open a copy of the library in the fixture `written`, which the test file provides."""
    folder = tmp_path / "library"
    shutil.copytree(written, folder)
    with Library.open(folder) as opened:
        yield opened
