"""The command that installs an optional dependency."""

import sys
from pathlib import Path

_CHECKOUT = Path(__file__).resolve().parents[1]


def install_command(extra: str) -> str:
    """Return the command that adds an extra to this installation; in a checkout, it must be run in its folder.

    The command has no absolute path, because visitors of a public demo may see it.
    """
    if not (_CHECKOUT / "pyproject.toml").exists():
        return f"pip install 'musicsim[{extra}]'"
    environment = Path(sys.prefix)
    python = environment.relative_to(_CHECKOUT) / "bin/python" if environment.is_relative_to(_CHECKOUT) else "python"
    return f"{python} -m pip install -e '.[{extra}]'"
