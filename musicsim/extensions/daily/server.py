"""Daily mixes in the app's server: over HTTP for the owner only, and made automatically while the app is running."""

import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import sqlalchemy as sa
from fastapi import APIRouter

from musicsim import LIBRARY_FILE
from musicsim.api import LibraryQuery
from musicsim.errors import MusicsimError
from musicsim.explorer import default_folder, open_library
from musicsim.extensions.daily.mixes import render_daily
from musicsim.extensions.daily.options import read_settings
from musicsim.extensions.daily.watching import Watcher, start_mixes

_log = logging.getLogger(__name__)
WAKE_S = 5.0
"""Seconds between two checks of the settings; a check takes less than a millisecond."""
router = APIRouter()


@router.get(
    "/daily",
    response_description=(
        "an object with `settings`, and `run` with `day` and `mixes`, each with `name`, `why` and `songs`; `run` is "
        "null before the first mixes"
    ),
)
def read_mixes(library: LibraryQuery = None) -> dict[str, Any]:
    """Return the settings and the last daily mixes."""
    return render_daily(open_library(library))


@router.post("/daily", response_description="an object with `job`, the id of the job", status_code=202)
def make_mixes(library: LibraryQuery = None) -> dict[str, int]:
    """Start the job that makes today's mixes. The response contains the job's id; see `/jobs/{job}` for progress."""
    return {"job": start_mixes(open_library(library))}


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
            if not settings.watched and not settings.has_mixes(library):
                continue
            if watcher is None or watcher.library is not library:
                watcher = Watcher(library, obeys_switches=True)
            words = watcher.step(settings).words
        except (MusicsimError, OSError, sa.exc.SQLAlchemyError) as error:
            words = f"the daily check failed: {error}"
        if words != last:
            _log.info("%s", words)
            last = words
