"""Imports of plays, tags and playlists: preview a batch, write it, undo it, and match unmatched songs later."""

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
from musicsim.library.importing.matching import How, Matcher, Proposal, SongMatch
from musicsim.library.importing.places import file_name, is_web
from musicsim.library.importing.reading import read_listening
from musicsim.library.importing.records import ImportBatch, NamedSong
from musicsim.library.library import Library
from musicsim.library.stores.listening import ImportEntry, Waiting, playlists_source
from musicsim.progress import Progress, no_progress

_AT_ONCE = 10_000  # rows per statement
_PROGRESS_EVERY = 1000
_MAX_PROPOSALS = 100
_UNUSUAL = re.compile(r"//|/\.(?:/|$)|/$")


@dataclass(frozen=True, slots=True)
class Absent:
    """A playlist entry whose song is not in the library."""

    position: int
    song: NamedSong
    reason: str

    @property
    def label(self) -> str:
        """Title and artist; without them, the file name or address."""
        names = " — ".join(filter(None, (self.song.title, self.song.artist)))
        return names or file_name(self.song.place)


@dataclass(frozen=True, slots=True)
class SeenList:
    name: str
    category: str
    n_entries: int
    absent: tuple[Absent, ...]

    @property
    def n_found(self) -> int:
        return self.n_entries - len(self.absent)


@dataclass(frozen=True, slots=True)
class ImportPreview:
    """The effects of an import before anything is written."""

    batch: ImportBatch
    song_ids: Int64Array  # (n_songs,): the library's song for each song of the batch; -1 for none
    n_plays: int  # number of plays; for tags and playlists, number of rows
    songs_by: dict[How, int]  # number of matched songs per method
    plays_by: dict[How, int]  # number of plays of these songs per method
    loose: tuple[int, ...]  # indices of the batch's songs that were matched by plain names, the most played first
    proposals: tuple[Proposal, ...]  # possible matches for a person to confirm
    unmatched: tuple[Waiting, ...]  # songs that are not in the library, the most played first
    replaces: tuple[ImportEntry, ...]  # earlier imports of the same files, which are undone
    overlaps: tuple[ImportEntry, ...]  # imports from the same service, listener and period: plays may be counted twice
    recording_ids: Mapping[int, str]  # MusicBrainz ids, keyed by song id, of songs that were matched by path

    @property
    def n_rows(self) -> int:
        """Number of rows, excluding those left out."""
        return self.batch.n_rows

    @property
    def n_songs(self) -> int:
        return len(self.batch.songs)

    @property
    def n_matched(self) -> int:
        return int(np.count_nonzero(self.song_ids >= 0))

    @property
    def lists(self) -> tuple[SeenList, ...]:
        """The playlists in the order of the batch; empty for plays and tags."""
        batch = self.batch
        if batch.kind != "playlists":
            return ()
        n_entries = np.bincount(batch.group, minlength=len(batch.groups))
        absent: dict[int, list[Absent]] = defaultdict(list)
        for row in np.flatnonzero(self.song_ids[batch.song] < 0).tolist():
            song = batch.songs[batch.song[row]]
            reason = "no such file" if song.place and not song.title else "not in the library"
            reason = "web address" if is_web(song.place) else reason
            absent[int(batch.group[row])].append(Absent(int(batch.value[row]), song, reason))
        return tuple(
            SeenList(*group, int(n_entries[i]), tuple(absent.get(i, ()))) for i, group in enumerate(batch.groups)
        )

    @property
    def listeners(self) -> list[str]:
        """The listeners; empty for tags and playlists."""
        return sorted({name for name, _ in self.batch.groups}) if self.batch.kind == "plays" else []


@dataclass(frozen=True, slots=True)
class ImportReport:
    import_id: int
    n_rows: int
    n_songs: int  # number of distinct songs
    n_matched: int
    n_skipped: int
    unmatched: tuple[Waiting, ...]
    n_recording_ids: int = 0  # number of songs that got a MusicBrainz recording id


def preview_import(
    library: Library, batch: ImportBatch, progress: Progress = no_progress, matcher: Callable[[], Matcher] | None = None
) -> ImportPreview:
    """Match a batch to a library without writing; `matcher` is called if a song is not found by its path."""
    get_matcher = cache(matcher or partial(Matcher, library))
    by_path = _find_by_path(library, batch.songs, progress)
    song_ids = np.full(len(batch.songs), -1, dtype=np.int64)
    plays = _count_plays(batch)
    songs_by: Counter[How] = Counter()
    plays_by: Counter[How] = Counter()
    loose, recording_ids = [], {}
    for i, song in enumerate(batch.songs):
        if i % _PROGRESS_EVERY == 0:
            progress("matching songs", i, len(batch.songs))
        known = by_path.get(song.place)
        match = get_matcher().find(song) if known is None else SongMatch(known, "path")
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
    replaces, overlaps = _find_earlier(library, batch, song_ids)
    loose.sort(key=lambda i: -plays[i])
    proposals = get_matcher().propose(named, progress) if named else ()
    return ImportPreview(
        batch, song_ids, int(plays.sum()), dict(songs_by), dict(plays_by), tuple(loose), tuple(proposals),
        _sum_unmatched(missed), tuple(replaces), tuple(overlaps), recording_ids,
    )  # fmt: skip


def _find_by_path(library: Library, songs: Sequence[NamedSong], progress: Progress) -> dict[str, int]:
    """Return song ids keyed by entry path, for entries that have exactly the path of a file."""
    ids: dict[str, int] = {}
    for start in range(0, len(songs), _AT_ONCE):
        progress("looking for files", start, len(songs))
        absolute = [song.place for song in songs[start : start + _AT_ONCE] if os.path.isabs(song.place)]
        # creating a Path is slow, and few places need it
        places = {place: os.fspath(Path(place)) if _UNUSUAL.search(place) else place for place in absolute}
        known = library.files.songs_at_texts(places.values())
        ids |= {place: known[path] for place, path in places.items() if path in known}
    return ids


def _count_plays(batch: ImportBatch) -> Int64Array:
    """Return the number of plays per song; for tags and playlists, the number of rows per song."""
    weights = batch.value if batch.kind == "plays" else None
    return np.bincount(batch.song, weights, minlength=len(batch.songs)).astype(np.int64)


def _sum_unmatched(missed: Iterable[tuple[NamedSong, int]]) -> tuple[Waiting, ...]:
    counts: Counter[tuple[str, str]] = Counter()
    albums: dict[tuple[str, str], str] = {}
    for song, count in missed:
        names = song.artist, song.title or file_name(song.place)
        counts[names] += count
        albums[names] = max(albums.get(names, ""), song.album)
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return tuple(Waiting(*names, albums[names], count) for names, count in ordered)


def _find_earlier(
    library: Library, batch: ImportBatch, song_ids: Int64Array
) -> tuple[list[ImportEntry], list[ImportEntry]]:
    """Return the earlier imports that this one replaces, and those that it overlaps.

    An earlier import is replaced if it has the same content, or the same name and a time range within the new one.
    Playlists with the same name must also share half of their songs, because names recur in many folders.
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
    current = set(song_ids[song_ids >= 0].tolist())
    return 2 * len(before & current) >= max(len(before), len(current))


def commit_import(library: Library, seen: ImportPreview, accepted: Iterable[Proposal] = ()) -> ImportReport:
    """Write a previewed import in one transaction, and undo earlier imports that it replaces.

    Unmatched rows, except those of playlists, are kept until the library has their songs. MusicBrainz ids are written
    as edits to songs without such an id; undoing the import does not remove them.
    """
    batch, song_ids = seen.batch, seen.song_ids.copy()
    confirmed = {p.song[:2]: p.song_id for p in accepted}
    for i in np.flatnonzero(song_ids < 0) if confirmed else ():
        song_ids[i] = confirmed.get(batch.songs[i][:2], -1)
    # songs may have been removed since the preview
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
    judged = [(*names, song_id) for names, song_id in confirmed.items() if song_id in known]
    import_id = library.listening.enter(
        values, [] if is_lists else _value_rows(batch, song_ids), _listen_rows(batch, song_ids),
        [] if is_lists else _waiting_rows(batch, song_ids), _playlist_rows(batch, song_ids) if is_lists else [],
        [old.id for old in seen.replaces], judged,
    )  # fmt: skip
    unmatched = seen.unmatched
    if not np.array_equal(song_ids, seen.song_ids):
        plays = _count_plays(batch)
        unmatched = _sum_unmatched((batch.songs[i], int(plays[i])) for i in np.flatnonzero(song_ids < 0))
    n_ids = library.edits.add_recording_ids(seen.recording_ids) if seen.recording_ids else 0
    return ImportReport(import_id, batch.n_rows, len(batch.songs), n_matched, n_skipped, unmatched, n_ids)


def _value_rows(batch: ImportBatch, song_ids: Int64Array) -> Iterator[tuple[Any, ...]]:
    rows = np.flatnonzero(song_ids[batch.song] >= 0)
    for start in range(0, len(rows), _AT_ONCE):
        part = rows[start : start + _AT_ONCE]
        names = [batch.groups[group][0] for group in batch.group[part].tolist()]
        yield from zip(names, song_ids[batch.song[part]].tolist(), batch.value[part].tolist(), strict=True)


def _listen_rows(batch: ImportBatch, song_ids: Int64Array) -> Iterator[tuple[Any, ...]]:
    rows = np.flatnonzero((song_ids[batch.song] >= 0) & (np.diff(batch.first_time) > 0))
    for row in rows.tolist():
        yield batch.groups[batch.group[row]][0], int(song_ids[batch.song[row]]), _pack_times(batch, row)


def _pack_times(batch: ImportBatch, row: int) -> bytes | None:
    times = batch.times[batch.first_time[row] : batch.first_time[row + 1]]
    return times.astype("<u4").tobytes() if len(times) else None


def _waiting_rows(batch: ImportBatch, song_ids: Int64Array) -> Iterator[tuple[Any, ...]]:
    for row in np.flatnonzero(song_ids[batch.song] < 0).tolist():
        song, name = batch.songs[batch.song[row]], batch.groups[batch.group[row]][0]
        yield *song[:4], name, float(batch.value[row]), _pack_times(batch, row)


def _playlist_rows(batch: ImportBatch, song_ids: Int64Array) -> list[tuple[str, str | None, list[int]]]:
    lists: dict[int, list[int]] = defaultdict(list)
    for group, song in zip(batch.group.tolist(), batch.song.tolist(), strict=True):
        if song_ids[song] >= 0:
            lists[group].append(int(song_ids[song]))
    return [(batch.groups[group][0], batch.groups[group][1] or None, ids) for group, ids in lists.items()]


def import_files(library: Library, paths: str | Path | list[str | Path], fmt: str | None = None) -> ImportReport:
    """Import files without a preview; see :func:`read_listening` for the errors."""
    return commit_import(
        library, preview_import(library, read_listening(paths if isinstance(paths, list) else [paths], fmt))
    )


def match_waiting(library: Library) -> int:
    """After a scan, match unmatched songs of earlier imports, but not by similar names; return how many matched."""
    waiting = list(library.listening.waiting_names())
    if not waiting:
        return 0
    matcher = Matcher(library)
    matches = {names: match.song_id for names in waiting if (match := matcher.find(NamedSong(*names)))}
    return library.listening.give(matches)


def waiting_proposals(library: Library, progress: Progress = no_progress) -> list[Proposal]:
    """Return proposals for the most played unmatched songs, to pass to :func:`accept` or :func:`refuse`."""
    waiting = [(NamedSong(w.artist, w.title, w.album), w.count) for w in library.listening.list_unmatched()]
    return Matcher(library).propose(waiting, progress)[:_MAX_PROPOSALS]


def accept(library: Library, proposals: Iterable[Proposal]) -> int:
    """Apply the matches that a person confirmed, and return the number of matched songs.

    A match holds for all albums and for later imports.
    """
    confirmed = {p.song[:2]: p.song_id for p in proposals}
    library.listening.judge(((*names, song_id) for names, song_id in confirmed.items()), is_same=True)
    waiting = library.listening.waiting_names()
    return library.listening.give({names: confirmed[names[:2]] for names in waiting if names[:2] in confirmed})


def refuse(library: Library, proposals: Iterable[Proposal]) -> None:
    """Record that the songs in each proposal are different, so that they are not proposed again."""
    library.listening.judge(((*p.song[:2], p.song_id) for p in proposals), is_same=False)
