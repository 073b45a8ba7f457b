"""A library with something to learn: generated songs, and listeners with a taste."""

import shutil
from pathlib import Path

import pytest

from benchmarks.libraries import generated_library
from musicsim.explorer.refresh.refresh import refresh
from musicsim.library import Library
from tests.sounds import KINDS, open_library, write_song


@pytest.fixture(scope="session")
def taught_folder(made_once):
    """200 songs of 100 artists, 128 codewords, 600 listeners; never changed by a test."""

    def generate(folder):
        generated_library(folder, 200, n_artists=100, n_listeners=600, n_codewords=128).close()

    return made_once("taught", generate)


@pytest.fixture
def taught(taught_folder: Path, tmp_path: Path):
    """A copy that the test may change."""
    folder = tmp_path / "taught"
    shutil.copytree(taught_folder, folder)
    with Library.open(folder) as library:
        yield library


@pytest.fixture(scope="session")
def twelve_artists(made_once):
    """A described library of 24 songs, four artists a kind of sound, with genres; never changed by a test."""

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
    """A copy that the test may change."""
    shutil.copytree(twelve_artists, tmp_path / "twelve")
    with Library.open(tmp_path / "twelve") as library:
        yield library


@pytest.fixture
def library(written: Path, tmp_path: Path):
    """A copy, for one test to change, of the library that a test file provides as the fixture `written`."""
    folder = tmp_path / "library"
    shutil.copytree(written, folder)
    with Library.open(folder) as opened:
        yield opened
