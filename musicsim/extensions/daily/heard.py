"""The songs that the owner played: in this player, in imports, and on music servers.

The hook ``last_played`` is ``function(library: Library) -> Mapping[int, float]``. It returns the time of the last play
on other programs, in seconds since 1970, keyed by song id.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from musicsim.hooks import load_hooks
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
    own = library.player_plays.play_times()
    ids = np.concatenate([ids, np.array([song_id for song_id, _ in own], dtype=np.int64)])
    times = np.concatenate([times.astype(np.float64), np.array([at for _, at in own], dtype=np.float64)])
    played_ids, places = np.unique(ids, return_inverse=True)
    latest = np.zeros(len(played_ids))
    np.maximum.at(latest, places, times)
    last = dict(zip(played_ids.tolist(), latest.tolist(), strict=True))
    counts = Counter(ids[times >= since].tolist())
    for played in load_hooks("last_played"):
        for song_id, at in played(library).items():
            if at > last.get(song_id, 0.0):
                last[song_id] = at
                if at >= since and song_id not in counts:
                    counts[song_id] = 1
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
