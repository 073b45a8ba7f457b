"""Spellings of genres: "Hip-Hop", "hip hop" and "HIPHOP" are the same genre."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np

from musicsim.library.db.columns import Labels
from musicsim.library.tags.artists import fold_name, spelling_groups, strip_accents


@lru_cache(maxsize=10_000)
def genre_key(name: str) -> str:
    """Return the key that all spellings of a genre share: its letters and digits, without case and accents."""
    plain = strip_accents(name.replace("&", " and ").replace("+", " and "))
    return "".join(c for c in plain if c.isalnum()) or fold_name(name)


def genre_spellings(counts: Mapping[str, int]) -> list[tuple[str, ...]]:
    """Return the spellings of genres that have several, most used first; `counts` is the number of songs per name."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name in counts:
        groups[genre_key(name)].append(name)
    return spelling_groups(groups.values(), counts)


def usual_spellings(counts: Mapping[str, int]) -> dict[str, str]:
    """Return the most used spelling of each genre in :func:`genre_spellings`, keyed by spelling."""
    return {name: names[0] for names in genre_spellings(counts) for name in names}


def merge_spellings(genres: Labels) -> Labels:
    """Return the songs' genres, with each name replaced by its most used spelling."""
    usual = usual_spellings(dict(zip(genres.names, genres.sizes().tolist(), strict=True)))
    if not usual:
        return genres
    names = [usual.get(name, name) for name in genres.names]
    places = {name: place for place, name in enumerate(dict.fromkeys(names))}
    codes = np.array([*(places[name] for name in names), -1], dtype=np.int32)
    return replace(genres, codes=codes[genres.codes], names=list(places))
