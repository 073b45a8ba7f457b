"""Where an entry of a playlist leads: paths as players write them, and the files of a library that they may mean."""

import os
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from musicsim.addresses import text_without_users
from musicsim.audio import AUDIO_EXTENSIONS

_WEB = re.compile(r"(?!file:)[a-z][a-z0-9+.\-]+://|spotify:", re.IGNORECASE)
_FILE = re.compile(r"file:(?://(?P<host>[^/\\]*))?(?P<path>[/\\].*)?$", re.IGNORECASE | re.DOTALL)
_ABSOLUTE = re.compile(r"[/\\]|[A-Za-z]:[/\\]")
_PARTS = re.compile(r"[/\\]+")
_DRIVE = re.compile(r"[a-z]:")
# paths that have one spelling: normalized ASCII without quotes, backslashes, and spaces around them
_PLAIN = re.compile(r"(?:/(?!\.{0,2}(?:/|$))[!-$&-.0-\[\]-~ ]+)+(?<! )", re.ASCII)
# parts of a path that say nothing of the song: "01", "Track 3", "CD1", "Unknown Artist"
_EMPTY_WORDS = re.compile(
    r"(?:\d|[\W_]|track|titel|title|song|piste|cd|disc|disk|side|audio|unknown|artist|album|music)*"
)


def is_web(place: str) -> bool:
    """Whether an entry is an address on the net, and no file."""
    return _WEB.match(place) is not None


def names_audio(place: str) -> bool:
    """Whether a path or address ends as those of audio files do; nothing is opened."""
    path = re.split(r"[?#]", place, maxsplit=1)[0] if is_web(place) else place
    return os.path.splitext(path.strip())[1].lower() in AUDIO_EXTENSIONS


def spelled_out(text: str) -> str:
    """Text without bytes that are not UTF-8: such a text is read as Windows and Latin players wrote it."""
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
    """The path that an XSPF or JSPF location stands for; addresses on the net are left as they are.

    Locations with spaces, which no address has, are paths that a player forgot to quote.
    """
    text = text.strip()
    if is_web(text) or _FILE.match(text) or " " in text:
        return text
    return _unquoted(text)


def _unquoted(text: str) -> str:
    return unquote_to_bytes(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogateescape")


def resolved(place: str, folder: Path | None) -> str:
    """A path as it is written in a list, led back to the list's folder.

    It has ``/`` or ``\\``, or is a ``file:`` address; an address on the net stays as it is. Without a folder relative
    paths stay relative, as in an archive. Bytes that are not UTF-8 stand in it as :func:`os.fsdecode` has them.
    """
    if not place or is_web(place):
        return place
    if address := _FILE.match(place):
        path = _unquoted(address["path"] or "")
        host = address["host"] or ""
        if re.match(r"[/\\][A-Za-z][:|]", path):
            return f"{path[1]}:{path[3:]}"
        return path if host.lower() in ("", "localhost") else f"//{host}{path}"
    if _ABSOLUTE.match(place) or folder is None:
        return place
    return os.path.normpath(os.path.join(folder, place))


def file_name(place: str) -> str:
    """The last part of a path, or an address on the net without a user name or password."""
    return text_without_users(place) if is_web(place) else spelled_out(_PARTS.split(place)[-1])


class Ending(NamedTuple):
    """A song whose path ends as another does; `n_telling` of the parts in common say something of the song."""

    song_id: int
    n_telling: int


class PlaceIndex:
    """The paths of a library's files, to be found whole or by their ends.

    Of each file its path, song id, and whether it is there; of one path the first counts. Memory: 0.4 kB a file.
    """

    def __init__(self, files: Iterable[tuple[Path, int, bool]]) -> None:
        self._whole: dict[str, int] = {}
        ends = []
        for path, song_id, is_here in files:
            if self._whole.setdefault(os.fspath(path), song_id) == song_id:
                ends.append((_backwards(os.fspath(path)), song_id, is_here))
        ends.sort()
        self._keys = [key for key, _, _ in ends]
        self._songs = [(song_id, is_here) for _, song_id, is_here in ends]
        self._names = {key.partition("\0")[0] for key in self._keys}
        self._only_of: dict[str, int | None] = {}

    def whole(self, place: str) -> int | None:
        """The song of the file at this path, in any of the spellings that players use for it."""
        for spelling in _spellings(place):
            if (song_id := self._whole.get(spelling)) is not None:
                return song_id
        return None

    def by_end(self, place: str) -> Ending | None:
        """The one song whose path has the longest end in common, if it is one only.

        Case, the kind of slash and the form of accents do not count. Files that are there go before missing ones.
        """
        for spelling in dict.fromkeys(spelled_out(s) for s in _spellings(place)):
            name = _plain_part(_PARTS.split(spelling)[-1])
            if name and not _DRIVE.fullmatch(name) and name not in self._names:
                continue  # nothing in common: most entries of a long list of another machine
            key = _backwards(spelling)
            at = bisect_left(self._keys, key)
            near = [_common(key, self._keys[i]) for i in (at - 1, at) if 0 <= i < len(self._keys)]
            shared = max(near, key=len, default="")
            if shared:
                if shared not in self._only_of:  # an end that many entries share would be looked through for each
                    self._only_of[shared] = self._find_only(shared)
                song_id = self._only_of[shared]
                return None if song_id is None else Ending(song_id, _telling(shared))
        return None

    def _find_only(self, shared: str) -> int | None:
        found: dict[bool, set[int]] = {True: set(), False: set()}
        # parts end in NUL, the smallest character: what shares them stands together
        for i in range(bisect_left(self._keys, shared), bisect_left(self._keys, shared[:-1] + "\x01")):
            song_id, is_here = self._songs[i]
            found[is_here].add(song_id)
            if len(found[True]) > 1:
                return None
        one = found[True] or found[False]
        return next(iter(one)) if len(one) == 1 else None


def _spellings(place: str) -> Iterator[str]:
    """Yield a path as it is written, and as players write it that quote, use backslashes, or another encoding."""
    yield place
    if _PLAIN.fullmatch(place):
        return
    yield os.path.normpath(place)
    if "\\" in place:
        yield os.path.normpath(place.replace("\\", "/"))
    if "%" in place:
        yield os.path.normpath(_unquoted(place))
    if (other := spelled_out(place)) != place:
        yield other
    if (bare := place.strip()) != place:
        yield bare


def _backwards(path: str) -> str:
    """The parts of a path from the last to the first, each ending in NUL, without differences of case and accents."""
    parts = map(_plain_part, _PARTS.split(path))
    return "".join(f"{part}\0" for part in reversed([*parts]) if part and not _DRIVE.fullmatch(part))


def _plain_part(part: str) -> str:
    return unicodedata.normalize("NFC", part.replace("\0", " ")).casefold().strip()


def _common(key: str, other: str) -> str:
    pairs = zip(key.split("\0")[:-1], other.split("\0")[:-1], strict=False)
    return "".join(f"{part}\0" for part, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _telling(shared: str) -> int:
    name, *folders = shared.split("\0")[:-1]
    parts = (name.rpartition(".")[0] or name, *folders)
    return sum(_EMPTY_WORDS.fullmatch(part) is None for part in parts)
