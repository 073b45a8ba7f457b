"""Histories, tags and playlists as lines of text: CSV, and the triplets of the Million Song Dataset.

musicsim's own formats (``plays``, ``tags``, ``playlists``) have a header line and columns in any order; their cells
are protected against spreadsheet formulas (:mod:`musicsim.library.disk.csv_cells`). Other formats:

- ``lastfm``: with a header, or without one as ``artist,album,title,"31 Jan 2024 10:11"``
- ``librefm``: Artist, Track, Time and optionally Album, below any number of comments
- ``spinitron``: log of a radio show with Date-time, Artist, Song and Release, below lines that describe the show
- ``triplets``: ``user<TAB>song<TAB>plays``; songs have names only if ``unique_tracks.txt`` is imported along with it

An invalid number stops the import. Rows that services export with empty values are left out and counted.
"""

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from email.utils import parsedate

from musicsim.errors import LibraryError
from musicsim.library.disk.csv_cells import restore_cell
from musicsim.library.importing.json_formats import plain_name
from musicsim.library.importing.records import Gatherer, NamedSong
from musicsim.library.importing.sources import TextLines

COLUMNS = {
    "plays": ("listener", "artist", "title", "plays"),
    "tags": ("artist", "title", "tag", "weight"),
    "playlists": ("playlist", "category", "position", "artist", "title"),
    "librefm": ("artist", "track", "time"),
    "lastfm": ("uts", "artist", "track"),
    "spinitron": ("date-time", "artist", "song"),
}
_LASTFM_TIME = re.compile(r"\d{1,2} [A-Z][a-z]{2} \d{4},? \d{1,2}:\d{2}")
_COMMENTS = ("#", "+ACM-")  # Libre.fm writes "#" in UTF-7
_MAX_LINES_BEFORE_HEADER = 30


def table(lines: TextLines) -> Iterator[list[str]]:
    """Yield the rows of a CSV file without comments and empty lines; `lines.line` is the row's last line."""
    reader = csv.reader(lines, strict=True)
    while True:
        start = lines.line + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            problem = f"line {start} is not CSV ({error}). Close all quotes, and double those inside quoted text."
            raise LibraryError(f"{lines.source.label}: {problem}") from error
        if row is None:
            return
        if row and not row[0].startswith(_COMMENTS):
            yield row


def _rows(lines: TextLines, fmt: str, optional: Sequence[str] = (), before: int = 0) -> Iterator[list[str]]:
    """Yield the values of the format's columns, then of the optional ones ("" for missing columns)."""
    rows, required = table(lines), COLUMNS[fmt]
    header: list[str] = []
    for row in rows:
        header = [name.strip().lower() for name in row]
        if not before or required[0] in header:
            break
        before -= 1
    missing = [name for name in required if name not in header]
    if missing:
        raise lines.fault(f"has no column {missing[0]!r}; the header must have {', '.join(required)}.")
    places = [header.index(name) for name in required]
    places += [header.index(name) if name in header else len(header) for name in optional]
    for row in rows:
        if len(row) != len(header):
            raise lines.fault(f"has {len(row)} values, but the header has {len(header)}.")
        row.append("")
        yield [row[place] for place in places]


def _own_rows(lines: TextLines, fmt: str) -> Iterator[Iterator[str]]:
    return (map(restore_cell, row) for row in _rows(lines, fmt))


def _parse_number(lines: TextLines, name: str, text: str, kind: Callable[[str], float], low: float) -> float:
    try:
        value = kind(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= 1e12:
        raise lines.fault(f": {name} is {text[:40]!r}; it must be a number of at least {low:g}.")
    return value


def read_plays(lines: TextLines, rows: Gatherer) -> None:
    """Read plays; rows with the same listener and song are summed."""
    for listener, artist, title, plays in _own_rows(lines, "plays"):
        count = _parse_number(lines, "plays", plays, int, 1)
        rows.keep(NamedSong(plain_name(artist), plain_name(title)), lines.place, (plain_name(listener), ""), count)


def read_tags(lines: TextLines, rows: Gatherer) -> None:
    """Read tags; if a song's tag occurs more than once, its last weight is used."""
    for artist, title, tag, weight in _own_rows(lines, "tags"):
        value = _parse_number(lines, "weight", weight, float, 0)
        if name := plain_name(tag).lower():
            rows.keep(NamedSong(plain_name(artist), plain_name(title)), lines.place, (name, ""), value)
        else:
            rows.skip("no tag", lines.place)


def read_playlists(lines: TextLines, rows: Gatherer) -> None:
    for name, category, position, artist, title in _own_rows(lines, "playlists"):
        rank = _parse_number(lines, "position", position, int, 0)
        rows.keep(
            NamedSong(plain_name(artist), plain_name(title)),
            lines.place,
            (plain_name(name), plain_name(category)),
            rank,
        )


def read_librefm(lines: TextLines, rows: Gatherer) -> None:
    """Read scrobbles from Libre.fm, and from programs that write its format."""
    for artist, track, time, album in _rows(lines, "librefm", ["album"]):
        at = _parse_number(lines, "time", time, float, 0)
        rows.keep(NamedSong(plain_name(artist), plain_name(track), plain_name(album)), lines.place, at=at)


def read_spinitron(lines: TextLines, rows: Gatherer) -> None:
    for time, artist, song, release in _rows(lines, "spinitron", ["release"], _MAX_LINES_BEFORE_HEADER):
        try:
            at = datetime.fromisoformat(time).timestamp()
        except ValueError:
            rows.skip("unreadable time", lines.place)
        else:
            rows.keep(NamedSong(plain_name(artist), plain_name(song), plain_name(release)), lines.place, at=at)


def read_lastfm(lines: TextLines, rows: Gatherer) -> None:
    """Read scrobbles from Last.fm, with or without a header, except the song that is playing, which lacks a time."""
    head = TextLines(lines.source, io.StringIO(lines.source.head()), None, None)  # type: ignore[arg-type]
    first = next(table(head), [])
    if not is_headerless_lastfm([first]) and "artist" in [name.strip().lower() for name in first]:
        for uts, artist, track, album, mbid in _rows(lines, "lastfm", ["album", "track_mbid"]):
            if not uts.strip():
                rows.skip("playing now", lines.place)
                continue
            at = _parse_number(lines, "uts", uts, float, 0)
            song = NamedSong(plain_name(artist), plain_name(track), plain_name(album), plain_name(mbid))
            rows.keep(song, lines.place, at=at or None)
        return
    for row in table(lines):
        if len(row) != 4:
            raise lines.fault(f"has {len(row)} values; there must be four: artist, album, title, date.")
        artist, album, title, date = row
        time = _parse_lastfm_time(date)
        if not date.strip():
            rows.skip("playing now", lines.place)
        elif time is None:
            raise lines.fault(f": the date is {date[:40]!r}; it must look like '31 Jan 2024 10:11'.")
        else:  # a scrobble without a time is exported as the start of 1970
            rows.keep(NamedSong(plain_name(artist), plain_name(title), plain_name(album)), lines.place, at=time or None)


def is_headerless_lastfm(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether all rows have four values and at least one ends in a date in the format of Last.fm."""
    return all(len(row) == 4 for row in rows) and any(_parse_lastfm_time(row[3]) is not None for row in rows)


def _parse_lastfm_time(text: str) -> float | None:
    # unlike strptime, parsedate expects English month names in every locale
    parts = parsedate(text) if _LASTFM_TIME.fullmatch(text.strip()) else None
    try:
        return datetime(*parts[:5], tzinfo=UTC).timestamp() if parts else None
    except (ValueError, OverflowError):
        return None


def read_triplets(lines: TextLines, rows: Gatherer) -> None:
    """Read plays from the Million Song Dataset; songs that are not in `rows.names` are left out and counted."""
    for text in lines:
        parts = text.rstrip("\r\n").split("\t")
        if len(parts) != 3:
            raise lines.fault(f"has {len(parts)} values between tabs; there must be three: user, song and plays.")
        user, song, plays = parts
        count = _parse_number(lines, "plays", plays, int, 1)
        named = rows.names.get(song)
        if named is None:
            rows.skip("song without a name (unique_tracks.txt has the names)", lines.place)
        else:
            rows.add(named, (plain_name(user), ""), count)


def read_track_names(lines: TextLines, rows: Gatherer) -> None:
    """Read the names in ``unique_tracks.txt``: track, song, artist and title; 0.3 kB per song."""
    for text in lines:
        parts = text.rstrip("\r\n").split("<SEP>")
        if len(parts) != 4:
            raise lines.fault(f"has {len(parts)} values between <SEP>; there must be four.")
        rows.names[parts[1]] = NamedSong(plain_name(parts[2]), plain_name(parts[3]))
