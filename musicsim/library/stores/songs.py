"""Songs as the library returns them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from musicsim.library.db.columns import nobody, song_label
from musicsim.library.tags.artists import artist_group, stand_in_name


@dataclass(frozen=True, slots=True)
class Song:
    """One song of a library; None where nothing is known."""

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
    typical_s: float  # where the 30 seconds begin that are most like the whole song
    path: Path  # a file that holds it; of a song that is missing, the last one
    folder: str
    is_missing: bool  # whether no file holds it any more
    # what counts as "the same artist" in limits, spacing, colours and splits: the artist, else the folder,
    # else the song alone; never all unknown ones together
    group: str
    stand_in: str | None  # the folder's name where it stands for an unknown artist
    mb_recording_id: str | None = None
    # what can be heard: see musicsim.audio.Descriptors
    tempo: float | None = None
    key: str | None = None
    mode: str | None = None
    loudness: float | None = None
    brightness: float | None = None
    energy: float | None = None

    @property
    def by(self) -> str:
        """The artist, or what is said where none is known."""
        return self.artist or nobody(self.stand_in)

    @property
    def label(self) -> str:
        """Title and artist in one line."""
        return song_label(self.title, self.by)

    @property
    def key_words(self) -> str:
        """Key and mode in words; empty where they are not known."""
        return f"{self.key} {self.mode}" if self.key and self.mode else ""

    def matches(self, text: str) -> bool:
        """Whether title or artist hold the text, in any case."""
        return text.casefold() in f"{self.title} {self.artist or ''}".casefold()


def make_song(row: dict[str, Any], roots: Sequence[Path], library: Path) -> Song:
    """Make a song of a row; `roots` are the folders of music, `library` the folder of the library."""
    last = row.pop("last_path")
    is_missing = row["path"] is None
    if is_missing:
        row |= {"path": last, "folder": last.parent}
    group = artist_group(row["artist"], row["folder"], roots) or f"song:{row['id']}"
    stand_in = None if row["artist"] else stand_in_name(row["folder"], roots)
    row["folder"] = str(row["folder"])
    row["path"] = library / row["path"]  # in a snapshot file, files lie in the library's folder
    return Song(**row, is_missing=is_missing, group=group, stand_in=stand_in)
