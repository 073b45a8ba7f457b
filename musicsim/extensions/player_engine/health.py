"""A check for `musicsim doctor`."""

from collections.abc import Iterator

from musicsim.errors import LibraryError
from musicsim.explorer.health.doctor import PROBLEM, Finding
from musicsim.extensions.player_engine.access import player_access
from musicsim.library import Library


def check(library: Library) -> Iterator[Finding]:
    """Find a file of the token that cannot be read."""
    try:
        player_access(library)
    except LibraryError as error:
        words = "what players are let in by cannot be read"
        yield Finding("connections", PROBLEM, words, "Delete the file, and connect them again.", (str(error),))
