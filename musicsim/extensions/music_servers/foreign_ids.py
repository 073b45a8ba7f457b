"""Song and artist ids on music servers, as players in other programs send them."""

from functools import lru_cache

from musicsim.extensions.music_servers.client import RefusedError, Subsonic
from musicsim.extensions.music_servers.connections import Connection, Connections
from musicsim.extensions.music_servers.server_songs import ServerSongs, is_id
from musicsim.library import Library


class ServerIds(ServerSongs):
    """Ids of synced songs and of artists; artists are looked up on the servers."""

    def __init__(self, library: Library) -> None:
        super().__init__(library)
        self._library = library

    def artist(self, item_id: str) -> tuple[str, str] | None:
        """Return an artist's server and name, or None. Raises ServerError if a server fails."""
        for connection in Connections(self._library).all() if is_id(item_id) else ():
            try:
                return connection.name, _artist_name(connection, item_id)
            except RefusedError:  # this server does not know the id
                continue
        return None


@lru_cache(maxsize=1000)
def _artist_name(connection: Connection, artist_id: str) -> str:
    return Subsonic(connection).artist_name(artist_id)
