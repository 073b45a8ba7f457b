"""Optional dependencies: the command that installs them, and packages that name those they lack."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lazy_loader

import musicsim

APP_EXTRAS = ("app", "audio", "data")
"""The extra of the app, and those that it contains."""
_CHECKOUT = Path(__file__).resolve().parents[1]


def install_command(extra: str) -> str:
    """Return the command that adds an extra to this installation, to be run in the checkout or next to the wheel.

    The command has no absolute path, because visitors of a public demo may see it.
    """
    if not (_CHECKOUT / "pyproject.toml").exists():
        return f"pip install 'musicsim-{musicsim.__version__}-py3-none-any.whl[{extra}]'"
    interpreter = Path(sys.executable)
    python = interpreter.relative_to(_CHECKOUT) if interpreter.is_relative_to(_CHECKOUT) else "python"
    return f"{python} -m pip install -e '.[{extra}]'"


def attach_stub(package: str, file: str, extra: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return what :func:`lazy_loader.attach_stub` does, for a package whose names need an extra."""
    load, list_names, names = lazy_loader.attach_stub(package, file)

    def load_or_explain(name: str) -> Any:
        try:
            return load(name)
        except ModuleNotFoundError as error:
            raise explain_missing(error, f"{package}.{name}", extra) from error

    return load_or_explain, list_names, names


def explain_missing(error: ModuleNotFoundError, what: str, extra: str) -> ModuleNotFoundError:
    """Return an error that names the command for a missing package."""
    return ModuleNotFoundError(
        f"{what} needs the package {error.name}. Run: {install_command(extra)}", name=error.name, path=error.path
    )
