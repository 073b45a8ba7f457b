"""Folders of libraries: the default one (``MUSICSIM_LIBRARY``, or the chosen one) and others next to it."""

from __future__ import annotations

import logging
import os
import re
import threading
from contextlib import suppress
from pathlib import Path

from musicsim import LIBRARY_FILE, library
from musicsim.errors import LibraryError, NotFoundError
from musicsim.library.db.database import away_error
from musicsim.public import is_public
from musicsim.storage import writing_to

_log = logging.getLogger(__name__)
_CHOSEN = "default_library"  # file with the name of the default library, next to the libraries
_opened: dict[Path, library.Library] = {}
_opening = threading.Lock()


def default_folder() -> Path:
    """Return ``MUSICSIM_LIBRARY`` if set, or the library that :func:`use_library` chose, or ``library`` next to it."""
    if folder := os.environ.get("MUSICSIM_LIBRARY"):
        return Path(folder).expanduser().absolute()
    home = _home()
    with suppress(OSError, UnicodeDecodeError):
        chosen = home / (home / _CHOSEN).read_text(encoding="utf-8").strip()
        if (chosen / LIBRARY_FILE).exists():
            return chosen
    return home / "library"


def _home() -> Path:
    """Return the folder of the libraries: ``data`` in a checkout, or ``~/.musicsim`` otherwise."""
    checkout = Path(__file__).resolve().parents[2]
    if (checkout / "app.py").exists() and (checkout / "pyproject.toml").exists():
        return checkout / "data"
    return Path.home() / ".musicsim"


def use_library(name: str) -> Path:
    """Make a library the default one from now on; raises NotFoundError, or LibraryError if MUSICSIM_LIBRARY is set."""
    if os.environ.get("MUSICSIM_LIBRARY"):
        raise LibraryError("MUSICSIM_LIBRARY is set, and names the default library: change or unset it instead.")
    folders = {folder.name: folder for folder in library_folders()}
    if name not in folders:
        known = ", ".join(folders)
        raise NotFoundError(f"library {name!r} does not exist. Choose one of {known}, or create it.")
    folder = folders[name]
    with writing_to(folder.parent), library.atomic_path(folder.parent / _CHOSEN) as temporary:
        temporary.write_text(name, encoding="utf-8")
    return folder


def library_folders() -> list[Path]:
    """Return the default folder, then others next to it, sorted; a public demonstration has only the default."""
    default = default_folder()
    if is_public():
        return [default]
    siblings = default.parent.iterdir() if default.parent.exists() else ()
    return [default, *sorted(f for f in siblings if f != default and (f / LIBRARY_FILE).exists())]


def demo_folder(library_folder: Path) -> Path:
    """Return the folder of a library's demo collection, in the folder of the library."""
    return library_folder / "music"


def title_of(library_folder: Path) -> str:
    """Return the name to show: that of the folder, but *Demo* for a default library with the demo collection."""
    is_demo = library_folder == default_folder() and demo_folder(library_folder).is_dir()
    return "Demo" if is_demo else library_folder.name


def open_library(name: str | None = None) -> library.Library:
    """Open a library by name, or the default one, once per process.

    If its disk was connected again, it is opened again. Raises NotFoundError, LibraryAwayError or LibraryError.
    """
    default = default_folder()
    known_here = [folder for folder in list(_opened) if folder.parent == default.parent]  # also if its disk is away
    folders = {folder.name: folder for folder in [*known_here, *reversed(library_folders())]}
    folder = folders.get(name) if name else default
    if folder is None:
        raise NotFoundError(f"library {name!r} does not exist. Choose another one.")
    with _opening:
        known = _opened.get(folder)
        if known is None:
            _opened[folder] = library.Library.open(folder)
        elif not known.is_current():
            _opened[folder] = _open_again(known)
        return _opened[folder]


def _open_again(known: library.Library) -> library.Library:
    """Open a library whose file has changed; raises LibraryAwayError if it is not there, and creates nothing."""
    # first, because SQLite deletes files by name when the last connection closes: they would be those of the new disk
    known.close()
    try:
        opened = library.Library.open(known.folder, create=False)
    except NotFoundError:
        raise away_error(known.folder) from None
    if opened.place != known.place and not opened.revision:
        # made by another process while the disk was away, and never used
        opened.close()
        raise away_error(known.folder)
    _log.warning("the library was opened again, because its disk was away or full")
    return opened


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
