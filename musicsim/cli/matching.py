"""Messages about the songs that match the filters and words of a command."""

from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np

from musicsim.cli.console import warn
from musicsim.cli.options import flag_of
from musicsim.errors import NotFoundError
from musicsim.explorer import Filters, Snapshot, filter_rows
from musicsim.explorer.snapshot.filtering import find_obstacle, list_filters
from musicsim.explorer.snapshot.words import parse_words

F = TypeVar("F", bound=Filters)


def warn_about_words(snapshot: Snapshot, filters: Filters) -> None:
    """Warn if the words describe a sound, but the library has no networks that understand such a text."""
    if parse_words(snapshot, filters.words).lacks_ranking:
        warn(
            "words",
            "this library has no networks for texts about sound, so every word is a filter. "
            "To add a pair, run `musicsim models add-text`.",
        )


def nothing_matches(snapshot: Snapshot, filters: F, count: Callable[[F], int]) -> NotFoundError:
    """Return the error of a command that found no song; it names the filter that excludes the most songs.

    `count` returns the number of songs that match other filters in its place.
    """
    obstacle = find_obstacle(snapshot, filters, count)
    if obstacle is not None:
        what = f"“{obstacle.words}”" if obstacle.words else flag_of(obstacle.option)
        verb = "is" if obstacle.n_songs == 1 else "are"
        return NotFoundError(f"no song matches; without {what} there {verb} {obstacle.n_songs:,}.")
    if list_filters(filters):
        return NotFoundError("no song matches: use fewer filters.")
    return NotFoundError("no song is left: the library has only songs that the command leaves out.")


def count_matching(snapshot: Snapshot, left_out: Iterable[int]) -> Callable[[Filters], int]:
    """Return a function that counts the songs that match filters, except those in `left_out`."""
    rows = snapshot.rows_of(list(left_out))

    def count(filters: Filters) -> int:
        mask = filter_rows(snapshot, filters)
        allowed = np.ones(snapshot.n_indexed, dtype=bool) if mask is None else mask
        allowed[rows[rows >= 0]] = False
        return int(allowed.sum())

    return count
