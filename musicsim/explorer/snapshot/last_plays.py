"""Time of each song's last play: in imports, in the app's player, and in programs that extensions connect.

The hook ``last_plays`` is ``function(library: Library) -> Iterable[tuple[int, float]]``. It returns song ids with times
in seconds since 1970; a song may occur several times.
"""

from itertools import chain

from musicsim.hooks import load_hooks
from musicsim.library import Library


def read_last_plays(library: Library) -> dict[int, float]:
    """Return the time of the last play, in seconds since 1970, keyed by song id; songs without a time are left out."""
    sources = (library.listening.last_listens(), library.player_plays.last_plays())
    last: dict[int, float] = {}
    for song_id, at in chain(*sources, *(read(library) for read in load_hooks("last_plays"))):
        last[song_id] = max(at, last.get(song_id, 0.0))
    return last
