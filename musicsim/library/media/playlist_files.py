"""Playlists for other programs: M3U8, XSPF, JSPF and PLS.

Songs without a file (:func:`missing`) are not dropped in silence: XSPF and JSPF name them without a location, which
their specifications allow; M3U8 and PLS have lines for files only, and name them in a comment.

VLC, the strictest reader met, takes ``#``, ``?`` and ``%41`` in the paths of M3U and PLS as those of an address:
absolute paths with one of these are written as ``file://`` addresses. Relative ones have no spelling that all
players read, and stay as they are.
"""

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path, PurePath
from xml.etree import ElementTree

from musicsim.library.stores.songs import Song
from musicsim.public import is_public

_XSPF = "http://xspf.org/ns/0/"
_RECORDING = "https://musicbrainz.org/recording/"  # as ListenBrainz writes identifiers
_NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LIKE_ADDRESS = re.compile(rb"[#?]|%[0-9A-Fa-f]{2}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")


def missing(songs: Sequence[Song]) -> list[Song]:
    """Songs that no file holds any more: players cannot play them from the list."""
    return [song for song in songs if song.is_missing]


def _one_line(text: str) -> str:
    return " ".join(_CONTROL.sub(" ", text).split()).encode("utf-8", "replace").decode()


def _named(song: Song) -> str:
    return _one_line(f"{song.artist} - {song.title}" if song.artist else song.title)


def m3u8(title: str, songs: Sequence[Song], *, relative_to: Path | None = None) -> bytes:
    """An extended M3U in UTF-8; songs that are missing become comments.

    Paths are absolute, or relative to the folder that the list will stand in unless they lead to another drive. File
    names that are no UTF-8 keep their own bytes, which is what players open.

    Raises ValueError if a path holds a line break, which the format cannot carry.
    """
    lines = [b"#EXTM3U", f"#PLAYLIST:{_one_line(title)}".encode()]
    for song in songs:
        if song.is_missing:
            lines.append(f"# missing: {_named(song)}".encode())
        else:
            lines += [f"#EXTINF:{round(song.duration_s)},{_named(song)}".encode(), _line(song, relative_to, "an M3U8")]
    return b"\n".join(lines) + b"\n"


def pls(title: str, songs: Sequence[Song], *, relative_to: Path | None = None) -> bytes:
    """A PLS of version 2, its name as GNOME's players write it; arguments and errors as of :func:`m3u8`."""
    lines = [b"[playlist]", f"X-GNOME-Title={_one_line(title)}".encode()]
    lines += [f"; missing: {_named(song)}".encode() for song in missing(songs)]
    present = [song for song in songs if not song.is_missing]
    for number, song in enumerate(present, 1):
        lines += [
            f"File{number}=".encode() + _line(song, relative_to, "a PLS"),
            f"Title{number}={_named(song)}".encode(),
            f"Length{number}={round(song.duration_s)}".encode(),
        ]
    lines += [f"NumberOfEntries={len(present)}".encode(), b"Version=2"]
    return b"\n".join(lines) + b"\n"


def _line(song: Song, relative_to: Path | None, kind: str) -> bytes:
    way = _relative(song.path, relative_to)
    path = os.fsencode(way or song.path)
    if b"\n" in path or b"\r" in path:
        raise ValueError(f"{song.path!r}: a line break in a file name cannot be saved in {kind}. Use XSPF.")
    if way is None:
        return song.path.as_uri().encode() if _LIKE_ADDRESS.search(path) else path
    # such beginnings are read as comments, as addresses ("a:b.mp3"), as the root of a drive, or not at all
    if path.startswith((b"#", b";", b" ", b"\\")) or b":" in path:
        return os.fsencode(os.path.join(os.curdir, "")) + path
    return path


def _relative(path: PurePath, relative_to: Path | None) -> str | None:
    """The path as seen from a folder; None where there is none, as from one drive of Windows to another.

    Visitors of a public demonstration are told the file's name alone.
    """
    if is_public():
        return path.name
    try:
        return os.path.relpath(path, relative_to) if relative_to else None
    except ValueError:
        return None


def location(path: PurePath, relative_to: Path | None = None) -> str:
    """The address of a file: ``file:///music/a.mp3``, ``file:///C:/music/a.mp3``, or relative to a folder."""
    from urllib.parse import quote

    way = _relative(path, relative_to)
    if way is None:
        return path.as_uri()
    # such a beginning is read as the root of a drive, once its quoting has gone
    way = os.path.join(os.curdir, way) if way.startswith("\\") else way
    return quote(os.fsencode(way.replace(os.sep, "/")))


def xspf(title: str, songs: Sequence[Song], *, relative_to: Path | None = None) -> bytes:
    """An XML shareable playlist, version 1; locations are ``file://`` or relative addresses."""
    ElementTree.register_namespace("", _XSPF)
    root = ElementTree.Element(f"{{{_XSPF}}}playlist", version="1")
    ElementTree.SubElement(root, f"{{{_XSPF}}}title").text = _xml_text(title)
    tracks = ElementTree.SubElement(root, f"{{{_XSPF}}}trackList")
    for song in songs:
        track = ElementTree.SubElement(tracks, f"{{{_XSPF}}}track")
        for name, value in _fields(song, relative_to).items():
            ElementTree.SubElement(track, f"{{{_XSPF}}}{name}").text = _xml_text(str(value))
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)


def jspf(title: str, songs: Sequence[Song], *, relative_to: Path | None = None) -> bytes:
    """The same as JSON."""
    listed = ("location", "identifier")
    fields = (_fields(song, relative_to).items() for song in songs)
    tracks = [{name: [value] if name in listed else value for name, value in track} for track in fields]
    content = {"playlist": {"title": title, "track": tracks}}
    return json.dumps(content, ensure_ascii=False, indent=2).encode("utf-8", "replace")


def _xml_text(text: str) -> str:
    return _NOT_IN_XML.sub("", text)


def _fields(song: Song, relative_to: Path | None) -> dict[str, str | int]:
    """What XSPF and JSPF say of a song, in the order of the specification."""
    fields: dict[str, str | int] = {} if song.is_missing else {"location": location(song.path, relative_to)}
    fields |= {"identifier": _RECORDING + song.mb_recording_id} if song.mb_recording_id else {}
    fields["title"] = song.title
    fields |= {"creator": song.artist} if song.artist else {}
    fields |= {"album": song.album} if song.album else {}
    return fields | {"duration": round(song.duration_s * 1000)}


FORMATS = {"m3u8": m3u8, "xspf": xspf, "jspf": jspf, "pls": pls}
"""Writers by the ending of the file."""

MIME = {"m3u8": "audio/x-mpegurl", "xspf": "application/xspf+xml", "jspf": "application/json", "pls": "audio/x-scpls"}
"""What browsers and servers call the files, by the same ending."""
