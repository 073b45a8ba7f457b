"""Similar songs, paths and similar artists for players of other programs, by the ids that these know songs by.

Where a music server is connected, its ids mean songs and are what is answered; songs that it does not have are left
out. Else they are the library's own.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from musicsim.errors import NotFoundError
from musicsim.explorer.playlists.walk import Walk
from musicsim.explorer.search.artists import find_similar_artists, songs_standing_for
from musicsim.explorer.search.feedback import Thumbs
from musicsim.explorer.search.query import Hit, Query, examples_of, find_similar, similarity_of
from musicsim.explorer.snapshot.snapshot import Snapshot, take_snapshot
from musicsim.extensions.music_servers.client import RefusedError, Subsonic
from musicsim.extensions.music_servers.connections import Connection, Connections
from musicsim.extensions.music_servers.server_songs import ServerSongs, is_id
from musicsim.extensions.player_engine.jellyfin import JellyfinIds
from musicsim.extensions.player_engine.request import PlayerRules
from musicsim.library import Library, Song

MAX_SONGS = 500
"""Of one answer."""

JELLYFIN = "/jellyfin"
"""Stands for it where the name of a connected server does."""

_OWN_ID = re.compile(r"(?:so-)?([0-9]{1,18})", re.ASCII)
_SEED = 0  # the same path for the same question
_REACH = 4  # songs are looked for so many times further where a server lacks those that were found


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked with, and the connected server whose ids were used; None where they are the library's own."""

    query: Query
    server: str | None  # may be JELLYFIN


@dataclass(frozen=True, slots=True)
class Match:
    """A song as it is answered."""

    id: str  # by which the asking program knows it
    song: Song
    similarity: float  # 0 to 1, to what was asked with; of a path to its first song


@dataclass(frozen=True, slots=True)
class ArtistMatch:
    """An artist as it is answered, with its entry points."""

    name: str
    entries: tuple[Match, ...]


class Answering:
    """Answers from a library as it stands, under the model in use and some rules."""

    def __init__(self, library: Library, rules: PlayerRules) -> None:
        self._library, self._rules = library, rules
        self._jellyfin = JellyfinIds(library, rules.jellyfin or "")
        self.snapshot = _snapshot(library, library.revision)

    # --- what was asked with ------------------------------------------------------------------

    def song(self, item_id: str) -> Asked:
        """The song of an id, in any form that a connected server hands out, or of a file in Jellyfin.

        Raises NotFoundError if there is none, or it has no vector yet.
        """
        known = ServerSongs(self._library).known(item_id)
        if known is not None:
            return self._with_vector(known[1], known[0])
        is_connected = ServerSongs(self._library).first_server() is not None
        if self._rules.jellyfin or not is_connected:
            in_jellyfin = self._jellyfin.song(item_id)
            if in_jellyfin is not None:
                return self._with_vector(in_jellyfin, JELLYFIN)
        own = _OWN_ID.fullmatch(item_id)
        if own is None or is_connected:
            raise _unknown()
        return self._with_vector(int(own[1]), None)

    def song_called(self, title: str, artist: str) -> Asked:
        """The song of a title and an artist, in any case; raises as :meth:`song`."""
        found = self.snapshot.songs_with(f"{title} {artist}", 1)
        if not found:
            raise _unknown()
        return self._with_vector(found[0].id, self._server)

    def artist(self, name: str) -> Asked:
        """Songs that stand for an artist, who is called by name, or by the id on a connected server.

        Raises NotFoundError if there is none; ServerError if a server does not say whose id it is.
        """
        try:
            return Asked(songs_standing_for(self.snapshot, name), self._server)
        except NotFoundError:
            for connection in Connections(self._library).all() if is_id(name) else ():
                with suppress(RefusedError):  # it has no such id
                    called = _artist_called(connection, name)
                    return Asked(songs_standing_for(self.snapshot, called), connection.name)
            raise

    def song_or_artist(self, item_id: str) -> Asked:
        """What an id is of; raises as :meth:`artist`."""
        try:
            return self.song(item_id)
        except NotFoundError:
            return self.artist(item_id)

    def _with_vector(self, song_id: int, server: str | None) -> Asked:
        if self.snapshot.rows_of([song_id])[0] < 0:
            raise _unknown()
        return Asked(song_id, server)

    # --- answers ------------------------------------------------------------------------------

    def similar(self, asked: Asked, n: int, *, is_limited: bool = True) -> list[Match]:
        """At most `n` similar songs, best first, with the limit per artist or without."""
        limit = (self._rules.per_artist or None) if is_limited else None
        left_out, thumbs = self._left_out, self._thumbs(asked.query)
        k = n = min(n, MAX_SONGS)
        while True:
            hits = find_similar(
                self.snapshot, asked.query, k, max_per_artist=limit, filters=self._rules, exclude=left_out,
                thumbs=thumbs,
            )  # fmt: skip
            matches = self._matches(hits, asked.server)
            if len(matches) >= n or len(hits) < k:
                return matches[:n]
            k = _REACH * k

    def path(self, first: Asked, last: Asked, n: int) -> list[Match]:
        """At most `n` songs that begin with the one and end with the other, and change little from song to song.

        Raises NotFoundError if they are of two servers.
        """
        start, end = (self._library.song(_song_ids(asked.query)[0]) for asked in (first, last))
        if len(set(self.snapshot.rows_of([start.id, end.id]))) == 1:  # they sound the same
            return self._along([start, end][: 1 + (start.id != end.id)], first.server)
        left_out = self._left_out
        between = self._between(start.id, end.id, n, left_out)
        known = self._ids([song.id for song in between], first.server)
        if len(known) < len(between):  # the server lacks some: again, from what it has
            everything = self.snapshot.row_ids.tolist()
            left_out |= set(everything) - self._ids(everything, first.server).keys()
            between = self._between(start.id, end.id, n, left_out)
        return self._along([start, *between, end], first.server)

    def _between(self, start: int, end: int, n: int, left_out: frozenset[int]) -> tuple[Song, ...]:
        """Songs of a path but for its ends: the walk may know these by others with the same sound."""
        request = self._rules.path(start, end, min(max(n, 2), MAX_SONGS), left_out)
        return _walk(self._library, self.snapshot.revision).draw(request, _SEED).songs[1:-1]

    def artists(self, asked: Asked, n: int) -> list[ArtistMatch]:
        """At most `n` similar artists with their entry points, the nearest first."""
        found = find_similar_artists(
            self.snapshot, asked.query, n, filters=self._rules, exclude=self._left_out, thumbs=self._thumbs(asked.query)
        )
        matches = [ArtistMatch(artist.name, tuple(self._matches(artist.entries, asked.server))) for artist in found]
        return [artist for artist in matches if artist.entries]

    def songs_of(self, asked: Asked) -> list[Match]:
        """What was asked with, as far as the asking program has it."""
        songs = self.snapshot.songs_by_id(_song_ids(asked.query))
        ids = self._ids([song.id for song in songs], asked.server)
        return [Match(ids[song.id], song, 1.0) for song in songs if song.id in ids]

    # --- how ----------------------------------------------------------------------------------

    @property
    def _server(self) -> str | None:
        """Whose ids are answered where a question has none."""
        return ServerSongs(self._library).first_server() or (JELLYFIN if self._rules.jellyfin else None)

    @property
    def _left_out(self) -> frozenset[int]:
        """Songs that are never answered: by the rules, and by a thumb down in the player."""
        down = (song_id for song_id, thumb in self._library.feedback().items() if thumb < 0)
        return self._rules.exclude.union(down)

    def _thumbs(self, query: Query) -> Thumbs | None:
        """What was kept of answers to a song."""
        return Thumbs(tuple(self._library.judgements.of(query).items())) if isinstance(query, int) else None

    def _matches(self, hits: Sequence[Hit], server: str | None) -> list[Match]:
        ids = self._ids([hit.song.id for hit in hits], server)
        return [Match(ids[h.song.id], h.song, h.similarity or 0.0) for h in hits if h.song.id in ids]

    def _along(self, songs: Sequence[Song], server: str | None) -> list[Match]:
        first, ids = songs[0], self._ids([song.id for song in songs], server)
        if len(ids) < len(songs):
            raise _unknown()
        near = [1.0, *(similarity_of(self.snapshot, first.id, song.id) for song in songs[1:])]
        return [Match(ids[song.id], song, value) for song, value in zip(songs, near, strict=True)]

    def _ids(self, song_ids: Sequence[int], server: str | None) -> dict[int, str]:
        """Ids by which the asking program knows songs, or others with the same sound, by our id."""
        if server is None:
            return {song_id: str(song_id) for song_id in song_ids}
        if server == JELLYFIN:
            return self._jellyfin.ids_of(song_ids)
        ids = ServerSongs(self._library).ids_of(song_ids, server)
        missing = set(song_ids) - ids.keys()
        shown = self.snapshot.representative_of
        copies = {copy: one for copy, one in shown.items() if one in missing} if missing else {}
        of_copies = ServerSongs(self._library).ids_of(copies, server) if copies else {}
        return {copies[copy]: item_id for copy, item_id in of_copies.items()} | ids


def _song_ids(query: Query) -> list[int]:
    """Ids of the songs of a query."""
    return [one for one in examples_of(query).like if isinstance(one, int)]


def _unknown() -> NotFoundError:
    return NotFoundError("there is no such song here, or it has not been analysed yet.")


@lru_cache(maxsize=1000)
def _artist_called(connection: Connection, artist_id: str) -> str:
    """The name of an artist of a server; raises RefusedError if it has none of this id."""
    return Subsonic(connection).artist_name(artist_id)


@lru_cache(maxsize=2)
def _snapshot(library: Library, revision: int) -> Snapshot:
    """The library as it stands at a revision; what it has read stays read."""
    del revision
    return take_snapshot(library)


@lru_cache(maxsize=2)
def _walk(library: Library, revision: int) -> Walk:
    """The walk of a revision; to build it takes longer than to draw a path."""
    return Walk(_snapshot(library, revision))


def length_of(snapshot: Snapshot, path: Sequence[Match]) -> float:
    """How far a path goes: the sum of 1 - similarity of its steps."""
    return sum(1.0 - similarity_of(snapshot, a.song.id, b.song.id) for a, b in pairwise(path))
