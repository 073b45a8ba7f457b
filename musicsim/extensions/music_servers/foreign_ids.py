"""Ids of songs and artists on music servers, by which players of other programs ask."""

from functools import lru_cache

from musicsim.extensions.music_servers.client import RefusedError, Subsonic
from musicsim.extensions.music_servers.connections import Connection, Connections
from musicsim.extensions.music_servers.server_songs import ServerSongs, is_id
from musicsim.library import Library


class ForeignIds(ServerSongs):
    """Ids of songs, as they were synced, and of artists, for which the servers are asked."""

    def __init__(self, library: Library) -> None:
        super().__init__(library)
        self._library = library

    def artist(self, item_id: str) -> tuple[str, str] | None:
        """The server that an artist's id is from, and the name of the artist; None if no server knows the id.

        Raises ServerError if a server does not answer.
        """
        for connection in Connections(self._library).all() if is_id(item_id) else ():
            try:
                return connection.name, _artist_name(connection, item_id)
            except RefusedError:  # it has no such id
                continue
        return None


@lru_cache(maxsize=1000)
def _artist_name(connection: Connection, artist_id: str) -> str:
    return Subsonic(connection).artist_name(artist_id)
