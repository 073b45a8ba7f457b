"""Imports of plays, tags and playlists: read files, match songs, show a preview, and write in one transaction.

::

    batch = read_listening(["my_spotify_data.zip"])
    planned = preview(library, batch)
    report = commit(library, planned, accepted=[p for p in planned.proposals if p.score > 0.95])
    library.listening.undo(report.import_id)
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
