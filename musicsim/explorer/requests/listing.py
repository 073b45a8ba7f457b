"""Order of listed songs."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from musicsim import library
from musicsim.audio import HEARD
from musicsim.explorer.requests.options import option, settle

_SORT_KEYS = ("id", "title", "artist", "album", "year", "genre", "duration_s", "key", *HEARD)


@dataclass(frozen=True, kw_only=True)
class ListRequest:
    """Order of a list of songs."""

    sort: str = option("id", "Sort by this value; songs without it come last.", choices=_SORT_KEYS)
    descending: bool = option(False, "From the largest to the smallest.")

    def __post_init__(self) -> None:
        settle(self)


def sort_songs(songs: "Iterable[library.Song]", request: ListRequest) -> "list[library.Song]":
    """Return songs sorted as requested, ignoring case; ties by id."""

    def value(song: "library.Song") -> Any:
        value = getattr(song, request.sort)
        return value.casefold() if isinstance(value, str) else value

    by_id = sorted(songs, key=lambda song: song.id)
    known = [song for song in by_id if value(song) is not None]
    return sorted(known, key=value, reverse=request.descending) + [song for song in by_id if value(song) is None]
