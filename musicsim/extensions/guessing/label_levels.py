"""What songs are labelled with, from the widest class to the narrowest: genre and sub-genre, artist and album."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from musicsim._arrays import Int64Array, IntegerArray
from musicsim.explorer.snapshot.snapshot import Snapshot

Path = tuple[str, ...]

# What stands between a genre and its sub-genre in tags: "Electronic / House", "Metal > Doom", "Jazz; Bebop".
_BETWEEN = re.compile(r"\s*(?:::|[/\\>›»|;,])\s*")


@dataclass(frozen=True, slots=True)
class Levels:
    """Labels of many songs."""

    # (n_songs, n_levels): places in `names`, by level; -1 where unknown, and then on all narrower levels
    codes: Int64Array
    names: list[list[str]]  # of each level
    tags: tuple[str, ...]  # the tag that the name of each level is entered as
    # (n_songs,): songs with the same number are alike for other reasons than the label: an honest figure is
    # one for which they do not vote for each other
    apart: Int64Array


def _genres(snapshot: Snapshot) -> Levels:
    """Genre and sub-genres of every row; songs of one artist are apart.

    "Electronic / House" is a genre within "Electronic" where another genre of the library is "Electronic" or begins
    with it; otherwise it is one name, as "R&B/Soul" may be.
    """
    columns = snapshot.columns
    codes, names = _numbered(_genre_paths(columns.genre.names), columns.genre.codes)
    return Levels(codes, names, ("genre",) * len(names), columns.group.codes.astype(np.int64))


def _albums(snapshot: Snapshot) -> Levels:
    """Artist and album of every row; songs of one album are apart."""
    artist = snapshot.columns.artist
    album = snapshot.library.albums()
    paths = [
        () if code < 0 else (artist.names[code], *album.get(i, ())[:1])
        for i, code in zip(snapshot.row_ids.tolist(), artist.codes.tolist(), strict=True)
    ]
    codes, names = _numbered(paths, np.arange(len(paths)))
    narrow = codes[:, 1] if len(names) > 1 else np.full(len(codes), -1)
    return Levels(
        codes, names, ("artist", "album")[: len(names)], np.where(narrow >= 0, narrow, -1 - np.arange(len(codes)))
    )


LEVELS_OF = {"genre": _genres, "artist": _albums}
"""How the labels of a snapshot are had, by what songs may be without."""


def _genre_paths(genres: Sequence[str]) -> list[Path]:
    begun = [[genre[: m.start()] for m in _BETWEEN.finditer(genre) if m.start()] for genre in genres]
    shared = Counter(genre for path in begun for genre in path) + Counter(genres)
    return [(*(wide for wide in path if shared[wide] > 1), genre) for path, genre in zip(begun, genres, strict=True)]


def _numbered(paths: Sequence[Path], which: IntegerArray) -> tuple[Int64Array, list[list[str]]]:
    """Codes of the paths that songs have, -1 for none, and the names they stand for, by level."""
    places: list[dict[Path, int]] = [{} for _ in range(max(map(len, paths), default=1) or 1)]
    table = np.full((len(paths) + 1, len(places)), -1)  # the last row: no path
    for codes, path in zip(table, paths, strict=False):
        for level in range(len(path)):
            codes[level] = places[level].setdefault(path[: level + 1], len(places[level]))
    return table[which], [[path[-1] for path in level] for level in places]
