"""Playlists of ours on a server: saved, updated and deleted there, without touching any that others made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from musicsim.errors import NotFoundError
from musicsim.extensions.music_servers.client import RefusedError, Subsonic
from musicsim.extensions.music_servers.connections import Connection
from musicsim.extensions.music_servers.server_songs import ServerSongs
from musicsim.library import Library

_MAX_COMMENT = 500  # characters: what servers show


@dataclass(frozen=True, slots=True)
class SavedList:
    """A playlist as it was written to a server."""

    server: str
    name: str
    id: str  # on the server
    song_ids: tuple[int, ...]  # that are in it
    absent: tuple[int, ...]  # that the server does not have


def save_list(
    library: Library,
    connection: Connection,
    name: str,
    song_ids: Sequence[int],
    comment: str,
    request: Mapping[str, Any] | None = None,
) -> SavedList:
    """Write a playlist to a server, in place of the one of this name that we wrote before.

    A playlist of the name that somebody else made stays as it is. `request` is kept with it, to draw it again.

    Raises NotFoundError if the server has none of the songs; ServerError if it fails.
    """
    ids = ServerSongs(library).ids_of(song_ids, connection.name)
    there = [song_id for song_id in song_ids if song_id in ids]
    if not there:
        raise NotFoundError(
            f"{connection.name}: the server has none of the songs of “{name}”. Sync it, or see which songs match."
        )
    client = Subsonic(connection)
    known = ServerSongs(library).lists(connection.name).get(name)
    list_id = _replaced(client, known.id, name, [ids[i] for i in there]) if known else None
    if list_id is None:
        list_id = client.create_playlist(name, [ids[i] for i in there])
    # noted before anything else can fail, so that the next time replaces it
    ServerSongs(library).keep_list(connection.name, name, list_id, request)
    client.describe_playlist(list_id, comment[:_MAX_COMMENT])
    absent = tuple(song_id for song_id in song_ids if song_id not in ids)
    return SavedList(connection.name, name, list_id, tuple(there), absent)


def _replaced(client: Subsonic, list_id: str, name: str, ids: Sequence[str]) -> str | None:
    """The id of a playlist that got other songs; None where it has been deleted on the server."""
    try:
        client.replace_playlist(list_id, name, ids)
    except RefusedError as error:
        if error.is_not_found:
            return None
        raise
    return list_id


def delete_list(library: Library, connection: Connection, name: str) -> None:
    """Delete a playlist of ours from a server.

    Raises NotFoundError if none of this name was written there; ServerError if the server fails.
    """
    known = ServerSongs(library).lists(connection.name).get(name)
    if known is None:
        raise NotFoundError(f"{connection.name}: no playlist “{name}” was written there from here.")
    Subsonic(connection).delete_playlist(known.id)
    ServerSongs(library).forget_list(connection.name, name)
