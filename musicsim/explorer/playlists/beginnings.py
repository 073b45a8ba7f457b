"""Songs to begin with when nothing is chosen: around last week, loved ones, and something else."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

import numpy as np

from musicsim.explorer.snapshot.last_plays import read_last_plays
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Library

LAST_WEEK = timedelta(days=7)
REST = timedelta(days=90)
"""Loved songs are offered again after this time without a play."""
MAX_SEEDS = 12
_REST_OF_OTHERS = timedelta(days=30)
_PER_SURPRISE = 10  # of this many songs, one is something else
_N_DRAWN = 200  # songs among which something else is looked for, so that a large library takes no time
_LOVED_TAGS = ("loved", "rated 4", "rated 5")  # tags that imports from servers and other programs give
_OFTEN, _TOP_SHARE = 5, 0.1  # a song with at least this many plays, and among this share of the played songs, is loved


@dataclass(frozen=True, slots=True)
class Beginning:
    """Songs that a queue of similar songs begins with; the first one plays."""

    label: str
    song_ids: tuple[int, ...]


def find_beginnings(snapshot: Snapshot, day: date, *, is_private: bool) -> list[Beginning]:
    """Return what can be offered on a day; the same on the whole day, if nothing is played.

    With `is_private`, plays and ratings are not used, because visitors must not see them.
    """
    return list(_find(snapshot, day, is_private=is_private)) if snapshot.n_indexed else []


def _find(snapshot: Snapshot, day: date, *, is_private: bool) -> Iterator[Beginning]:
    library, start = snapshot.library, datetime.combine(day, time())
    last: dict[int, float] = {} if is_private else read_last_plays(library)
    draw = np.random.default_rng(day.toordinal())
    thumbs = {} if is_private else library.feedback()
    disliked = {song_id for song_id, thumb in thumbs.items() if thumb < 0}

    def rest(ids: set[int], pause: timedelta) -> tuple[int, ...]:
        """Return the songs that can be compared, are not disliked and were not played for some time, shuffled."""
        since = (start - pause).timestamp()
        present = snapshot.distinct_ids(sorted(i for i in ids - disliked if last.get(i, 0.0) < since))
        return tuple(present[i] for i in draw.permutation(len(present))[:MAX_SEEDS])

    rows = draw.choice(snapshot.n_indexed, min(snapshot.n_indexed, _N_DRAWN), replace=False)
    others = rest(set(snapshot.row_ids[rows].tolist()), _REST_OF_OTHERS)

    def with_surprise(ids: tuple[int, ...]) -> tuple[int, ...]:
        """Return the first songs; the last one is something else if there are many."""
        surprises = [i for i in others if i not in ids][: min(len(ids), MAX_SEEDS) // _PER_SURPRISE]
        return (*ids[: MAX_SEEDS - len(surprises)], *surprises)

    if not is_private:
        counts = count_plays(library, (start - LAST_WEEK).timestamp(), last)
        recent = [i for i in sorted(counts, key=lambda i: (-counts[i], -last.get(i, 0.0), i)) if i not in disliked]
        offers = {
            "Around last week": snapshot.distinct_ids(recent),
            "Loved, not played lately": rest(find_loved(library), REST),
        }
        for label, ids in offers.items():
            if ids:
                yield Beginning(label, with_surprise(ids))
    if others:
        yield Beginning("Something else today", others[:1])


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
