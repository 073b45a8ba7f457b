"""The weights of MusiCNN, a package on PyPI: found where it is installed, or installed with pip or uv."""

import importlib
import os
import shutil
import subprocess
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from packaging.requirements import Requirement

from musicsim.errors import LibraryError
from musicsim.library.disk.archives import shorten_message

DOWNLOAD = "pip download --no-deps musicnn==0.1.0"
ABOUT = "MusiCNN (29 MB, ISC license) and the packages that run it"
_LOCK = Path(__file__).parent / "assets" / "musicnn.txt"  # `make app` installs from it, too
_RUN_BY = ("onnx", "onnxruntime")
_BY_HAND = f"or run `{DOWNLOAD}` elsewhere and add the file: musicsim models add-ear FILE"


def find_weights() -> Path | None:
    """Return the folder of the installed package musicnn; None if it or a package that runs it is missing."""
    spec = find_spec("musicnn")
    if spec is None or not spec.submodule_search_locations or any(find_spec(name) is None for name in _RUN_BY):
        return None
    return Path(spec.submodule_search_locations[0])


def install_weights() -> Path:
    """Install the weights and the packages that run them, and return the folder. Raises LibraryError if this fails."""
    # without the packages that it names: only its code needs TensorFlow
    _install("--no-deps", "--require-hashes", "-r", str(_LOCK))
    if missing := _list_missing():
        _install(*missing)
    importlib.invalidate_caches()
    folder = find_weights()
    if folder is None:
        raise LibraryError(f"MusiCNN was installed, but not for {sys.executable}: {_BY_HAND}")
    return folder


def _list_missing() -> list[str]:
    """Return the packages that run the network and are not installed, in the versions of the extra `ear`."""
    requirements = map(Requirement, metadata.requires("musicsim") or ())
    extra = [one for one in requirements if one.marker is not None and one.marker.evaluate({"extra": "ear"})]
    return [f"{one.name}{one.specifier}" for one in extra if one.name in _RUN_BY and find_spec(one.name) is None]


def _install(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if find_spec("pip") is None:
        uv = shutil.which("uv")
        if uv is None:
            raise LibraryError(f"MusiCNN cannot be downloaded without pip or uv: install one of them, {_BY_HAND}")
        command = [uv, "pip", "install", "--quiet", "--python", sys.executable]
    environment = os.environ | {"PIP_RETRIES": "1", "UV_HTTP_RETRIES": "1"}
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        reason = shorten_message((done.stderr.strip() or "no reason given").splitlines()[-1].removeprefix("ERROR: "))
        raise LibraryError(f"MusiCNN cannot be downloaded ({reason}): check the network, {_BY_HAND}")
