"""Fixtures of every test."""

import os
import re
import shutil
import signal
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import filelock
import hypothesis
import numpy as np
import pytest
from xdist.scheduler import LoadFileScheduling

from musicsim.explorer.refresh.refresh import refresh
from musicsim.explorer.snapshot.snapshot import Snapshot, take_snapshot
from musicsim.library import Library
from musicsim.library.processes.workers import Limits
from tests.affected import find_affected, list_changes
from tests.learning import write_styles
from tests.sounds import open_library, write_collection
from tests.waiting import PATIENCE_S

# of folders whose fixtures the tests of extensions use, too
pytest_plugins = ("tests.api.fixtures", "tests.browser.fixtures", "tests.explorer.fixtures", "tests.pages.fixtures")

_FOLDERS_WITH_KERNELS = {f"tests/{name}" for name in ("codebook", "hashing", "metric", "order", "search")}
_EXAMPLES = re.compile(r"tests/test_examples\.py::\w+\[(\w+)\.")

MakeOnce = Callable[[str, Callable[[Path], object]], Path]

# a busy machine may take long for an example, or for making one
hypothesis.settings.register_profile("patient", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("patient")

# workers and jobs of the tests inherit these: two cores are all there is, and workers must not starve next to tests
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MUSICSIM_NICE", "0")
os.environ.setdefault("MUSICSIM_EAR", "0")  # even if MusiCNN is installed
os.environ["XDG_CONFIG_HOME"] = str(Path(tempfile.gettempdir()) / "musicsim-tests")  # without extensions
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's background job, whose children would ignore Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--changed``."""
    parser.addoption("--changed", action="store_true", help="run the tests that uncommitted changes can break")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Apply ``--changed``, and run files that take long first, so that all workers end at about the same time.

    Tests of experiments and benchmarks are for ``make test-all``.
    """
    for item in items:
        if item.path.parent.name in ("experiments", "benchmarks"):
            item.add_marker(pytest.mark.long)
    if config.getoption("--changed"):
        affected = find_affected(list_changes())
        config.hook.pytest_deselected(items=[item for item in items if not affected.includes(item)])
        items[:] = [item for item in items if affected.includes(item)]
    seconds: Counter[str] = Counter()
    for item in items:
        is_long = item.get_closest_marker("long") is not None
        usual = (6.0, 30.0) if item.get_closest_marker("browser") else (0.1, 4.0)
        seconds[_name_group(item.nodeid)] += usual[is_long]
    items.sort(key=lambda item: (-seconds[_name_group(item.nodeid)], item.path))


def _name_group(nodeid: str) -> str:
    """Return the file of a test, or the folder of a package if most tests of the package compile the same kernels."""
    file = nodeid.partition("::")[0]
    examples = _EXAMPLES.match(nodeid)
    folder = f"tests/{examples[1]}" if examples else file.rpartition("/")[0]
    return folder if folder in _FOLDERS_WITH_KERNELS else file


class _GroupScheduling(LoadFileScheduling):
    """Run each group of tests in one worker, so that two workers do not compile the same kernels."""

    def _split_scope(self, nodeid: str) -> str:
        return _name_group(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadFileScheduling:
    """Distribute groups of tests to the workers."""
    return _GroupScheduling(config, log)


@pytest.fixture(scope="session", autouse=True)
def _patient_program() -> Iterator[None]:
    """Let time limits of the program end no test on a busy machine; tests of a limit set their own."""
    with pytest.MonkeyPatch.context() as patch:
        for limit in (
            "musicsim.commit.TIMEOUT_S",
            "musicsim.explorer.jobs.START_WITHIN_S",
            "musicsim.library.disk.writer.TIMEOUT_S",
            "musicsim.library.processes.decoding.MAX_START_S",
            "musicsim.library.processes.decoding.PATIENCE_S",
            "musicsim.logs.LOCK_WITHIN_S",
        ):
            patch.setattr(limit, PATIENCE_S)
        patch.setattr("musicsim.library.media.covers.LIMITS", Limits(PATIENCE_S, memory_mb=1024))
        yield


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
def collection(made_once: MakeOnce) -> Iterator[Path]:
    """A folder with twelve songs of three artists; never changed by a test."""
    folder = made_once("collection", write_collection)
    before = _read_states(folder)
    yield folder
    assert _read_states(folder) == before, "a test has changed the shared music: give it `own_music`"


def _read_states(folder: Path) -> dict[Path, tuple[int, int]]:
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.rglob("*")}


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
def own_styles(styles_library: Path, tmp_path: Path) -> Iterator[Library]:
    """A copy of the styles library that the test may change."""
    shutil.copytree(styles_library, tmp_path / "library")
    with Library.open(tmp_path / "library") as library:
        yield library


@pytest.fixture
def tiny_library(built_library: Path, tmp_path: Path) -> Iterator[Library]:
    """A copy of the built library that the test may change."""
    folder = tmp_path / "libraries" / "library"
    shutil.copytree(built_library, folder)
    with Library.open(folder) as library:
        yield library


@pytest.fixture
def own_music(tiny_library: Library, collection: Path, tmp_path: Path) -> Path:
    """The folder of the tiny library's own copy of its music, which the test may change."""
    folder = tmp_path / "music"
    shutil.copytree(collection, folder)
    with closing(sqlite3.connect(tiny_library.folder / "library.sqlite")) as database, database:
        for table, column in (("files", "path"), ("files", "folder"), ("roots", "path")):
            database.execute(f"UPDATE {table} SET {column} = replace({column}, ?, ?)", (str(collection), str(folder)))
    return folder


@pytest.fixture
def snapshot(tiny_library: Library) -> Snapshot:
    """The tiny library as it stands."""
    return take_snapshot(tiny_library)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Library]:
    """An empty library that takes the short songs of the tests."""
    with open_library(tmp_path / "empty" / "library") as library:
        yield library
