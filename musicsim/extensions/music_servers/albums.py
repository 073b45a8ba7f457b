"""What a server said of its albums when their songs were read: a later sync reads the songs of those only that differ.

Kept in the library's folder ``cache``: where it is lost, all songs are listed again.
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
    """An album as it was when its songs were read."""

    digest: str  # of what the server said of it
    songs: tuple[str, ...]  # ids


Albums = dict[str, KnownAlbum]
"""Albums by their ids; none where they do not hold all songs of a server."""


@dataclass(frozen=True, slots=True)
class Differing:
    """What differs from the last time."""

    unchanged: set[str]  # ids of the songs of all other albums
    songs: dict[str, ServerSong]  # of new and changed albums, by their ids
    albums: Albums  # to keep


def known_albums(library: Library, server: str) -> Albums:
    """What was kept of a server's albums."""
    try:
        kept = json.loads(_file(library, server).read_text(encoding="utf-8"))
        return {album: KnownAlbum(digest, tuple(songs)) for album, (digest, songs) in kept.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def keep_albums(library: Library, server: str, albums: Mapping[str, KnownAlbum]) -> None:
    """Keep what a server said of its albums; nothing where there are none."""
    if not albums:
        forget_albums(library, server)
        return
    text = json.dumps({album: [known.digest, known.songs] for album, known in albums.items()})
    with atomic_path(_file(library, server)) as temporary:
        temporary.write_text(text, encoding="utf-8")


def forget_albums(library: Library, server: str) -> None:
    """Forget what was kept of a server's albums."""
    _file(library, server).unlink(missing_ok=True)


def _file(library: Library, server: str) -> Path:
    return library.folder / "cache" / f"albums of {server}.json"


def albums_of(listing: Listing, albums: Mapping[str, ServerAlbum]) -> Albums:
    """Albums with their songs as all were listed; none where songs are outside of these albums.

    Albums of which other numbers of songs were listed than they have are left out: they are read the next time.
    """
    songs: dict[str, list[str]] = {}
    for song_id, album_id in listing.album_ids.items():
        songs.setdefault(album_id, []).append(song_id)
    if not songs.keys() <= albums.keys():
        return {}
    return {
        album_id: KnownAlbum(albums[album_id].digest, tuple(found))
        for album_id, found in songs.items()
        if len(found) == albums[album_id].n_songs
    }


def changed_albums(client: Subsonic, before: Albums, n_songs: int) -> Differing | None:
    """Read the songs of new and changed albums.

    None where albums do not tell what has changed: none were kept or are there, or none differs; and where to list all
    of `n_songs` songs takes fewer requests.
    """
    now = client.albums() if before else {}
    if not now:
        return None
    same = {i: known for i, known in before.items() if i in now and now[i].digest == known.digest}
    to_read = now.keys() - same.keys()
    if len(same) == len(now) == len(before) or len(to_read) > n_songs / PAGE:
        return None
    found = Differing({song_id for known in same.values() for song_id in known.songs}, {}, same)
    for album_id in to_read:
        listed = _songs_of(client, album_id)
        found.songs.update(listed)
        if len(listed) == now[album_id].n_songs:
            found.albums[album_id] = KnownAlbum(now[album_id].digest, tuple(listed))
    return found


def _songs_of(client: Subsonic, album_id: str) -> dict[str, ServerSong]:
    try:
        return {song.id: song for song in client.album(album_id)}
    except RefusedError as error:
        if error.is_not_found:  # it has gone meanwhile
            return {}
        raise
