"""Options for a search for similar songs, and for the order of listed songs."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from musicsim import library
from musicsim.audio import DESCRIPTORS
from musicsim.explorer.requests.filters import Filters
from musicsim.explorer.requests.options import option, settle

MAX_RESULTS = 200
_MAX_PART_S = 1e6  # longer than any file; larger numbers overflow
_SORT_KEYS = ("id", "title", "artist", "album", "year", "genre", "duration_s", "key", *DESCRIPTORS)


@dataclass(frozen=True, kw_only=True)
class SearchRequest(Filters):
    """Filters for the results of a search, and options for their number and order."""

    k: int = option(10, "Number of results.", label="Songs", flags=("-k",), min=1, max_asked=MAX_RESULTS)
    per_artist: int = option(
        2, "Max. songs per artist; 0 = no limit.", label="Max. songs per artist (0 = no limit)", min=0
    )
    by: str = option(
        "", "Compare songs only in this factor: timbre, rhythm, harmony, or a model that is joined with Sound.",
        label="Like this in", flags=("--factor",),
    )  # fmt: skip
    like: tuple[int, ...] = option((), "Id of another song that results should be like.", label="Also like")
    unlike: tuple[int, ...] = option((), "Id of a song that results should not be like.", label="Less like")
    part: tuple[float, float] | None = option(
        None, "Use only this part of the first example (start and end in seconds).",
        label="Only these seconds", min=0, max=_MAX_PART_S,
    )  # fmt: skip
    hub_reduction: bool | None = option(
        None, "Whether to demote hub songs, which are close to very many songs; the library's setting by default.",
        label="Hub reduction",
    )  # fmt: skip
    fits: tuple[int, ...] = option((), "Id of a result that fits; the list is reordered accordingly.")
    does_not_fit: tuple[int, ...] = option((), "Id of a result that does not fit.", flags=("--not",))

    def __post_init__(self) -> None:
        settle(self)
        for yes, no, states in (
            (self.fits, self.does_not_fit, "as fitting and as not fitting"), (self.like, self.unlike, "like and unlike")
        ):  # fmt: skip
            if both := set(yes) & set(no):
                raise ValueError(f"song {min(both)} is marked both {states}: choose one.")


@dataclass(frozen=True, kw_only=True)
class ListRequest:
    """Order of a list of songs."""

    sort: str = option("id", "Sort by this value; songs without the value come last.", choices=_SORT_KEYS)
    descending: bool = option(False, "Sort in descending order.")

    def __post_init__(self) -> None:
        settle(self)


def sort_songs(songs: "Iterable[library.Song]", request: ListRequest) -> "list[library.Song]":
    """Return songs sorted as requested, ignoring case; equal values are sorted by id."""

    def value(song: "library.Song") -> Any:
        value = getattr(song, request.sort)
        return value.casefold() if isinstance(value, str) else value

    by_id = sorted(songs, key=lambda song: song.id)
    known = [song for song in by_id if value(song) is not None]
    return sorted(known, key=value, reverse=request.descending) + [song for song in by_id if value(song) is None]
