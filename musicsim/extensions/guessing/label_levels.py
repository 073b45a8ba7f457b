"""Song labels at levels from broad to narrow: genre and sub-genre, artist and album."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from musicsim._arrays import Int64Array, IntegerArray
from musicsim.explorer import Snapshot

Path = tuple[str, ...]

# Separators between genre and sub-genre in tags, as in "Electronic / House", "Metal > Doom" and "Jazz; Bebop".
_SEPARATOR = re.compile(r"\s*(?:::|[/\\>›»|;,])\s*")


@dataclass(frozen=True, slots=True)
class Levels:
    codes: Int64Array  # (n_songs, n_levels): indices into `names`; -1 from the first unknown level on
    names: list[list[str]]  # names of the labels at each level
    tags: tuple[str, ...]  # tag that stores the labels of each level
    # (n_songs,): songs with the same number are similar for reasons other than the label, so a fair measurement
    # excludes their votes for each other
    apart: Int64Array


def _genres(snapshot: Snapshot) -> Levels:
    """Return the genre and sub-genres of every row: "A / B" is a sub-genre if another genre begins with "A"."""
    columns = snapshot.columns
    genres = columns.genre.names
    prefixes = [[genre[: m.start()] for m in _SEPARATOR.finditer(genre) if m.start()] for genre in genres]
    n_uses = Counter(prefix for path in prefixes for prefix in path) + Counter(genres)
    paths = [
        (*(prefix for prefix in path if n_uses[prefix] > 1), genre)
        for path, genre in zip(prefixes, genres, strict=True)
    ]
    codes, names = _encode(paths, columns.genre.codes)
    return Levels(codes, names, ("genre",) * len(names), columns.group.codes.astype(np.int64))


def _albums(snapshot: Snapshot) -> Levels:
    artist = snapshot.columns.artist
    album = snapshot.library.albums()
    paths = [
        () if code < 0 else (artist.names[code], *album.get(i, ())[:1])
        for i, code in zip(snapshot.row_ids.tolist(), artist.codes.tolist(), strict=True)
    ]
    codes, names = _encode(paths, np.arange(len(paths)))
    albums = codes[:, 1] if len(names) > 1 else np.full(len(codes), -1)
    apart = np.where(albums >= 0, albums, -1 - np.arange(len(codes)))
    return Levels(codes, names, ("artist", "album")[: len(names)], apart)


LEVELS_OF = {"genre": _genres, "artist": _albums}  # maps each target to the function that returns a snapshot's labels


def _encode(paths: Sequence[Path], which: IntegerArray) -> tuple[Int64Array, list[list[str]]]:
    """Return the codes of the paths at the indices `which` (-1: no path), and the names of the codes at each level."""
    places: list[dict[Path, int]] = [{} for _ in range(max(map(len, paths), default=1) or 1)]
    table = np.full((len(paths) + 1, len(places)), -1)  # the last row means "no path"
    for codes, path in zip(table, paths, strict=False):
        for level in range(len(path)):
            codes[level] = places[level].setdefault(path[: level + 1], len(places[level]))
    return table[which], [[path[-1] for path in level] for level in places]
