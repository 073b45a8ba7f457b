"""Music servers for tests of players, which are skipped without that extension."""

import pytest

_PACKAGE = "musicsim.extensions.music_servers"


def server_songs(library):
    """Return the ids of songs on servers."""
    return pytest.importorskip(f"{_PACKAGE}.server_songs").ServerSongs(library)


def connect_server(library, name, address):
    connections = pytest.importorskip(f"{_PACKAGE}.connections")
    connections.Connections(library).put(connections.Connection(name, address, "anna", "secret"))
