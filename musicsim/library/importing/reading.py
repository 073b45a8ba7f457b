"""From files to what they say: which format each is in, and all of them read into one :class:`Batch`."""

import csv
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from musicsim.errors import LibraryError
from musicsim.library.importing import json_formats as from_json
from musicsim.library.importing import text_formats as from_text
from musicsim.library.importing.records import Batch, Gatherer, Kind, NamedSong
from musicsim.library.importing.sources import (
    HEAD_LENGTH,
    JsonStream,
    ProgressCallback,
    Source,
    TextLines,
    find_sources,
)

__all__ = ["FORMATS", "ME", "read_listening", "recognise"]

ME = "me"  # who listened to what a service exports for its one user


@dataclass(frozen=True, slots=True)
class _Format:
    """How a format is called by people, what it tells, and what reads it."""

    label: str
    kind: Kind
    read: Callable[[Any, Gatherer], None]
    is_json: bool = False


_FORMATS = {
    "plays": _Format("plays as CSV", "plays", from_text.read_plays),
    "tags": _Format("tags as CSV", "tags", from_text.read_tags),
    "playlists": _Format("playlists as CSV", "playlists", from_text.read_playlists),
    "lastfm": _Format("Last.fm scrobbles (CSV)", "plays", from_text.read_lastfm),
    "librefm": _Format("Libre.fm scrobbles (CSV)", "plays", from_text.read_librefm),
    "spinitron": _Format("Spinitron log (CSV)", "plays", from_text.read_spinitron),
    "spotify": _Format("Spotify streaming history (JSON)", "plays", from_json.read_spotify, True),
    "listenbrainz": _Format("ListenBrainz listens (JSON)", "plays", from_json.read_listenbrainz, True),
    "maloja": _Format("Maloja scrobbles (JSON)", "plays", from_json.read_maloja, True),
    "panoscrobbler": _Format("Pano Scrobbler (JSONL)", "plays", from_json.read_panoscrobbler, True),
    "loved": _Format("loved tracks of Last.fm or Libre.fm (JSON)", "tags", from_json.read_loved, True),
}
# these two belong together: the one counts plays of numbers, the other names them
_TRIPLETS, _NAMES = "triplets", "track names"

FORMATS: dict[str, str] = {name: fmt.label for name, fmt in _FORMATS.items()} | {
    _TRIPLETS: "Million Song Dataset triplets (with unique_tracks.txt)"
}
"""Names of the formats for `fmt`, each with what a person calls it."""

# what only these formats hold: the first whose every word is there
_JSON_SIGNS = {
    "spotify": ('"ms_played"|"msPlayed"', '"master_metadata_track_name"|"trackName"'),
    "loved": ('"lovedtracks"',),
    "maloja": ('"scrobbles"', '"track"'),
    "listenbrainz": ('"track_metadata"',),
    "panoscrobbler": ('"artist"', '"track"', '"timeMs"|"event"'),
}


def recognise(head: str) -> str | None:
    """Name of the format of a text that begins like this; None if it is none of them."""
    head = head.lstrip()
    if head.startswith(("[", "{")):
        for name, signs in _JSON_SIGNS.items():
            if all(re.search(sign, head) for sign in signs):
                return name
        return None
    first = head.split("\n", 1)[0].rstrip("\r")
    if first.count("<SEP>") == 3:
        return _NAMES
    parts = first.split("\t")
    if len(parts) == 3 and parts[2].isdecimal() and parts[0] and parts[1]:
        return _TRIPLETS
    return _recognise_table(head)


def _recognise_table(head: str) -> str | None:
    lines = head.splitlines(keepends=True)
    if len(head) >= HEAD_LENGTH - 8 and len(lines) > 1:
        lines.pop()  # it is cut off
    rows = []
    try:
        for row in csv.reader(lines[:40]):
            if row and not row[0].startswith(("#", "+ACM-")):
                rows.append(row)
    except csv.Error:
        return None
    if not rows:
        return None
    for row in rows[:1] if not any(r[0].lower() == "date-time" for r in rows) else rows:
        names = {name.strip().lower() for name in row}
        for fmt, columns in from_text.COLUMNS.items():
            if names.issuperset(columns):
                return fmt
    return "lastfm" if from_text.is_headerless_lastfm(rows[:20]) else None


def _nearest(head: str) -> str | None:
    """The format whose columns a header names in part, for a message of what it lacks."""
    names = {
        name.strip().strip('"').lower() for name in head.lstrip().split("\n", 1)[0].rstrip("\r").split(",")
    }
    own = ("plays", "tags", "playlists")
    best = max(own, key=lambda fmt: len(names.intersection(from_text.COLUMNS[fmt])))
    return best if len(names.intersection(from_text.COLUMNS[best])) >= 2 else None


def read_listening(
    paths: Sequence[str | Path],
    fmt: str | None = None,
    listener: str | None = None,
    progress: ProgressCallback | None = None,
    *,
    encoding: str | None = None,
) -> Batch:
    """Read files of plays, of tags or of playlists into one batch; nothing is written.

    Parameters
    ----------
    paths : sequence of paths
        Of archives (.zip) all members that are recognised are read, and the others left out. A path that is
        named twice is read once.
    fmt : str, optional
        A name of :data:`FORMATS`; without it each file is recognised by what it holds.
    listener : str, optional
        Who listened, where the files do not say; "me" by default.
    progress : callable, optional
        Called with bytes read, bytes in all and the file's name; True stops.
    encoding : str, optional
        utf-8, utf-16, latin-1 or cp1252. By default UTF-8, and UTF-16 with a byte order mark.

    Raises
    ------
    LibraryError
        If a file cannot be read, is of no known format, or has a wrong line: it names both.
    ImportStoppedError
        If `progress` said so.
    ValueError
        If there is no format or encoding of this name, or no file.

    Notes
    -----
    Memory: see :class:`Gatherer`; files themselves are read by lines, JSON by entries.
    """
    if not paths:
        raise ValueError("paths is empty: name one file at least.")
    if fmt is not None and fmt not in FORMATS:
        raise ValueError(f"fmt={fmt!r}: choose among {', '.join(FORMATS)}.")
    sources = find_sources(list(dict.fromkeys(Path(path) for path in paths)), encoding)
    todo, left_out = _with_formats(sources, fmt)
    kinds: dict[Kind, str] = {_kind(name): source.label for source, name in todo}
    if len(kinds) > 1:
        (kind, one), (other, two) = list(kinds.items())[:2]
        raise LibraryError(f"{one} holds {kind} and {two} holds {other}: import them one after the other.")
    rows = Gatherer(next(iter(kinds)), listener or ME)
    for source in left_out:
        rows.skip("file of another kind", source.member or source.path.name)
    _read_all(todo, rows, progress)
    says_who = rows.kind != "plays" or any(name in ("plays", _TRIPLETS) for _, name in todo)
    names = ", ".join(sorted({source.path.name for source in sources}))
    return rows.batch((name for _, name in todo if name != _NAMES), names, "" if says_who else rows.listener)


def _kind(name: str) -> Kind:
    return _FORMATS[name].kind if name in _FORMATS else "plays"


def _with_formats(
    sources: Sequence[Source], fmt: str | None
) -> tuple[list[tuple[Source, str]], list[Source]]:
    """Each file with its format, names of songs first; and members of archives that are of none."""
    todo, left_out = [], []
    for source in sources:
        head = source.head()
        name = recognise(head)
        if fmt is not None and name != _NAMES:
            name = fmt
        if name is None and source.member is None:
            name = _nearest(head)  # it is read far enough to say what is missing
            if name is None:
                raise LibraryError(_unknown(source, head))
        if name is None:
            left_out.append(source)
        else:
            todo.append((source, name))
    if not any(name != _NAMES for _, name in todo):
        raise LibraryError(
            f"{sources[0].path}: holds no plays, tags or playlists of a known format ({', '.join(FORMATS)})."
        )
    todo.sort(key=lambda pair: pair[1] != _NAMES)
    return todo, left_out


def _unknown(source: Source, head: str) -> str:
    if not head.strip():
        return f"{source.label}: the file is empty. Export it again."
    if "\0" in head:
        return f"{source.label}: holds NUL bytes: the file is no text, or UTF-16 without a mark (name its encoding)."
    return (
        f"{source.label}: line 1 is of no known format ({', '.join(FORMATS)}). If it is one of them, name it."
    )


def _read_all(todo: Sequence[tuple[Source, str]], rows: Gatherer, progress: ProgressCallback | None) -> None:
    total, before = sum(source.size for source, _ in todo), 0
    names: dict[str, NamedSong] = {}
    for source, name in todo:

        def watch(done: int, source: Source = source, before: int = before) -> bool | None:
            return progress(before + done, total, source.member or source.path.name) if progress else None

        with source.text() as (stream, below):
            if name == _NAMES:
                from_text.read_track_names(TextLines(source, stream, below, watch), names)
            elif name == _TRIPLETS:
                from_text.read_triplets(TextLines(source, stream, below, watch), rows, names)
            else:
                fmt = _FORMATS[name]
                as_document = fmt.is_json and not _is_lines(source)
                reader = JsonStream if as_document else TextLines
                fmt.read(reader(source, stream, below, watch), rows)
        before += source.size


def _is_lines(source: Source) -> bool:
    """Whether a text is JSON with one entry a line, which its first line says: it is whole, and no list."""
    first = source.head().lstrip().split("\n", 1)[0]
    if not first.startswith("{"):
        return False
    try:
        entry = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return not any(name in entry for name in ("payload", "scrobbles", "lovedtracks"))
