"""In which order songs are listed."""

from collections.abc import Iterable
from dataclasses import dataclass

from musicsim import library
from musicsim.audio import HEARD
from musicsim.explorer.requests.options import option, settle

_SORT_KEYS = ("id", "title", "artist", "album", "year", "genre", "duration_s", "key", *HEARD)


@dataclass(frozen=True, kw_only=True)
class ListRequest:
    """What a list of songs is sorted by."""

    sort: str = option("id", "What to sort by; songs of which it is not known come last.", choices=_SORT_KEYS)
    descending: bool = option(False, "From the largest to the smallest.")

    def __post_init__(self) -> None:
        settle(self)


def in_order(songs: "Iterable[library.Song]", request: ListRequest) -> "list[library.Song]":
    """Songs as a request sorts them; text in any case, equal ones by id."""
    by_id = sorted(songs, key=lambda song: song.id)
    values = {song.id: getattr(song, request.sort) for song in by_id}
    known = [song for song in by_id if values[song.id] is not None]
    known.sort(key=lambda song: _comparable(values[song.id]), reverse=request.descending)
    return known + [song for song in by_id if values[song.id] is None]


def _comparable(value: str | float) -> str | float:
    return value.casefold() if isinstance(value, str) else value
