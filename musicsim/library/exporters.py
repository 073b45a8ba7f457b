"""Playlists for other programs: M3U8, XSPF and JSPF."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from musicsim.library.store import Song

__all__ = ["FORMATS", "jspf", "m3u8", "xspf"]

_XSPF = "http://xspf.org/ns/0/"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def m3u8(title: str, songs: Sequence[Song], *, relative_to: Path | None = None) -> bytes:
    """An extended M3U in UTF-8.

    Parameters
    ----------
    title : str
    songs : sequence of Song
    relative_to : Path, optional
        The folder the list will stand in; paths are absolute by default.

    Returns
    -------
    bytes
        UTF-8; file names that are no UTF-8 keep their own bytes, which is what players open.

    Raises
    ------
    ValueError
        If a path holds a line break, which the format cannot carry.
    """
    lines = [b"#EXTM3U", f"#PLAYLIST:{_one_line(title)}".encode()]
    for song in songs:
        path = os.fsencode(os.path.relpath(song.path, relative_to) if relative_to else song.path)
        if b"\n" in path or b"\r" in path:
            raise ValueError(f"{song.path!r}: a line break in a file name cannot stand in an M3U8. Use XSPF.")
        if path.startswith(b"#"):
            path = b"./" + path  # a line that starts with # is a comment
        name = _one_line(f"{song.artist or 'unknown artist'} - {song.title}")
        lines += [f"#EXTINF:{round(song.duration_s)},{name}".encode(), path]
    return b"\n".join(lines) + b"\n"


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
    tracks = []
    for song in songs:
        fields = _fields(song, relative_to)
        tracks.append({**fields, "location": [fields["location"]]})
    content = {"playlist": {"title": title, "track": tracks}}
    return json.dumps(content, ensure_ascii=False, indent=2).encode()


def _xml_text(text: str) -> str:
    """Without the control characters that XML has no way to write."""
    return "".join(c for c in text if c in "\t\n\r" or ord(c) >= 0x20)


def _fields(song: Song, relative_to: Path | None) -> dict[str, str | int]:
    from urllib.parse import quote

    if relative_to:
        location = quote(os.fsencode(os.path.relpath(song.path, relative_to)))
    else:
        location = "file://" + quote(os.fsencode(song.path))
    fields: dict[str, str | int] = {"location": location, "title": song.title}
    fields |= {"creator": song.artist} if song.artist else {}
    fields |= {"album": song.album} if song.album else {}
    return fields | {"duration": round(song.duration_s * 1000)}


FORMATS = {"m3u8": m3u8, "xspf": xspf, "jspf": jspf}
"""Writers by the ending of the file."""
