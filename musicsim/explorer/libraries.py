"""Which library: ``MUSICSIM_LIBRARY``, or ``data/library`` beside the app; its neighbours are the others."""

import os
import re
import threading
from pathlib import Path

from musicsim import LIBRARY_FILE
from musicsim.errors import LibraryError, NotFoundError
from musicsim.library import Library
from musicsim.public import is_public

_opened: dict[Path, Library] = {}
_opening = threading.Lock()


def default_folder() -> Path:
    """The folder of the library in use when none is named.

    ``MUSICSIM_LIBRARY`` if set; ``data/library`` in a checkout; else ``~/.musicsim/library``.
    """
    named = os.environ.get("MUSICSIM_LIBRARY")
    if named:
        return Path(named).expanduser().absolute()
    checkout = Path(__file__).resolve().parents[2]
    if (checkout / "app.py").exists() and (checkout / "pyproject.toml").exists():
        return checkout / "data" / "library"
    return Path.home() / ".musicsim" / "library"


def library_folders() -> list[Path]:
    """The default library first, then the libraries beside it by name; a public demonstration has the first alone."""
    default = default_folder()
    if is_public():
        return [default]
    beside = default.parent.iterdir() if default.parent.exists() else ()
    others = sorted(f for f in beside if f != default and (f / LIBRARY_FILE).exists())
    return [default, *others]


def open_library(name: str | None = None) -> Library:
    """The library of this name, opened once a process; the default one without a name.

    Raises NotFoundError if there is no library of this name; LibraryError if it cannot be opened.
    """
    folders = {folder.name: folder for folder in reversed(library_folders())}
    folder = folders.get(name) if name else default_folder()
    if folder is None:
        raise NotFoundError(f"there is no library {name!r}. Choose another one.")
    with _opening:
        if folder not in _opened or not folder.exists():
            _opened[folder] = Library.open(folder)
        return _opened[folder]


def create_library(name: str) -> Path:
    """Make an empty library beside the default one.

    Raises LibraryError if the name is taken, or is no plain name.
    """
    name = name.strip()
    if not re.fullmatch(r"[^\W_][\w .-]{0,60}", name) or name.endswith("."):
        raise LibraryError(f"{name!r} cannot name a library: use letters, digits, spaces, points and hyphens.")
    folder = default_folder().parent / name
    if folder.exists():
        raise LibraryError(f"{name!r} is taken: choose another name.")

    Library.open(folder).close()
    return folder
