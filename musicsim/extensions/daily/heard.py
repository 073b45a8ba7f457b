"""The songs that the owner played lately, and those that the owner loves."""

from collections import Counter
from collections.abc import Mapping

import numpy as np

from musicsim.library import Library

_LOVED_TAGS = ("loved", "rated 4", "rated 5")  # tags that imports from servers and other programs give
_OFTEN, _TOP_SHARE = 5, 0.1  # a song with at least this many plays, and among this share of the played songs, is loved


def count_plays(library: Library, since: float, last: Mapping[int, float]) -> Counter[int]:
    """Return the number of plays since a time, keyed by song id; `last` are the times of all last plays.

    Times are in seconds since 1970. Of the plays on a music server, only the last one of each song is known.
    """
    recent = {song_id for song_id, at in last.items() if at >= since}
    counts = Counter[int]()
    for ids, times in (library.listening.listen_times(recent), library.player_plays.play_times()):
        counts.update(ids[times >= since].tolist())
    counts.update(recent - counts.keys())
    return counts


def find_loved(library: Library) -> set[int]:
    """Return the songs with a thumbs-up, a star, a high rating or many plays."""
    loved = {song_id for song_id, thumb in library.feedback().items() if thumb > 0}
    loved |= set(library.listening.songs_tagged(_LOVED_TAGS).tolist())
    plays = library.listening.play_counts()
    if plays:
        least = max(_OFTEN, float(np.quantile(list(plays.values()), 1.0 - _TOP_SHARE)))
        loved |= {song_id for song_id, n in plays.items() if n >= least}
    return loved
