"""The walk of each model, which all pages and requests share until the library changes."""

import threading
from functools import lru_cache

from musicsim.explorer.playlists.walk import Walk
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Library

_MAX_WALKS = 4
_lock = threading.Lock()


class _Slot:
    """The place of a walk; requests that need it at the same time wait for one computation."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._walk: Walk | None = None

    def fill(self, snapshot: Snapshot) -> Walk:
        with self._lock:
            if self._walk is None:
                self._walk = Walk(snapshot)
            return self._walk


@lru_cache(_MAX_WALKS)
def _slot(_library: Library, _revision: int, _model_id: str | None) -> _Slot:
    return _Slot()


def share_walk(snapshot: Snapshot) -> Walk:
    """Return the walk that generates playlists from a snapshot; the first call per revision and model computes it."""
    with _lock:
        slot = _slot(snapshot.library, snapshot.revision, snapshot.record.id if snapshot.record else None)
    return slot.fill(snapshot)
