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
    "gaussians",
    "hashing",
    "kernels",
    "metric",
    "mixtures",
    "order",
    "playlist",
    "relevance",
    "search",
]


def test_importing_the_packages_loads_no_heavy_library():
    code = f"""
import sys
from musicsim import {", ".join(PACKAGES)}
print([name for name in ("av", "implicit", "numba", "scipy", "sklearn") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
@pytest.mark.parametrize("name", PACKAGES)
def test_every_listed_name_is_there(name):
    package = importlib.import_module(f"musicsim.{name}")
    assert package.__all__
    for listed in package.__all__:
        assert not isinstance(getattr(package, listed), ModuleType)
