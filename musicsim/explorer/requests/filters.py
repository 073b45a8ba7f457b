"""Conditions on the songs of a search or playlist."""

from dataclasses import dataclass

from musicsim.audio import DESCRIPTORS, KEYS, MODES
from musicsim.explorer.requests.options import option, settle


def _range_of(name: str) -> tuple[float, float] | None:
    """Return the option for a range of a descriptor."""
    descriptor = DESCRIPTORS[name]
    (upper, lower), unit, label = descriptor.words, descriptor.familiar_unit, name.capitalize()
    label = f"{label} in {unit}" if unit else f"{label}, {lower} to {upper}"
    default: tuple[float, float] | None = option(None, f"Minimum and maximum {name}. {descriptor.about}", label=label)
    return default


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Conditions on songs; an empty condition accepts every song.

    Ranges are inclusive. A song without a value, such as an artist or a year, fails every condition on that value.
    :func:`musicsim.explorer.snapshot.filtering.filter_rows` applies the conditions.
    """

    words: str = option(
        "", "A query that songs must match. It can contain words, such as tags, artists, years (1960s), keys (A "
        "minor), lyrics (about rain), slow, fast, calm, dark or long, and fields: artist:miles, bpm:110..130 or "
        "played:never. “-” excludes what follows.",
        label="Words",
    )  # fmt: skip
    artists: frozenset[str] = option(frozenset(), "Only songs by these artists.", label="Artists", name="artist")
    no_artists: frozenset[str] = option(
        frozenset(), "No songs by these artists.", label="Without these artists", name="no_artist"
    )
    genres: frozenset[str] = option(frozenset(), "Only songs of these genres.", label="Genres", name="genre")
    tags: frozenset[str] = option(frozenset(), "Only songs with one of these tags or genres.", label="Tags", name="tag")
    no_tags: frozenset[str] = option(
        frozenset(), "No songs with any of these tags or genres.", label="Without these tags", name="no_tag"
    )
    folders: frozenset[str] = option(frozenset(), "Only songs in these folders.", label="Folders", name="folder")
    no_folders: frozenset[str] = option(
        frozenset(), "No songs in these folders or their subfolders.", label="Without these folders", name="no_folder"
    )
    years: tuple[int, int] | None = option(
        None, "First and last year; songs without a year are excluded.", label="Years"
    )
    duration_s: tuple[float, float] | None = option(
        None, "Minimum and maximum length in seconds.", label="Length in seconds", name="seconds"
    )
    keys: frozenset[str] = option(
        frozenset(), f"Only songs in these keys: {', '.join(KEYS)}.", label="Keys", name="key"
    )
    modes: frozenset[str] = option(frozenset(), f"Only songs in {' or in '.join(MODES)}.", label="Modes", name="mode")
    tempo: tuple[float, float] | None = _range_of("tempo")
    loudness: tuple[float, float] | None = _range_of("loudness")
    brightness: tuple[float, float] | None = _range_of("brightness")
    energy: tuple[float, float] | None = _range_of("energy")
    steadiness: tuple[float, float] | None = _range_of("steadiness")

    def __post_init__(self) -> None:
        settle(self)
