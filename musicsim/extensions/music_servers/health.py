"""A check for `musicsim doctor`."""

from collections.abc import Iterator

from musicsim.errors import LibraryError
from musicsim.explorer.health.doctor import PROBLEM, Finding
from musicsim.extensions.music_servers.connections import Connections
from musicsim.library import Library


def check(library: Library) -> Iterator[Finding]:
    try:
        Connections(library).all()
    except LibraryError as error:
        problem = "the file with music servers and passwords cannot be read"
        yield Finding("connections", PROBLEM, problem, "Delete the file and connect the servers again.", (str(error),))
