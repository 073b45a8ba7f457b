"""The albums of a library: songs with the same album tag and artist, or untagged songs in the same folder."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from musicsim._arrays import Int64Array
from musicsim.errors import NotFoundError
from musicsim.explorer import Snapshot
from musicsim.extensions.albums.request import AlbumListRequest
from musicsim.library import Library, Song, SongTable, artist_group, stand_in_of

MIN_UNTAGGED = 2  # minimum number of songs without an album tag that make a folder an album
_MAX_NAMED = 5  # maximum number of albums in an error message


@dataclass(frozen=True, slots=True)
class Album:
    """An album. Its id is the lowest id of its songs, so that it survives most changes to the library."""

    id: int
    name: str
    by: str  # the album artist, or the artist of all songs; empty if unknown
    group: str  # shared by albums of the same artist; albums by unknown artists have their own groups
    year: int | None  # the most frequent year of its songs
    duration_s: float
    song_ids: tuple[int, ...]  # ascending; :func:`songs_of` returns the songs in track order

    @property
    def label(self) -> str:
        return f"{self.name} — {self.by}" if self.by else self.name


def list_albums(snapshot: Snapshot) -> Sequence[Album]:
    """Return all albums with at least one song that is not missing, by id; takes 10 s for a million songs."""
    return _read_albums(snapshot.library.table(), snapshot.library)


@lru_cache(maxsize=4)
def _read_albums(table: SongTable, library: Library) -> tuple[Album, ...]:
    """Read the albums. The table is part of the key, because every change to a song makes a new table."""
    tagged = library.album_songs()
    is_tagged = np.zeros(len(table.ids), dtype=np.bool_)
    albums = []
    for (name, by), ids in tagged.items():
        places = table.places_of(sorted(ids))
        places = places[places >= 0]
        is_tagged[places] = True
        if len(places):
            albums.append(_make_album(table, places, name, by))
    for name, places in _find_folders(table, np.flatnonzero(~is_tagged), library.files.roots()):
        albums.append(_make_album(table, places, name, _common_artist(table, places)))
    return tuple(sorted(albums, key=lambda album: album.id))


def _find_folders(table: SongTable, places: Int64Array, roots: Iterable[Path]) -> Iterable[tuple[str, Int64Array]]:
    """Yield the name and the rows of each folder with several untagged songs, except folders with generic names."""
    folder, roots = table.columns.folder, tuple(roots)
    members: dict[str, list[Int64Array]] = {}
    order = places[np.argsort(folder.codes[places], kind="stable")]
    codes, starts = np.unique(folder.codes[order], return_index=True)
    for code, part in zip(codes.tolist(), np.split(order, starts[1:]), strict=False):
        group = artist_group(None, Path(folder.names[code]), roots)  # discs of an album share a group
        if group is not None:
            members.setdefault(group, []).append(part)
    for group, parts in members.items():
        rows = np.sort(np.concatenate(parts))
        name = stand_in_of(group)
        if name is not None and len(rows) >= MIN_UNTAGGED:
            yield name, rows


def _common_artist(table: SongTable, places: Int64Array) -> str:
    names = set(table.columns.artist.texts(places))
    return (names.pop() or "") if len(names) == 1 else ""


def _make_album(table: SongTable, places: Int64Array, name: str, by: str) -> Album:
    ids = table.ids[places].tolist()
    years = Counter(year for year in table.columns.year[places].tolist() if year)
    group = artist_group(by, Path(), ()) or f"album:{ids[0]}"
    year = min(years, key=lambda year: (-years[year], year), default=None)
    return Album(ids[0], name, by, group, year, float(table.columns.duration_s[places].sum()), tuple(ids))


def find_albums(snapshot: Snapshot, request: AlbumListRequest) -> list[Album]:
    """Return the albums whose name or artist contains the words of the request, sorted as requested."""
    words = request.search.casefold().split()
    albums = [album for album in list_albums(snapshot) if all(word in album.label.casefold() for word in words)]

    def value(album: Album) -> Any:
        values = {"name": album.name.casefold(), "artist": album.by.casefold(), "year": album.year or 0}
        return (values | {"songs": len(album.song_ids), "minutes": album.duration_s})[request.sort]

    return sorted(albums, key=value, reverse=request.descending)


def find_album(snapshot: Snapshot, wanted: str | int) -> Album:
    """Return an album by its id, or by its name in any case; raise NotFoundError unless exactly one matches."""
    albums, text = list_albums(snapshot), str(wanted)
    is_id = text.isascii() and text.isdigit()
    found = [album for album in albums if album.id == int(text)] if is_id and len(text) < 19 else []
    found = found or [album for album in albums if text.casefold() in (album.name.casefold(), album.label.casefold())]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(f"{album.id} ({album.label})" for album in found[:_MAX_NAMED])
        raise NotFoundError(f"{len(found)} albums are called {text!r}. Give an id: {ids}.")
    raise NotFoundError(f"{snapshot.library.name}: no album {text[:100]!r}. `musicsim albums list` shows all ids.")


def songs_of(snapshot: Snapshot, album: Album) -> list[Song]:
    """Return an album's songs by track number, or by path if a number occurs twice, as on albums with two discs."""
    songs = snapshot.songs_by_id(album.song_ids)
    numbers = [song.track for song in songs if song.track is not None]
    if len(set(numbers)) < len(numbers):
        return sorted(songs, key=lambda song: str(song.path))
    return sorted(songs, key=lambda song: (song.track is None, song.track or 0, str(song.path)))
