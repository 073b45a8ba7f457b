"""Services for the pages, the command line and the HTTP interface: models, search, the map, playlists and jobs.

The names here are those that extensions may use; they are imported on first use.
"""

from musicsim.extras import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__, "app")
