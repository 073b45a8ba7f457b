"""Music servers for tests of players, which are skipped without that extension."""

import pytest

_PACKAGE = "musicsim.extensions.music_servers"


def server_songs(library):
    """Return the ids of songs on servers."""
    return pytest.importorskip(f"{_PACKAGE}.server_songs").ServerSongs(library)


def connect_songs(library, server, ids):
    """Add songs of a server, with its ids by song id."""
    module = pytest.importorskip(f"{_PACKAGE}.server_songs")
    server_songs(library).write(server, [module.ServerSong(key, song_id=i) for i, key in ids.items()])


def connect_server(library, name, address):
    connections = pytest.importorskip(f"{_PACKAGE}.connections")
    connections.Connections(library).put(connections.Connection(name, address, "anna", "secret"))
