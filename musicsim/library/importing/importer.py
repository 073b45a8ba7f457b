"""Imports of listening: look at what would come of a batch, write it whole, take it back, try again later."""

import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa

from musicsim._arrays import Int64Array
from musicsim.library.db import schema
from musicsim.library.importing.matching import How, Match, Matcher, Proposal
from musicsim.library.importing.places import file_name, is_web
from musicsim.library.importing.reading import read_listening
from musicsim.library.importing.records import Batch, NamedSong, Skipped
from musicsim.library.library import Library
from musicsim.library.stores.listening import ImportEntry, Waiting, playlists_source
from musicsim.progress import Progress, no_progress

_AT_ONCE = 10_000  # rows a statement
_PROGRESS_EVERY = 1000
_MAX_PROPOSALS = 100
_UNUSUAL = re.compile(r"//|/\.(?:/|$)|/$")


@dataclass(frozen=True, slots=True)
class Absent:
    """An entry of a list whose song the library does not have: where in the list, what, and why."""

    position: int
    song: NamedSong
    reason: str

    @property
    def label(self) -> str:
        """Artist and title as far as they are known, else the file's name or the address."""
        names = " — ".join(filter(None, (self.song.title, self.song.artist)))
        return names or file_name(self.song.place)


@dataclass(frozen=True, slots=True)
class SeenList:
    """A list of an import: its entries, how many of them are in the library, and the others."""

    name: str
    category: str
    n_entries: int
    absent: tuple[Absent, ...]

    @property
    def n_found(self) -> int:
        """Entries whose song the library has."""
        return self.n_entries - len(self.absent)


def _reason(song: NamedSong) -> str:
    if is_web(song.place):
        return "address on the net"
    return "no such file" if song.place and not song.title else "not in the library"


@dataclass(frozen=True, slots=True)
class Preview:
    """What would come of an import; nothing is written yet."""

    batch: Batch
    # (n_songs,): the library's song for each of the batch's; -1 where there is none
    song_ids: Int64Array
    n_plays: int  # plays in all; of tags and playlists the rows
    # songs, and plays of them, that were found, by How
    songs_by: dict[How, int]
    plays_by: dict[How, int]
    # rows of the songs that were found by their plainest spelling, the most played first
    loose: tuple[int, ...]
    proposals: tuple[Proposal, ...]  # to be confirmed one by one
    # songs that the library does not have, the most played first; those proposals are made for among them
    unmatched: tuple[Waiting, ...]
    replaces: tuple[ImportEntry, ...]  # earlier imports of the same files, that give way
    # earlier imports of the same service and listener from the same time: plays may count twice
    overlaps: tuple[ImportEntry, ...]
    # by song id: MusicBrainz ids of recordings, of songs that were found by their files
    recording_ids: Mapping[int, str]

    @property
    def format(self) -> str:
        """Name of the format."""
        return self.batch.format

    @property
    def n_rows(self) -> int:
        """Rows that were read and kept."""
        return self.batch.n_rows

    @property
    def n_songs(self) -> int:
        """Distinct songs in them."""
        return len(self.batch.songs)

    @property
    def n_matched(self) -> int:
        """Songs of them that the library has."""
        return int(np.count_nonzero(self.song_ids >= 0))

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """Rows that were left out, by reason."""
        return self.batch.skipped

    @property
    def lists(self) -> tuple[SeenList, ...]:
        """The playlists in the order of the batch, with what of each is not in the library; none for plays and tags."""
        batch = self.batch
        if batch.kind != "playlists":
            return ()
        n_entries = np.bincount(batch.group, minlength=len(batch.groups))
        absent: dict[int, list[Absent]] = {}
        for row in np.flatnonzero(self.song_ids[batch.song] < 0).tolist():
            song = batch.songs[batch.song[row]]
            absent.setdefault(int(batch.group[row]), []).append(Absent(int(batch.value[row]), song, _reason(song)))
        return tuple(
            SeenList(*group, int(n_entries[i]), tuple(absent.get(i, ()))) for i, group in enumerate(batch.groups)
        )

    @property
    def listeners(self) -> list[str]:
        """Who listened; empty for tags and playlists."""
        return sorted({name for name, _ in self.batch.groups}) if self.batch.kind == "plays" else []


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What came of an import: its number, distinct songs, those that are here, and the others."""

    import_id: int
    n_rows: int
    n_songs: int
    n_matched: int
    n_skipped: int
    unmatched: tuple[Waiting, ...]
    n_recording_ids: int = 0  # songs that had no MusicBrainz id of their recording and got one


def preview(
    library: Library, batch: Batch, progress: Progress = no_progress, matcher: Callable[[], Matcher] | None = None
) -> Preview:
    """Match a batch to the library's songs: a dry run.

    `matcher` returns a matcher that exists already; it is called only if a song is not found by its path.
    """
    made = cache(matcher or partial(Matcher, library))
    at_path = _songs_at_places(library, batch.songs, progress)
    song_ids = np.full(len(batch.songs), -1, dtype=np.int64)
    plays = _counts(batch)
    songs_by: Counter[How] = Counter()
    plays_by: Counter[How] = Counter()
    loose, recording_ids = [], {}
    for i, song in enumerate(batch.songs):
        if i % _PROGRESS_EVERY == 0:
            progress("matching songs", i, len(batch.songs))
        known = at_path.get(song.place)
        match = made().find(song) if known is None else Match(known, "path")
        if match is not None:
            song_ids[i] = match.song_id
            songs_by[match.how] += 1
            plays_by[match.how] += int(plays[i])
            if match.how == "loose":
                loose.append(i)
            if batch.kind == "tags" and song.mbid and match.how in ("path", "path end"):
                recording_ids[match.song_id] = song.mbid
    missed = [(batch.songs[i], int(plays[i])) for i in np.flatnonzero(song_ids < 0)]
    named = [(song, n) for song, n in missed if song.artist and song.title]
    replaces, overlaps = _earlier(library, batch, song_ids)
    loose.sort(key=lambda i: -plays[i])
    proposals = made().propose(named, progress) if named else ()
    return Preview(
        batch, song_ids, int(plays.sum()), dict(songs_by), dict(plays_by), tuple(loose), tuple(proposals),
        _unmatched(missed), tuple(replaces), tuple(overlaps), recording_ids,
    )  # fmt: skip


def _songs_at_places(library: Library, songs: Sequence[NamedSong], progress: Progress) -> dict[str, int]:
    """Ids of the songs whose file is at the place that an entry names, by place."""
    found: dict[str, int] = {}
    for start in range(0, len(songs), _AT_ONCE):
        progress("looking for files", start, len(songs))
        absolute = [song.place for song in songs[start : start + _AT_ONCE] if os.path.isabs(song.place)]
        # few places need a Path, which takes long
        places = {place: os.fspath(Path(place)) if _UNUSUAL.search(place) else place for place in absolute}
        known = library.files.songs_at_texts(places.values())
        found |= {place: known[path] for place, path in places.items() if path in known}
    return found


def _counts(batch: Batch) -> Int64Array:
    """Plays of each song, or how often it is named."""
    weights = batch.value if batch.kind == "plays" else None
    return np.bincount(batch.song, weights, minlength=len(batch.songs)).astype(np.int64)


def _unmatched(missed: Iterable[tuple[NamedSong, int]]) -> tuple[Waiting, ...]:
    counts: Counter[tuple[str, str]] = Counter()
    albums: dict[tuple[str, str], str] = {}
    for song, count in missed:
        name = song.artist, song.title or file_name(song.place)
        counts[name] += count
        albums[name] = max(albums.get(name, ""), song.album)
    named = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return tuple(Waiting(*name, albums[name], count) for name, count in named)


def _earlier(library: Library, batch: Batch, song_ids: Int64Array) -> tuple[list[ImportEntry], list[ImportEntry]]:
    """Imports that this one takes the place of, and those that it may count a second time.

    A file is an earlier one again if it says the same, or has its name and tells of its whole time: services give
    the parts of a long history, and the history of every year, the same names. Files of playlists have the same name
    in many folders: they are the same where at least half of the songs are.
    """
    replaces, overlaps = [], []
    for old in library.listening.imports():
        if (old.kind, old.format, old.listener) != (batch.kind, batch.format, batch.listener):
            continue
        dates = (old.first_at, old.last_at, batch.first_at, batch.last_at)
        if old.digest == batch.digest:
            replaces.append(old)
        elif None in dates:
            if old.name == batch.name and (old.kind != "playlists" or _is_same_list(library, old, song_ids)):
                replaces.append(old)
        elif old.name == batch.name and batch.first_at <= old.first_at and batch.last_at >= old.last_at:  # type: ignore[operator]
            replaces.append(old)
        elif batch.first_at <= old.last_at and old.first_at <= batch.last_at:  # type: ignore[operator]
            overlaps.append(old)
    return replaces, overlaps


def _is_same_list(library: Library, old: ImportEntry, song_ids: Int64Array) -> bool:
    source = playlists_source(old.id, old.name)
    before = {i for playlist in library.playlists(source=source) for i in playlist.song_ids}
    now = set(song_ids[song_ids >= 0].tolist())
    return 2 * len(before & now) >= max(len(before), len(now))


def commit(library: Library, seen: Preview, accepted: Iterable[Proposal] = ()) -> ImportReport:
    """Write what a preview showed, in one transaction: all of it or, at a kill, none.

    What did not match waits for its song, but for playlists, which are what they are now. Earlier imports that it
    replaces are undone. Proposals that a person has confirmed are remembered, for imports to come. MusicBrainz ids are
    entered after that, as edits of the songs that have none, and stay when the import is undone.
    """
    batch, song_ids = seen.batch, seen.song_ids.copy()
    confirmed = {p.song[:2]: p.song_id for p in accepted}
    for i in np.flatnonzero(song_ids < 0) if confirmed else ():
        song_ids[i] = confirmed.get(batch.songs[i][:2], -1)
    # songs may have been forgotten since the preview
    with library.engine.connect() as connection:
        known = set(connection.scalars(sa.select(schema.songs.c.id)))
    song_ids[~np.isin(song_ids, np.fromiter(known, dtype=np.int64))] = -1
    n_skipped = sum(entry.count for entry in batch.skipped)
    n_matched = int(np.count_nonzero(song_ids >= 0))
    same = ("name", "kind", "format", "listener", "digest", "n_rows", "first_at", "last_at")
    values = {name: getattr(batch, name) for name in same}
    values |= {"n_songs": len(batch.songs), "n_matched": n_matched, "n_skipped": n_skipped}
    values["n_plays"] = seen.n_plays if batch.kind == "plays" else 0
    is_lists = batch.kind == "playlists"
    judged = [(*name, song_id) for name, song_id in confirmed.items() if song_id in known]
    import_id = library.listening.enter(
        values, [] if is_lists else _said(batch, song_ids), _listens(batch, song_ids),
        [] if is_lists else _waiting(batch, song_ids), _playlists(batch, song_ids) if is_lists else [],
        [old.id for old in seen.replaces], judged,
    )  # fmt: skip
    missed = seen.unmatched
    if not np.array_equal(song_ids, seen.song_ids):
        plays = _counts(batch)
        missed = _unmatched((batch.songs[i], int(plays[i])) for i in np.flatnonzero(song_ids < 0))
    n_ids = library.edits.add_recording_ids(seen.recording_ids) if seen.recording_ids else 0
    return ImportReport(import_id, batch.n_rows, len(batch.songs), n_matched, n_skipped, missed, n_ids)


def _said(batch: Batch, song_ids: Int64Array) -> Iterator[tuple[Any, ...]]:
    rows = np.flatnonzero(song_ids[batch.song] >= 0)
    for start in range(0, len(rows), _AT_ONCE):
        part = rows[start : start + _AT_ONCE]
        who = [batch.groups[group][0] for group in batch.group[part].tolist()]
        yield from zip(who, song_ids[batch.song[part]].tolist(), batch.value[part].tolist(), strict=True)


def _listens(batch: Batch, song_ids: Int64Array) -> Iterator[tuple[Any, ...]]:
    rows = np.flatnonzero((song_ids[batch.song] >= 0) & (np.diff(batch.first_time) > 0))
    for row in rows.tolist():
        yield batch.groups[batch.group[row]][0], int(song_ids[batch.song[row]]), _times(batch, row)


def _times(batch: Batch, row: int) -> bytes | None:
    times = batch.times[batch.first_time[row] : batch.first_time[row + 1]]
    return times.astype("<u4").tobytes() if len(times) else None


def _waiting(batch: Batch, song_ids: Int64Array) -> Iterator[tuple[Any, ...]]:
    for row in np.flatnonzero(song_ids[batch.song] < 0).tolist():
        song, who = batch.songs[batch.song[row]], batch.groups[batch.group[row]][0]
        yield *song[:4], who, float(batch.value[row]), _times(batch, row)


def _playlists(batch: Batch, song_ids: Int64Array) -> list[tuple[str, str | None, list[int]]]:
    lists: dict[int, list[int]] = defaultdict(list)
    for group, song in zip(batch.group.tolist(), batch.song.tolist(), strict=True):
        if song_ids[song] >= 0:
            lists[group].append(int(song_ids[song]))
    return [(batch.groups[group][0], batch.groups[group][1] or None, ids) for group, ids in lists.items()]


def undo(library: Library, import_id: int) -> ImportEntry:
    """Take an import back with all it brought, what waits for its song too.

    Raises NotFoundError if there is none of this number.
    """
    return library.listening.undo(import_id)


def import_files(library: Library, paths: str | Path | list[str | Path], fmt: str | None = None) -> ImportReport:
    """Read and write in one go, as for files of our own; see :func:`read_listening` for what is raised."""
    listed = paths if isinstance(paths, list) else [paths]
    return commit(library, preview(library, read_listening(listed, fmt)))


def match_waiting(library: Library) -> int:
    """Look for songs that earlier imports named and the library did not have; call it after a scan.

    Returns how many songs of imports were found. Close spellings are left to :func:`waiting_proposals`.
    """
    waiting = list(library.listening.waiting_names())
    if not waiting:
        return 0
    matcher = Matcher(library)
    found = {names: match.song_id for names in waiting if (match := matcher.find(NamedSong(*names)))}
    return library.listening.give(found)


def waiting_proposals(library: Library, progress: Progress = no_progress) -> list[Proposal]:
    """Close spellings for the most played songs that wait; to be confirmed with :func:`accept`, or refused."""
    named = [(NamedSong(w.artist, w.title, w.album), w.count) for w in library.listening.unmatched()]
    return Matcher(library).propose(named, progress)[:_MAX_PROPOSALS]


def accept(library: Library, proposals: Iterable[Proposal]) -> int:
    """Give what waits to the songs that a person has confirmed; return how many songs of imports that were.

    A proposal speaks of an artist and title, whatever the albums that imports name with them. It is remembered, for
    imports to come.
    """
    confirmed = {p.song[:2]: p.song_id for p in proposals}
    library.listening.judge(((*name, song_id) for name, song_id in confirmed.items()), is_same=True)
    names = library.listening.waiting_names()
    return library.listening.give({name: confirmed[name[:2]] for name in names if name[:2] in confirmed})


def refuse(library: Library, proposals: Iterable[Proposal]) -> None:
    """Remember that these are other songs: they go on waiting, and are not proposed again."""
    library.listening.judge(((*p.song[:2], p.song_id) for p in proposals), is_same=False)
