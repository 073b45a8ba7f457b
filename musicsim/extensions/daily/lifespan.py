"""The automatic work while the app is running, in the library with which it was started."""

import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import sqlalchemy as sa

from musicsim import LIBRARY_FILE
from musicsim.errors import MusicsimError
from musicsim.explorer.libraries import default_folder, open_library
from musicsim.extensions.daily.options import read_settings
from musicsim.extensions.daily.watching import Watcher

_log = logging.getLogger(__name__)
WAKE_S = 5.0
"""Seconds between two checks of the settings; a check takes less than a millisecond."""


@asynccontextmanager
async def keep_watching() -> AsyncIterator[None]:
    """Watch in a thread until the app's server stops; jobs that were started keep running."""
    is_over = threading.Event()
    threading.Thread(target=_watch, args=(is_over,), name="daily", daemon=True).start()
    try:
        yield
    finally:
        is_over.set()


def _watch(is_over: threading.Event) -> None:
    watcher: Watcher | None = None
    last = ""
    while not is_over.wait(WAKE_S):
        try:
            if not (default_folder() / LIBRARY_FILE).exists():
                continue
            library = open_library()
            settings = read_settings(library)
            if not settings.automatic:
                continue
            if watcher is None or watcher.library is not library:
                watcher = Watcher(library)
            words = watcher.step(settings).words
        except (MusicsimError, OSError, sa.exc.SQLAlchemyError) as error:
            words = f"the daily check failed: {error}"
        if words != last:
            _log.info("%s", words)
            last = words
