"""The options for writing file tags."""

from dataclasses import dataclass

from musicsim.explorer.requests.filters import Filters
from musicsim.explorer.requests.options import option, settle

FIELDS = {
    "tempo": "Tempo",
    "key": "Key",
    "replaygain": "ReplayGain",
    "region": "Region of the map",
    "mood": "Mood",
}
"""Labels of the properties that can be written, keyed by their names on the command line."""


@dataclass(frozen=True, kw_only=True)
class TagRequest(Filters):
    """The songs whose files are changed; without conditions, all songs."""

    songs: frozenset[int] = option(frozenset(), "Only these songs, by id; can be repeated.", name="song")
    replace: bool = option(False, "Also replace values that the files already have. By default, they stay.")

    def __post_init__(self) -> None:
        settle(self)
