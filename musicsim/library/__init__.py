"""The store: songs, files, tags, plays, playlists, models and jobs in one folder.

Names are looked up when they are asked for: worker processes need none of them, and the database alone takes half
a second to import.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
