"""Ids of songs in Jellyfin: MD5 hashes of an item's type and path in UTF-16 (``LibraryManager.GetNewItemId``)."""

import hashlib
import re
import uuid
from collections.abc import Iterable
from functools import cached_property, lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Int64Array
from musicsim.library import Library, is_below

_TYPE = "MediaBrowser.Controller.Entities.Audio.Audio"
_GUID = re.compile("[0-9a-f]{32}")
_PAIR = np.dtype([("guid", "S32"), ("song_id", np.int64)])


def jellyfin_id(path: str) -> str:
    """Return Jellyfin's id for the song at a path: 32 hexadecimal digits."""
    digest = hashlib.md5((_TYPE + path).encode("utf-16-le", "replace"), usedforsecurity=False).digest()
    return uuid.UUID(bytes_le=digest).hex


class JellyfinIds:
    """Converts Jellyfin's ids to songs and back; `folder` is the path of the music folder in Jellyfin, or ""."""

    def __init__(self, library: Library, folder: str) -> None:
        self._library, self._folder = library, folder

    def song(self, item_id: str) -> int | None:
        """Return the song with a Jellyfin id, which may contain hyphens; None if no file has this id."""
        guid = item_id.replace("-", "").lower()
        if not _GUID.fullmatch(guid):
            return None
        cache, revision = _cache(self._library, self._folder), self._library.revision
        song_id = cache.song(guid)
        if cache.revision != revision and (song_id is None or self.ids_of([song_id]).get(song_id) != guid):
            pairs = np.fromiter(((self._id(path), i) for i, path in self._library.files.here()), _PAIR)
            pairs.sort(order="guid")
            # one assignment, because threads share the cache
            cache.arrays = np.ascontiguousarray(pairs["guid"]), pairs["song_id"]
            cache.revision = revision
            song_id = cache.song(guid)
        return song_id

    def ids_of(self, song_ids: Iterable[int]) -> dict[int, str]:
        """Return a dict from song id to Jellyfin id, for the songs that have a file."""
        paths = self._library.files.paths_of(song_ids)
        return {song_id: self._id(files[0]) for song_id, files in paths.items()}

    @cached_property
    def _roots(self) -> list[Path]:
        return self._library.files.roots()

    def _id(self, path: Path) -> str:
        root = next((root for root in self._roots if self._folder and is_below(path, root)), None)
        return jellyfin_id(str(path if root is None else PurePosixPath(self._folder, path.relative_to(root))))


class _IdCache:
    """Sorted Jellyfin ids of all files at a revision, with their songs; takes 40 bytes per file."""

    def __init__(self) -> None:
        self.arrays: tuple[npt.NDArray[Any], Int64Array] = np.empty(0, "S32"), np.empty(0, np.int64)
        self.revision = -1

    def song(self, guid: str) -> int | None:
        guids, song_ids = self.arrays
        place = int(np.searchsorted(guids, guid.encode()))
        return int(song_ids[place]) if place < len(guids) and guids[place] == guid.encode() else None


@lru_cache(maxsize=2)
def _cache(library: Library, folder: str) -> _IdCache:
    """Return the cache for a library; it is kept for later revisions, because few revisions change files."""
    del library, folder  # used only as cache keys
    return _IdCache()
