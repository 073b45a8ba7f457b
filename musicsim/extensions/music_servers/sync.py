"""Sync with a music server: match its songs to the library's, and import its user's plays, stars and ratings."""

import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path

import numpy as np

from musicsim.errors import ServerError
from musicsim.extensions.music_servers.client import PAGE, Listing, RefusedError, ServerAlbum, Subsonic
from musicsim.extensions.music_servers.connections import FETCHED, Connection, Connections, servers_folder
from musicsim.extensions.music_servers.server_songs import BY_A_PERSON, ServerSong, ServerSongs
from musicsim.library import (
    LOVED,
    LOVED_WEIGHT,
    Gatherer,
    ImportReport,
    Library,
    Matcher,
    NamedSong,
    atomic_path,
    commit_import,
    is_below,
    preview_import,
)
from musicsim.progress import Progress
from musicsim.wording import count

FORMAT = "music server"  # format name of imports from servers
LIST_EVERY_S = 20 * 3600.0
"""Seconds after which a sync lists all songs on a server again; less than a day, to suit nightly syncs."""

_MAX_CANDIDATES = 10
_MAX_NAMED = 5
# tolerance for lengths, because encoders add silence and servers round
_LENGTH_S, _LENGTH_SHARE = 3.0, 0.02
_BY_HOW = {"path": "path", "path end": "path", "mbid": "MusicBrainz id", "exact": "tags", "loose": "tags"}
_MATCHED_FIELDS = ("title", "artist", "album", "path", "mbid", "duration_s")


@dataclass(frozen=True, slots=True)
class KnownAlbum:
    digest: str  # digest of the server's entry
    songs: tuple[str, ...]  # song ids


Albums = dict[str, KnownAlbum]  # keyed by album id; empty if some songs on the server are not in an album


def load_albums(library: Library, server: str) -> Albums:
    try:
        saved = json.loads(_file(library, server).read_text(encoding="utf-8"))
        return {album: KnownAlbum(digest, tuple(songs)) for album, (digest, songs) in saved.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def save_albums(library: Library, server: str, albums: Albums) -> None:
    if not albums:
        _file(library, server).unlink(missing_ok=True)
        return
    text = json.dumps({album: [known.digest, known.songs] for album, known in albums.items()})
    with atomic_path(_file(library, server)) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _file(library: Library, server: str) -> Path:
    return library.folder / "cache" / f"albums of {server}.json"


def albums_of(listing: Listing, albums: Mapping[str, ServerAlbum]) -> Albums:
    """Group the songs by album; return {} if a song has no album. Albums with a wrong song count are skipped."""
    songs: dict[str, list[str]] = {}
    for song_id, album_id in listing.album_ids.items():
        songs.setdefault(album_id, []).append(song_id)
    if not songs.keys() <= albums.keys():
        return {}
    return {
        album_id: KnownAlbum(albums[album_id].digest, tuple(song_ids))
        for album_id, song_ids in songs.items()
        if len(song_ids) == albums[album_id].n_songs
    }


def read_changes(client: Subsonic, before: Albums, n_songs: int) -> tuple[dict[str, ServerSong], Albums] | None:
    """Return the songs in new and changed albums, and all current albums.

    The result is None if no album has changed, or if listing all songs would be faster.
    """
    current = client.albums() if before else {}
    if not current:
        return None
    albums = {i: known for i, known in before.items() if i in current and current[i].digest == known.digest}
    to_read = current.keys() - albums.keys()
    if len(albums) == len(current) == len(before) or len(to_read) > n_songs / PAGE:
        return None
    changed: dict[str, ServerSong] = {}
    for album_id in to_read:
        try:
            songs = {song.id: song for song in client.album(album_id)}
        except RefusedError as error:
            if not error.is_not_found:  # the album may have just been deleted
                raise
            continue
        changed |= songs
        if len(songs) == current[album_id].n_songs:
            albums[album_id] = KnownAlbum(current[album_id].digest, tuple(songs))
    return changed, albums


@dataclass(slots=True)
class SyncReport:
    server: str
    n_songs: int = 0  # number of songs on the server
    n_new: int = 0
    n_changed: int = 0  # number of songs whose tags or listening data have changed
    n_gone: int = 0  # number of songs that are no longer on the server
    n_matched: int = 0
    n_ambiguous: int = 0
    unmatched: list[str] = field(default_factory=list)  # names of the first songs that are not in the library
    matched_by: dict[str, int] = field(default_factory=dict)  # number of songs matched by each method
    left_out: dict[str, int] = field(default_factory=dict)  # number of skipped entries for each reason
    is_unchanged: bool = False  # whether the server reports that its songs have not changed
    is_full: bool = False  # whether all songs were listed
    listening: list[ImportReport] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def n_unmatched(self) -> int:
        return self.n_songs - self.n_matched - self.n_ambiguous

    @property
    def summary(self) -> str:
        counts = {"to choose": self.n_ambiguous, "not in the library": self.n_unmatched, "new": self.n_new}
        counts |= {"changed": self.n_changed, "gone": self.n_gone}
        parts = [count(self.n_songs, "song"), f"{self.n_matched:,} matched"]
        parts += [f"{n:,} {name}" for name, n in counts.items() if n]
        parts += [f"{n:,} skipped ({reason})" for reason, n in self.left_out.items()]
        return f"{self.server}: {' · '.join(parts)}"


def sync(library: Library, connection: Connection, progress: Progress, *, everything: bool = False) -> SyncReport:
    """Read and match a server's songs, and import its user's listening data.

    If the server reports no changes, only stars and recent plays are read. If the list of albums shows what changed,
    only the songs in changed albums are read. Otherwise, and once a day or with `everything`, all songs are listed.
    """
    started, started_at = time.monotonic(), time.time()
    report = SyncReport(connection.name)
    client = Subsonic(connection)
    progress(f"{connection.name}: contacting the server")
    client.ping()
    state = client.state()  # read this first, so that the next sync notices changes made during this one
    known = ServerSongs(library).read_songs(connection.name)
    is_due = everything or not known or started_at - (connection.listed_at or 0.0) > LIST_EVERY_S
    report.is_unchanged = not is_due and bool(state) and state == connection.modified
    albums = None
    if report.is_unchanged:
        songs = _update_listening(client, known)
    elif not is_due and (changes := read_changes(client, load_albums(library, connection.name), len(known))):
        changed_songs, albums = changes
        updated = _update_listening(client, known)
        songs = {i: updated[i] for album in albums.values() for i in album.songs if i in known} | changed_songs
    else:
        report.is_full = True
        songs, albums, report.left_out = _list_all(client, len(known), progress)
    finder = SongFinder(library)
    for n, song in enumerate(songs.values()):
        if n % 1000 == 0:
            progress(f"{connection.name}: matching songs", n, len(songs))
        songs[song.id] = _match_again(song, known.get(song.id), finder)
    changed = [song for song in songs.values() if song != known.get(song.id)]
    gone = [song for server_id, song in known.items() if server_id not in songs]
    ServerSongs(library).write(connection.name, changed, [song.id for song in gone])
    _mark_missing(library, connection.name, gone)
    matched_by = Counter(song.how for song in songs.values() if song.song_id is not None)
    report.matched_by, report.n_matched, report.n_songs = dict(matched_by), matched_by.total(), len(songs)
    report.n_ambiguous = sum(song.candidates is not None for song in songs.values())
    unmatched = (song.label for song in songs.values() if song.song_id is None and song.candidates is None)
    report.unmatched = list(islice(unmatched, _MAX_NAMED))
    report.n_new = sum(song.id not in known for song in changed)
    report.n_changed, report.n_gone = len(changed) - report.n_new, len(gone)
    if connection.takes_listening:
        report.listening = import_listening(library, connection, finder)
    if albums is not None:
        save_albums(library, connection.name, albums)
    listed_at = started_at if report.is_full else connection.listed_at
    Connections(library).note(connection.name, modified=state, synced_at=time.time(), listed_at=listed_at)
    report.seconds = time.monotonic() - started
    return report


def _list_all(
    client: Subsonic, n_known: int, progress: Progress
) -> tuple[dict[str, ServerSong], Albums, dict[str, int]]:
    name = client.connection.name
    albums = client.albums()  # read these first, so that the next sync notices albums that change during this one
    listing = client.songs(lambda n: progress(f"{name}: {count(n, 'song')} listed", n, n_known))
    if n_known and not listing.songs:
        raise ServerError(
            f"{name}: the server no longer lists any songs, so nothing was changed. Have the server scan its folders."
        )
    return listing.songs, albums_of(listing, albums), dict(listing.left_out)


def _update_listening(client: Subsonic, known: Mapping[str, ServerSong]) -> dict[str, ServerSong]:
    """Return the known songs, updated with current stars and with plays since the last sync."""
    starred = {song.id for song in client.list_starred()}
    songs = {key: replace(song, is_starred=key in starred) for key, song in known.items()}
    for album in client.recent_albums():
        played = [song for song in album if song.id in songs and song.plays != songs[song.id].plays]
        for song in played:
            songs[song.id] = replace(songs[song.id], plays=song.plays, rating=song.rating, played_at=song.played_at)
        if not played:
            break  # the remaining albums have not been played since the last sync
    return songs


def _match_again(song: ServerSong, before: ServerSong | None, finder: "SongFinder") -> ServerSong:
    if before is None:
        return finder.match(song)
    is_same = all(getattr(song, name) == getattr(before, name) for name in _MATCHED_FIELDS)
    if before.how in BY_A_PERSON or (is_same and before.song_id is not None):
        return replace(song, song_id=before.song_id, how=before.how, candidates=before.candidates)
    match = finder.match(song)
    is_unmatched = is_same and match.song_id is None and match.candidates is None
    return replace(match, how=before.how) if is_unmatched else match


def _mark_missing(library: Library, server: str, gone: Iterable[ServerSong]) -> None:
    ids = [song.song_id for song in gone if song.how == FETCHED and song.song_id is not None]
    if ids:
        on_servers, below = ServerSongs(library).ids_of(ids), servers_folder(library, server)
        paths = [song.path for song in library.songs(ids) if song.id not in on_servers]
        library.files.mark(missing=[path for path in paths if is_below(path, below)], back=())


class SongFinder:
    """Matches server songs to the library's songs: by path, by MusicBrainz id, then by tags and length."""

    def __init__(self, library: Library) -> None:
        self._library = library

    @cached_property
    def matcher(self) -> Matcher:
        return Matcher(self._library)

    @cached_property
    def _lengths(self) -> dict[int, float]:
        table = self._library.table()
        return dict(zip(table.ids.tolist(), np.asarray(table.columns.duration_s).tolist(), strict=True))

    @cached_property
    def _originals(self) -> dict[int, int]:
        return {p.second_id: p.first_id for p in self._library.same_pairs() if p.is_same}

    def match(self, song: ServerSong) -> ServerSong:
        """Return the song with its match, or with the candidates that a person must choose from."""
        song = replace(song, song_id=None, how="", candidates=None)
        named = NamedSong(song.artist, song.title, song.album, song.mbid, song.path)
        match = self.matcher.find_by_path(named, partial(self._is_as_long, song)) if song.path else None
        if match and (match.how == "path" or self._is_as_long(song, match.song_id) is not False):
            return replace(song, song_id=match.song_id, how=_BY_HOW[match.how])
        by_names = self.matcher.find_by_names(named) if song.title else None
        if by_names is None:
            return song
        how, alike = by_names
        of_album = {k.id for k in alike if k.album and k.album.casefold() == song.album.casefold()}
        ids = list(dict.fromkeys(k.id for k in alike))
        near = [i for i in ids if self._is_as_long(song, i) is not False]
        for choice in (near, [i for i in near if i in of_album], ids if how == "mbid" else []):
            if len(originals := {self._original(i) for i in choice}) == 1:
                return replace(song, song_id=originals.pop(), how=_BY_HOW[how])
        return replace(song, candidates=tuple((near or ids)[:_MAX_CANDIDATES]))

    def _original(self, song_id: int) -> int:
        """Follow a chain of duplicates to the original song; return any other song itself."""
        while song_id in self._originals:
            song_id = self._originals[song_id]
        return song_id

    def _is_as_long(self, song: ServerSong, song_id: int) -> bool | None:
        """Return whether the lengths agree; None if one of them is unknown."""
        length_s = self._lengths.get(song_id)
        if length_s is None or song.duration_s is None:
            return None
        return abs(length_s - song.duration_s) <= max(_LENGTH_S, _LENGTH_SHARE * length_s)


def remove(library: Library, name: str) -> None:
    """Remove a server, its secret, and its songs without local files, but keep imported plays and tags."""
    Connections(library).remove(name)
    save_albums(library, name, {})
    library.files.forget_root(servers_folder(library, name))
    ServerSongs(library).forget(name)


def list_last_played(library: Library, connection: Connection, n_songs: int) -> list[int]:
    """Return the last played songs, or songs on recently played albums if the server does not report plays."""
    known = ServerSongs(library).read_songs(connection.name)
    played = [song for song in known.values() if song.plays and song.song_id is not None]
    played.sort(key=lambda song: (-(song.played_at or 0.0), -song.plays, song.id))
    ids = dict.fromkeys(song.song_id for song in played if song.song_id is not None)
    for album in Subsonic(connection).recent_albums() if not ids else ():
        song_ids = (known[song.id].song_id for song in album if song.id in known)
        ids |= dict.fromkeys(song_id for song_id in song_ids if song_id is not None)
        if len(ids) >= n_songs:
            break
    return list(ids)[:n_songs]


def import_listening(library: Library, connection: Connection, finder: SongFinder) -> list[ImportReport]:
    """Import the user's plays, stars (as the tag "loved") and ratings (as tags such as "rated 4")."""
    songs = [s for s in ServerSongs(library).read_songs(connection.name).values() if s.title]
    # the path of the local file makes the import match exactly this song
    matched = library.songs([s.song_id for s in songs if s.song_id is not None])
    paths: dict[int | None, str] = {song.id: os.fspath(song.path) for song in matched}
    plays, tags = (Gatherer(kind, connection.listener) for kind in ("plays", "tags"))
    for song in songs:
        path = paths.get(song.song_id, "")
        named = NamedSong(song.artist, song.title, song.album, song.mbid, path)
        if song.plays:
            plays.add(named, value=song.plays)
        if song.is_starred:
            tags.add(named, LOVED, LOVED_WEIGHT)
        if song.rating:
            tags.add(named, (f"rated {song.rating}", ""), LOVED_WEIGHT)
    reports = []
    for rows in (plays, tags):
        name = f"{connection.name} ({rows.kind})"
        earlier = [e for e in library.listening.imports() if (e.name, e.format) == (name, FORMAT)]
        batch = rows.batch([FORMAT], name, connection.listener)
        if not rows.n_rows:
            for entry in earlier:  # undo earlier imports if the server no longer has such data
                library.listening.undo(entry.id)
        elif not any(entry.digest == batch.digest for entry in earlier):
            reports.append(commit_import(library, preview_import(library, batch, matcher=lambda: finder.matcher)))
    return reports
