"""Listening data from files in any format, summed in an :class:`ImportBatch`: distinct songs, and rows of counts."""

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
_MAX_PLACES = 20  # maximum number of places that are reported per reason
MAX_ROWS = 1 << 22  # number of rows in memory after which they are summed
_END_OF_TIME = 1 << 32  # seconds since 1970; later times do not fit into 32 bits


class NamedSong(NamedTuple):
    """Names of a song in a file, empty if unknown; `mbid` is a MusicBrainz id; `place` is a path or an address."""

    artist: str
    title: str
    album: str = ""
    mbid: str = ""
    place: str = ""


@dataclass(slots=True)
class SkippedRows:
    """Rows left out for one reason: their number, and the places of the first few."""

    reason: str
    count: int = 0
    places: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ImportBatch:
    kind: Kind
    format: str  # names of the formats, joined with "+"
    name: str  # names of the files
    listener: str  # listener of all rows; "" if the files name the listeners
    digest: str  # hash of the data below: equal files have equal digests
    songs: tuple[NamedSong, ...]  # distinct songs
    groups: tuple[tuple[str, str], ...]  # depending on the kind: (listener, ""), (tag, "") or (playlist, category)
    # (n_sums,): indices into `songs` and `groups`. Each pair occurs once; those of a playlist are in its order.
    song: Int32Array
    group: Int32Array
    value: Float64Array  # (n_sums,): plays, weight of the tag, or position in the playlist
    # (n_listens,): seconds since 1970 (until 2106) of each listen with a time, in the order of the rows. Most services
    # export the start of a listen; Spotify exports the end.
    times: Uint32Array
    first_time: Int64Array  # (n_sums + 1,): index of each row's first time; zeros for tags and playlists
    n_rows: int  # number of rows before they were summed, excluding those left out
    skipped: tuple[SkippedRows, ...]
    # times of the first and last listen, seconds since 1970
    first_at: float | None
    last_at: float | None


def day_of(seconds: float | None) -> str | None:
    """Convert seconds since 1970 to a UTC date such as 2024-01-31; return None for times out of range."""
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        return None


class Gatherer:
    """Collects and sums rows; `listener` is the default listener.

    After every four million rows (16 bytes each), the rows are summed, which briefly takes another 150 MB.
    """

    def __init__(self, kind: Kind, listener: str) -> None:
        self.kind, self.listener = kind, listener
        self.n_rows = 0
        self.names: dict[str, NamedSong] = {}  # names of a data set's songs, keyed by its ids
        self._songs: dict[NamedSong, int] = {}
        self._groups: dict[tuple[str, str], int] = {}
        self._song, self._group, self._value = array("i"), array("i"), array("d")
        self._timed_song, self._timed_group, self._times = array("i"), array("i"), array("I")
        self._skipped: dict[str, SkippedRows] = {}
        self._lists: Counter[tuple[str, str]] = Counter()
        self._first: float | None = None
        self._last: float | None = None
        self._sum_of_times = 0.0
        self._most = MAX_ROWS

    def add(
        self, song: NamedSong, group: tuple[str, str] = ("", ""), value: float = 1.0, at: float | None = None
    ) -> None:
        """Count a row for a listener, tag or playlist (`group`); `at` is the time of the listen."""
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
            songs, groups, sums = self._sum_rows()
            self._song, self._group = array("i", songs.tobytes()), array("i", groups.tobytes())
            self._value = array("d", sums.tobytes())
            self._most = max(MAX_ROWS, 2 * len(sums))  # otherwise every additional row would trigger a sum

    def keep(
        self, song: NamedSong, place: str, group: tuple[str, str] = ("", ""), value: float = 1.0,
        at: float | None = None,
    ) -> None:  # fmt: skip
        """Count a row as :meth:`add` does, but skip it if its song has no artist or title."""
        if song.artist and song.title:
            self.add(song, group, value, at)
        else:
            self.skip(NO_NAME, place)

    def name(self, song: NamedSong) -> None:
        """Add a song without a row, so that it is matched and its recording id is used."""
        self._songs.setdefault(song, len(self._songs))

    def new_list(self, name: str, category: str = "") -> tuple[str, str]:
        """Return a new group for a playlist; a name that is taken gets a number."""
        group = (name, category)
        while group in self._groups:
            self._lists[name, category] += 1
            group = (f"{name} ({self._lists[name, category] + 1})", category)
        self._groups[group] = len(self._groups)
        return group

    def skip(self, reason: str, place: str) -> None:
        entry = self._skipped.setdefault(reason, SkippedRows(reason))
        entry.count += 1
        if len(entry.places) < _MAX_PLACES:
            entry.places.append(place)

    def batch(self, formats: Iterable[str], name: str, listener: str) -> ImportBatch:
        song, group, value = self._sum_rows()
        times = (self._first, self._last, self._sum_of_times)  # the same songs on different days are different data
        digest = hashlib.blake2b(f"{self.kind} {times}".encode(), digest_size=16)
        for part in (song, group, value):
            digest.update(part.tobytes())
        for names in (self._songs, self._groups):
            digest.update(repr(list(names)).encode("utf-8", "backslashreplace"))
        return ImportBatch(
            self.kind, " + ".join(sorted(set(formats))), name, listener, digest.hexdigest(), tuple(self._songs),
            tuple(self._groups), song, group, value, *self._sort_times(song, group), self.n_rows,
            tuple(self._skipped.values()), self._first, self._last,
        )  # fmt: skip

    def _sort_times(self, song: Int32Array, group: Int32Array) -> tuple[Uint32Array, Int64Array]:
        if not self._times:
            return np.empty(0, dtype=np.uint32), np.zeros(len(song) + 1, dtype=np.int64)
        n_songs = len(self._songs)
        key = np.frombuffer(self._timed_group, dtype=np.int32).astype(np.int64) * n_songs
        key += np.frombuffer(self._timed_song, dtype=np.int32)
        times = np.frombuffer(self._times, dtype=np.uint32)
        order = np.lexsort((times, key))
        first = np.searchsorted(key[order], group.astype(np.int64) * n_songs + song)
        return times[order], np.r_[first, len(times)].astype(np.int64)

    def _sum_rows(self) -> tuple[Int32Array, Int32Array, Float64Array]:
        song = np.frombuffer(self._song, dtype=np.int32)
        group = np.frombuffer(self._group, dtype=np.int32)
        value = np.frombuffer(self._value, dtype=np.float64)
        if not len(song):
            return song.copy(), group.copy(), value.copy()
        if self.kind == "playlists":
            order = np.lexsort((value, group))
            return song[order], group[order], value[order]
        order = np.lexsort((song, group))  # sorting is stable, so the last row of equal pairs stays last
        song, group, value = song[order], group[order], value[order]
        starts = np.flatnonzero(np.r_[True, (np.diff(song) != 0) | (np.diff(group) != 0)])
        if self.kind == "plays":
            return song[starts], group[starts], np.add.reduceat(value, starts)
        ends = np.r_[starts[1:], len(song)] - 1  # the last weight of a tag is used
        return song[starts], group[starts], value[ends]
