"""The packages of methods load their modules at first use, and every name of their stubs is there."""

import importlib
import subprocess
import sys
from types import ModuleType

import pytest

PACKAGES = [
    "audio",
    "codebook",
    "evaluation",
    "hashing",
    "kernels",
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
        "explorer.jobs",
        "explorer.playlists.walk",
        "explorer.search.query",
        "explorer.snapshot.snapshot",
        "explorer.upkeep.learned_model",
    ],
)
def test_what_opens_a_library_waits_for_no_library_that_fits_models(module):
    assert loaded_by(f"musicsim.{module}", ("numba", "openTSNE", "pandas", "scipy.stats", "sklearn")) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", PACKAGES)
def test_every_listed_name_is_there(name):
    package = importlib.import_module(f"musicsim.{name}")
    assert package.__all__
    for listed in package.__all__:
        assert not isinstance(getattr(package, listed), ModuleType)
