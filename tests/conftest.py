"""Fixtures of every test."""

import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import filelock
import numpy as np
import pytest

from musicsim.explorer.refresh.refresh import refresh
from musicsim.explorer.snapshot.snapshot import Snapshot, take_snapshot
from musicsim.library import Library
from tests.learning import write_styles
from tests.sounds import open_library, write_collection

# of folders whose fixtures the tests of extensions use, too
pytest_plugins = ("tests.browser.fixtures", "tests.explorer.fixtures", "tests.pages.fixtures")

MakeOnce = Callable[[str, Callable[[Path], object]], Path]

# workers and jobs of the tests inherit it: two cores are all there is
os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files begin early, or one worker ends alone; those with a browser, which wait, among those that compute."""

    def has(item: pytest.Item, mark: str) -> bool:
        return item.get_closest_marker(mark) is not None

    seconds: Counter[Path] = Counter()
    for item in items:
        usual, slow = (6.0, 30.0) if has(item, "browser") else (0.1, 4.0)
        seconds[item.path] += slow if has(item, "slow") else usual
    begin: dict[Path, float] = {}
    for browses in (False, True):
        files = {item.path for item in items if has(item, "browser") == browses} - begin.keys()
        total, before = sum(seconds[file] for file in files), 0.0
        for file in sorted(files, key=lambda file: (-seconds[file], file)):
            begin[file] = before / total
            before += seconds[file]
    items.sort(key=lambda item: (begin[item.path], item.path))


@pytest.fixture(autouse=True)
def own_main(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streamlit leaves the script of a test as the main module, which processes that are started later would run."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


@pytest.fixture
def rng() -> np.random.Generator:
    """A seeded generator."""
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> MakeOnce:
    """Folders for all processes of a run: the first that asks for a name makes it, the others wait for it.

    Others may be copying a library while a test runs, so that tests open copies only.
    """
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent

    def made(name: str, make: Callable[[Path], object]) -> Path:
        folder, done = shared / name, shared / f"{name}.done"
        with filelock.FileLock(shared / f"{name}.lock"):
            if not done.exists():
                shutil.rmtree(folder, ignore_errors=True)  # of a process that failed half-way
                make(folder)
                done.touch()
        return folder

    return made


@pytest.fixture(scope="session")
def collection(made_once: MakeOnce) -> Path:
    """A folder with twelve songs of three artists; never changed by a test."""
    return made_once("collection", write_collection)


@pytest.fixture(scope="session")
def built_library(made_once: MakeOnce, collection: Path) -> Path:
    """A library of the collection with model, map and clusters; never changed by a test."""

    def build(folder: Path) -> None:
        with open_library(folder) as library:
            library.add(collection, n_workers=1)  # one worker enters songs in their order
            assert refresh(library)

    return made_once("library", build)


@pytest.fixture(scope="session")
def styles_library(made_once: MakeOnce) -> Path:
    """A described library of thirty songs by fifteen artists of three genres; never changed by a test."""

    def build(folder: Path) -> None:
        with open_library(folder / "library") as library:
            library.add(write_styles(folder / "music"), n_workers=1)
            refresh(library)

    return made_once("styles", build) / "library"


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
