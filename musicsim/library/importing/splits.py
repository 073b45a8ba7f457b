"""Import of splits into training, validation and test songs from CSV."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from musicsim.errors import LibraryError
from musicsim.library.disk.csv_cells import restore_cell, shorten_problems
from musicsim.library.importing.places import PlaceIndex
from musicsim.library.library import Library
from musicsim.library.stores.splits import part_of

_NAMES = ("hash", "path", "id")


@dataclass(frozen=True, slots=True)
class SplitImport:
    name: str
    n_read: int  # number of rows in the file
    n_songs: int  # number of songs in the split
    problems: tuple[str, ...]  # messages about the first 20 rejected rows, and the number of the others


def import_split(library: Library, file: Path, name: str = "") -> SplitImport:
    """Import a split from a CSV file with a column `split` and one or more of `hash`, `path` and `id`.

    An existing split with the same name is replaced; the name defaults to the file's name. Raises LibraryError if no
    row is valid.
    """
    file = file.expanduser()
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            rows = list(csv.DictReader(stream))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise LibraryError(f"{file}: cannot be read as CSV in UTF-8 ({error}).") from error
    columns = set(rows[0]) if rows else set()
    if "split" not in columns or not columns & set(_NAMES):
        raise LibraryError(f"{file}: a split needs a column `split` and one of {', '.join(_NAMES)}.")
    songs = library.songs()
    by_hash, ids = {song.content_hash: song.id for song in songs}, {song.id for song in songs}
    places = PlaceIndex((path, song_id, True) for song_id, path in library.files.here())

    def find_song(cells: Mapping[str, str]) -> int | None:
        if song := by_hash.get(cells.get("hash", "")):
            return song
        if path := cells.get("path", ""):
            ending = places.find_by_end(path)
            return places.find_whole(path) or (ending.song_id if ending else None)
        number = cells.get("id", "")
        return int(number) if number.isdecimal() and int(number) in ids else None

    parts: dict[int, str] = {}
    problems = []
    for line, row in enumerate(rows, 2):
        cells = {column: restore_cell(cell or "") for column, cell in row.items() if column}
        song, part = find_song(cells), part_of(cells["split"])
        if song is None:
            problems.append(f"Line {line}: the song is not in this library.")
        elif part is None:
            problems.append(f"Line {line}: {cells['split'][:40]!r} must be train, validation or test.")
        else:
            parts[song] = part
    if not parts:
        raise LibraryError(f"{file}: none of its {len(rows):,} rows can be used. {problems[0]}")
    name = name or file.stem
    library.splits.keep(name, parts)
    return SplitImport(name, len(rows), len(parts), shorten_problems(problems))
