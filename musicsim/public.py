"""A demonstration for strangers: what only the owner of a library may do is refused.

With ``MUSICSIM_PUBLIC=1`` whoever uses this process is a visitor. Every action says who may take it, where it is
defined: :func:`owner_only` refuses visitors, :func:`visitor_may` lets them, and a module or package whose actions only
read says ``VISITORS_MAY = True`` for all of them. A test walks the services, routes and pages for one that says
nothing. Below them nothing can be written: databases are opened for reading, and :func:`refuse_writing` is asked before
every write.
"""

import atexit
import inspect
import logging
import os
import re
import shutil
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar

from musicsim.errors import OwnerOnlyError

_log = logging.getLogger(__name__)

Action = TypeVar("Action", bound=Callable[..., Any])

_REFUSAL = "This is a demonstration: only its owner can do this."
_NO_REASON = "This cannot be done now."
_SAYS = "__visitors_may__"
# an absolute path, or one from a home or a drive, where a word may begin
_PATH = re.compile(r"(?:^|[\s'\"“‘(\[=:])(?:~|[A-Za-z]:)?[/\\](?=\S)")


def is_public() -> bool:
    """Whether who uses this process is a visitor."""
    return os.environ.get("MUSICSIM_PUBLIC", "") not in ("", "0")


def refuse_visitors() -> None:
    """Raise OwnerOnlyError for a visitor."""
    if is_public():
        raise OwnerOnlyError(_REFUSAL)


def owner_only(action: Action) -> Action:
    """Declare that a function, a class or an endpoint is for the owner: visitors get an OwnerOnlyError."""
    if isinstance(action, type):
        setattr(action, "__init__", owner_only(action.__init__))  # type: ignore[misc]  # noqa: B010
        setattr(action, _SAYS, False)
        return action

    @wraps(action)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        refuse_visitors()
        return action(*args, **kwargs)

    @wraps(action)
    async def guarded_later(*args: Any, **kwargs: Any) -> Any:
        refuse_visitors()
        return await action(*args, **kwargs)

    found: Any = guarded_later if inspect.iscoroutinefunction(action) else guarded
    setattr(found, _SAYS, False)
    return found


def visitor_may(action: Action) -> Action:
    """Declare that visitors may call a function, a class or an endpoint."""
    setattr(action, _SAYS, True)
    return action


def visitors_may(action: object) -> bool | None:
    """What an action says of visitors; None where it says nothing."""
    said: bool | None = getattr(action, _SAYS, None)
    return said


def is_open(action: object) -> bool:
    """Whether an action is offered to who uses this process."""
    return not is_public() or visitors_may(action) is True


# --- what may be written --------------------------------------------------------------------------


@cache
def _temporary_folder() -> Path:
    import tempfile  # for visitors only, as hashes below: commands of the owner start sooner

    folder = Path(tempfile.mkdtemp(prefix="musicsim-public-")).resolve()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def working_folder(library: Path) -> Path:
    """Where what is needed for a while lies: a library's folder; for visitors one that goes with this process."""
    if not is_public():
        return library
    from hashlib import blake2b

    return _temporary_folder() / blake2b(os.fsencode(library), digest_size=8).hexdigest()


def kept_answers_folder() -> Path | None:
    """Where answers of visitors are kept, which the owner asks for by ``MUSICSIM_KEEP_ANSWERS``."""
    named = os.environ.get("MUSICSIM_KEEP_ANSWERS")
    return Path(named).expanduser().resolve() if named and is_public() else None


def refuse_writing(path: Path) -> None:
    """Raise OwnerOnlyError where a visitor's action would write to a path outside of the folders for it."""
    if not is_public():
        return
    resolved = path.resolve()
    if not any(resolved.is_relative_to(f) for f in (_temporary_folder(), kept_answers_folder()) if f):
        raise OwnerOnlyError(_REFUSAL)


# --- what may be said -----------------------------------------------------------------------------


def told(error: BaseException) -> str:
    """An error in words; where they name a path, visitors are not told them."""
    words = str(error)
    if is_public() and _PATH.search(words):
        _log.warning("what an error says was not shown: it names a path")
        return _NO_REASON
    return words
