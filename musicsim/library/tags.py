"""What a file says of itself: title, artist and the rest, read by mutagen.

Tags are often wrong, missing or monstrous. Whatever happens here, a file that plays stays playable:
the worst outcome is a song named after its file.
"""

import logging
import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["FileTags", "read_tags"]

_log = logging.getLogger(__name__)
_LONGEST = 300  # characters; what is longer is no name but a mistake


@dataclass(frozen=True, slots=True)
class FileTags:
    """Tags of one file; None where the file does not say."""

    title: str
    artist: str | None = None
    album_artist: str | None = None
    album: str | None = None
    track: int | None = None
    year: int | None = None
    genre: str | None = None


def _title_from_name(path: Path) -> str:
    """The file's name without its ending and a leading track number."""
    stem = path.stem.encode("utf-8", "replace").decode()
    return re.sub(r"^\d{1,3}\s*[-._ ]\s*", "", stem).strip() or stem or "untitled"


def _clean(values: list[str] | None) -> str | None:
    if not values:
        return None
    text = "".join(c if c.isprintable() else " " for c in str(values[0])[: 4 * _LONGEST])
    text = " ".join(text.encode("utf-8", "replace").decode().split())
    return text[:_LONGEST] or None


def _number(text: str | None, low: int, high: int, pattern: str) -> int | None:
    found = re.search(pattern, text or "")
    return int(found[0]) if found and low <= int(found[0]) <= high else None


def _named_values(path: Path) -> dict[str, list[str]]:
    """Tags under mutagen's easy names; ASF keeps its own names even in easy mode."""
    import mutagen
    from mutagen.id3 import ID3

    audio = mutagen.File(path, easy=True)
    if audio is None or audio.tags is None:
        return {}
    if isinstance(audio.tags, ID3):  # WAV and AIFF hold ID3 frames without easy names
        frames = {
            "title": "TIT2",
            "artist": "TPE1",
            "albumartist": "TPE2",
            "album": "TALB",
            "tracknumber": "TRCK",
            "date": "TDRC",
            "genre": "TCON",
        }
        return {
            name: [str(t) for t in audio.tags[frame].text]
            for name, frame in frames.items()
            if frame in audio.tags
        }
    asf = {
        "wm/albumartist": "albumartist",
        "author": "artist",
        "wm/albumtitle": "album",
        "wm/tracknumber": "tracknumber",
        "wm/year": "date",
        "wm/genre": "genre",
    }
    apev2 = {"album artist": "albumartist", "track": "tracknumber", "year": "date"}
    values: dict[str, list[str]] = {}
    for key, value in audio.tags.items():
        name = str(key).lower()
        listed = value if isinstance(value, (list, tuple)) else [value]
        values.setdefault(asf.get(name) or apev2.get(name) or name, [str(v) for v in listed])
    return values


def read_tags(path: Path) -> FileTags:
    """Read the tags of an audio file.

    Parameters
    ----------
    path : Path

    Returns
    -------
    FileTags
        With a title in every case: the file's name stands in.
    """
    try:
        values = _named_values(path)
    except Exception as error:
        # mutagen raises far more than its own MutagenError on hostile files (struct, Unicode, memory,
        # index errors): whatever it is, the song itself can still be played.
        _log.warning("%s: tags cannot be read (%s); the file's name stands in.", path, error)
        values = {}
    date = _clean(values.get("date")) or _clean(values.get("originaldate"))
    return FileTags(
        title=_clean(values.get("title")) or _title_from_name(path),
        artist=_clean(values.get("artist")),
        album_artist=_clean(values.get("albumartist")),
        album=_clean(values.get("album")),
        track=_number(_clean(values.get("tracknumber")), 1, 9999, r"\d+"),
        year=_number(date, 1000, 2999, r"\d{4}"),
        genre=_clean(values.get("genre")),
    )
