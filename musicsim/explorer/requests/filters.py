"""What songs must be to be found or played."""

from dataclasses import dataclass

from musicsim.explorer.requests.options import option, settle

__all__ = ["Filters"]


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Conditions on songs; an empty one lets everything through.

    Years and seconds are inclusive; an unknown artist, genre or year passes only where none is asked for.
    :func:`musicsim.explorer.snapshot.filtering.passing` is the rule.
    """

    artists: frozenset[str] = option(
        frozenset(), "Only songs by these artists.", label="Artists", name="artist"
    )
    no_artists: frozenset[str] = option(
        frozenset(), "No songs by these artists.", label="Without these artists", name="no_artist"
    )
    genres: frozenset[str] = option(frozenset(), "Only songs of these genres.", label="Genres", name="genre")
    tags: frozenset[str] = option(
        frozenset(), "Only songs with one of these tags or genres.", label="Tags", name="tag"
    )
    no_tags: frozenset[str] = option(
        frozenset(), "No songs with any of these tags or genres.", label="Without these tags", name="no_tag"
    )
    folders: frozenset[str] = option(
        frozenset(), "Only songs in these folders.", label="Folders", name="folder"
    )
    years: tuple[int, int] | None = option(
        None, "First and last year; songs without a year are excluded.", label="Years"
    )
    duration_s: tuple[float, float] | None = option(
        None, "Shortest and longest song, in seconds.", label="Length in seconds", name="seconds"
    )

    def __post_init__(self) -> None:
        settle(self)
