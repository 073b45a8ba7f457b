"""Music servers for tests of players; without that extension, these tests are skipped."""

import pytest

_PACKAGE = "musicsim.extensions.music_servers"


def server_songs(library):
    """Ids of songs on servers."""
    return pytest.importorskip(f"{_PACKAGE}.server_songs").ServerSongs(library)


def connect_server(library, name, address):
    """Connect a server."""
    connections = pytest.importorskip(f"{_PACKAGE}.connections")
    connections.Connections(library).put(connections.Connection(name, address, "anna", "secret"))
