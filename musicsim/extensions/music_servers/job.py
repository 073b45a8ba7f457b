"""The job that syncs a music server and downloads its songs."""

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
    """Sync a server; with `fetch`, also analyze its songs that are not in the library, and update the model."""
    report = sync(library, connection, progress, everything=everything)
    if not fetch or not report.n_unmatched:
        return report, None
    fetched = fetch_missing(library, connection, progress)
    if fetched.n_added and not fetched.is_cancelled:
        fetched.is_cancelled = not bring_model_up(library, progress)
    return report, fetched


def run(library: Library, *, name: str, fetch: bool = False, progress: Any) -> bool:
    """Sync a server, given by name; return False if the job was canceled."""
    report, fetched = sync_and_fetch(library, Connections(library).get(name), fetch=fetch, progress=progress)
    progress.outcome = report.summary
    if fetched is None:
        return True
    progress.outcome += f" · {fetched.n_added:,} added · {len(fetched.failures):,} failed"
    for failure in fetched.failures:
        _log.warning("%s", failure)
    return not fetched.is_cancelled
