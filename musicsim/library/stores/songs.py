"""Songs as objects."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from musicsim.audio import Descriptors
from musicsim.library.db.columns import nobody, song_label
from musicsim.library.stores.files import is_below
from musicsim.library.tags.artists import artist_group, stand_in_name
from musicsim.public import is_public

_ELSEWHERE = ".elsewhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class Song(Descriptors):
    """One song in a library, with its descriptors; None means unknown."""

    id: int
    title: str
    artist: str | None
    album_artist: str | None
    album: str | None
    track: int | None
    year: int | None
    genre: str | None
    duration_s: float
    notes: str
    content_hash: str
    feature_version: int
    typical_s: float  # start of the 30 seconds that are most like the whole song
    path: Path  # one of its files, or the last known file of a missing song; see `make_song` for visitors
    folder: str
    is_missing: bool  # True if none of its files exists anymore
    # shared by songs of the same artist, for limits, spacing, colors and splits. If the artist is unknown, the folder
    # determines the group; if the folder is generic, the song forms its own group.
    group: str
    stand_in: str | None  # name of the folder that is shown for an unknown artist
    place: str  # the folder, relative to the music folder
    mb_recording_id: str | None = None

    @property
    def by(self) -> str:
        """The artist, or the words shown for an unknown artist, which may be empty."""
        return self.artist or nobody(self.stand_in)

    @property
    def byline(self) -> str:
        """The artist, or the folder if the artist is unknown; visitors see at most the folder's name."""
        return self.by if self.artist or is_public() else self.place

    @property
    def label(self) -> str:
        return song_label(self.title, self.by)

    @property
    def key_words(self) -> str:
        """Key and mode, such as "A minor"; empty if unknown."""
        return f"{self.key} {self.mode}" if self.key and self.mode else ""

    def matches(self, text: str) -> bool:
        """Return whether the title or artist contains `text`, ignoring case."""
        return text.casefold() in f"{self.title} {self.artist or ''}".casefold()


def make_song(row: dict[str, Any], roots: Sequence[Path], library: Path) -> Song:
    """Make a song from a row; `roots` are the music folders, and `library` is the library's folder.

    Visitors get a path that does not exist if the file is elsewhere, because a backup can name any file.
    """
    last = row.pop("last_path")
    is_missing = row["path"] is None
    if is_missing:
        row |= {"path": last, "folder": last.parent}
    group = artist_group(row["artist"], row["folder"], roots) or f"song:{row['id']}"
    stand_in = None if row["artist"] else stand_in_name(row["folder"], roots)
    folder = row["folder"]
    root = next((root for root in roots if folder != root and folder.is_relative_to(root)), folder.parent)
    row["folder"] = str(folder)
    path = row["path"] = library / row["path"]  # paths of a snapshot file are relative to the library
    if is_public() and not any(is_below(Path(os.path.normpath(path)), place) for place in (*roots, library)):
        row["path"] = library / _ELSEWHERE
    place = str(folder.relative_to(root))
    return Song(**row, is_missing=is_missing, group=group, stand_in=stand_in, place=place)
