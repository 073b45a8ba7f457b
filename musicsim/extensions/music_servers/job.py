"""Bringing a library up to a music server: its songs, what was done there, and the songs that have no file here."""

import logging
from typing import Any

from musicsim.explorer.progress import teller
from musicsim.explorer.refresh.add_music import Report, bring_model_up
from musicsim.extensions.music_servers.connections import Connection, Connections
from musicsim.extensions.music_servers.fetch import FetchReport, fetch_missing
from musicsim.extensions.music_servers.sync import SyncReport, sync
from musicsim.library import Library

_log = logging.getLogger(__name__)


def sync_and_fetch(
    library: Library, connection: Connection, *, everything: bool = False, fetch: bool = False, report: Report
) -> tuple[SyncReport, FetchReport | None]:
    """Sync a server; with `fetch`, also analyse the songs that are not here, and bring the model up to them.

    `report` takes message, done, total and failed by name; True stops.

    Raises ServerError if the server fails, Stopped if it was stopped during the sync.
    """
    synced = sync(library, connection, teller(report), everything=everything)
    if not fetch or not synced.n_unmatched:
        return synced, None
    fetched = fetch_missing(library, connection, report)
    if fetched.n_added and not fetched.is_cancelled:
        fetched.is_cancelled = not bring_model_up(library, report)
    return synced, fetched


def run(library: Library, *, name: str, fetch: bool = False, report: Any) -> bool:
    """Sync the server of a name; with `fetch` also download the songs that are not in the library."""
    synced, fetched = sync_and_fetch(library, Connections(library).get(name), fetch=fetch, report=report)
    report.outcome = synced.words
    if fetched is not None:
        report.outcome += f" · {fetched.n_added:,} added · {len(fetched.failures):,} failed"
        for failure in fetched.failures:
            _log.warning("%s", failure)
    return fetched is None or not fetched.is_cancelled
