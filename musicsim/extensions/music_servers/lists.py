"""This library's playlists on a server: save, regenerate and delete them without changing other playlists."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from musicsim.errors import LibraryError, MusicsimError, NotFoundError
from musicsim.explorer import GeneratedPlaylist, PlaylistRequest, Snapshot, list_changes, read_changes, share_walk
from musicsim.extensions.music_servers.client import RefusedError, Subsonic
from musicsim.extensions.music_servers.connections import Connection
from musicsim.extensions.music_servers.server_songs import ServerSongs
from musicsim.extensions.music_servers.sync import list_last_played
from musicsim.library import Library, Song, day_of

AROUND_LAST = "around_last"
"""Key in a saved request for the number of recently played songs on which to base the playlist."""

_MAX_REASONS = 4
_MAX_SEEDS = 3  # maximum number of titles in a comment
_MAX_COMMENT = 500  # maximum number of characters in a comment; servers do not show more


@dataclass(frozen=True, slots=True)
class SavedList:
    server: str
    name: str
    id: str  # the server's id for the playlist
    song_ids: tuple[int, ...]  # songs in the playlist
    absent: tuple[int, ...]  # songs that are not on the server


def save_list(
    library: Library, connection: Connection, name: str, song_ids: Sequence[int], comment: str,
    request: Mapping[str, Any] | None = None,
) -> SavedList:  # fmt: skip
    """Write a playlist to a server, and save its `request` for later refreshes.

    A playlist with the same name is replaced only if this library wrote it.
    """
    songs, client = ServerSongs(library), Subsonic(connection)
    ids = songs.ids_of(song_ids, connection.name)
    present = tuple(song_id for song_id in song_ids if song_id in ids)
    if not present:
        raise NotFoundError(f"{connection.name}: the server has none of the songs in “{name}”. Sync the server first.")
    known, server_ids = songs.lists(connection.name).get(name), [ids[i] for i in present]
    try:
        if known is not None:
            client.replace_playlist(known.id, name, server_ids)
    except RefusedError as error:
        if not error.is_not_found:
            raise
        known = None  # the playlist was deleted on the server
    list_id = known.id if known is not None else client.create_playlist(name, server_ids)
    # save the id before anything else can fail, so that the next save replaces this playlist
    songs.keep_list(connection.name, name, list_id, request)
    client.describe_playlist(list_id, comment[:_MAX_COMMENT])
    absent = tuple(song_id for song_id in song_ids if song_id not in ids)
    return SavedList(connection.name, name, list_id, present, absent)


def delete_list(library: Library, connection: Connection, name: str) -> None:
    """Delete a playlist from a server. Raises NotFoundError if this library did not write it."""
    known = ServerSongs(library).lists(connection.name).get(name)
    if known is None:
        raise NotFoundError(f"{connection.name}: the server has no playlist “{name}” from this library.")
    Subsonic(connection).delete_playlist(known.id)
    ServerSongs(library).forget_list(connection.name, name)


@dataclass(frozen=True, slots=True)
class Refreshed:
    server: str
    name: str
    saved: SavedList | None
    problem: str = ""


def encode_request(request: PlaylistRequest, around_last: int = 0) -> dict[str, Any]:
    """Return a request as JSON values; options with default values are omitted."""
    return list_changes(request) | ({AROUND_LAST: around_last} if around_last else {})


def read_request(saved: Mapping[str, Any]) -> tuple[PlaylistRequest, int]:
    """Return a saved request and its `around_last`. Raises LibraryError if an option or value is unknown."""
    values = dict(saved)
    around_last = values.pop(AROUND_LAST, 0)
    try:
        return read_changes(PlaylistRequest, values), int(around_last)
    except (TypeError, ValueError) as error:
        raise LibraryError(f"the saved request cannot be read ({error}). Save the playlist again.") from error


def keep_filled(
    snapshot: Snapshot, connection: Connection, name: str, request: PlaylistRequest, around_last: int = 0
) -> SavedList:
    """Generate a playlist, write it to a server, and save the request for :func:`refresh_lists`."""
    seeds: list[Song] = []
    to_save = encode_request(request, around_last)
    if around_last:
        seeds = snapshot.library.songs(list_last_played(snapshot.library, connection, around_last))
        if not seeds:
            raise NotFoundError(
                f"{connection.name}: no song of this library was played there. Play some songs, then sync the server."
            )
        request = replace(request, like=tuple(song.id for song in seeds))
    drawn = share_walk(snapshot).generate(request, request.seed)
    ids = [song.id for song in drawn.songs]
    return save_list(snapshot.library, connection, name, ids, comment_of(drawn, seeds), to_save)


def comment_of(drawn: GeneratedPlaylist, seeds: Sequence[Song] = ()) -> str:
    """Return the comment for a playlist: the date, the songs that the playlist is based on, and its main reasons."""
    steps = [edge.reason for edge in drawn.edges[1:] if edge is not None and edge.reason]
    reasons = Counter(fact for reason in steps for fact in reason.split(" · "))
    facts = []
    if seeds:
        more = len(seeds) - _MAX_SEEDS
        names = ", ".join(song.title for song in seeds[:_MAX_SEEDS])
        facts.append(f"around {names}" + (f" and {more} more" if more > 0 else ""))
    if reasons:
        facts.append("; ".join(f"{reason} ({n}x)" for reason, n in reasons.most_common(_MAX_REASONS)))
    return f"musicsim, {day_of(time.time())}" + (f": {' · '.join(facts)}" if facts else "")


def refresh_lists(snapshot: Snapshot, connection: Connection) -> list[Refreshed]:
    """Regenerate a server's playlists that have a saved request; if one fails, continue with the others."""
    refreshed = []
    for name, entry in ServerSongs(snapshot.library).lists(connection.name).items():
        if entry.request is not None:
            try:
                saved = keep_filled(snapshot, connection, name, *read_request(entry.request))
                refreshed.append(Refreshed(connection.name, name, saved))
            except MusicsimError as error:
                refreshed.append(Refreshed(connection.name, name, None, str(error)))
    return refreshed
