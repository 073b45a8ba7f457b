"""The songs that the owner played: in this player, in imports, and on music servers."""

from collections import Counter
from dataclasses import dataclass
from itertools import chain

import numpy as np

from musicsim.explorer.snapshot.last_plays import read_last_plays
from musicsim.library import Library

_LOVED_TAGS = ("loved", "rated 4", "rated 5")  # tags that imports from servers and other programs give
_OFTEN, _TOP_SHARE = 5, 0.1  # a song with at least this many plays, and among this share of the played songs, is loved


@dataclass(frozen=True, slots=True)
class Heard:
    """Plays with known times."""

    counts: Counter[int]  # number of plays since a time, keyed by song id
    last: dict[int, float]  # time of the last play, in seconds since 1970


def read_heard(library: Library, since: float) -> Heard:
    """Return the plays `since` a time in seconds since 1970, and all last plays; takes 32 bytes per stored time."""
    ids, times = library.listening.listen_times()
    own_ids, own_times = library.player_plays.play_times()
    counts = Counter(chain(ids[times >= since].tolist(), own_ids[own_times >= since].tolist()))
    last = read_last_plays(library)
    # of the plays on a music server, only the last one of each song is known
    counts.update(song_id for song_id, at in last.items() if at >= since and song_id not in counts)
    return Heard(counts, last)


def find_loved(library: Library) -> set[int]:
    """Return the songs with a thumb up, a star, a high rating or many plays."""
    loved = {song_id for song_id, thumb in library.feedback().items() if thumb > 0}
    loved |= set(library.listening.songs_tagged(_LOVED_TAGS).tolist())
    plays = library.listening.play_counts()
    if plays:
        least = max(_OFTEN, float(np.quantile(list(plays.values()), 1.0 - _TOP_SHARE)))
        loved |= {song_id for song_id, n in plays.items() if n >= least}
    return loved
