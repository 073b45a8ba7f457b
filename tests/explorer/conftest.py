"""A library with something to learn: generated songs, and listeners with a taste."""

import shutil
from pathlib import Path

import pytest

from benchmarks._libraries import generated_library
from musicsim.library import Library


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
