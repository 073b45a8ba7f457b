"""The store: songs, files, tags, plays, playlists, models and jobs in one folder."""

from musicsim.library.file_store import Failure
from musicsim.library.ingest import AddReport, Progress
from musicsim.library.library import Library
from musicsim.library.store import SavedPlaylist, Song

__all__ = ["AddReport", "Failure", "Library", "Progress", "SavedPlaylist", "Song"]
