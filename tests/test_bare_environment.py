"""The methods and the features work in environments that have nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from tests.test_packages import APP, AUDIO, METHODS
from tests.test_wheel import CHECKOUT, build_wheel
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.long

_METHODS = """
import importlib, pkgutil, sys
import musicsim as ms
for package in sys.argv[1:]:
    for module in pkgutil.iter_modules(getattr(ms, package).__path__, f"musicsim.{package}."):
        if module.name != "musicsim.evaluation.table":  # ms.evaluate, which returns a data frame
            importlib.import_module(module.name)
if __name__ == "__main__":  # warm_up starts processes
    ms.warm_up(n_jobs=2)
"""
_PACKAGES = (
    "metric", "order", "hashing", "search", "codebook", "gaussians", "mixtures", "playlist", "evaluation", "kernels",
    "relevance",
)  # fmt: skip
_FEATURES = """
import numpy as np, soundfile
import musicsim as ms
soundfile.write("tone.wav", 0.3 * np.sin(np.arange(220_500) * 0.1), 22_050)
print(len(ms.audio.load("tone.wav")) == 220_500, len(ms.audio.analyze_sound("tone.wav").mfcc) > 100)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


def _install(folder: Path, what: str) -> Path:
    """Install into a new environment, with the versions that we lock, and return its Python."""
    uv, python = Path(sys.executable).with_name("uv"), folder / "bare/bin/python"
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, folder / "bare"], check=True)
    command = [uv, "pip", "install", "--quiet", "--python", python, "--constraint", CHECKOUT / "requirements.txt", what]
    subprocess.run(command, check=True, timeout=PATIENCE_S)
    return python


def _run(python: Path, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = python.parents[2] / "script.py"
    script.write_text(code)
    command = [python, script, *arguments]
    return subprocess.run(command, cwd=script.parent, capture_output=True, text=True, check=False)


def _list_distributions(python: Path) -> set[str]:
    listed = "from importlib import metadata; print(*(each.name for each in metadata.distributions()))"
    return {canonicalize_name(name) for name in _run(python, listed).stdout.split()}


def test_methods_need_few_packages(wheel, tmp_path):
    python = _install(tmp_path, str(wheel))
    installed = _list_distributions(python)
    assert {canonicalize_name(name) for name in METHODS} < installed
    assert len(installed) <= 14  # musicsim is one of them
    done = _run(python, _METHODS, *_PACKAGES)
    assert (done.returncode, done.stderr) == (0, "")
    for line in ("ms.Library('songs')", "ms.audio.load", "ms.evaluate"):
        error = _run(python, f"import musicsim as ms; {line}").stderr.splitlines()[-1]
        assert "needs the package" in error
        assert f"pip install '{wheel.name}[" in error
    program = subprocess.run([python.with_name("musicsim"), "--help"], capture_output=True, text=True, check=False)
    assert program.returncode == 1
    assert f"pip install '{wheel.name}[app]'" in program.stderr
    assert len(program.stderr.splitlines()) == 1


def test_features_need_no_app(wheel, tmp_path):
    python = _install(tmp_path, f"{wheel}[audio]")
    installed = _list_distributions(python)
    assert {canonicalize_name(name) for name in AUDIO} < installed
    brought = {"packaging", "pooch", "urllib3"}  # by librosa
    assert not installed & {canonicalize_name(name) for name in APP.keys() - AUDIO.keys() - brought}
    done = _run(python, _FEATURES)
    assert (done.returncode, done.stdout) == (0, "True True\n"), done.stderr
