"""Which songs pass a filter: the one rule of searches, maps and playlists, whoever asks for them."""

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from musicsim._arrays import BoolArray, Float32Array
from musicsim.audio import HEARD, KEYS, MODES
from musicsim.errors import NotFoundError
from musicsim.explorer.requests.filters import Filters
from musicsim.explorer.snapshot.conditions import All, Among, Condition, Listed, Not, Within
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.explorer.snapshot.words import Part, understood
from musicsim.library.db.columns import Labels
from musicsim.library.stores.genres import genre_key
from musicsim.public import is_public, refuse_visitors


def passing(snapshot: Snapshot, filters: Filters) -> BoolArray | None:
    """Which rows pass, bool (n_indexed,); None where the filter is empty.

    Raises NotFoundError if words mean nothing to the library.
    """
    condition = condition_of(snapshot, filters)
    return None if condition is None else condition.rows(snapshot.columns)


def condition_of(snapshot: Snapshot, filters: Filters) -> All | None:
    """What a filter asks of each song; None where it is empty. Raises as :func:`passing`."""
    if filters.folders or filters.no_folders:
        refuse_visitors()
    columns = snapshot.columns
    parts: list[Condition] = [
        Among(name, wanted)
        for name, wanted in (
            ("artist", filters.artists),
            ("folder", filters.folders),
            ("key", filters.keys),
            ("mode", filters.modes),
        )
        if wanted
    ]
    if filters.genres:
        parts.append(_of_genres(snapshot, filters.genres))
    if filters.no_folders:
        parts.append(Not(_below(columns.folder, filters.no_folders)))
    if filters.no_artists:
        parts.append(Not(Among("artist", filters.no_artists)))
    if filters.tags:
        parts.append(_tagged(snapshot, filters.tags))
    if filters.no_tags:
        parts.append(Not(_tagged(snapshot, filters.no_tags)))
    if filters.years is not None:
        first, last = filters.years
        parts.append(Within("year", max(first, 1), last))  # 0 is unknown
    if filters.words:
        parts += _fitting(snapshot, filters.words)
    for name in ("duration_s", *HEARD):
        bounds = getattr(filters, name)
        if bounds is not None:
            parts.append(Within(name, *bounds))
    return All(tuple(parts)) if parts else None


@dataclass(frozen=True, slots=True)
class FilterChoices:
    """What there is to choose in filters, by their field."""

    # genres and tags from many songs to few, keys from C to B, others by name; only where there are some
    names: dict[str, list[str]]
    ranges: dict[str, tuple[int, int]]  # whole numbers; only where there is a choice


def filter_choices(snapshot: Snapshot) -> FilterChoices:
    """What the songs of a snapshot can be filtered by."""
    columns = snapshot.columns
    artists = sorted(columns.artist.counts(), key=str.casefold)
    folders = [] if is_public() else sorted(columns.folder.counts())
    genres = columns.genre.counts()
    tags = _by_count(genres + snapshot.library.listening.tag_counts())
    names = {
        "artists": artists, "no_artists": artists, "genres": _by_count(genres), "tags": tags, "no_tags": tags,
        "folders": folders, "no_folders": folders, "keys": _in_order(columns.key, KEYS),
        "modes": _in_order(columns.mode, MODES),
    }  # fmt: skip
    years = columns.year[columns.year > 0]
    ranges = {
        "years": (int(years.min(initial=9999)), int(years.max(initial=0))),
        "duration_s": (0, int(columns.duration_s.max(initial=0.0)) + 1),
        **{name: _around(getattr(columns, name)) for name in HEARD},
    }
    return FilterChoices(
        {field: found for field, found in names.items() if found},
        {field: (first, last) for field, (first, last) in ranges.items() if first < last},
    )


def _around(values: Float32Array) -> tuple[int, int]:
    """The whole numbers around those that are known; an empty range where none is."""
    known = values[np.isfinite(values)]
    return (int(np.floor(known.min())), int(np.ceil(known.max()))) if len(known) else (0, 0)


def _in_order(labels: Labels, order: Iterable[str]) -> list[str]:
    counts = labels.counts()
    return [name for name in order if name in counts]


def _by_count(counts: Counter[str]) -> list[str]:
    return [name for name, _ in counts.most_common()]


def _fitting(snapshot: Snapshot, words: str) -> list[Condition]:
    """What each part of some words asks."""
    said = understood(snapshot, words)
    if said.unknown:
        raise NotFoundError(
            f"{snapshot.library.name}: nothing is known by {', '.join(f'“{word}”' for word in said.unknown)}. "
            "Leave it out, or write it as the tags, genres or artists of the library do."
        )
    return [_fits(snapshot, part) for part in said.parts]


def _fits(snapshot: Snapshot, part: Part) -> Condition:
    condition: Condition | None
    if part.song_ids is not None:
        condition = Listed(np.isin(snapshot.row_ids, part.song_ids))
    else:
        condition = condition_of(snapshot, part.filters)
        assert condition is not None
    return Not(condition) if part.is_not else condition


def _below(folder: Labels, parents: Iterable[str]) -> Among:
    """A song lies in one of some folders, or below it."""
    starts = tuple(os.path.join(parent, "") for parent in parents)
    themselves = {start[:-1] for start in starts}
    return Among("folder", frozenset(name for name in folder.names if name.startswith(starts) or name in themselves))


def _tagged(snapshot: Snapshot, tags: Iterable[str]) -> Listed:
    """A song has one of some words as a tag or as its genre."""
    ids = snapshot.library.listening.songs_tagged(tags)
    return Listed(_of_genres(snapshot, tags).rows(snapshot.columns) | np.isin(snapshot.row_ids, ids))


def _of_genres(snapshot: Snapshot, genres: Iterable[str]) -> Among:
    """A song has one of some genres, in whatever spelling."""
    keys = {genre_key(name) for name in genres}
    return Among("genre", frozenset(name for name in snapshot.columns.genre.names if genre_key(name) in keys))
