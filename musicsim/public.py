"""Public demonstrations, in which everyone who uses this process is a visitor (``MUSICSIM_PUBLIC=1``).

Visitors may use only functions that are marked with :func:`visitor_may`. The function :func:`protect` makes Python
raise OwnerOnlyError before it changes a library's folder, starts a program, or connects to another server.
:func:`refuse_writing` guards all other folders. Other code therefore does not check permissions.
"""

import atexit
import logging
import os
import re
import shutil
import socket
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from musicsim.errors import OwnerOnlyError

_log = logging.getLogger(__name__)

Action = TypeVar("Action", bound=Callable[..., Any])

_REFUSAL = "This is a demonstration: only its owner can do this."
_NO_REASON = "This cannot be done now."
_MARK = "__visitor_may__"
# an absolute path, or one that starts with ~ or a drive letter, at the start of a word
_PATH = re.compile(r"(?:^|[\s'\"“‘(\[=:])(?:~|[A-Za-z]:)?[/\\](?=\S)")

# audit events that visitors may not cause; see `sys.audit`
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = frozenset(
    f"os.{name}" for name in ("chmod", "link", "mkdir", "remove", "rename", "rmdir", "symlink", "truncate", "utime")
) | {"shutil.rmtree"}
_READS_ONLY = re.compile(r"^file:.*[?&](?:mode=ro|immutable=1)(?:&|$)")  # SQLite addresses that are opened read-only
_STARTS = frozenset({"subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "os.startfile", "os.system"})


def is_public() -> bool:
    """Return True if this process serves visitors."""
    return os.environ.get("MUSICSIM_PUBLIC", "") not in ("", "0")


def visitor_may(action: Action) -> Action:
    """Allow visitors to use a route's endpoint, or a function that draws a page or a section."""
    setattr(action, _MARK, True)
    return action


def is_allowed(action: object) -> bool:
    """Return True if the current user may call an endpoint, or see a page or a section."""
    return not is_public() or getattr(action, _MARK, False)


def refuse_visitors() -> None:
    """Raise OwnerOnlyError if this process serves visitors."""
    if is_public():
        raise OwnerOnlyError(_REFUSAL)


_protected: set[str] = set()


def protect(folder: Path) -> None:
    """Keep visitors from changing a folder, starting programs and connecting to servers, except in C code."""
    if not _protected:
        sys.addaudithook(_refuse_event)
    _protected.add(os.path.join(os.path.realpath(folder), ""))


def _refuse_event(event: str, args: tuple[Any, ...]) -> None:
    if event == "open":
        if args[2] & _WRITES and _is_protected(args[0]):
            refuse_visitors()
    elif event in _CHANGES:
        if any(_is_protected(arg) for arg in args):
            refuse_visitors()
    elif event == "sqlite3.connect":
        address = os.fsdecode(args[0])
        is_uri = address.startswith("file:")
        if not _READS_ONLY.search(address) and _is_protected(unquote(urlsplit(address).path) if is_uri else address):
            refuse_visitors()
    elif event in _STARTS:
        refuse_visitors()
    elif event == "socket.connect" and sys.platform != "win32" and args[0].family != socket.AF_UNIX:
        refuse_visitors()  # on Windows, each event loop connects to itself


def _is_protected(path: object) -> bool:
    if not isinstance(path, str | bytes | os.PathLike):
        return False  # a file descriptor
    resolved = os.path.realpath(os.fsdecode(path))
    return os.path.join(resolved, "").startswith(tuple(_protected)) and not _is_visitors(Path(resolved))


@cache
def _temporary_folder() -> Path:
    import tempfile  # imported only for visitors, like hashlib, so that commands start faster

    folder = Path(tempfile.mkdtemp(prefix="musicsim-public-")).resolve()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def working_folder(library: Path) -> Path:
    """Return the folder for a library's temporary files; for visitors, one that is deleted when this process ends."""
    if not is_public():
        return library
    from hashlib import blake2b

    return _temporary_folder() / blake2b(os.fsencode(library), digest_size=8).hexdigest()


def find_answers_folder() -> Path | None:
    """Return the folder for visitors' answers, if the owner set ``MUSICSIM_KEEP_ANSWERS``."""
    folder = os.environ.get("MUSICSIM_KEEP_ANSWERS")
    return Path(folder).expanduser().resolve() if folder and is_public() else None


def refuse_writing(path: Path) -> None:
    """Raise OwnerOnlyError if visitors may not write to a path."""
    if is_public() and not _is_visitors(path.resolve()):
        raise OwnerOnlyError(_REFUSAL)


def _is_visitors(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in (_temporary_folder(), find_answers_folder()) if folder)


def safe_message(error: BaseException) -> str:
    """Return an error's message; visitors get a generic message if it contains a path."""
    message = str(error)
    if is_public() and _PATH.search(message):
        _log.warning("an error was not shown to a visitor, because it contains a path")
        return _NO_REASON
    return message
