"""A library of 360 drawn songs."""

import shutil

import pytest

from benchmarks.large_library import write_library
from musicsim.library import Library


@pytest.fixture
def many(made_once, tmp_path):
    """Build songs with vectors, regions and a map, but without sound."""
    built = made_once("daily", lambda folder: write_library(folder / "library", 360).close())
    with Library.open(shutil.copytree(built / "library", tmp_path / "library")) as library:
        yield library
