"""Faults of a library: lost or inconsistent data."""

from pathlib import Path

from musicsim import LIBRARY_FILE
from musicsim.errors import MusicsimError
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.library import Library

__all__ = ["faults", "faults_of", "said"]


def faults(library: Library) -> list[str]:
    """Return the faults of a library whose songs all have audio features, as sentences; empty if it is whole."""
    with library.engine.connect() as connection:
        found = [connection.exec_driver_sql("PRAGMA integrity_check").scalar()]
        found = [f"{LIBRARY_FILE}: {line}" for line in found if line != "ok"]
        if connection.exec_driver_sql("PRAGMA foreign_key_check").first() is not None:
            found.append(f"{LIBRARY_FILE}: a row refers to one that is not there")
    for song in library.songs():
        try:
            if not len(library.frame_files.frames(song.content_hash).mfcc):
                found.append(f"song {song.id} has no frames")
        except (MusicsimError, OSError, ValueError) as error:
            found.append(f"song {song.id}: {error}")
    for record in library.models.all(retired=True):
        if not library.models.is_whole(record):
            found.append(f"the model {record.name!r} lacks rows")
        try:
            SimilarityModel.load(library.models.path(record.id))
        except MusicsimError as error:
            found.append(f"the model {record.name!r}: {error}")
    return found


def faults_of(folder: Path) -> list[str]:
    """Return the faults of a closed library; failing to open is one fault."""
    try:
        with Library.open(folder, create=False) as library:
            return faults(library)
    except MusicsimError as error:
        return [f"it cannot be opened: {error}"]


def said(folder: Path) -> dict[str, object]:
    """Return the data of a library that no kill may destroy: songs, data about them, and the models."""
    with Library.open(folder, create=False) as library:
        of = {song.id: song.content_hash for song in library.songs(missing=True)}
        plays = library.plays()
        return {
            "songs": sorted(of.values()),
            "plays": int(plays.count.sum()),
            "imports": len(library.listening.imports()),
            "lists": sorted((p.name, tuple(of[i] for i in p.song_ids)) for p in library.playlists()),
            "answers": sorted((a.listener, tuple(of[i] for i in a.song_ids)) for a in library.judgments.answers()),
            "edits": sorted((of[i], str(edits)) for i, edits in library.edits.all().items()),
            "models": sorted(record.name for record in library.models.all()),
        }
