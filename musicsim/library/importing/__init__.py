"""Importing what people listened to: files are read, matched to the library's songs, looked at, and written whole.

::

    batch = read_listening(["my_spotify_data.zip"])
    seen = preview(library, batch)
    report = commit(library, seen, accepted=[p for p in seen.proposals if p.score > 0.95])
    undo(library, report.import_id)
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
