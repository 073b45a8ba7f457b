"""Genres and tags that two songs share, without tags that fit one of the songs poorly."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache

from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Song, genre_key

Tags = Mapping[int, Sequence[tuple[str, float]]]  # names and weights, heaviest first, keyed by song id

_N_COMPARED = 8  # number of tags to compare per song, heaviest first
_MIN_WEIGHT = 0.25  # minimum weight of a tag, relative to the song's heaviest tag
_YEARS = re.compile(r"'?\d{2,4}s?")  # tags such as "1990s", which nobody can check by ear
_NO_GENRES = {genre_key(name) for name in ("Other", "Unknown", "Misc", "Miscellaneous", "None")}


def find_shared_labels(
    snapshot: Snapshot, tags: Tags, song: Song, other: Song, preferred: Collection[str] = ()
) -> list[str]:
    """Return the genre and tags that two songs share: first those in `preferred`, then the genre, then by weight.

    Each name has one spelling: genres that of the library, other tags lower case.
    """
    weights, compared = (_weigh_tags(tags.get(one.id, ())) for one in (song, other))
    shared = sorted(weights.keys() & compared.keys(), key=lambda key: (-min(weights[key], compared[key]), key))
    genres = {genre_key(one.genre or "") for one in (song, other)}
    if len(genres) == 1:
        shared = [*genres - _NO_GENRES - {""}, *shared]
    first = {genre_key(name) for name in preferred}
    spelling = {genre_key(tag): tag.lower() for tag, _ in tags.get(song.id, ())}
    spelling |= {genre_key(song.genre or ""): song.genre or ""} | _spell_genres(snapshot)
    return _drop_repeats([spelling[key] for key in sorted(shared, key=lambda key: key not in first)])


def _drop_repeats(names: Iterable[str]) -> list[str]:
    """Drop names that only repeat words of an earlier name or extend one, such as "hip hop" after "Lo-fi Hip Hop"."""
    kept: dict[str, set[str]] = {}
    for name in names:
        words = {*name.lower().split()}
        if not any(words <= others or others <= words for others in kept.values()):
            kept[name] = words
    return list(kept)


def _weigh_tags(tags: Sequence[tuple[str, float]]) -> dict[str, float]:
    """Return the weights of a song's heavy tags, relative to the heaviest one, keyed by :func:`genre_key`."""
    heaviest = max((weight for _, weight in tags), default=0.0)
    weights: dict[str, float] = {}
    for tag, weight in tags[:_N_COMPARED]:
        if weight >= _MIN_WEIGHT * heaviest > 0.0 and not _YEARS.fullmatch(tag):
            weights.setdefault(genre_key(tag), weight / heaviest)
    return weights


@lru_cache(maxsize=4)
def _spell_genres(snapshot: Snapshot) -> dict[str, str]:
    """Return the library's spelling of each genre, keyed by :func:`genre_key`."""
    return {genre_key(name): name for name in snapshot.columns.genre.names}
