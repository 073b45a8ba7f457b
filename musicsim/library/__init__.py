"""The library: songs, files, tags, plays, playlists, models and jobs in one folder.

Names are imported on first use: worker processes do not need them, and importing the database alone takes half a
second.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
