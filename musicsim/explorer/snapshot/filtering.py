"""Evaluate filters, for searches, maps and playlists alike."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TypeVar

import numpy as np

from musicsim._arrays import BoolArray
from musicsim.audio import DESCRIPTORS, KEYS, MODES
from musicsim.errors import NotFoundError
from musicsim.explorer.requests import query
from musicsim.explorer.requests.filters import Filters
from musicsim.explorer.requests.options import Option, list_changes, options_of
from musicsim.explorer.snapshot.conditions import All, Among, AnyOf, Condition, Listed, Not, Within
from musicsim.explorer.snapshot.fields import has_genre, has_tag, match_field
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.explorer.snapshot.words import QueryPart, Words, known_fields, parse_words, suggest_words
from musicsim.public import is_public, refuse_visitors
from musicsim.wording import count

_VALUES = {"years": "a year", **{name: one.value or f"a known {name}" for name, one in DESCRIPTORS.items()}}

F = TypeVar("F", bound=Filters)


def filter_rows(snapshot: Snapshot, filters: Filters) -> BoolArray | None:
    """Return a mask of matching rows (n_indexed,); None for an empty filter. Raises NotFoundError for unknown words."""
    condition = condition_of(snapshot, filters)
    return None if condition is None else condition.rows(snapshot.columns)


def condition_of(snapshot: Snapshot, filters: Filters) -> All | None:
    """Convert a filter to a condition; None for an empty filter. Raises the errors of :func:`filter_rows`."""
    if filters.folders or filters.no_folders:
        refuse_visitors()
    choices = {"artist": filters.artists, "folder": filters.folders, "key": filters.keys, "mode": filters.modes}
    parts: list[Condition] = [Among(column, names) for column, names in choices.items() if names]
    if filters.genres:
        parts.append(has_genre(snapshot, filters.genres))
    if filters.no_folders:
        starts = tuple(os.path.join(folder, "") for folder in filters.no_folders)
        names = (name for name in snapshot.columns.folder.names if os.path.join(name, "").startswith(starts))
        parts.append(Not(Among("folder", frozenset(names))))
    if filters.no_artists:
        parts.append(Not(Among("artist", filters.no_artists)))
    if filters.tags:
        parts.append(has_tag(snapshot, filters.tags))
    if filters.no_tags:
        parts.append(Not(has_tag(snapshot, filters.no_tags)))
    if filters.years is not None:
        first, last = filters.years
        parts.append(Within("year", max(first, 1), last))  # 0 means an unknown year
    if filters.words:
        parts += _fits_words(snapshot, filters.words)
    for name in ("duration_s", *DESCRIPTORS):
        bounds = getattr(filters, name)
        if bounds is not None:
            parts.append(Within(name, *bounds))
    return All(tuple(parts)) if parts else None


def describe_unknown(snapshot: Snapshot, filters: Filters) -> list[str]:
    """Return a note for each range that leaves out songs because their value is unknown."""
    notes = []
    for name, words in _VALUES.items():
        if getattr(filters, name) is not None:
            is_unknown = snapshot.columns.year == 0 if name == "years" else np.isnan(getattr(snapshot.columns, name))
            if n := int(np.count_nonzero(is_unknown)):
                notes.append(f"{count(n, 'song')} without {words} left out")
    return notes


@dataclass(frozen=True, slots=True)
class Obstacle:
    """The filter that excludes the most songs: without it, `n_songs` match."""

    option: Option
    words: str  # the words to leave out, if the filter is `words`
    n_songs: int


def list_filters(filters: Filters) -> list[Option]:
    """Return the options of the filters that are set."""
    options = options_of(Filters)
    return [options[name] for name in list_changes(filters) if name in options]


def find_obstacle(snapshot: Snapshot, filters: F, count: Callable[[F], int]) -> Obstacle | None:
    """Return the filter, or part of the words, without which the most songs match; None if no single one is enough.

    `count` returns the number of songs that match a filter, or a request that contains one.
    """
    without = []
    for option in list_filters(filters):
        if option.field == "words":
            words = parse_words(snapshot, filters.words)
            for place, part in enumerate(words.parts):
                n_songs = count(replace(filters, words=words.drop_part(place)))
                without.append(Obstacle(option, part.text, n_songs))
        else:
            without.append(Obstacle(option, "", count(replace(filters, **{option.field: option.default}))))
    obstacle = max(without, key=attrgetter("n_songs"), default=None)
    return obstacle if obstacle and obstacle.n_songs else None


@dataclass(frozen=True, slots=True)
class FilterChoices:
    """Possible values of filters, keyed by field; fields without a choice are left out."""

    names: dict[str, list[str]]  # genres and tags by descending number of songs, keys from C to B, others by name
    ranges: dict[str, tuple[int, int]]


def filter_choices(snapshot: Snapshot) -> FilterChoices:
    """Return the values by which a snapshot can be filtered."""
    columns = snapshot.columns
    artists = sorted(columns.artist.counts(), key=str.casefold)
    folders = [] if is_public() else sorted(columns.folder.counts())
    genres = columns.genre.counts()
    tags = [name for name, _ in (genres + snapshot.library.listening.tag_counts()).most_common()]
    keys, modes = columns.key.counts(), columns.mode.counts()
    names = {
        "artists": artists,
        "no_artists": artists,
        "genres": [name for name, _ in genres.most_common()],
        "tags": tags,
        "no_tags": tags,
        "folders": folders,
        "no_folders": folders,
        "keys": [key for key in KEYS if key in keys],
        "modes": [mode for mode in MODES if mode in modes],
    }
    years = columns.year[columns.year > 0]
    ranges = {
        "years": (int(years.min(initial=9999)), int(years.max(initial=0))),
        "duration_s": (0, int(columns.duration_s.max(initial=0.0)) + 1),
    }
    for name in DESCRIPTORS:
        values = getattr(columns, name)
        values = values[np.isfinite(values)]
        ranges[name] = (int(np.floor(values.min())), int(np.ceil(values.max()))) if len(values) else (0, 0)
    return FilterChoices(
        {field: choices for field, choices in names.items() if choices},
        {field: (first, last) for field, (first, last) in ranges.items() if first < last},
    )


def _fits_words(snapshot: Snapshot, text: str) -> list[Condition]:
    words = parse_words(snapshot, text)
    if words.unknown:
        raise NotFoundError(f"{snapshot.library.name}: {_explain_unknown(snapshot, words)}")
    return [_condition_of_part(snapshot, part) for part in words.parts]


def _explain_unknown(snapshot: Snapshot, words: Words) -> str:
    """Say which terms of a query are not understood, and what to write instead."""
    sentences = [problem.sentence for problem in words.problems]
    if words.strange:
        sentences.append(
            f"nothing matches {', '.join(f'“{word}”' for word in words.strange)}. "
            f"Leave it out. Some words that this library knows: {', '.join(suggest_words(snapshot))}."
        )
    fields = known_fields()
    if any(":" in word or word in fields for word in words.strange):
        sentences.append(f"A field has a colon and a value, such as tempo:120.. The fields are {', '.join(fields)}.")
    return " ".join(sentences)


def _condition_of_part(snapshot: Snapshot, part: QueryPart) -> Condition:
    condition: Condition | None
    if part.parts:
        inner = tuple(_condition_of_part(snapshot, one) for one in part.parts)
        condition = AnyOf(inner) if part.is_any else All(inner)
    elif part.condition is not None:
        condition = Listed(match_condition(snapshot, part.condition))
    elif (ids := part.find_songs()) is not None:
        condition = Listed(np.isin(snapshot.row_ids, ids))
    else:
        condition = condition_of(snapshot, part.filters)
    assert condition is not None
    return Not(condition) if part.is_not else condition


def match_condition(snapshot: Snapshot, condition: query.FieldCondition, now: float | None = None) -> BoolArray:
    """Return the mask (n_indexed,) of the songs that meet one condition of a query.

    `now` is the time in seconds since 1970; by default, this moment. Raises NotFoundError for unknown words and songs.
    """
    if condition.field != "words":
        return match_field(snapshot, condition, now)
    mask = filter_rows(snapshot, Filters(words=str(condition.value[0])))
    if mask is None:  # a text without a word accepts every song
        mask = np.ones(snapshot.n_indexed, dtype=bool)
    return ~mask if condition.is_negative else mask
