"""Folders of libraries: the default one (``MUSICSIM_LIBRARY``, or ``data/library``) and others next to it."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path

from musicsim import LIBRARY_FILE, library
from musicsim.errors import LibraryError, NotFoundError
from musicsim.public import is_public

_opened: dict[Path, library.Library] = {}
_opening = threading.Lock()


def default_folder() -> Path:
    """Return ``MUSICSIM_LIBRARY`` if set, ``data/library`` in a checkout, or ``~/.musicsim/library`` otherwise."""
    if folder := os.environ.get("MUSICSIM_LIBRARY"):
        return Path(folder).expanduser().absolute()
    checkout = Path(__file__).resolve().parents[2]
    if (checkout / "app.py").exists() and (checkout / "pyproject.toml").exists():
        return checkout / "data" / "library"
    return Path.home() / ".musicsim" / "library"


def library_folders() -> list[Path]:
    """Return the default folder, then others next to it, sorted; a public demonstration has only the default."""
    default = default_folder()
    if is_public():
        return [default]
    siblings = default.parent.iterdir() if default.parent.exists() else ()
    return [default, *sorted(f for f in siblings if f != default and (f / LIBRARY_FILE).exists())]


def open_library(name: str | None = None) -> library.Library:
    """Open a library by name, or the default one, once per process; raises NotFoundError or LibraryError."""
    folders = {folder.name: folder for folder in reversed(library_folders())}
    folder = folders.get(name) if name else default_folder()
    if folder is None:
        raise NotFoundError(f"library {name!r} does not exist. Choose another one.")
    with _opening:
        if folder not in _opened or not folder.exists():
            _opened[folder] = library.Library.open(folder)
        return _opened[folder]


def create_library(name: str) -> Path:
    """Create an empty library next to the default one; raises LibraryError for a name that is taken or not allowed."""
    name = name.strip()
    if not re.fullmatch(r"[^\W_][\w .-]{0,60}", name) or name.endswith("."):
        raise LibraryError(f"{name!r} is not a valid library name: use letters, digits, spaces, periods and hyphens.")
    folder = default_folder().parent / name
    if folder.exists():
        raise LibraryError(f"{name!r} is taken: choose another name.")
    library.Library.open(folder).close()
    return folder
