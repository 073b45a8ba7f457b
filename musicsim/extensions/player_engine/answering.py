"""Similar songs, paths and similar artists for players in other programs, with those programs' ids.

If a music server is connected, its ids are used, and songs that it does not have are left out.
"""

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from musicsim import registry
from musicsim.errors import NotFoundError
from musicsim.explorer import (
    Hit,
    Query,
    Snapshot,
    Thumbs,
    choose_songs_of,
    examples_of,
    find_similar,
    find_similar_artists,
    share_walk,
    similarity_of,
    take_snapshot,
)
from musicsim.extensions.player_engine.access import PlayerRules
from musicsim.extensions.player_engine.jellyfin import JellyfinIds
from musicsim.extensions.player_engine.recent import RECENT
from musicsim.hooks import ForeignIds, KnowForeignIds
from musicsim.library import Library, Song

MAX_SONGS = 500  # maximum number of songs per response
JELLYFIN = "/jellyfin"  # server name for Jellyfin, which is not a connected server
_OWN_ID = re.compile(r"(?:so-)?([0-9]{1,18})", re.ASCII)
_SEED = 0  # fixed seed, so that the same request gets the same path
_WIDEN = 4  # factor by which the search is widened if some results are not on the server


@dataclass(frozen=True, slots=True)
class Seed:
    """A query from a player, and the connected server whose ids it uses (None: the library's own ids)."""

    query: Query
    server: str | None  # name of the server, or JELLYFIN


@dataclass(frozen=True, slots=True)
class ForeignMatch:
    id: str  # the song's id in the other program
    song: Song
    similarity: float  # from 0 to 1; similarity to the query or, in a path, to the first song


@dataclass(frozen=True, slots=True)
class ArtistMatch:
    name: str
    entries: tuple[ForeignMatch, ...]


class Answering:
    """Searches a library for a player, with the active model and the owner's rules.

    `player` is its key in the memory of :mod:`recent`; None for no memory.
    """

    def __init__(self, library: Library, rules: PlayerRules, player: Hashable = None) -> None:
        self._library, self._rules, self._player = library, rules, player
        self._foreign: list[ForeignIds] = [make(library) for make in registry.load_hooks(KnowForeignIds)]
        self._jellyfin = JellyfinIds(library, rules.jellyfin or "")
        self.snapshot = _snapshot(library, library.revision)

    def song(self, item_id: str) -> Seed:
        """Find a song by server, Jellyfin or library id. Raises NotFoundError if the song does not have a vector."""
        for ids in self._foreign:
            if (known := ids.find_song(item_id)) is not None:
                return self._check_vector(known[1], known[0])
        is_connected = self._first_server is not None
        if self._rules.jellyfin or not is_connected:
            song_id = self._jellyfin.song(item_id)
            if song_id is not None:
                return self._check_vector(song_id, JELLYFIN)
        own = _OWN_ID.fullmatch(item_id)
        if own is None or is_connected:
            raise _unknown_song()
        return self._check_vector(int(own[1]), None)

    def song_called(self, title: str, artist: str) -> Seed:
        songs = self.snapshot.songs_with(f"{title} {artist}", 1)
        if not songs:
            raise _unknown_song()
        return self._check_vector(songs[0].id, self._default_server)

    def artist(self, name: str) -> Seed:
        """Return songs that represent an artist, given by name or by id on a connected server."""
        try:
            return Seed(choose_songs_of(self.snapshot, name), self._default_server)
        except NotFoundError:
            for ids in self._foreign:
                if (known := ids.artist(name)) is not None:
                    return Seed(choose_songs_of(self.snapshot, known[1]), known[0])
            raise

    def song_or_artist(self, item_id: str) -> Seed:
        try:
            return self.song(item_id)
        except NotFoundError:
            return self.artist(item_id)

    def _check_vector(self, song_id: int, server: str | None) -> Seed:
        if self.snapshot.rows_of([song_id])[0] < 0:
            raise _unknown_song()
        return Seed(song_id, server)

    def similar(self, seed: Seed, n: int, *, is_limited: bool = True) -> list[ForeignMatch]:
        """Return at most `n` similar songs, best first, with or without the limit per artist.

        A player that asks for one song does not get the songs of its last requests for one song.
        """
        limit = (self._rules.per_artist or None) if is_limited else None
        if n == 1 and self._player is not None:
            return self._next(seed)
        return self._search(seed, n, limit, self._excluded)

    def _next(self, seed: Seed) -> list[ForeignMatch]:
        """Return the best song that the player did not get recently, otherwise the one that it got longest ago."""
        excluded, recent = self._excluded, RECENT.of(self._player)
        matches = self._search(seed, 1, None, excluded.union(recent))
        if not matches:
            place = {song_id: n for n, song_id in enumerate(recent)}
            known = self._search(seed, MAX_SONGS, None, excluded)
            matches = sorted(known, key=lambda match: place.get(match.song.id, -1))[:1]
        asked = [seed.query] if isinstance(seed.query, int) else []  # the player has just played it
        RECENT.add(self._player, [*asked, *(match.song.id for match in matches)])
        return matches

    def _search(self, seed: Seed, n: int, limit: int | None, excluded: frozenset[int]) -> list[ForeignMatch]:
        thumbs = self._thumbs(seed.query)
        k = n = min(n, MAX_SONGS)
        while True:
            results = find_similar(
                self.snapshot, seed.query, k, max_per_artist=limit, filters=self._rules, exclude=excluded,
                thumbs=thumbs,
            )  # fmt: skip
            matches = self._to_matches(results, seed.server)
            if len(matches) >= n or len(results) < k:
                return matches[:n]
            k = _WIDEN * k

    def path(self, first: Seed, last: Seed, n: int) -> list[ForeignMatch]:
        """Return a path of at most `n` songs. Raises NotFoundError if the first song's server lacks the last song."""
        start, end = (self._library.song(_song_ids(seed.query)[0]) for seed in (first, last))
        if len(set(self.snapshot.rows_of([start.id, end.id]))) == 1:  # both songs sound the same
            return self._to_path([start, end][: 1 + (start.id != end.id)], first.server)
        excluded = self._excluded
        between = self._walk_between(start.id, end.id, n, excluded)
        known = self._ids([song.id for song in between], first.server)
        if len(known) < len(between):  # try again without the songs that are not on the server
            everything = self.snapshot.row_ids.tolist()
            excluded |= set(everything) - self._ids(everything, first.server).keys()
            between = self._walk_between(start.id, end.id, n, excluded)
        return self._to_path([start, *between, end], first.server)

    def _walk_between(self, start: int, end: int, n: int, exclude: frozenset[int]) -> tuple[Song, ...]:
        # cut off the ends, because the walk may have replaced them with duplicates
        request = self._rules.path(start, end, min(max(n, 2), MAX_SONGS), exclude)
        return share_walk(self.snapshot).generate(request, _SEED).songs[1:-1]

    def artists(self, seed: Seed, n: int) -> list[ArtistMatch]:
        """Return at most `n` similar artists with their entry points, nearest first."""
        artists = find_similar_artists(
            self.snapshot, seed.query, n, filters=self._rules, exclude=self._excluded, thumbs=self._thumbs(seed.query)
        )
        matches = [ArtistMatch(name, tuple(self._to_matches(hits, seed.server))) for name, hits in artists.items()]
        return [match for match in matches if match.entries]

    def songs_of(self, seed: Seed) -> list[ForeignMatch]:
        songs = self.snapshot.songs_by_id(_song_ids(seed.query))
        ids = self._ids([song.id for song in songs], seed.server)
        return [ForeignMatch(ids[song.id], song, 1.0) for song in songs if song.id in ids]

    @property
    def _default_server(self) -> str | None:
        """The server whose ids are used in responses to queries without an id."""
        return self._first_server or (JELLYFIN if self._rules.jellyfin else None)

    @property
    def _first_server(self) -> str | None:
        return next((server for ids in self._foreign if (server := ids.first_server()) is not None), None)

    @property
    def _excluded(self) -> frozenset[int]:
        down = (song_id for song_id, thumb in self._library.feedback().items() if thumb < 0)
        return self._rules.exclude.union(down)

    def _thumbs(self, query: Query) -> Thumbs | None:
        return Thumbs(tuple(self._library.judgments.ratings_of(query).items())) if isinstance(query, int) else None

    def _to_matches(self, results: Sequence[Hit], server: str | None) -> list[ForeignMatch]:
        ids = self._ids([result.song.id for result in results], server)
        return [ForeignMatch(ids[r.song.id], r.song, r.similarity or 0.0) for r in results if r.song.id in ids]

    def _to_path(self, songs: Sequence[Song], server: str | None) -> list[ForeignMatch]:
        first, ids = songs[0], self._ids([song.id for song in songs], server)
        if len(ids) < len(songs):
            raise _unknown_song()
        similarities = [1.0, *(similarity_of(self.snapshot, first.id, song.id) for song in songs[1:])]
        return [ForeignMatch(ids[song.id], song, value) for song, value in zip(songs, similarities, strict=True)]

    def _ids(self, song_ids: Sequence[int], server: str | None) -> dict[int, str]:
        """Map song ids to ids in the other program; if it lacks a song, use the id of a duplicate."""
        if server is None:
            return {song_id: str(song_id) for song_id in song_ids}
        if server == JELLYFIN:
            return self._jellyfin.ids_of(song_ids)
        ids = self._foreign_ids(song_ids, server)
        missing = set(song_ids) - ids.keys()
        pairs = self.snapshot.representative_of.items() if missing else ()
        copies = {copy: song_id for copy, song_id in pairs if song_id in missing}
        ids_of_copies = self._foreign_ids(copies, server) if copies else {}
        return {copies[copy]: item_id for copy, item_id in ids_of_copies.items()} | ids

    def _foreign_ids(self, song_ids: Iterable[int], server: str) -> dict[int, str]:
        return {song_id: item_id for ids in self._foreign for song_id, item_id in ids.ids_of(song_ids, server).items()}


def _song_ids(query: Query) -> list[int]:
    return [one for one in examples_of(query).like if isinstance(one, int)]


def _unknown_song() -> NotFoundError:
    return NotFoundError("this song is not in the library, or has not been analyzed yet.")


@lru_cache(maxsize=2)
def _snapshot(library: Library, revision: int) -> Snapshot:
    del revision  # used only as part of the cache key
    return take_snapshot(library)


def length_of(snapshot: Snapshot, path: Sequence[ForeignMatch]) -> float:
    """Return the length of a path: the sum of 1 - similarity over its steps."""
    return sum(1.0 - similarity_of(snapshot, a.song.id, b.song.id) for a, b in pairwise(path))
