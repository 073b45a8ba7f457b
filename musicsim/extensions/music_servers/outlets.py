"""The connected servers for other extensions, which write playlists to them."""

from collections.abc import Sequence
from dataclasses import dataclass

from musicsim.extensions.music_servers.connections import Connection, Connections
from musicsim.extensions.music_servers.lists import delete_list, save_list
from musicsim.library import Library


@dataclass(frozen=True, slots=True)
class PlaylistOutlet:
    """Playlists of this library on one server."""

    library: Library
    connection: Connection

    def save(self, name: str, song_ids: Sequence[int], comment: str) -> None:
        """Write a playlist, which replaces the one with this name that this library wrote."""
        save_list(self.library, self.connection, name, song_ids, comment)

    def delete(self, name: str) -> None:
        """Delete a playlist that this library wrote."""
        delete_list(self.library, self.connection, name)


def playlist_outlets(library: Library) -> dict[str, PlaylistOutlet]:
    """Return the connected servers, keyed by name."""
    return {connection.name: PlaylistOutlet(library, connection) for connection in Connections(library).all()}
