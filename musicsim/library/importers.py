"""What listeners said, from CSV files: plays, tags and playlists, matched by artist and title.

Formats (UTF-8, a header line, columns in any order)::

    plays      listener, artist, title, plays
    tags       artist, title, tag, weight
    playlists  playlist, category, position, artist, title

A file is read whole and checked before anything is written: a wrong line stops the import with its
number, and nothing of the file is kept.
"""

import csv
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from musicsim.errors import LibraryError
from musicsim.library.store import Store

__all__ = ["ImportReport", "import_playlists", "import_plays", "import_tags"]


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What came of an import: rows read, rows of songs that are here, and the others by (artist, title)."""

    n_rows: int
    n_matched: int
    unmatched: tuple[tuple[str, str], ...]


def _key(artist: str, title: str) -> tuple[str, str]:
    fold = (" ".join(unicodedata.normalize("NFKC", text).casefold().split()) for text in (artist, title))
    first, second = fold
    return first, second


def _rows(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and the values of the columns, in the order asked for."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader(stream)
            header = [name.strip().lower() for name in next(reader, [])]
            missing = [name for name in columns if name not in header]
            if missing:
                raise LibraryError(
                    f"{path}: line 1 lacks the column {missing[0]!r}; the header should name {', '.join(columns)}."
                )
            places = [header.index(name) for name in columns]
            for values in reader:
                if not values:
                    continue
                if len(values) != len(header):
                    raise LibraryError(
                        f"{path}: line {reader.line_num} has {len(values)} values, the header {len(header)}."
                    )
                yield reader.line_num, [values[place] for place in places]
    except UnicodeDecodeError as error:
        raise LibraryError(f"{path}: not UTF-8 text (byte {error.start}). Save the file as UTF-8.") from error
    except csv.Error as error:
        raise LibraryError(f"{path}: not a CSV file ({error}).") from error
    except OSError as error:
        raise LibraryError(f"{path}: cannot be read ({error.strerror}).") from error


def _number(path: Path, line: int, name: str, text: str, kind: Callable[[str], float], low: float) -> float:
    try:
        value = kind(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= 1e12:
        raise LibraryError(f"{path}: line {line}: {name} is {text!r}; it should be a number from {low:g} up.")
    return value


class _Matcher:
    """Finds songs by artist and title, and remembers which were not found."""

    def __init__(self, library: Store) -> None:
        self._ids = {_key(song.artist or "", song.title): song.id for song in library.songs()}
        self._missed: Counter[tuple[str, str]] = Counter()
        self.n_rows = self.n_matched = 0

    def find(self, artist: str, title: str) -> int | None:
        song_id = self._ids.get(_key(artist, title))
        self.n_rows += 1
        self.n_matched += song_id is not None
        if song_id is None:
            self._missed[artist, title] += 1
        return song_id

    def report(self) -> ImportReport:
        """Unmatched songs, those of most rows first."""
        missed = tuple(pair for pair, _ in self._missed.most_common())
        return ImportReport(self.n_rows, self.n_matched, missed)


def import_plays(library: Store, path: Path) -> ImportReport:
    """Add plays; a listener's count of a song is replaced, lines of one file are summed.

    Raises
    ------
    LibraryError
        If the file cannot be read or a line is wrong; it names both, and nothing is imported.
    """
    matcher, counts = _Matcher(library), Counter[tuple[str, int]]()
    for line, (listener, artist, title, plays) in _rows(path, ("listener", "artist", "title", "plays")):
        count = int(_number(path, line, "plays", plays, int, 1))
        song_id = matcher.find(artist, title)
        if song_id is not None:
            counts[listener, song_id] += count
    library.add_plays(
        [{"listener": who, "song_id": song_id, "count": n} for (who, song_id), n in counts.items()]
    )
    return matcher.report()


def import_tags(library: Store, path: Path) -> ImportReport:
    """Add tags with weights; a song's weight of a tag is replaced. Raises as :func:`import_plays`."""
    matcher = _Matcher(library)
    weights: dict[tuple[int, str], float] = {}
    for line, (artist, title, tag, weight) in _rows(path, ("artist", "title", "tag", "weight")):
        value = _number(path, line, "weight", weight, float, 0)
        song_id, word = matcher.find(artist, title), " ".join(tag.split()).lower()
        if song_id is not None and word:
            weights[song_id, word] = value
    library.add_tags(
        [{"song_id": song_id, "tag": tag, "weight": value} for (song_id, tag), value in weights.items()]
    )
    return matcher.report()


def import_playlists(library: Store, path: Path) -> ImportReport:
    """Add playlists; one of the same file, name and category is replaced. Raises as :func:`import_plays`."""
    matcher = _Matcher(library)
    lists: dict[tuple[str, str], list[tuple[int, int]]] = {}
    columns = ("playlist", "category", "position", "artist", "title")
    for line, (name, category, position, artist, title) in _rows(path, columns):
        place = int(_number(path, line, "position", position, int, 0))
        song_id = matcher.find(artist, title)
        if song_id is not None:
            lists.setdefault((name, category), []).append((place, song_id))
    library.add_playlists(
        (
            (name, category or None, [song_id for _, song_id in sorted(members)])
            for (name, category), members in lists.items()
        ),
        source=path.name,
    )
    return matcher.report()
