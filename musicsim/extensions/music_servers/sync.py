"""What a server has, brought up to date here: its songs, which songs here they are, and what people did there."""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from musicsim.errors import ServerError
from musicsim.extensions.music_servers.albums import (
    Albums,
    albums_of,
    changed_albums,
    forget_albums,
    keep_albums,
    known_albums,
)
from musicsim.extensions.music_servers.client import Subsonic
from musicsim.extensions.music_servers.connections import FETCHED, Connection, Connections, servers_folder
from musicsim.extensions.music_servers.server_songs import BY_A_PERSON, ServerSong, ServerSongs
from musicsim.library import Library
from musicsim.library.importing import ImportReport, NamedSong, commit, preview, undo
from musicsim.library.importing.json_formats import LOVED, LOVED_WEIGHT
from musicsim.library.importing.matching import Matcher
from musicsim.library.importing.records import Gatherer
from musicsim.library.stores.files import is_below

FORMAT = "music server"
"""What imports of listening from servers are called."""

LIST_EVERY_S = 20 * 3600.0
"""After which a sync lists all songs of a server: those of every night do."""

_MAX_CANDIDATES = 10
# Lengths of one recording differ by what encoders add and by how they are rounded.
_LENGTH_S, _LENGTH_SHARE = 3.0, 0.02
_BY_HOW = {"path": "path", "path end": "path", "mbid": "MusicBrainz id", "exact": "tags", "loose": "tags"}
_SAME_LIST = ("title", "artist", "album", "path", "mbid", "duration_s")

Tell = Callable[..., None]
"""Told a message and how much of it is done; what it raises ends the work, and nothing is written."""


@dataclass(slots=True)
class SyncReport:
    """What came of a sync."""

    server: str
    n_songs: int = 0  # that the server has
    # of them: entered, with other tags or listening than before, and forgotten, as the server has them no more
    n_new: int = 0
    n_changed: int = 0
    n_gone: int = 0
    n_matched: int = 0
    n_ambiguous: int = 0
    matched_by: dict[str, int] = field(default_factory=dict)  # songs by how they were matched
    left_out: dict[str, int] = field(default_factory=dict)  # entries that are no songs, by reason
    is_unchanged: bool = False  # whether the server said that its songs are as they were
    is_full: bool = False  # whether all songs were listed
    listening: list[ImportReport] = field(default_factory=list)  # what was imported
    seconds: float = 0.0

    @property
    def n_unmatched(self) -> int:
        """Songs that are not here."""
        return self.n_songs - self.n_matched - self.n_ambiguous

    @property
    def words(self) -> str:
        """What came of it, in a line."""
        counts = {
            "songs": self.n_songs,
            "matched": self.n_matched,
            "to choose": self.n_ambiguous,
            "not here": self.n_unmatched,
            "new": self.n_new,
            "changed": self.n_changed,
            "gone": self.n_gone,
        }
        words = [f"{n:,} {what}" for what, n in counts.items() if n or what in ("songs", "matched")]
        words += [f"{n:,} left out ({reason})" for reason, n in self.left_out.items()]
        return f"{self.server}: {' · '.join(words)}"


def sync(library: Library, connection: Connection, tell: Tell, *, everything: bool = False) -> SyncReport:
    """Read a server's songs, match them, and import what its user did; all is written at the end, or nothing.

    Where the server says that its songs are as they were, only stars and what was played since are asked for; where
    its albums tell what has changed, the songs of these. All songs are listed with `everything`, where the server does
    not tell enough, and once a day, as a server may change more than it tells.

    Raises ServerError where the server fails, or has lost all its songs; nothing is written then.
    """
    started, started_at = time.monotonic(), time.time()
    report = SyncReport(connection.name)
    client = Subsonic(connection)
    tell(f"{connection.name}: asking the server")
    client.ping()
    state = client.state()  # first: what changes from now on is found by the next sync
    known = ServerSongs(library).of(connection.name)
    is_due = everything or not known or started_at - (connection.listed_at or 0.0) > LIST_EVERY_S
    report.is_unchanged = not is_due and bool(state) and state == connection.modified
    albums = None
    if report.is_unchanged:
        listed = _with_listening(client, known)
    elif not is_due and (differing := changed_albums(client, known_albums(library, connection.name), len(known))):
        as_they_were = _with_listening(client, known)
        listed = {i: as_they_were[i] for i in differing.unchanged if i in known} | differing.songs
        albums = differing.albums
    else:
        report.is_full = True
        listed, albums, report.left_out = _all_songs(client, len(known), tell)
    finder = SongFinder(library)
    changed = []
    for n, song in enumerate(listed.values()):
        if n % 1000 == 0:
            tell(f"{connection.name}: matching songs", n, len(listed))
        before = known.get(song.id)
        now = _with_match(song, before, finder)
        listed[song.id] = now
        if now != before:
            changed.append(now)
    gone = [server_id for server_id in known if server_id not in listed]
    ServerSongs(library).write(connection.name, changed, gone)
    _forget_places(library, connection.name, [known[server_id] for server_id in gone])
    _count(report, listed.values(), known, changed, gone)
    if connection.takes_listening:
        report.listening = import_listening(library, connection, finder)
    if albums is not None:
        keep_albums(library, connection.name, albums)
    listed_at = started_at if report.is_full else connection.listed_at
    Connections(library).note(connection.name, modified=state, synced_at=time.time(), listed_at=listed_at)
    report.seconds = time.monotonic() - started
    return report


def _all_songs(client: Subsonic, n_known: int, tell: Tell) -> tuple[dict[str, ServerSong], Albums, dict[str, int]]:
    """Every song of a server by its id, what to keep of its albums, and entries that are no songs, by reason."""
    name = client.connection.name
    albums = client.albums()  # first: an album that changes meanwhile is read the next time
    listing = client.songs(lambda n: tell(f"{name}: {n:,} songs listed", n, n_known))
    if n_known and not listing.songs:
        raise ServerError(
            f"{name}: the server lists no songs any more. Nothing was changed: sync again when it has looked through "
            f"its folders, or remove it."
        )
    return listing.songs, albums_of(listing, albums), dict(listing.left_out)


def _with_listening(client: Subsonic, known: Mapping[str, ServerSong]) -> dict[str, ServerSong]:
    """What is known of a server's songs, with the stars of now and what was played since."""
    starred = {song.id for song in client.starred()}
    songs = {key: replace(song, is_starred=key in starred) for key, song in known.items()}
    for album in client.recent_albums():
        played = [song for song in album if song.id in songs and song.plays != songs[song.id].plays]
        for song in played:
            before = songs[song.id]
            songs[song.id] = replace(before, plays=song.plays, rating=song.rating, played_at=song.played_at)
        if not played:
            break  # albums before it were played before the last sync
    return songs


def _with_match(song: ServerSong, before: ServerSong | None, finder: "SongFinder") -> ServerSong:
    """A song as it is listed now, with the song here that it is."""
    if before is not None:
        is_as_it_was = all(getattr(song, name) == getattr(before, name) for name in _SAME_LIST)
        if before.how in BY_A_PERSON or (is_as_it_was and before.song_id is not None):
            return replace(song, song_id=before.song_id, how=before.how, candidates=before.candidates)
        now = finder.matched(song)
        is_still_left = is_as_it_was and now.song_id is None and now.candidates is None
        return replace(now, how=before.how) if is_still_left else now
    return finder.matched(song)


def _forget_places(library: Library, server: str, gone: Iterable[ServerSong]) -> None:
    """Songs that were on the server only are missing from now on."""
    ids = [song.song_id for song in gone if song.how == FETCHED and song.song_id is not None]
    if ids:
        still_there, below = ServerSongs(library).ids_of(ids), servers_folder(library, server)
        paths = [song.path for song in library.songs(ids) if song.id not in still_there]
        library.files.mark(missing=[path for path in paths if is_below(path, below)], back=())


def _count(
    report: SyncReport,
    songs: Iterable[ServerSong],
    known: Mapping[str, ServerSong],
    changed: Iterable[ServerSong],
    gone: Iterable[str],
) -> None:
    matched_by: Counter[str] = Counter()
    for song in songs:
        report.n_songs += 1
        report.n_ambiguous += song.candidates is not None
        if song.song_id is not None:
            matched_by[song.how] += 1
    report.matched_by = dict(matched_by)
    report.n_matched = matched_by.total()
    report.n_new = sum(song.id not in known for song in changed)
    report.n_changed = sum(song.id in known for song in changed)
    report.n_gone = len(list(gone))


class SongFinder:
    """Finds the songs here that songs of servers are: by path, MusicBrainz id, then tags and length."""

    def __init__(self, library: Library) -> None:
        self._library = library

    @cached_property
    def matcher(self) -> Matcher:
        """Reads the names of all songs."""
        return Matcher(self._library)

    @cached_property
    def _lengths(self) -> dict[int, float]:
        table = self._library.table()
        return dict(zip(table.ids.tolist(), np.asarray(table.columns.duration_s).tolist(), strict=True))

    @cached_property
    def _first_copies(self) -> dict[int, int]:
        return {p.second_id: p.first_id for p in self._library.same_pairs() if p.is_same}

    def matched(self, song: ServerSong) -> ServerSong:
        """The song with its match, or with those that a person has to choose from."""
        named = NamedSong(song.artist, song.title, song.album, song.mbid, song.path)
        match = self.matcher.at_place(named) if song.path else None
        if match and (match.how == "path" or self._is_as_long(song, match.song_id)):
            return replace(song, song_id=match.song_id, how=_BY_HOW[match.how], candidates=None)
        found = self.matcher.named(named) if song.title else None
        if found is None:
            return replace(song, song_id=None, how="", candidates=None)
        how, alike = found
        of_album = {k.id for k in alike if k.album and k.album.casefold() == song.album.casefold()}
        ids = list(dict.fromkeys(k.id for k in alike))
        near = [i for i in ids if self._is_as_long(song, i)]
        for choice in (near, [i for i in near if i in of_album], ids if how == "mbid" else []):
            if len(copies := {self._first(i) for i in choice}) == 1:
                return replace(song, song_id=copies.pop(), how=_BY_HOW[how], candidates=None)
        return replace(song, song_id=None, how="", candidates=tuple((near or ids)[:_MAX_CANDIDATES]))

    def _first(self, song_id: int) -> int:
        """The first of the songs with the same sound."""
        while song_id in self._first_copies:
            song_id = self._first_copies[song_id]
        return song_id

    def _is_as_long(self, song: ServerSong, song_id: int) -> bool:
        """Whether lengths agree, as far as they are known."""
        here = self._lengths.get(song_id)
        if here is None or song.duration_s is None:
            return True
        return abs(here - song.duration_s) <= max(_LENGTH_S, _LENGTH_SHARE * here)


def remove(library: Library, name: str) -> None:
    """Forget a server: its secret, its songs, and those songs here that have no file.

    What was imported of listening stays, as do playlists on the server.

    Raises NotFoundError if there is none of this name.
    """
    Connections(library).remove(name)
    forget_albums(library, name)
    library.files.forget_root(servers_folder(library, name))
    ServerSongs(library).forget(name)


def played_last(library: Library, connection: Connection, n_songs: int) -> list[int]:
    """Ids of the songs here that were played last on a server, the latest first.

    As far as it tells when, else how often; of a server that tells neither, songs of the albums played last.
    """
    known = ServerSongs(library).of(connection.name)
    played = [song for song in known.values() if song.plays and song.song_id is not None]
    played.sort(key=lambda song: (-(song.played_at or 0.0), -song.plays, song.id))
    ids = dict.fromkeys(song.song_id for song in played if song.song_id is not None)
    if not ids:
        for album in Subsonic(connection).recent_albums():
            here = (known[song.id].song_id for song in album if song.id in known)
            ids |= dict.fromkeys(song_id for song_id in here if song_id is not None)
            if len(ids) >= n_songs:
                break
    return list(ids)[:n_songs]


# --- listening ----------------------------------------------------------------------------------


def import_listening(library: Library, connection: Connection, finder: SongFinder) -> list[ImportReport]:
    """Import the plays, stars and ratings of a server's user, in place of those of the last time.

    Plays are counts of the listener; a star is the tag "loved", a rating of 4 is "rated 4". What is the same as last
    time is not written again. Skips are none: the interface does not know them.
    """
    songs = [s for s in ServerSongs(library).of(connection.name).values() if s.title]
    places = _places(library, [s.song_id for s in songs if s.song_id is not None])
    plays = Gatherer("plays", connection.listener)
    tags = Gatherer("tags", connection.listener)
    for song in songs:
        place = places.get(song.song_id, "") if song.song_id is not None else ""
        named = NamedSong(song.artist, song.title, song.album, song.mbid, place)
        if song.plays:
            plays.add(named, value=song.plays)
        if song.is_starred:
            tags.add(named, LOVED, LOVED_WEIGHT)
        if song.rating:
            tags.add(named, (f"rated {song.rating}", ""), LOVED_WEIGHT)
    done = []
    for rows in (plays, tags):
        name = import_name(connection.name, rows.kind)
        earlier = [e for e in library.listening.imports() if (e.name, e.format) == (name, FORMAT)]
        batch = rows.batch([FORMAT], name, connection.listener)
        if not rows.n_rows:
            for entry in earlier:  # what was said there was taken back there
                undo(library, entry.id)
        elif not any(entry.digest == batch.digest for entry in earlier):
            done.append(commit(library, preview(library, batch, matcher=lambda: finder.matcher)))
    return done


def import_name(server: str, kind: str) -> str:
    """What an import of listening from a server is called."""
    return f"{server} ({kind})"


def _places(library: Library, song_ids: Iterable[int]) -> dict[int, str]:
    """A file of each song, by which an import finds exactly this one."""
    return {song.id: os.fspath(song.path) for song in library.songs(song_ids)}
