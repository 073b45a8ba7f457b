"""Ids of songs in Jellyfin, which has no interface to ask for them: they follow from the paths of files.

An id is a GUID: MD5 of an item's type and its path in UTF-16 (Jellyfin's ``LibraryManager.GetNewItemId``).
"""

import hashlib
import re
import uuid
from collections.abc import Iterable
from functools import cached_property, lru_cache
from pathlib import Path, PurePosixPath

import numpy as np
import numpy.typing as npt

from musicsim.library import Library
from musicsim.library.stores.files import is_below

_TYPE = "MediaBrowser.Controller.Entities.Audio.Audio"
_GUID = re.compile("[0-9a-f]{32}")
_PAIR = np.dtype([("guid", "S32"), ("song_id", np.int64)])


def jellyfin_id(path: str) -> str:
    """The id of a song whose file Jellyfin finds at a path: 32 hexadecimal digits."""
    digest = hashlib.md5((_TYPE + path).encode("utf-16-le", "replace"), usedforsecurity=False).digest()
    return uuid.UUID(bytes_le=digest).hex


class JellyfinIds:
    """Songs by their ids in Jellyfin, and the reverse.

    Parameters
    ----------
    folder : str
        What Jellyfin calls the folders of music that the library has; "" where it calls them the same.
    """

    def __init__(self, library: Library, folder: str) -> None:
        self._library, self._folder = library, folder

    def song(self, item_id: str) -> int | None:
        """The song of an id, with or without dashes; None where it is none of Jellyfin's ids of a file here."""
        guid = item_id.replace("-", "").lower()
        if not _GUID.fullmatch(guid):
            return None
        listed, revision = _listed(self._library, self._folder), self._library.revision
        song_id = listed.song(guid)
        if listed.revision != revision and (song_id is None or self.ids_of([song_id]).get(song_id) != guid):
            listed.replace(self._all(), revision)
            song_id = listed.song(guid)
        return song_id

    def ids_of(self, song_ids: Iterable[int]) -> dict[int, str]:
        """Ids of songs, by song id, of those that have a file."""
        paths = self._library.files.paths_of(song_ids)
        return {song_id: jellyfin_id(self._there(found[0])) for song_id, found in paths.items()}

    def _all(self) -> npt.NDArray[np.void]:
        files = self._library.files.here()
        pairs = np.fromiter(((jellyfin_id(self._there(path)), i) for i, path in files), _PAIR)
        pairs.sort(order="guid")
        return pairs

    @cached_property
    def _roots(self) -> list[Path]:
        return self._library.files.roots()

    def _there(self, path: Path) -> str:
        root = next((root for root in self._roots if self._folder and is_below(path, root)), None)
        return str(path if root is None else PurePosixPath(self._folder, path.relative_to(root)))


class _Listed:
    """Ids of all files in order with their songs, as they were at a revision; 40 bytes a file."""

    def __init__(self) -> None:
        self.replace(np.empty(0, _PAIR), -1)

    def song(self, guid: str) -> int | None:
        """The song of an id."""
        guids, song_ids = self._arrays
        place = int(np.searchsorted(guids, guid.encode()))
        is_there = place < len(guids) and guids[place] == guid.encode()
        return int(song_ids[place]) if is_there else None

    def replace(self, pairs: npt.NDArray[np.void], revision: int) -> None:
        """Bring it up to a revision."""
        self._arrays = np.ascontiguousarray(pairs["guid"]), pairs["song_id"]
        self.revision = revision


@lru_cache(maxsize=2)
def _listed(library: Library, folder: str) -> _Listed:
    """Kept across revisions: most of them change no file."""
    del library, folder
    return _Listed()
