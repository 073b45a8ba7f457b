"""Services for the pages, the command line and the HTTP interface: models, search, the map, playlists and jobs.

The names here are those that extensions may use; they are imported on first use.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
