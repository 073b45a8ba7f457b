"""The library: songs, files, tags, plays, playlists, models and jobs in one folder; names are imported on first use."""

from musicsim.extras import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__, "app")
