"""The walk of each model, which all pages and requests share until the library changes."""

import logging
import threading
from functools import lru_cache

from musicsim.explorer.playlists.walk import Walk
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Library

_MAX_WALKS = 4
_lock = threading.Lock()
_one_in_background = threading.Lock()
_log = logging.getLogger(__name__)


class _Slot:
    """The place of a walk; requests that need it at the same time wait for one computation."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._walk: Walk | None = None
        self._is_being_filled = False

    def fill_in_background(self, snapshot: Snapshot) -> Walk | None:
        """Return the walk if it is ready; otherwise, start to compute it and return None."""
        with _lock:
            if self._walk is None and not self._is_being_filled:
                self._is_being_filled = True
                threading.Thread(target=self._fill_quietly, args=(snapshot,), name="walk", daemon=True).start()
        return self._walk

    def _fill_quietly(self, snapshot: Snapshot) -> None:
        try:
            with _one_in_background:
                self.fill(snapshot)
        except Exception:  # whoever waits for the walk gets the error
            _log.warning("the walk could not be computed in the background", exc_info=True)
        finally:
            self._is_being_filled = False

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
    return _slot_of(snapshot).fill(snapshot)


def find_walk(snapshot: Snapshot) -> Walk | None:
    """Return the walk if it is ready; otherwise, start to compute it in the background, and return None."""
    return _slot_of(snapshot).fill_in_background(snapshot)


def _slot_of(snapshot: Snapshot) -> _Slot:
    with _lock:
        return _slot(snapshot.library, snapshot.revision, snapshot.record.id if snapshot.record else None)
