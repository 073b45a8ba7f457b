"""Words of lyrics for searches and for the edges of the playlist walk."""

from musicsim._arrays import Int64Array
from musicsim.extensions.lyrics.reading import read_lyrics
from musicsim.extensions.lyrics.store import LyricsStore, WordTable
from musicsim.library import Library
from musicsim.progress import Progress


def read(library: Library, progress: Progress) -> None:
    """Read the lyrics of new and changed files."""
    read_lyrics(library, progress=progress)


def table(library: Library) -> WordTable:
    """Return the words of all songs, without rare and common ones."""
    return LyricsStore(library).table()


def find_songs(library: Library, word: str) -> tuple[str, Int64Array] | None:
    """Find the songs whose lyrics contain a word; return a description of the filter and their ids."""
    ids = LyricsStore(library).songs_saying(word)
    return (f"lyrics with “{word}”", ids) if len(ids) else None
