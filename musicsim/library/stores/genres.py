"""Genres as people write them: "Hip-Hop", "hip hop" and "HIPHOP" are one."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from musicsim.library.db.columns import Labels
from musicsim.library.tags.artists import SpellingGroup, fold_name, spelling_groups, unaccented


def genre_key(name: str) -> str:
    """What spellings of one genre have in common: letters and digits, without case and accents; "&" is "and"."""
    plain = unaccented(name.replace("&", " and ").replace("+", " and "))
    return "".join(c for c in plain if c.isalnum()) or fold_name(name)


def genre_spellings(counts: Mapping[str, int]) -> list[SpellingGroup]:
    """Genres that are spelled in several ways, of names by their number of songs.

    The most used comes first, as among the spellings of each.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for name in counts:
        groups[genre_key(name)].append(name)
    return spelling_groups(groups.values(), counts)


def usual_spellings(counts: Mapping[str, int]) -> dict[str, str]:
    """The most used spelling of each genre of :func:`genre_spellings`, by every one of its spellings."""
    return {name: group.suggested for group in genre_spellings(counts) for name in group.names}


def folded(genres: Labels) -> Labels:
    """The genres of songs, each by its most used spelling."""
    sizes = np.bincount(genres.codes[genres.codes >= 0], minlength=len(genres.names))
    counts = dict(zip(genres.names, sizes.tolist(), strict=True))
    usual = usual_spellings(counts)
    if not usual:
        return genres
    names = [usual.get(name, name) for name in genres.names]
    places = {name: place for place, name in enumerate(dict.fromkeys(names))}
    codes = np.array([*(places[name] for name in names), -1], dtype=np.int32)
    return replace(genres, codes=codes[genres.codes], names=list(places))
