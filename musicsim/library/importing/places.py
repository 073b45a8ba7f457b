"""Paths and addresses in playlists, and the files in a library that they may refer to."""

import os
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from musicsim.addresses import strip_users
from musicsim.audio import AUDIO_EXTENSIONS

_WEB = re.compile(r"(?!file:)[a-z][a-z0-9+.\-]+://|spotify:", re.IGNORECASE)
_FILE = re.compile(r"file:(?://(?P<host>[^/\\]*))?(?P<path>[/\\].*)?$", re.IGNORECASE | re.DOTALL)
_ABSOLUTE = re.compile(r"[/\\]|[A-Za-z]:[/\\]")
_PARTS = re.compile(r"[/\\]+")
_DRIVE = re.compile(r"[a-z]:")
# paths with only one spelling: normalized ASCII without percent signs, backslashes or surrounding spaces
_PLAIN = re.compile(r"(?:/(?!\.{0,2}(?:/|$))[!-$&-.0-\[\]-~ ]+)+(?<! )", re.ASCII)
# uninformative parts of a path: "01", "Track 3", "CD1", "Unknown Artist"
_EMPTY_WORDS = re.compile(
    r"(?:\d|[\W_]|track|titel|title|song|piste|cd|disc|disk|side|audio|unknown|artist|album|music)*"
)


def is_web(place: str) -> bool:
    return _WEB.match(place) is not None


def names_audio(place: str) -> bool:
    path = re.split(r"[?#]", place, maxsplit=1)[0] if is_web(place) else place
    return os.path.splitext(path.strip())[1].lower() in AUDIO_EXTENSIONS


def spell_out(text: str) -> str:
    """Return text without surrogates. Bytes that are not UTF-8 are decoded as Windows-1252 or Latin-1."""
    try:
        text.encode()
    except UnicodeEncodeError:
        is_bytes = not any("\ud800" <= c < "\udc80" or "\udcff" < c <= "\udfff" for c in text)
        data = text.encode("utf-8", "surrogateescape" if is_bytes else "replace")
        try:
            return data.decode("cp1252")
        except UnicodeDecodeError:
            return data.decode("latin-1")
    return text


def from_address(text: str) -> str:
    """Return the path of an XSPF or JSPF location, even if it is not percent-encoded; web addresses are unchanged."""
    text = text.strip()
    return text if is_web(text) or _FILE.match(text) or " " in text else _unquote(text)


def _unquote(text: str) -> str:
    return unquote_to_bytes(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogateescape")


def resolve_place(place: str, folder: Path | None) -> str:
    """Return the path of a playlist entry, resolved against the playlist's folder; web addresses are unchanged."""
    if not place or is_web(place):
        return place
    if address := _FILE.match(place):
        path = _unquote(address["path"] or "")
        host = address["host"] or ""
        if re.match(r"[/\\][A-Za-z][:|]", path):
            return f"{path[1]}:{path[3:]}"
        return path if host.lower() in ("", "localhost") else f"//{host}{path}"
    if _ABSOLUTE.match(place) or folder is None:
        return place
    return os.path.normpath(os.path.join(folder, place))


def file_name(place: str) -> str:
    """Return the last part of a path, or a web address without user name and password."""
    return strip_users(place) if is_web(place) else spell_out(_PARTS.split(place)[-1])


class Ending(NamedTuple):
    """A song whose path has the same end as a given path; `n_telling` is the number of informative parts in common."""

    song_id: int
    n_telling: int


class PlaceIndex:
    """An index for finding complete paths or the ends of paths; 0.4 kB per file.

    `files` contains each file's path, its song's id, and whether the file exists. The first of two equal paths is used.
    """

    def __init__(self, files: Iterable[tuple[Path, int, bool]]) -> None:
        self._whole: dict[str, int] = {}
        ends = []
        for path, song_id, is_here in files:
            if self._whole.setdefault(os.fspath(path), song_id) == song_id:
                ends.append((_reverse(os.fspath(path)), song_id, is_here))
        ends.sort()
        self._keys = [key for key, _, _ in ends]
        self._songs = [(song_id, is_here) for _, song_id, is_here in ends]
        self._names = {key.partition("\0")[0] for key in self._keys}
        self._only_of: dict[str, int | None] = {}

    def find_whole(self, place: str) -> int | None:
        """Return the song of the file at this path, in any spelling that players use."""
        songs = (self._whole.get(spelling) for spelling in _spellings(place))
        return next((song_id for song_id in songs if song_id is not None), None)

    def find_by_end(self, place: str) -> Ending | None:
        """Return the song whose path has the longest end in common with `place`, if it is unique."""
        for spelling in dict.fromkeys(map(spell_out, _spellings(place))):
            name = _plain_part(_PARTS.split(spelling)[-1])
            if name and not _DRIVE.fullmatch(name) and name not in self._names:
                continue  # fast path: true for most entries of a long playlist from another machine
            key = _reverse(spelling)
            at = bisect_left(self._keys, key)
            near = [_common_parts(key, self._keys[i]) for i in (at - 1, at) if 0 <= i < len(self._keys)]
            shared = max(near, key=len, default="")
            if shared:
                if shared not in self._only_of:  # cached, because many entries may need the same long scan
                    self._only_of[shared] = self._find_only(shared)
                song_id = self._only_of[shared]
                if song_id is None:
                    return None
                name, *folders = shared.split("\0")[:-1]
                parts = (name.rpartition(".")[0] or name, *folders)
                return Ending(song_id, sum(_EMPTY_WORDS.fullmatch(part) is None for part in parts))
        return None

    def _find_only(self, shared: str) -> int | None:
        songs: dict[bool, set[int]] = {True: set(), False: set()}
        # parts end in NUL, the smallest character, so keys with the same first parts are adjacent
        for i in range(bisect_left(self._keys, shared), bisect_left(self._keys, shared[:-1] + "\x01")):
            song_id, is_here = self._songs[i]
            songs[is_here].add(song_id)
            if len(songs[True]) > 1:
                return None
        best = songs[True] or songs[False]
        return next(iter(best)) if len(best) == 1 else None


def _spellings(place: str) -> Iterator[str]:
    """Yield a path as written, then with corrections for the backslashes, encodings and spaces of players."""
    yield place
    if _PLAIN.fullmatch(place):
        return
    yield os.path.normpath(place)
    if "\\" in place:
        yield os.path.normpath(place.replace("\\", "/"))
    if "%" in place:
        yield os.path.normpath(_unquote(place))
    if (other := spell_out(place)) != place:
        yield other
    if (bare := place.strip()) != place:
        yield bare


def _reverse(path: str) -> str:
    """Return the parts of a path from last to first, each followed by NUL, with normalized case and accents."""
    parts = map(_plain_part, _PARTS.split(path))
    return "".join(f"{part}\0" for part in reversed([*parts]) if part and not _DRIVE.fullmatch(part))


def _plain_part(part: str) -> str:
    return unicodedata.normalize("NFC", part.replace("\0", " ")).casefold().strip()


def _common_parts(key: str, other: str) -> str:
    pairs = zip(key.split("\0")[:-1], other.split("\0")[:-1], strict=False)
    return "".join(f"{part}\0" for part, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
