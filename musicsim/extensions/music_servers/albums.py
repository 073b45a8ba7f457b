"""A server's albums at the last listing. With them, a later sync reads only the songs of albums that changed.

The file is in the library's folder ``cache``. Without it, all songs are listed again.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from musicsim.extensions.music_servers.client import PAGE, Listing, RefusedError, ServerAlbum, Subsonic
from musicsim.extensions.music_servers.server_songs import ServerSong
from musicsim.library import Library
from musicsim.library.disk.arrays import atomic_path


@dataclass(frozen=True, slots=True)
class KnownAlbum:
    """An album when its songs were read."""

    digest: str  # of the server's entry
    songs: tuple[str, ...]  # ids


Albums = dict[str, KnownAlbum]
"""Albums by id; empty if they do not cover all songs of a server."""


@dataclass(frozen=True, slots=True)
class AlbumChanges:
    unchanged: set[str]  # ids of the songs of all other albums
    songs: dict[str, ServerSong]  # songs of new and changed albums, by id
    albums: Albums  # to save


def load_albums(library: Library, server: str) -> Albums:
    try:
        saved = json.loads(_file(library, server).read_text(encoding="utf-8"))
        return {album: KnownAlbum(digest, tuple(songs)) for album, (digest, songs) in saved.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def save_albums(library: Library, server: str, albums: Albums) -> None:
    if not albums:
        _file(library, server).unlink(missing_ok=True)
        return
    text = json.dumps({album: [known.digest, known.songs] for album, known in albums.items()})
    with atomic_path(_file(library, server)) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _file(library: Library, server: str) -> Path:
    return library.folder / "cache" / f"albums of {server}.json"


def albums_of(listing: Listing, albums: Mapping[str, ServerAlbum]) -> Albums:
    """Assign the songs to albums; {} if a song lacks one. Albums without the declared number of songs are left out."""
    songs: dict[str, list[str]] = {}
    for song_id, album_id in listing.album_ids.items():
        songs.setdefault(album_id, []).append(song_id)
    if not songs.keys() <= albums.keys():
        return {}
    return {
        album_id: KnownAlbum(albums[album_id].digest, tuple(song_ids))
        for album_id, song_ids in songs.items()
        if len(song_ids) == albums[album_id].n_songs
    }


def read_changes(client: Subsonic, before: Albums, n_songs: int) -> AlbumChanges | None:
    """Read the songs of new and changed albums; None if albums are unknown, equal, or slower to read than all songs."""
    current = client.albums() if before else {}
    if not current:
        return None
    same = {i: known for i, known in before.items() if i in current and current[i].digest == known.digest}
    to_read = current.keys() - same.keys()
    if len(same) == len(current) == len(before) or len(to_read) > n_songs / PAGE:
        return None
    changes = AlbumChanges({song_id for known in same.values() for song_id in known.songs}, {}, same)
    for album_id in to_read:
        try:
            songs = {song.id: song for song in client.album(album_id)}
        except RefusedError as error:
            if not error.is_not_found:  # otherwise it was deleted meanwhile
                raise
            songs = {}
        changes.songs.update(songs)
        if len(songs) == current[album_id].n_songs:
            changes.albums[album_id] = KnownAlbum(current[album_id].digest, tuple(songs))
    return changes
