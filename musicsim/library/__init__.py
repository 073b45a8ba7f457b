"""The store: songs, files, tags, plays, playlists, models and jobs in one folder.

Names are looked up when they are asked for: worker processes need none of them, and the database alone takes half
a second to import.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from musicsim.library.library import Library
    from musicsim.library.scan.ingest import AddReport, Progress
    from musicsim.library.store import Song
    from musicsim.library.stores.failure import Failure
    from musicsim.library.stores.playlists import SavedPlaylist

__all__ = ["AddReport", "Failure", "Library", "Progress", "SavedPlaylist", "Song"]

_HOMES = {
    "AddReport": "scan.ingest",
    "Failure": "stores.failure",
    "Library": "library",
    "Progress": "scan.ingest",
    "SavedPlaylist": "stores.playlists",
    "Song": "store",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
