"""Try musicsim with the other Pythons of this machine: install it, import every module, and run a few tests.

``python -m tests.pythons`` prints which versions it tried and which it did not find. The exit code is 1 if one failed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
# where libraries differ most between versions
TESTS = (
    "tests/library/test_store.py",
    "tests/audio/test_features.py",
    "tests/api",
    "tests/test_cli.py",
    "tests/test_logs.py",
)
IMPORT_ALL = """
import importlib, pkgutil, musicsim
for module in pkgutil.walk_packages(musicsim.__path__, "musicsim."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""


def find_python(version: str) -> str | None:
    """Return the path of a Python of this version, or None."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [shutil.which(f"python{version}"), *map(str, pyenv.glob(f"{version}.*/bin/python"))]
    for python in filter(None, candidates):
        # a shim of pyenv exists for versions that are not active, too, and fails
        if subprocess.run([python, "-c", "pass"], capture_output=True, check=False).returncode == 0:
            return python
    return None


def is_working(version: str, python: str) -> bool:
    """Install the checkout for a Python, in an environment next to ours, and try it."""
    venv = CHECKOUT / f".venv-{version}"
    program = str(venv / "bin" / "python")
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"MUSICSIM_LIBRARY": f"{folder}/library"}
        for command in (
            ["make", "--no-print-directory", f".venv-{version}/tested", f"PYTHON={python}", f"VENV=.venv-{version}"],
            [program, "-W", "error::SyntaxWarning", "-c", IMPORT_ALL],
            [program, "-m", "musicsim", "doctor"],  # compares features with librosa's
            [program, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not browser and not long", *TESTS],
        ):
            if subprocess.run(command, cwd=CHECKOUT, env=environment, check=False).returncode != 0:
                print(f"Python {version}: failed at {' '.join(command[:3])}", flush=True)
                return False
    print(f"Python {version}: passed", flush=True)
    return True


def main() -> int:
    """Try each of the other versions; return the exit code."""
    code = 0
    for version in VERSIONS:
        if version == f"{sys.version_info.major}.{sys.version_info.minor}":
            continue
        python = find_python(version)
        if python is None:
            print(f"Python {version}: not found, not tested", flush=True)
        elif not is_working(version, python):
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
