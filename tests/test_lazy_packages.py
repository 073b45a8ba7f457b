"""Import times: packages of methods at first use, our own modules at the head of a file."""

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
    "cli",
    "codebook",
    "datasets",
    "evaluation",
    "explorer",
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
    "ui",
    "ui.base",
    "ui.components",
]


def loaded_by(modules: str, libraries: tuple[str, ...]) -> list[str]:
    """Return those of the libraries that a new process has loaded after an import."""
    code = f"import sys\nimport {modules}\nprint(*[name for name in {libraries} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_package_imports_load_no_heavy_dependency():
    modules = ", ".join(f"musicsim.{name}" for name in PACKAGES)
    assert loaded_by(modules, ("av", "numba", "scipy", "sklearn")) == []


@pytest.mark.long
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
def test_opening_library_imports_no_fitting_packages(module):
    assert loaded_by(f"musicsim.{module}", ("numba", "openTSNE", "pandas", "scipy.stats", "sklearn")) == []


def test_help_imports_no_heavy_packages():
    assert loaded_by("musicsim.cli", ("asyncio", "av", "multiprocessing", "numpy", "pydantic", "sqlalchemy")) == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "libraries"),
    [
        (("--help",), ("asyncio", "av", "multiprocessing", "numpy", "pydantic", "sqlalchemy")),
        (("info",), ("av", "joblib", "numba", "pandas", "scipy", "sklearn", "streamlit")),
        (("similar", "1"), ("av", "joblib", "numba", "pandas", "plotly", "scipy.stats", "sklearn", "streamlit")),
    ],
    ids=lambda of: of[0],
)
def test_commands_import_only_needed_packages(command, libraries, built_library, tmp_path):
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


def test_commands_exclude_imports_from_garbage_collection(built_library, tmp_path):
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


def test_job_status_imports_no_job_code():
    asked = "musicsim.explorer.jobs, musicsim.explorer.refresh.outdated"
    does = (
        "av",
        "scipy",
        "musicsim.explorer.job_process",
        "musicsim.explorer.snapshot",
        "musicsim.explorer.refresh.refresh",
    )
    assert loaded_by(asked, does) == []


def test_app_starts_without_heavy_imports():
    assert loaded_by("musicsim.cli.app, musicsim.ui.app", ("av", "numba", "pandas", "scipy", "sklearn")) == []


@pytest.mark.parametrize("name", PACKAGES)
def test_every_exported_name_exists(name):
    package = importlib.import_module(f"musicsim.{name}")
    assert package.__all__
    for listed in package.__all__:
        assert not isinstance(getattr(package, listed), ModuleType)


def deferred_imports(source: str) -> Iterator[str]:
    """Yield imports of our own modules that are not at the head of a file; those of types for mypy are."""
    tree = ast.parse(source)
    head = [*tree.body]
    for node in tree.body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            head += node.body
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names = ["musicsim" if node.level else str(node.module)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        if node not in head and any(name.split(".")[0] == "musicsim" for name in names):
            yield f"line {node.lineno}: {ast.unparse(node)}"


@pytest.mark.long
def test_own_modules_are_imported_at_top_of_file():
    package = Path(musicsim.__file__).parent
    found = {
        str(path.relative_to(package)): imports
        for path in package.rglob("*.py")
        # these prepare their imports: the garbage collector, and the settings of Streamlit
        if str(path.relative_to(package)) not in ("__main__.py", "cli/app.py")
        and (imports := list(deferred_imports(path.read_text())))
    }
    assert found == {}
    assert list(deferred_imports("def load():\n    from musicsim import hooks\n"))
