"""Playlists that are drawn again and again from a saved request, and written to a music server."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from musicsim.errors import LibraryError, MusicsimError, NotFoundError
from musicsim.explorer.playlists.walk import DrawnPlaylist, Walk
from musicsim.explorer.requests.options import changed, options_of
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.extensions.music_servers.connections import Connection
from musicsim.extensions.music_servers.lists import SavedList, save_list
from musicsim.extensions.music_servers.server_songs import ServerList, ServerSongs
from musicsim.extensions.music_servers.sync import played_last
from musicsim.library import Library, Song
from musicsim.library.importing import day_of

AROUND_LAST = "around_last"
"""What a saved request has besides the options of a playlist: around how many of the songs played last."""

_MAX_REASONS = 4
_MAX_SEEDS = 3  # named in a comment


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What came of drawing a playlist again: how it was written, or why it was not."""

    server: str
    name: str
    saved: SavedList | None
    problem: str = ""


def saved_request(request: PlaylistRequest, around_last: int = 0) -> dict[str, Any]:
    """A request as JSON keeps it: what differs from the defaults."""
    return changed(request) | ({AROUND_LAST: around_last} if around_last else {})


def read_request(kept: Mapping[str, Any]) -> tuple[PlaylistRequest, int]:
    """A request that was kept, and around how many of the songs played last it is to be.

    Raises LibraryError if it cannot be read, as where a newer version has written it.
    """
    options, values = options_of(PlaylistRequest), dict(kept)
    around_last = values.pop(AROUND_LAST, 0)
    try:
        for name, value in values.items():
            if options[name].n_values > 1:
                values[name] = tuple(value)
        return PlaylistRequest(**values), int(around_last)
    except (KeyError, TypeError, ValueError) as error:
        raise LibraryError(f"the saved request cannot be read ({error}). Save the playlist again.") from error


def keep_filled(
    now: Snapshot, connection: Connection, name: str, request: PlaylistRequest, around_last: int = 0
) -> SavedList:
    """Draw a playlist, write it to a server, and keep the request so that :func:`refresh_lists` draws it again.

    Raises NotFoundError if it is to be around what was played last, and the server knows of no song that was; or if
    the server has none of the songs; ServerError if the server fails.
    """
    kept = saved_request(request, around_last)
    asked, seeds = request, []
    if around_last:
        seeds = _played_last(now.library, connection, around_last)
        asked = replace(request, like=tuple(song.id for song in seeds))
    walk = Walk(now)
    drawn = walk.draw(asked, asked.seed)
    ids = [song.id for song in drawn.songs]
    return save_list(now.library, connection, name, ids, comment_of(drawn, seeds), kept)


def _played_last(library: Library, connection: Connection, n_songs: int) -> list[Song]:
    songs = library.songs(played_last(library, connection, n_songs))
    if not songs:
        raise NotFoundError(
            f"{connection.name}: nothing that was played there is in this library. Sync it, or name songs."
        )
    return songs


def comment_of(drawn: DrawnPlaylist, seeds: Sequence[Song] = ()) -> str:
    """What a playlist says of itself on a server: when and around what it was drawn, and the reasons of its steps."""
    reasons = Counter(edge.reason for edge in drawn.edges[1:] if edge is not None)
    parts = [f"musicsim, {day_of(time.time())}"]
    if seeds:
        more = len(seeds) - _MAX_SEEDS
        names = ", ".join(song.title for song in seeds[:_MAX_SEEDS])
        parts.append(f"around {names}" + (f" and {more} more" if more > 0 else ""))
    if reasons:
        parts.append("; ".join(f"{reason} ({n}x)" for reason, n in reasons.most_common(_MAX_REASONS)))
    return ": ".join([parts[0], " · ".join(parts[1:])]) if parts[1:] else parts[0]


def refresh_lists(now: Snapshot, connection: Connection) -> list[Refreshed]:
    """Draw the playlists of a server that are kept filled again; one that fails leaves the others."""
    done = []
    for name, kept in ServerSongs(now.library).lists(connection.name).items():
        if kept.request is not None:
            done.append(_refreshed(now, connection, name, kept))
    return done


def _refreshed(now: Snapshot, connection: Connection, name: str, kept: ServerList) -> Refreshed:
    try:
        request, around_last = read_request(kept.request or {})
        return Refreshed(connection.name, name, keep_filled(now, connection, name, request, around_last))
    except MusicsimError as error:
        return Refreshed(connection.name, name, None, str(error))
