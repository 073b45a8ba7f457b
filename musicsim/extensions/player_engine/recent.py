"""The songs that players got when they asked for one song at a time, so that they do not get the same songs again.

Such a player plays the song next and then asks for a song similar to it. Without a memory, it would soon alternate
between two songs that are each other's nearest neighbors.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from threading import Lock

LASTS_S = 3600.0
"""Seconds for which a song is remembered."""
MAX_PLAYERS, MAX_EACH = 64, 500
"""Maximum numbers of players, and of songs per player; those added longest ago are forgotten first."""


class RecentSongs:
    """The latest songs of each player, in this process only; `now` returns the time in seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._players: OrderedDict[Hashable, OrderedDict[int, float]] = OrderedDict()
        self._lock = Lock()

    def of(self, player: Hashable) -> list[int]:
        """Return the ids of a player's songs of the last hour, oldest first."""
        since = self._now() - LASTS_S
        with self._lock:
            songs = self._players.get(player) or OrderedDict()
            return [song_id for song_id, added in songs.items() if added > since]

    def add(self, player: Hashable, song_ids: Iterable[int]) -> None:
        """Add songs of a player; a song that was added before counts from now on."""
        with self._lock:
            songs = self._players.setdefault(player, OrderedDict())
            self._players.move_to_end(player)
            for song_id in song_ids:
                songs[song_id] = self._now()
                songs.move_to_end(song_id)
            while len(songs) > MAX_EACH:
                songs.popitem(last=False)
            while len(self._players) > MAX_PLAYERS:
                self._players.popitem(last=False)


RECENT = RecentSongs()
"""The songs of all players of this process."""
