"""Bringing a library up to a music server: its songs, what was done there, and the songs that have no file here."""

import logging
from typing import Any

from musicsim.explorer.refresh.add_music import bring_model_up
from musicsim.extensions.music_servers.connections import Connection, Connections
from musicsim.extensions.music_servers.fetch import FetchReport, fetch_missing
from musicsim.extensions.music_servers.sync import SyncReport, sync
from musicsim.library import Library
from musicsim.progress import Progress

_log = logging.getLogger(__name__)


def sync_and_fetch(
    library: Library, connection: Connection, *, everything: bool = False, fetch: bool = False, progress: Progress
) -> tuple[SyncReport, FetchReport | None]:
    """Sync a server; with `fetch`, also analyse the songs that are not here, and bring the model up to them.

    Raises ServerError if the server fails, Stopped if it was stopped during the sync.
    """
    synced = sync(library, connection, progress, everything=everything)
    if not fetch or not synced.n_unmatched:
        return synced, None
    fetched = fetch_missing(library, connection, progress)
    if fetched.n_added and not fetched.is_cancelled:
        fetched.is_cancelled = not bring_model_up(library, progress)
    return synced, fetched


def run(library: Library, *, name: str, fetch: bool = False, progress: Any) -> bool:
    """Sync the server of a name; with `fetch` also download the songs that are not in the library."""
    synced, fetched = sync_and_fetch(library, Connections(library).get(name), fetch=fetch, progress=progress)
    progress.outcome = synced.words
    if fetched is not None:
        progress.outcome += f" · {fetched.n_added:,} added · {len(fetched.failures):,} failed"
        for failure in fetched.failures:
            _log.warning("%s", failure)
    return fetched is None or not fetched.is_cancelled
