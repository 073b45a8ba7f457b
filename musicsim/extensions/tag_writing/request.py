"""The options for writing file tags."""

from dataclasses import dataclass
from enum import StrEnum

from musicsim.explorer import Filters, option, settle


class Property(StrEnum):
    """A property of a song that can be written."""

    TEMPO = "tempo"
    KEY = "key"
    REPLAYGAIN = "replaygain"
    REGION = "region"
    MOOD = "mood"


@dataclass(frozen=True, kw_only=True)
class TagRequest(Filters):
    """The songs whose files are changed; without conditions, all songs."""

    songs: frozenset[int] = option(frozenset(), "Only these songs, by id; can be repeated.", name="song")
    replace: bool = option(False, "Also replace values that the files already have. By default, they stay.")

    def __post_init__(self) -> None:
        settle(self)
