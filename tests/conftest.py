"""Fixtures of every test."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from musicsim.explorer.snapshot.snapshot import Snapshot, take_snapshot
from musicsim.explorer.upkeep.refresh import refresh
from musicsim.library import Library
from tests.sounds import open_library, write_collection

# workers and jobs of the tests inherit it: two cores are all there is
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture
def rng() -> np.random.Generator:
    """A seeded generator."""
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with twelve songs of three artists; never changed by a test."""
    return write_collection(tmp_path_factory.mktemp("collection"))


@pytest.fixture(scope="session")
def built_library(tmp_path_factory: pytest.TempPathFactory, collection: Path) -> Path:
    """A library of the collection with model, map and clusters; never changed by a test."""
    folder = tmp_path_factory.mktemp("built") / "library"
    with open_library(folder) as library:
        library.add(collection, n_workers=1)  # one worker enters songs in their order
        assert refresh(library)
    return folder


@pytest.fixture
def tiny_library(built_library: Path, tmp_path: Path) -> Iterator[Library]:
    """A copy of the built library that the test may change."""
    folder = tmp_path / "libraries" / "library"
    shutil.copytree(built_library, folder)
    with Library.open(folder) as library:
        yield library


@pytest.fixture
def snapshot(tiny_library: Library) -> Snapshot:
    """The tiny library as it stands."""
    return take_snapshot(tiny_library)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Library]:
    """An empty library that takes the short songs of the tests."""
    with open_library(tmp_path / "empty" / "library") as library:
        yield library
