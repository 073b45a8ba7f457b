"""What is imported when: packages of methods at first use, our own modules at the head of a file."""

import ast
import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import musicsim

PACKAGES = [
    "api",
    "audio",
    "codebook",
    "evaluation",
    "gaussians",
    "hashing",
    "kernels",
    "library",
    "metric",
    "mixtures",
    "order",
    "playlist",
    "relevance",
    "search",
]


def loaded_by(modules: str, libraries: tuple[str, ...]) -> list[str]:
    """Which of some libraries a fresh process has loaded after an import."""
    code = f"import sys\nimport {modules}\nprint(*[name for name in {libraries} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_importing_the_packages_loads_no_heavy_library():
    modules = ", ".join(f"musicsim.{name}" for name in PACKAGES)
    assert loaded_by(modules, ("av", "implicit", "numba", "scipy", "sklearn")) == []


@pytest.mark.parametrize(
    "module",
    [
        "cli",
        "api.http",
        "api.routes",
        "explorer.job_process",
        "explorer.playlists.walk",
        "explorer.search.query",
        "explorer.snapshot.snapshot",
        "explorer.refresh.learned_model",
    ],
)
def test_what_opens_a_library_waits_for_no_library_that_fits_models(module):
    assert loaded_by(f"musicsim.{module}", ("numba", "openTSNE", "pandas", "scipy.stats", "sklearn")) == []


def test_help_waits_for_neither_numbers_nor_sound_nor_a_database():
    assert loaded_by("musicsim.cli", ("asyncio", "av", "multiprocessing", "numpy", "pydantic", "sqlalchemy")) == []


@pytest.mark.parametrize(
    ("command", "libraries"),
    [
        (("--help",), ("asyncio", "av", "multiprocessing", "numpy", "pydantic", "sqlalchemy")),
        (("info",), ("av", "joblib", "numba", "pandas", "scipy", "sklearn", "streamlit")),
        (("similar", "1"), ("av", "joblib", "numba", "pandas", "plotly", "scipy.stats", "sklearn", "streamlit")),
    ],
    ids=lambda of: of[0],
)
def test_a_command_waits_for_nothing_that_its_answer_does_not_need(command, libraries, built_library, tmp_path):
    folder = shutil.copytree(built_library, tmp_path / "library")
    code = (
        "import sys\nfrom musicsim.cli import program\nprogram(standalone_mode=False)\n"
        f"print(*[name for name in {libraries} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *command],
        capture_output=True, text=True, check=True, env=os.environ | {"MUSICSIM_LIBRARY": str(folder)},
    )  # fmt: skip
    *shown, loaded = done.stdout.splitlines()
    assert len(shown) > 3
    assert loaded == ""


def test_a_command_does_not_look_for_garbage_among_what_it_has_imported(built_library, tmp_path):
    folder = shutil.copytree(built_library, tmp_path / "library")
    code = (
        "import atexit, gc\nlooks = []\ngc.callbacks.append(lambda phase, _: looks.append(phase))\n"
        "atexit.register(lambda: print(len(looks), gc.get_freeze_count() > 0))\n"
        "from musicsim.__main__ import main\ngc.collect()\nlooks.clear()\nmain()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "info"],
        capture_output=True, text=True, check=True, env=os.environ | {"MUSICSIM_LIBRARY": str(folder)},
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "0 True"


def test_who_asks_for_jobs_and_updates_waits_for_nothing_that_does_them():
    asked = "musicsim.explorer.jobs, musicsim.explorer.refresh.outdated"
    does = (
        "av",
        "scipy",
        "musicsim.explorer.job_process",
        "musicsim.explorer.snapshot",
        "musicsim.explorer.refresh.refresh",
    )
    assert loaded_by(asked, does) == []


def test_the_app_is_up_before_anything_is_decoded():
    assert loaded_by("musicsim.cli.app, musicsim.ui.app", ("av", "numba", "pandas", "scipy", "sklearn")) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", PACKAGES)
def test_every_listed_name_is_there(name):
    package = importlib.import_module(f"musicsim.{name}")
    assert package.__all__
    for listed in package.__all__:
        assert not isinstance(getattr(package, listed), ModuleType)


def deferred_imports(source: str) -> Iterator[str]:
    """Imports of our own modules that are not at the head of a file."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names = ["musicsim" if node.level else str(node.module)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        if node not in tree.body and any(name.split(".")[0] == "musicsim" for name in names):
            yield f"line {node.lineno}: {ast.unparse(node)}"


def test_our_own_modules_are_imported_at_the_head_of_a_file():
    package = Path(musicsim.__file__).parent
    found = {
        str(path.relative_to(package)): imports
        for path in package.rglob("*.py")
        # these prepare what they import: the garbage collector, and the settings of Streamlit
        if str(path.relative_to(package)) not in ("__main__.py", "cli/app.py")
        and (imports := list(deferred_imports(path.read_text())))
    }
    assert found == {}
    assert list(deferred_imports("def load():\n    from musicsim import hooks\n"))
