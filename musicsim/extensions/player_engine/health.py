"""A check for `musicsim doctor`."""

from collections.abc import Iterator

from musicsim.errors import LibraryError
from musicsim.explorer.health.doctor import PROBLEM, Finding
from musicsim.extensions.player_engine.access import player_access
from musicsim.library import Library


def check(library: Library) -> Iterator[Finding]:
    try:
        player_access(library)
    except LibraryError as error:
        problem = "the file with the players' token cannot be read"
        yield Finding("connections", PROBLEM, problem, "Delete the file and connect the players again.", (str(error),))
