"""Recognize file formats (extensions add more), and read files into an :class:`ImportBatch`."""

import csv
import json
import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path

from musicsim.errors import LibraryError
from musicsim.library.importing import json_formats as from_json
from musicsim.library.importing import playlist_files as from_list
from musicsim.library.importing import text_formats as from_text
from musicsim.library.importing.places import names_audio, spell_out
from musicsim.library.importing.records import Gatherer, ImportBatch, Kind
from musicsim.library.importing.sources import HEAD, ImportFormat, JsonStream, RawBytes, Source, TextLines, find_sources
from musicsim.progress import Progress, no_progress
from musicsim.registry import load_each

ME = "me"  # the listener if a file contains one user's data

_FORMATS: dict[str, ImportFormat] = {
    "plays": ImportFormat("plays as CSV", "plays", from_text.read_plays),
    "tags": ImportFormat("tags as CSV", "tags", from_text.read_tags),
    "playlists": ImportFormat("playlists as CSV", "playlists", from_text.read_playlists),
    "lastfm": ImportFormat("Last.fm scrobbles (CSV)", "plays", from_text.read_lastfm),
    "librefm": ImportFormat("Libre.fm scrobbles (CSV)", "plays", from_text.read_librefm),
    "spinitron": ImportFormat("Spinitron log (CSV)", "plays", from_text.read_spinitron),
    "spotify": ImportFormat("Spotify streaming history (JSON)", "plays", from_json.read_spotify, JsonStream),
    "listenbrainz": ImportFormat("ListenBrainz listens (JSON)", "plays", from_json.read_listenbrainz, JsonStream),
    "maloja": ImportFormat("Maloja scrobbles (JSON)", "plays", from_json.read_maloja, JsonStream),
    "panoscrobbler": ImportFormat("Pano Scrobbler (JSONL)", "plays", from_json.read_panoscrobbler, JsonStream),
    "loved": ImportFormat("loved tracks from Last.fm or Libre.fm (JSON)", "tags", from_json.read_loved, JsonStream),
    "m3u": ImportFormat("playlist (M3U, M3U8)", "playlists", from_list.read_m3u, is_lenient=True),
    "pls": ImportFormat("playlist (PLS)", "playlists", from_list.read_pls, is_lenient=True),
    "xspf": ImportFormat("playlist (XSPF)", "playlists", from_list.read_xspf, RawBytes),
    "jspf": ImportFormat("playlist (JSPF)", "playlists", from_list.read_jspf, JsonStream),
    "spotify_playlists": ImportFormat(
        "Spotify playlists (JSON)", "playlists", from_list.read_spotify_playlists, JsonStream
    ),
    "aotm": ImportFormat("AotM-2011 playlists (JSON)", "playlists", from_list.read_aotm, JsonStream),
}
for _more in load_each(lambda extension: extension.import_formats):
    _FORMATS |= _more
# two files from one data set: plays per song id, and the names of these songs
_TRIPLETS, _NAMES = "triplets", "track names"
_FORMATS |= {
    _TRIPLETS: ImportFormat("Million Song Dataset triplets (with unique_tracks.txt)", "plays", from_text.read_triplets),
    _NAMES: ImportFormat("Million Song Dataset track names", "plays", from_text.read_track_names),
}

FORMATS: dict[str, str] = {name: fmt.label for name, fmt in _FORMATS.items() if name != _NAMES}
"""Labels of the formats, keyed by the names that `fmt` accepts."""

# patterns that must all occur near the start of a file; the first format that matches is used
_JSON_SIGNS = {
    "spotify": ('"ms_played"|"msPlayed"', '"master_metadata_track_name"|"trackName"'),
    "loved": ('"lovedtracks"',),
    "maloja": ('"scrobbles"', '"track"'),
    "listenbrainz": ('"track_metadata"',),
    "panoscrobbler": ('"artist"', '"track"', '"timeMs"|"event"'),
    "spotify_playlists": (r'"playlists"\s*:\s*\[', r'"items"\s*:'),
    "aotm": ('"mix_id"', r'"playlist"\s*:'),
    "jspf": (r'"tracks?"\s*:\s*\[', '"title"'),
}
# playlist formats of programs that can also write a format we read
_OTHER_LISTS = {
    **dict.fromkeys((".asx", ".wax", ".wvx", ".wmx", ".wpl", ".zpl"), "a Windows Media playlist"),
    **dict.fromkeys((".ram", ".rmp", ".smil"), "a RealPlayer playlist"),
    ".b4s": "a Winamp playlist", ".plist": "an iTunes library or playlist", ".cue": "a cue sheet",
    ".kpl": "a Kodi playlist", ".mpcpl": "a Media Player Classic playlist",
    ".pla": "a Samsung playlist", ".plp": "a Sansa playlist",
}  # fmt: skip
_OTHER_KIND = "file in an unknown format"
_DOCUMENTS = ("jspf", "spotify_playlists")  # formats that never have one entry per line
_KINDS: tuple[Kind, ...] = ("plays", "playlists", "tags")  # only the first of these kinds in an archive is read
_HLS_SIGN = re.compile(r"^#EXT-X-", re.MULTILINE | re.IGNORECASE)
_M3U_SIGN = re.compile(r"#(?:EXTM3U|(?:EXTINF|EXTART|EXTALB|PLAYLIST):)", re.IGNORECASE)


def recognize(head: str, ending: str = "", wanted: str | None = None) -> str | None:
    """Return the name of the format of a file whose text begins with `head`; None if it is unknown.

    The file extension `ending` helps to recognize lists of paths. If several formats fit, `wanted` is preferred.
    """
    head = head.lstrip()
    if not head or ending in _OTHER_LISTS or _HLS_SIGN.search(head):
        return None
    fitting = list(_fitting_formats(head, ending))
    return wanted if wanted in fitting else next(iter(fitting), None)


def _fitting_formats(head: str, ending: str) -> Iterator[str]:
    """Yield all formats that fit, the most likely first."""
    for name, fmt in _FORMATS.items():
        if fmt.signs and all(sign in head for sign in fmt.signs):
            yield name
            return
    if re.match(r"\[playlist\]", head, re.IGNORECASE):
        yield "pls"
    if head.startswith("<"):
        if ending == ".xspf" or re.search(r"<(\w+:)?playlist\b", head):
            yield "xspf"
        return
    if ending == ".jspf" and head.startswith("{"):
        yield "jspf"
    if ending in (".m3u", ".m3u8") or _is_m3u(head):
        yield "m3u"
    if ending == ".pls":
        yield "pls"
    if head.startswith(("[", "{")):
        yield from (name for name, signs in _JSON_SIGNS.items() if all(re.search(sign, head) for sign in signs))
    first = head.split("\n", 1)[0].rstrip("\r")
    if first.count("<SEP>") == 3:
        yield _NAMES
    parts = first.split("\t")
    if len(parts) == 3 and parts[2].isdecimal() and parts[0] and parts[1]:
        yield _TRIPLETS
    yield from _fitting_tables(head)


def _is_m3u(head: str) -> bool:
    """Return whether a text begins with an M3U directive, or consists of paths of audio files."""
    lines = _lines(head)
    if any(_M3U_SIGN.match(line) for line in takewhile(lambda line: line.startswith("#"), lines)):
        return True
    entries = [line for line in lines if not line.startswith("#")]
    return bool(entries) and all(map(names_audio, entries))


def _lines(head: str) -> list[str]:
    """Return the lines of `head`, except empty lines and a last line that is cut off."""
    lines = re.split(r"[\r\n]+", head)
    if len(head) >= HEAD - 8 and len(lines) > 1:
        lines.pop()
    return [line for line in lines if line.strip()]


def _fitting_tables(head: str) -> Iterator[str]:
    """Yield the CSV formats whose columns are all in the header; a radio log may have lines before its header."""
    rows = []
    try:
        for row in csv.reader(f"{line}\n" for line in _lines(head)[:40]):
            if row and not row[0].startswith(("#", "+ACM-")):
                rows.append(row)
    except csv.Error:
        return
    for row in rows[:1] if not any(r[0].lower() == "date-time" for r in rows) else rows:
        names = {name.strip().lower() for name in row}
        yield from (fmt for fmt, columns in from_text.COLUMNS.items() if names.issuperset(columns))
    if rows and from_text.is_headerless_lastfm(rows[:20]):
        yield "lastfm"


def _nearest_table(head: str) -> str | None:
    """Return the CSV format that shares the most columns (at least two) with a header, to report missing columns."""
    names = {name.strip().strip('"').lower() for name in head.lstrip().split("\n", 1)[0].rstrip("\r").split(",")}
    own = ("plays", "tags", "playlists")
    best = max(own, key=lambda fmt: len(names.intersection(from_text.COLUMNS[fmt])))
    return best if len(names.intersection(from_text.COLUMNS[best])) >= 2 else None


def read_listening(
    paths: Sequence[str | Path], fmt: str | None = None, listener: str | None = None,
    progress: Progress = no_progress, *, encoding: str | None = None,
) -> ImportBatch:  # fmt: skip
    """Read files of plays, tags or playlists into one batch; nothing is written.

    If folders and .zip archives contain several kinds, only the first of plays, playlists and tags is read. `fmt` is a
    name in :data:`FORMATS`; by default, each file's format is recognized. `listener` ("me" by default) is used for
    files that do not name one. `progress` counts bytes. `encoding` is utf-8, utf-16, latin-1 or cp1252. Raises
    LibraryError if a file cannot be read or has an invalid line.
    """
    if not paths:
        raise ValueError("paths is empty: give at least one file.")
    if fmt is not None and fmt not in FORMATS:
        raise ValueError(f"fmt={fmt!r}: choose from {', '.join(FORMATS)}.")
    files = list(dict.fromkeys(Path(path) for path in paths))
    todo, left_out = _select_kind(*_assign_formats(find_sources(files, encoding), fmt))
    kinds: dict[Kind, str] = {_FORMATS[name].kind: source.label for source, name in todo}
    if len(kinds) > 1:
        (kind, one), (other, two) = list(kinds.items())[:2]
        raise LibraryError(f"{one} contains {kind} and {two} contains {other}: import them one after the other.")
    rows = Gatherer(next(iter(kinds)), listener or ME)
    for source, reason in left_out:
        rows.skip(reason, source.member or source.path.name)
    _read_all(todo, rows, progress)
    if rows.kind == "playlists" and not rows.n_rows:
        raise LibraryError(f"{todo[0][0].label}: the playlist contains no songs. Save it again, with its songs.")
    has_listeners = rows.kind != "plays" or any(name in ("plays", _TRIPLETS) for _, name in todo)
    names = ", ".join(sorted({path.name or path.absolute().name for path in files}))
    return rows.batch((name for _, name in todo if name != _NAMES), names, "" if has_listeners else rows.listener)


_Todo = list[tuple[Source, str]]  # files with their formats
_LeftOut = list[tuple[Source, str]]  # skipped files, each with the reason


def _assign_formats(sources: Sequence[Source], fmt: str | None) -> tuple[_Todo, _LeftOut]:
    """Return the files to read (song names first) and the files to skip, which all come from folders or archives."""
    todo, left_out = [], []
    for source in sources:
        head = source.head()
        name = recognize(head, source.ending, fmt)
        if source.is_named:
            name = name or _nearest_table(head)  # reading the file in this format reports the missing column
            if name is None or (fmt is not None and name not in (fmt, _NAMES)):
                raise LibraryError(_explain_refusal(source, head, fmt))
        if name is None:
            left_out.append((source, _OTHER_KIND))
        elif fmt is not None and name not in (fmt, _NAMES):
            left_out.append((source, f"{FORMATS[name]}, not the given format"))
        else:
            todo.append((source, name))
    if not any(name != _NAMES for _, name in todo):
        formats = ", ".join(FORMATS)
        raise LibraryError(f"{sources[0].path}: no plays, tags or playlists in a known format ({formats}) found.")
    todo.sort(key=lambda pair: pair[1] != _NAMES)
    return todo, left_out


def _select_kind(todo: _Todo, left_out: _LeftOut) -> tuple[_Todo, _LeftOut]:
    """Leave out files in folders and archives if they contain a different kind of data than the rest."""
    kinds = {_FORMATS[name].kind for source, name in todo if source.is_named and name != _NAMES}
    kinds = kinds or {min((_FORMATS[name].kind for _, name in todo if name != _NAMES), key=_KINDS.index)}
    others = [(s, name) for s, name in todo if not s.is_named and name != _NAMES and _FORMATS[name].kind not in kinds]
    reasons = [(source, f"{FORMATS[name]}: choose this format to import it") for source, name in others]
    return [pair for pair in todo if pair not in others], [*left_out, *reasons]


def _explain_refusal(source: Source, head: str, fmt: str | None) -> str:
    """Return the reason why a file is not read, without quoting the file, because it may contain secrets."""
    if not head.strip():
        return f"{source.label}: the file is empty. Export it again."
    ending = ".plist" if "<plist" in head else source.ending
    if ending in _OTHER_LISTS:
        return (
            f"{source.label}: {_OTHER_LISTS[ending]} ({ending}) cannot be read. "
            f"Save it as M3U8, XSPF or PLS in the program that made it."
        )
    if _HLS_SIGN.search(head):
        return f"{source.label}: this {from_list.HLS}"
    if "\0" in head:
        return f"{source.label}: contains NUL bytes: it is not text, or it is UTF-16 without a BOM (give its encoding)."
    if spell_out(head) != head:
        return source.not_text()
    return f"{source.label}: " + (
        f"line 1 is not in a known format ({', '.join(FORMATS)}). "
        f"A playlist of paths needs the extension .m3u8, or #EXTM3U as its first line."
        if fmt is None
        else f"the file is not in {fmt} format ({FORMATS[fmt]}). Give its format, or omit the format."
    )


def _read_all(todo: Sequence[tuple[Source, str]], rows: Gatherer, progress: Progress) -> None:
    total, before = sum(source.size for source, _ in todo), 0
    for source, name in todo:

        def watch(done: int, source: Source = source, before: int = before) -> None:
            progress(source.member or source.path.name, before + done, total)

        fmt = _FORMATS[name]
        with source.text("surrogateescape" if fmt.is_lenient else "strict") as (stream, raw):
            is_lines = fmt.source is JsonStream and name not in _DOCUMENTS and _is_json_lines(source)
            reader = TextLines if is_lines else fmt.source
            fmt.read(reader(source, stream, raw, watch), rows)
        before += source.size


def _is_json_lines(source: Source) -> bool:
    """Return whether a file is JSON with one entry per line: its first line is an object without a list of entries."""
    first = source.head().lstrip().split("\n", 1)[0]
    if not first.startswith("{"):
        return False
    try:
        entry = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return not any(name in entry for name in ("payload", "scrobbles", "lovedtracks"))
