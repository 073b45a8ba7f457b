"""What files of listening say, summed: one list of songs as the sources name them, and rows that count them.

Every format is read into the same :class:`Batch`, so that matching and writing know of no format.
"""

import hashlib
from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, NamedTuple

import numpy as np

from musicsim._arrays import Float64Array, Int32Array, Int64Array, Uint32Array

Kind = Literal["plays", "tags", "playlists"]

NO_NAME = "no artist or title"
_MAX_LINES = 20  # lines that are named of each reason for leaving rows out
_MAX_ROWS = 1 << 22  # rows that are held before they are summed
_END_OF_TIME = 1 << 32  # seconds: times are kept in 32 bits


class NamedSong(NamedTuple):
    """A song as a source names it; what it does not say is empty.

    `mbid` is the MusicBrainz id of the recording, `place` the path or address that a playlist has, see
    :func:`~musicsim.library.importing.places.resolved`.
    """

    artist: str
    title: str
    album: str = ""
    mbid: str = ""
    place: str = ""


@dataclass(slots=True)
class Skipped:
    """Rows that were left out for one reason: how many, and where the first of them stand."""

    reason: str
    count: int = 0
    places: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Batch:
    """What was read from one import's files."""

    kind: Kind
    format: str  # name of the format, or of the formats, of the files
    name: str  # names of the files
    listener: str  # who listened where the files do not say so; "" where they do
    digest: str  # hash of all below: the same files give the same one
    songs: tuple[NamedSong, ...]  # distinct
    groups: tuple[tuple[str, str], ...]  # by kind: (listener, ""), (tag, "") or (playlist, category)
    # (n_sums,): rows into `songs` and `groups`. Of plays and tags each pair is there once; of playlists the
    # songs of each list stand in their order.
    song: Int32Array
    group: Int32Array
    value: Float64Array  # (n_sums,): plays, the weight of the tag, or the position in the list
    # (n_listens,): seconds since 1970 of single listens, as far as the files say and 32 bits reach (1970 to
    # 2106): most services give the start, Spotify the end. Those of one row stand together, in the order of
    # the rows.
    times: Uint32Array
    # (n_sums + 1,): where the times of each row begin; empty (of zeros) for tags and playlists
    first_time: Int64Array
    n_rows: int  # rows that were read and kept, before they were summed
    skipped: tuple[Skipped, ...]
    # seconds since 1970 of the first and last listen, where the files say
    first_at: float | None
    last_at: float | None


def day_of(seconds: float | None) -> str | None:
    """The day, in UTC, of seconds since 1970, as 2024-01-31; None of a time that is none, as files have them."""
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        return None


class Gatherer:
    """Takes rows as they are read and sums them; `listener` is who listened where a row does not say so.

    Memory: names are held once each; a row takes 16 bytes until four million of them are summed, which takes 150 MB
    more for a moment. A history of any length takes what its distinct pairs of listener and song take, and 12 bytes
    for each listen with a time.
    """

    def __init__(self, kind: Kind, listener: str) -> None:
        self.kind, self.listener = kind, listener
        self.n_rows = 0
        self._songs: dict[NamedSong, int] = {}
        self._groups: dict[tuple[str, str], int] = {}
        self._song, self._group, self._value = array("i"), array("i"), array("d")
        self._timed_song, self._timed_group, self._times = array("i"), array("i"), array("I")
        self._skipped: dict[str, Skipped] = {}
        self._lists: Counter[tuple[str, str]] = Counter()
        self._first: float | None = None
        self._last: float | None = None
        self._sum_of_times = 0.0
        self._most = _MAX_ROWS

    def add(
        self, song: NamedSong, group: tuple[str, str] = ("", ""), value: float = 1.0, at: float | None = None
    ) -> None:
        """Count a row: of the listener, tag or playlist `group`, heard at the time `at`."""
        self.n_rows += 1
        if self.kind == "plays" and not group[0]:
            group = (self.listener, "")
        self._song.append(self._songs.setdefault(song, len(self._songs)))
        self._group.append(self._groups.setdefault(group, len(self._groups)))
        self._value.append(value)
        if at is not None:
            self._first = at if self._first is None else min(self._first, at)
            self._last = at if self._last is None else max(self._last, at)
            self._sum_of_times += at
            if self.kind == "plays" and 0 <= at < _END_OF_TIME:
                self._timed_song.append(self._song[-1])
                self._timed_group.append(self._group[-1])
                self._times.append(int(at))
        if len(self._song) >= self._most and self.kind == "plays":
            song_rows, group_rows, sums = self._summed()
            self._song, self._group = array("i", song_rows.tobytes()), array("i", group_rows.tobytes())
            self._value = array("d", sums.tobytes())
            self._most = max(_MAX_ROWS, 2 * len(sums))  # or sums would be taken at every row

    def keep(
        self,
        song: NamedSong,
        place: str,
        group: tuple[str, str] = ("", ""),
        value: float = 1.0,
        at: float | None = None,
    ) -> None:
        """Count a row as :meth:`add` does, but leave it out if its song lacks an artist or title."""
        if song.artist and song.title:
            self.add(song, group, value, at)
        else:
            self.skip(NO_NAME, place)

    def name(self, song: NamedSong) -> None:
        """Enter a song that may have no row: what is known of it is worth finding it."""
        self._songs.setdefault(song, len(self._songs))

    def new_list(self, name: str, category: str = "") -> tuple[str, str]:
        """The group of a playlist that is none of those before: a name that is taken gets a number."""
        group = wanted = (name, category)
        while group in self._groups:
            self._lists[wanted] += 1
            group = (f"{name} ({self._lists[wanted] + 1})", category)
        self._groups[group] = len(self._groups)
        return group

    def skip(self, reason: str, place: str) -> None:
        """Count a row that is left out, and where it stands."""
        entry = self._skipped.setdefault(reason, Skipped(reason))
        entry.count += 1
        if len(entry.places) < _MAX_LINES:
            entry.places.append(place)

    def batch(self, formats: Iterable[str], name: str, listener: str) -> Batch:
        """All that was gathered."""
        song, group, value = self._summed()
        times = (self._first, self._last, self._sum_of_times)  # the same songs on other days are another history
        digest = hashlib.blake2b(f"{self.kind} {times}".encode(), digest_size=16)
        for part in (song, group, value):
            digest.update(part.tobytes())
        for names in (self._songs, self._groups):
            digest.update(repr(list(names)).encode("utf-8", "backslashreplace"))
        return Batch(
            self.kind, " + ".join(sorted(set(formats))), name, listener, digest.hexdigest(), tuple(self._songs),
            tuple(self._groups), song, group, value, *self._times_of(song, group), self.n_rows,
            tuple(self._skipped.values()), self._first, self._last,
        )  # fmt: skip

    def _times_of(self, song: Int32Array, group: Int32Array) -> tuple[Uint32Array, Int64Array]:
        if not self._times:
            return np.empty(0, dtype=np.uint32), np.zeros(len(song) + 1, dtype=np.int64)
        n_songs = len(self._songs)
        key = np.frombuffer(self._timed_group, dtype=np.int32).astype(np.int64) * n_songs
        key += np.frombuffer(self._timed_song, dtype=np.int32)
        times = np.frombuffer(self._times, dtype=np.uint32)
        order = np.lexsort((times, key))
        first = np.searchsorted(key[order], group.astype(np.int64) * n_songs + song)
        return times[order], np.r_[first, len(times)].astype(np.int64)

    def _summed(self) -> tuple[Int32Array, Int32Array, Float64Array]:
        song = np.frombuffer(self._song, dtype=np.int32)
        group = np.frombuffer(self._group, dtype=np.int32)
        value = np.frombuffer(self._value, dtype=np.float64)
        if not len(song):
            return song.copy(), group.copy(), value.copy()
        if self.kind == "playlists":
            order = np.lexsort((value, group))
            return song[order], group[order], value[order]
        order = np.lexsort((song, group))  # stable: of equal pairs the last row comes last
        song, group, value = song[order], group[order], value[order]
        starts = np.flatnonzero(np.r_[True, (np.diff(song) != 0) | (np.diff(group) != 0)])
        if self.kind == "plays":
            return song[starts], group[starts], np.add.reduceat(value, starts)
        ends = np.r_[starts[1:], len(song)] - 1  # a weight that is said twice is the last one
        return song[starts], group[starts], value[ends]
