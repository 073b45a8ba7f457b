"""Commands on music servers: connect, sync, and write playlists there."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from musicsim.cli._console import (
    SOME_FAILED,
    JsonOption,
    LibraryOption,
    ModelOption,
    emit,
    open_library,
    plain,
    progress_bar,
    show,
    warn,
)
from musicsim.cli._options import taking
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.extensions.music_servers.server_songs import ServerSongs

_SECRET = "MUSICSIM_SERVER_SECRET"
_MAX_LISTED = 50

NameArgument = Annotated[str, typer.Argument(help="Name of the server.")]
ServersArgument = Annotated[list[str] | None, typer.Argument(help="Names of servers; all by default.")]

group = typer.Typer(no_args_is_help=True, help="Connect music servers (Subsonic, OpenSubsonic).")


@contextmanager
def _asked(names: list[str] | None, library: Any) -> Iterator[tuple[Any, list[Any]]]:
    """The library, and the servers that are named, or all."""
    from musicsim.extensions.music_servers.connections import Connections

    with open_library(library) as lib:
        known = Connections(lib)
        yield lib, [known.get(name) for name in names] if names else known.all()


def add(
    name: NameArgument,
    address: Annotated[str, typer.Argument(help="http://HOST:PORT or https://HOST, as in players.")],
    user: Annotated[str, typer.Option(help="User; not needed with an API key.")] = "",
    api_key: Annotated[bool, typer.Option("--api-key", help="The secret is an API key.")] = False,
    send_password: Annotated[
        bool,
        typer.Option(
            "--send-password", help="Send the password itself, not a token: for servers that know no tokens. Use https."
        ),
    ] = False,
    listening: Annotated[bool, typer.Option(help="Import the user's plays, stars and ratings with every sync.")] = True,
    library: LibraryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Connect a server; a name that is known is replaced.

    The password or API key is asked for, or taken from MUSICSIM_SERVER_SECRET. It is kept in the library's folder in a
    file that only you can read, and is never shown.
    """
    from musicsim.extensions.music_servers.client import Subsonic
    from musicsim.extensions.music_servers.connections import Connection, Connections

    if api_key and send_password:
        raise typer.BadParameter("name --api-key or --send-password, not both.")
    if not (user or api_key):
        raise typer.BadParameter("name a --user, or --api-key.")
    what = "API key" if api_key else "Password"
    secret = os.environ.get(_SECRET) or typer.prompt(what, hide_input=True, err=True)
    sends = "key" if api_key else "password" if send_password else "token"
    with open_library(library, create=True) as lib:
        connection = Connection(name, address, user, secret, sends, listening)  # type: ignore[arg-type]
        Subsonic(connection).ping()
        Connections(lib).put(connection)
    _done({"server": name}, f"{name} is connected. `musicsim server sync` reads its songs.", as_json=as_json)


def sync(
    names: ServersArgument = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Read all songs, even if the server says that none has changed.")
    ] = False,
    fetch: Annotated[
        bool, typer.Option("--fetch", help="Fetch and analyse songs that have no file here; no copy is kept.")
    ] = False,
    library: LibraryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read the songs of servers, match them, and import plays, stars and ratings."""
    from dataclasses import asdict

    from musicsim.errors import ServerError
    from musicsim.extensions.music_servers.job import sync_and_fetch

    done, n_failed = [], 0
    with _asked(names, library) as (lib, connections), progress_bar() as report:
        for connection in connections:
            try:
                came = sync_and_fetch(lib, connection, everything=everything, fetch=fetch, report=report)
            except ServerError as error:
                warn("not synced", error)
                n_failed += 1
                continue
            done.append(came)
            for failure in came[1].failures if came[1] else ():
                warn("not added", failure)
    if as_json:
        emit([asdict(synced) | {"fetched": asdict(got) if got else None} for synced, got in done])
    else:
        for synced, got in done:
            typer.echo(plain(synced.words) + (f" · {got.n_added} fetched" if got else ""))
            if synced.n_ambiguous:
                typer.echo("`musicsim server review` lists the songs to choose.")
    if n_failed:
        raise typer.Exit(SOME_FAILED)


def list_servers(library: LibraryOption = None, as_json: JsonOption = False) -> None:
    """List servers, how many of their songs are matched, and the playlists that were written there."""
    from musicsim.library.importing import day_of

    with _asked(None, library) as (lib, connections):
        counts = ServerSongs(lib).counts()
        rows: list[dict[str, Any]] = [
            {
                "name": c.name,
                "address": c.address,
                "user": c.user or None,
                **dict(zip(("songs", "matched", "to_choose"), counts.get(c.name, (0, 0, 0)), strict=True)),
                "synced": day_of(c.synced_at),
                "playlists": {
                    name: "kept filled" if kept.request is not None else "saved"
                    for name, kept in ServerSongs(lib).lists(c.name).items()
                },
            }
            for c in connections
        ]
    if as_json:
        emit(rows)
        return
    for row in rows:
        row["playlists"] = ", ".join(f"{name} ({kind})" for name, kind in row["playlists"].items())
    if rows:
        show([name.replace("_", " ") for name in rows[0]], [row.values() for row in rows])
    else:
        typer.echo("No music server is connected: `musicsim server add` connects one.")


def review(
    name: Annotated[str | None, typer.Argument(help="Name of a server.")] = None,
    server_id: Annotated[str | None, typer.Argument(help="Id of a song there.")] = None,
    song: Annotated[int | None, typer.Argument(help="Id of the song here that it is; 0 for none.")] = None,
    library: LibraryOption = None,
    as_json: JsonOption = False,
) -> None:
    """List songs of servers that may be one of several here, or say which one a song is."""
    if name is not None and (server_id is None or song is None):
        raise typer.BadParameter("name a server, the id of a song there, and the id of a song here.")
    with open_library(library) as lib:
        if name is not None and server_id is not None:
            ServerSongs(lib).choose(name, server_id, song or None)
            _done({"server": name, "id": server_id, "song": song or None}, "noted.", as_json=as_json)
            return
        waiting = ServerSongs(lib).ambiguous()
        labels = {s.id: s.label for s in lib.songs({i for _, w in waiting for i in w.candidates or ()})}
    rows: list[dict[str, Any]] = [
        {
            "server": where,
            "id": one.id,
            "title": one.title,
            "artist": one.artist,
            "candidates": {i: labels.get(i, "") for i in one.candidates or ()},
        }
        for where, one in waiting
    ]
    if as_json:
        emit(rows)
        return
    words = [
        (*list(row.values())[:4], "; ".join(f"{i}: {label}" for i, label in row["candidates"].items()))
        for row in rows[:_MAX_LISTED]
    ]
    show(("server", "id", "title", "artist", "which one?"), words, caption=f"{len(rows)} songs")


def save(
    name: NameArgument,
    playlist: Annotated[str, typer.Argument(help="Name of a playlist of this library.")],
    library: LibraryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a saved playlist to a server; the one that was written under its name before is updated."""
    from musicsim.errors import NotFoundError
    from musicsim.extensions.music_servers.lists import save_list

    with _asked([name], library) as (lib, (connection,)):
        found = [p for p in lib.playlists() if p.name == playlist]
        if not found:
            raise NotFoundError(f"there is no playlist {playlist!r} in this library.")
        saved = save_list(lib, connection, playlist, found[0].song_ids, "musicsim")
    _tell_saved(saved, as_json=as_json)


@taking(PlaylistRequest)
def keep(
    request: PlaylistRequest,
    name: NameArgument,
    playlist: Annotated[str, typer.Argument(help="Name that the playlist gets on the server.")],
    around_last: Annotated[
        int, typer.Option(min=0, max=100, help="Around so many of the songs that were played last there.")
    ] = 0,
    library: LibraryOption = None,
    as_json: JsonOption = False,
    model: ModelOption = None,
) -> None:
    """Write a playlist to a server that `musicsim server refresh` generates again each time."""
    from musicsim.explorer.snapshot.snapshot import snapshot_under
    from musicsim.extensions.music_servers.server_playlists import keep_filled

    with _asked([name], library) as (lib, (connection,)):
        saved = keep_filled(snapshot_under(lib, model), connection, playlist, request, around_last)
    _tell_saved(saved, as_json=as_json)


def refresh(
    names: ServersArgument = None, library: LibraryOption = None, as_json: JsonOption = False, model: ModelOption = None
) -> None:
    """Sync servers, and generate the playlists that are kept filled there again; for every night."""
    from dataclasses import asdict

    from musicsim.errors import ServerError
    from musicsim.explorer.snapshot.snapshot import snapshot_under
    from musicsim.extensions.music_servers.server_playlists import refresh_lists
    from musicsim.extensions.music_servers.sync import sync as sync_songs

    done, is_all_well = [], True
    with _asked(names, library) as (lib, connections):
        for connection in connections:
            try:
                sync_songs(lib, connection, lambda *_: None)
            except ServerError as error:
                warn("not synced", error)
                is_all_well = False
                continue
            done += refresh_lists(snapshot_under(lib, model), connection)
    for one in done:
        if one.saved is None:
            warn(f"{plain(one.name)} is as it was", one.problem)
            is_all_well = False
        elif not as_json:
            _tell_saved(one.saved)
    if as_json:
        emit([asdict(one) for one in done])
    if not is_all_well:
        raise typer.Exit(SOME_FAILED)


def delete(
    name: NameArgument,
    playlist: Annotated[str, typer.Argument(help="Name of a playlist that was written there from here.")],
    library: LibraryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete a playlist of ours from a server."""
    from musicsim.extensions.music_servers.lists import delete_list

    with _asked([name], library) as (lib, (connection,)):
        delete_list(lib, connection, playlist)
    _done({"server": name, "playlist": playlist}, f"{playlist} is deleted from {name}.", as_json=as_json)


def remove(name: NameArgument, library: LibraryOption = None, as_json: JsonOption = False) -> None:
    """Forget a server, its password, and the songs that have no file here; nothing changes on the server."""
    from musicsim.extensions.music_servers.sync import remove as forget

    with open_library(library) as lib:
        forget(lib, name)
    _done({"server": name}, f"{name} is removed.", as_json=as_json)


def _done(about: dict[str, Any], words: str, *, as_json: bool) -> None:
    emit(about) if as_json else typer.echo(plain(words))


def _tell_saved(saved: Any, *, as_json: bool = False) -> None:
    from dataclasses import asdict

    if as_json:
        emit(asdict(saved))
        return
    missing = f"; {len(saved.absent)} are not there" if saved.absent else ""
    typer.echo(f"{plain(saved.name)}: {len(saved.song_ids)} songs on {plain(saved.server)}{missing}.")


for command in (add, sync, list_servers, review, save, keep, refresh, delete, remove):
    group.command("list" if command is list_servers else command.__name__)(command)
