"""Playlist files for other programs: M3U8, XSPF, JSPF and PLS. Missing songs are listed, too.

VLC, the strictest player tested, reads ``#``, ``?`` and ``%41`` in paths of M3U and PLS as parts of an address.
Therefore, absolute paths that contain one of these are written as ``file://`` addresses. No spelling of relative paths
works in all players, so they stay unchanged.
"""

import json
import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path, PurePath
from xml.etree import ElementTree

from musicsim.errors import LibraryError
from musicsim.library.stores.songs import Song
from musicsim.public import is_public

_XSPF = "http://xspf.org/ns/0/"
_RECORDING = "https://musicbrainz.org/recording/"  # prefix of recording addresses in the form that ListenBrainz uses
_NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LIKE_ADDRESS = re.compile(rb"[#?]|%[0-9A-Fa-f]{2}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")


def missing(songs: Sequence[Song]) -> list[Song]:
    return [song for song in songs if song.is_missing]


def _one_line(text: str) -> str:
    return " ".join(_CONTROL.sub(" ", text).split()).encode("utf-8", "replace").decode()


def _name(song: Song) -> str:
    return _one_line(f"{song.artist} - {song.title}" if song.artist else song.title)


def m3u8(title: str, songs: Sequence[Song], *, relative_to: Path | None = None) -> bytes:
    """Return an extended M3U in UTF-8, with missing songs as comments. Raises ValueError for a line break in a path.

    Paths are absolute, or relative to the folder `relative_to` if they are on its drive.
    """
    lines = [b"#EXTM3U", f"#PLAYLIST:{_one_line(title)}".encode()]
    for song in songs:
        if song.is_missing:
            lines.append(f"# missing: {_name(song)}".encode())
        else:
            lines += [f"#EXTINF:{round(song.duration_s)},{_name(song)}".encode(), _line(song, relative_to, "an M3U8")]
    return b"\n".join(lines) + b"\n"


def pls(title: str, songs: Sequence[Song], *, relative_to: Path | None = None) -> bytes:
    """Return a PLS file, version 2, with the title as GNOME's players write it. For the arguments, see :func:`m3u8`."""
    lines = [b"[playlist]", f"X-GNOME-Title={_one_line(title)}".encode()]
    lines += [f"; missing: {_name(song)}".encode() for song in missing(songs)]
    present = [song for song in songs if not song.is_missing]
    for number, song in enumerate(present, 1):
        lines += [
            f"File{number}=".encode() + _line(song, relative_to, "a PLS"),
            f"Title{number}={_name(song)}".encode(),
            f"Length{number}={round(song.duration_s)}".encode(),
        ]
    lines += [f"NumberOfEntries={len(present)}".encode(), b"Version=2"]
    return b"\n".join(lines) + b"\n"


def _line(song: Song, relative_to: Path | None, kind: str) -> bytes:
    relative = _relative(song.path, relative_to)
    path = os.fsencode(relative or song.path)
    if b"\n" in path or b"\r" in path:
        raise ValueError(f"{song.path!r}: a line break in a file name cannot be saved in {kind}. Use XSPF.")
    if relative is None:
        return song.path.as_uri().encode() if _LIKE_ADDRESS.search(path) else path
    # players strip these, or read them as comments, addresses ("a:b.mp3") or the root of a drive
    if path.startswith((b"#", b";", b" ", b"\\")) or b":" in path:
        return os.fsencode(os.path.join(os.curdir, "")) + path
    return path


def _relative(path: PurePath, relative_to: Path | None) -> str | None:
    """Return the path relative to a folder, or the file name for visitors; None if there is no relative path."""
    if is_public():
        return path.name
    try:
        return os.path.relpath(path, relative_to) if relative_to else None
    except ValueError:  # two different Windows drives
        return None


def location(path: PurePath, relative_to: Path | None = None) -> str:
    """Return the address of a file: ``file:///music/a.mp3``, ``file:///C:/music/a.mp3``, or relative to a folder."""
    from urllib.parse import quote

    relative = _relative(path, relative_to)
    if relative is None:
        return path.as_uri()
    # a leading backslash is read as the root of a drive after unquoting
    relative = os.path.join(os.curdir, relative) if relative.startswith("\\") else relative
    return quote(os.fsencode(relative.replace(os.sep, "/")))


def xspf(title: str, songs: Sequence[Song], *, relative_to: Path | None = None) -> bytes:
    """Return an XSPF playlist, version 1; locations are ``file://`` or relative addresses."""
    ElementTree.register_namespace("", _XSPF)
    root = ElementTree.Element(f"{{{_XSPF}}}playlist", version="1")
    ElementTree.SubElement(root, f"{{{_XSPF}}}title").text = _NOT_IN_XML.sub("", title)
    tracks = ElementTree.SubElement(root, f"{{{_XSPF}}}trackList")
    for song in songs:
        track = ElementTree.SubElement(tracks, f"{{{_XSPF}}}track")
        for name, value in _fields(song, relative_to).items():
            ElementTree.SubElement(track, f"{{{_XSPF}}}{name}").text = _NOT_IN_XML.sub("", str(value))
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)


def jspf(title: str, songs: Sequence[Song], *, relative_to: Path | None = None) -> bytes:
    """Return the playlist of :func:`xspf` as JSON."""
    tracks = [
        {name: [value] if name in ("location", "identifier") else value for name, value in fields.items()}
        for fields in (_fields(song, relative_to) for song in songs)
    ]
    content = {"playlist": {"title": title, "track": tracks}}
    return json.dumps(content, ensure_ascii=False, indent=2).encode("utf-8", "replace")


def _fields(song: Song, relative_to: Path | None) -> dict[str, str | int]:
    """Return the fields of XSPF and JSPF for a song, in the order of the specification."""
    fields: dict[str, str | int] = {} if song.is_missing else {"location": location(song.path, relative_to)}
    fields |= {"identifier": _RECORDING + song.mb_recording_id} if song.mb_recording_id else {}
    fields["title"] = song.title
    fields |= {"creator": song.artist} if song.artist else {}
    fields |= {"album": song.album} if song.album else {}
    return fields | {"duration": round(song.duration_s * 1000)}


PLAYLIST_FORMATS = {"m3u8": m3u8, "xspf": xspf, "jspf": jspf, "pls": pls}
"""Writers, keyed by file extension."""

PLAYLIST_MIME = {
    "m3u8": "audio/x-mpegurl",
    "xspf": "application/xspf+xml",
    "jspf": "application/json",
    "pls": "audio/x-scpls",
}
"""MIME types, keyed by file extension."""


def find_ending(target: Path, endings: Collection[str] = PLAYLIST_FORMATS.keys()) -> str:
    """Return the ending of a file name without the dot; raises LibraryError if it is none of `endings`."""
    ending = target.suffix.lower().lstrip(".")
    if ending not in endings:
        raise LibraryError(f"{target}: use a file name that ends in {', '.join('.' + name for name in endings)}.")
    return ending
