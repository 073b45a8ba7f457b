"""Importing what people listened to: files are read, matched to the library's songs, looked at, and written whole.

::

    batch = read_listening(["my_spotify_data.zip"])
    seen = preview(library, batch)
    report = commit(library, seen, accepted=[p for p in seen.proposals if p.score > 0.95])
    undo(library, report.import_id)
"""

from musicsim.library.importing.importer import (
    Absent,
    ImportReport,
    Preview,
    SeenList,
    accept,
    commit,
    import_files,
    match_waiting,
    preview,
    refuse,
    undo,
    waiting_proposals,
)
from musicsim.library.importing.matching import Matcher, Proposal
from musicsim.library.importing.reading import FORMATS, ME, read_listening
from musicsim.library.importing.records import Batch, ImportStoppedError, NamedSong, Skipped, day_of
from musicsim.library.importing.sources import READ_SUFFIXES

__all__ = [
    "FORMATS",
    "ME",
    "READ_SUFFIXES",
    "Absent",
    "Batch",
    "ImportReport",
    "ImportStoppedError",
    "Matcher",
    "NamedSong",
    "Preview",
    "Proposal",
    "SeenList",
    "Skipped",
    "accept",
    "commit",
    "day_of",
    "import_files",
    "match_waiting",
    "preview",
    "read_listening",
    "refuse",
    "undo",
    "waiting_proposals",
]
