"""From files to what they say: which format each is in, and all of them read into one :class:`Batch`.

The hook ``import_formats`` is a mapping of more formats by name, ``Mapping[str, Format]``.
"""

import csv
import json
import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path

from musicsim.errors import LibraryError
from musicsim.hooks import load_hooks
from musicsim.library.importing import json_formats as from_json
from musicsim.library.importing import playlist_files as from_list
from musicsim.library.importing import text_formats as from_text
from musicsim.library.importing.formats import Format
from musicsim.library.importing.places import names_audio, spelled_out
from musicsim.library.importing.records import Batch, Gatherer, Kind, NamedSong
from musicsim.library.importing.sources import HEAD_LENGTH, JsonStream, RawBytes, Source, TextLines, find_sources
from musicsim.progress import Progress, no_progress

ME = "me"  # who listened to what a service exports for its one user


_FORMATS: dict[str, Format] = {
    "plays": Format("plays as CSV", "plays", from_text.read_plays),
    "tags": Format("tags as CSV", "tags", from_text.read_tags),
    "playlists": Format("playlists as CSV", "playlists", from_text.read_playlists),
    "lastfm": Format("Last.fm scrobbles (CSV)", "plays", from_text.read_lastfm),
    "librefm": Format("Libre.fm scrobbles (CSV)", "plays", from_text.read_librefm),
    "spinitron": Format("Spinitron log (CSV)", "plays", from_text.read_spinitron),
    "spotify": Format("Spotify streaming history (JSON)", "plays", from_json.read_spotify, JsonStream),
    "listenbrainz": Format("ListenBrainz listens (JSON)", "plays", from_json.read_listenbrainz, JsonStream),
    "maloja": Format("Maloja scrobbles (JSON)", "plays", from_json.read_maloja, JsonStream),
    "panoscrobbler": Format("Pano Scrobbler (JSONL)", "plays", from_json.read_panoscrobbler, JsonStream),
    "loved": Format("loved tracks of Last.fm or Libre.fm (JSON)", "tags", from_json.read_loved, JsonStream),
    "m3u": Format("playlist (M3U, M3U8)", "playlists", from_list.read_m3u, is_lenient=True),
    "pls": Format("playlist (PLS)", "playlists", from_list.read_pls, is_lenient=True),
    "xspf": Format("playlist (XSPF)", "playlists", from_list.read_xspf, RawBytes),
    "jspf": Format("playlist (JSPF)", "playlists", from_list.read_jspf, JsonStream),
    "spotify_playlists": Format("Spotify playlists (JSON)", "playlists", from_list.read_spotify_playlists, JsonStream),
    "aotm": Format("AotM-2011 playlists (JSON)", "playlists", from_list.read_aotm, JsonStream),
}
for _added in load_hooks("import_formats"):
    _FORMATS |= _added
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
    "spotify_playlists": (r'"playlists"\s*:\s*\[', r'"items"\s*:'),
    "aotm": ('"mix_id"', r'"playlist"\s*:'),
    "jspf": (r'"tracks?"\s*:\s*\[', '"title"'),
}


# playlists of programs that can write one of ours, too
_OTHER_LISTS = {
    **dict.fromkeys((".asx", ".wax", ".wvx", ".wmx", ".wpl", ".zpl"), "a playlist of Windows Media"),
    ".b4s": "a playlist of Winamp",
    ".plist": "a library or playlist of iTunes",
    ".cue": "a cue sheet",
    **dict.fromkeys((".ram", ".rmp", ".smil"), "a playlist of RealPlayer"),
    ".kpl": "a playlist of Kodi",
    ".mpcpl": "a playlist of Media Player Classic",
    ".pla": "a playlist of Samsung players",
    ".plp": "a playlist of Sansa players",
}
_OTHER_KIND = "file of another kind"
_DOCUMENTS = ("jspf", "spotify_playlists")  # never one entry a line
_KINDS: tuple[Kind, ...] = ("plays", "playlists", "tags")  # what is taken of an archive that holds several
_HLS_SIGN = re.compile(r"^#EXT-X-", re.MULTILINE | re.IGNORECASE)
_M3U_SIGN = re.compile(r"#(?:EXTM3U|(?:EXTINF|EXTART|EXTALB|PLAYLIST):)", re.IGNORECASE)


def recognise(head: str, ending: str = "", wanted: str | None = None) -> str | None:
    """Name of the format of a text that begins like this; None if it is none of them.

    The file's ending (".m3u") decides where lists of paths have nothing else to be known by. A text that may be of
    several formats is of the `wanted` one, if that is among them; no text is of a format only because it is wanted:
    a line of any file would do for a path.
    """
    head = head.lstrip()
    if not head or ending in _OTHER_LISTS or _HLS_SIGN.search(head):
        return None
    found = _formats_of(head, ending)
    first = next(found, None)
    return wanted if wanted is not None and wanted in found else first


def _formats_of(head: str, ending: str) -> Iterator[str]:
    """All formats that a text may be of, the likeliest first."""
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
        signs = _JSON_SIGNS.items()
        yield from (name for name, words in signs if all(re.search(word, head) for word in words))
    first = head.split("\n", 1)[0].rstrip("\r")
    if first.count("<SEP>") == 3:
        yield _NAMES
    parts = first.split("\t")
    if len(parts) == 3 and parts[2].isdecimal() and parts[0] and parts[1]:
        yield _TRIPLETS
    yield from _tables(head)


def _is_m3u(head: str) -> bool:
    """Whether a text is a list of songs whatever its name: it says so at its beginning, or has paths of audio only."""
    lines = _lines(head)
    if any(_M3U_SIGN.match(line) for line in takewhile(lambda line: line.startswith("#"), lines)):
        return True
    entries = [line for line in lines if not line.startswith("#")]
    return bool(entries) and all(map(names_audio, entries))


def _lines(head: str) -> list[str]:
    """Lines of a head that hold something, without the one that is cut off at its end."""
    lines = re.split(r"[\r\n]+", head)
    if len(head) >= HEAD_LENGTH - 8 and len(lines) > 1:
        lines.pop()
    return [line for line in lines if line.strip()]


def _tables(head: str) -> Iterator[str]:
    """The formats of CSV whose columns the first line names; of a radio log it may come later."""
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


def _nearest(head: str) -> str | None:
    """The format whose columns a header names in part, for a message of what it lacks."""
    names = {name.strip().strip('"').lower() for name in head.lstrip().split("\n", 1)[0].rstrip("\r").split(",")}
    own = ("plays", "tags", "playlists")
    best = max(own, key=lambda fmt: len(names.intersection(from_text.COLUMNS[fmt])))
    return best if len(names.intersection(from_text.COLUMNS[best])) >= 2 else None


def read_listening(
    paths: Sequence[str | Path],
    fmt: str | None = None,
    listener: str | None = None,
    progress: Progress = no_progress,
    *,
    encoding: str | None = None,
) -> Batch:
    """Read files of plays, of tags or of playlists into one batch; nothing is written.

    Of folders and archives (.zip) all files that are recognized are read, and the others left out; if they hold plays
    and something else, the plays are taken. `fmt` is a name of :data:`FORMATS`; without it each file is recognized by
    its content. A named file of another format is refused. `listener` is who listened if the files do not say so, "me"
    by default. `progress` counts bytes. `encoding` is utf-8,
    utf-16, latin-1 or cp1252; UTF-8 by default, and UTF-16 with a byte order mark. Files are read by lines, JSON by
    entries; for memory see :class:`Gatherer`.

    Raises LibraryError if a file cannot be read, is of no known format, or has a wrong line (it names both), or if
    no song is in the playlists; ValueError if the format or encoding is unknown, or `paths` is empty.
    """
    if not paths:
        raise ValueError("paths is empty: name one file at least.")
    if fmt is not None and fmt not in FORMATS:
        raise ValueError(f"fmt={fmt!r}: choose from {', '.join(FORMATS)}.")
    asked = list(dict.fromkeys(Path(path) for path in paths))
    todo, left_out = _of_one_kind(*_with_formats(find_sources(asked, encoding), fmt))
    kinds: dict[Kind, str] = {_kind(name): source.label for source, name in todo}
    if len(kinds) > 1:
        (kind, one), (other, two) = list(kinds.items())[:2]
        raise LibraryError(f"{one} holds {kind} and {two} holds {other}: import them one after the other.")
    rows = Gatherer(next(iter(kinds)), listener or ME)
    for source, reason in left_out:
        rows.skip(reason, source.member or source.path.name)
    _read_all(todo, rows, progress)
    if rows.kind == "playlists" and not rows.n_rows:
        raise LibraryError(f"{todo[0][0].label}: the playlist names no songs. Save it again, with its songs.")
    says_who = rows.kind != "plays" or any(name in ("plays", _TRIPLETS) for _, name in todo)
    names = ", ".join(sorted({path.name or path.absolute().name for path in asked}))
    return rows.batch((name for _, name in todo if name != _NAMES), names, "" if says_who else rows.listener)


def _kind(name: str) -> Kind:
    return _FORMATS[name].kind if name in _FORMATS else "plays"


_Todo = list[tuple[Source, str]]
_LeftOut = list[tuple[Source, str]]


def _with_formats(sources: Sequence[Source], fmt: str | None) -> tuple[_Todo, _LeftOut]:
    """Each file with its format, names of songs first; and what folders and archives hold besides, with the reason."""
    todo, left_out = [], []
    for source in sources:
        head = source.head()
        name = recognise(head, source.ending, fmt)
        if source.is_named:
            name = name or _nearest(head)  # it is read far enough to say what is missing
            if name is None or (fmt is not None and name not in (fmt, _NAMES)):
                raise LibraryError(_refusal(source, head, fmt))
        if name is None:
            left_out.append((source, _OTHER_KIND))
        elif fmt is not None and name not in (fmt, _NAMES):
            left_out.append((source, f"{FORMATS[name]}, as another format was named"))
        else:
            todo.append((source, name))
    if not any(name != _NAMES for _, name in todo):
        raise LibraryError(
            f"{sources[0].path}: holds no plays, tags or playlists of a known format ({', '.join(FORMATS)})."
        )
    todo.sort(key=lambda pair: pair[1] != _NAMES)
    return todo, left_out


def _of_one_kind(todo: _Todo, left_out: _LeftOut) -> tuple[_Todo, _LeftOut]:
    """Without what folders and archives hold of other kinds, where nobody asked for it by name."""
    kinds = {_kind(name) for source, name in todo if source.is_named and name != _NAMES}
    kinds = kinds or {min((_kind(name) for _, name in todo if name != _NAMES), key=_KINDS.index)}
    others = [(s, name) for s, name in todo if not s.is_named and name != _NAMES and _kind(name) not in kinds]
    reasons = [(source, f"{FORMATS[name]}: name this format to import it") for source, name in others]
    return [pair for pair in todo if pair not in others], [*left_out, *reasons]


def _refusal(source: Source, head: str, fmt: str | None) -> str:
    """Why a file is not read, without a word of what it holds: it may be anybody's."""
    if not head.strip():
        return f"{source.label}: the file is empty. Export it again."
    ending = ".plist" if "<plist" in head else source.ending
    if ending in _OTHER_LISTS:
        return (
            f"{source.label}: {_OTHER_LISTS[ending]} ({ending}) is not read. "
            f"Save it as M3U8, XSPF or PLS in the program that made it."
        )
    if _HLS_SIGN.search(head):
        return f"{source.label}: this {from_list.HLS}"
    if "\0" in head:
        return f"{source.label}: holds NUL bytes: the file is no text, or UTF-16 without a mark (name its encoding)."
    if spelled_out(head) != head:
        return source.not_text()
    return f"{source.label}: " + (
        f"line 1 is of no known format ({', '.join(FORMATS)}). "
        f"A playlist of paths is known by its ending, .m3u8, or by a first line #EXTM3U."
        if fmt is None
        else f"the file is not of the format {fmt}, {FORMATS[fmt]}. Name its own format, or none."
    )


def _read_all(todo: Sequence[tuple[Source, str]], rows: Gatherer, progress: Progress) -> None:
    total, before = sum(source.size for source, _ in todo), 0
    names: dict[str, NamedSong] = {}
    for source, name in todo:

        def watch(done: int, source: Source = source, before: int = before) -> None:
            progress(source.member or source.path.name, before + done, total)

        lenient = name in _FORMATS and _FORMATS[name].is_lenient
        with source.text("surrogateescape" if lenient else "strict") as (stream, below):
            if name == _NAMES:
                from_text.read_track_names(TextLines(source, stream, below, watch), names)
            elif name == _TRIPLETS:
                from_text.read_triplets(TextLines(source, stream, below, watch), rows, names)
            else:
                fmt = _FORMATS[name]
                is_lines = fmt.source is JsonStream and name not in _DOCUMENTS and _is_lines(source)
                reader = TextLines if is_lines else fmt.source
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
