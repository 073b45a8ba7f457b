"""A check for `musicsim doctor`."""

from collections.abc import Iterator

from musicsim.errors import LibraryError
from musicsim.explorer.health.doctor import PROBLEM, Finding
from musicsim.extensions.music_servers.connections import Connections
from musicsim.library import Library


def check(library: Library) -> Iterator[Finding]:
    """Find a file of passwords that cannot be read."""
    try:
        Connections(library).all()
    except LibraryError as error:
        words = "what music servers are let in by cannot be read"
        yield Finding("connections", PROBLEM, words, "Delete the file, and connect them again.", (str(error),))
