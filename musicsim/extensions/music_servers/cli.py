"""Commands for music servers: connect and sync servers, and write playlists to them."""

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from musicsim.cli import console, load_or_generate, take_request
from musicsim.errors import ServerError
from musicsim.explorer import PlaylistRequest, snapshot_under
from musicsim.extensions.music_servers.client import Subsonic
from musicsim.extensions.music_servers.connections import Connection, Connections
from musicsim.extensions.music_servers.fetch import sync_and_fetch
from musicsim.extensions.music_servers.lists import SavedList, delete_list, keep_filled, refresh_lists, save_list
from musicsim.extensions.music_servers.server_songs import ServerSongs
from musicsim.extensions.music_servers.sync import remove as remove_server
from musicsim.extensions.music_servers.sync import sync as sync_songs
from musicsim.library import Library, day_of
from musicsim.progress import no_progress
from musicsim.wording import count

_SECRET = "MUSICSIM_SERVER_SECRET"
_MAX_LISTED = 50

NameArgument = Annotated[str, typer.Argument(help="Name of the server.")]
ServersArgument = Annotated[list[str] | None, typer.Argument(help="Names of servers; all by default.")]

group = typer.Typer(no_args_is_help=True)


@contextmanager
def _open(names: list[str] | None, library: Path | None) -> Iterator[tuple[Library, list[Connection]]]:
    """Open a library with its connections to servers, by default all; raises ServerError if there are none."""
    with console.open_library(library) as lib:
        known = Connections(lib)
        connections = [known.get(name) for name in names] if names else known.all()
        if not connections:
            raise ServerError(f"{lib.folder}: no music server is connected. Connect one with `musicsim server add`.")
        yield lib, connections


def add(
    name: NameArgument,
    address: Annotated[str, typer.Argument(help="Address that players use: http://HOST:PORT or https://HOST.")],
    user: Annotated[str, typer.Option(help="User name; not needed with an API key.")] = "",
    api_key: Annotated[bool, typer.Option("--api-key", help="Log in with an API key instead of a password.")] = False,
    send_password: Annotated[
        bool, typer.Option("--send-password", help="Send the password itself, if the server needs it. Use https.")
    ] = False,
    listening: Annotated[bool, typer.Option(help="Import the user's plays, stars and ratings on every sync.")] = True,
    library: console.LibraryOption = None,
    as_json: console.JsonOption = False,
) -> None:
    """Connect a server, or replace the server with this name.

    The command prompts for the password or API key, or reads it from MUSICSIM_SERVER_SECRET. It saves this secret in
    the library's folder, in a file that only you can read, and never shows it.

    Examples:
        musicsim server add home http://localhost:4533 --user anna
        musicsim server add away https://music.example --api-key
    """
    if api_key and send_password:
        raise typer.BadParameter("use --api-key or --send-password, not both.")
    if not (user or api_key):
        raise typer.BadParameter("use --user or --api-key.")
    prompt = "API key" if api_key else "Password"
    secret = os.environ.get(_SECRET) or typer.prompt(prompt, hide_input=True, err=True)
    sends = "key" if api_key else "password" if send_password else "token"
    with console.open_library(library, create=True) as lib:
        connection = Connection(name, address, user, secret, sends, listening)  # type: ignore[arg-type]
        Subsonic(connection).ping()
        Connections(lib).put(connection)
    console.report(
        {"server": name}, f"{name} is connected. Sync its songs with {_command('sync', library)}.", as_json=as_json
    )


def sync(
    names: ServersArgument = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Read all songs, even if the server reports no changes.")
    ] = False,
    fetch: Annotated[
        bool, typer.Option("--fetch", help="Download and analyze songs without a local file; no copy is kept.")
    ] = False,
    library: console.LibraryOption = None,
    as_json: console.JsonOption = False,
) -> None:
    """Read the songs on servers, match them to the library, and import plays, stars and ratings.

    Examples:
        musicsim server sync
        musicsim server sync home --fetch
    """
    reports, n_failed = [], 0
    with _open(names, library) as (lib, connections), console.progress_bar() as progress:
        for connection in connections:
            try:
                synced, fetched = sync_and_fetch(lib, connection, everything=everything, fetch=fetch, progress=progress)
            except ServerError as error:
                console.warn("not synced", error)
                n_failed += 1
                continue
            reports.append((synced, fetched))
            for failure in fetched.failures if fetched else ():
                console.warn("not added", failure)
    if as_json:
        console.emit(
            [asdict(synced) | {"fetched": asdict(fetched) if fetched else None} for synced, fetched in reports]
        )
    else:
        for synced, fetched in reports:
            console.echo(synced.summary + (f" · {fetched.n_added} fetched" if fetched else ""))
            if synced.n_ambiguous:
                typer.echo("`musicsim server review` lists the songs whose match you must choose.")
            if synced.unmatched and fetched is None:
                more = synced.n_unmatched - len(synced.unmatched)
                named = "; ".join(synced.unmatched) + (f"; and {more:,} more" if more else "")
                console.echo(f"Not in the library: {named}. Analyze them with {_command('sync --fetch', library)}.")
    if n_failed:
        raise typer.Exit(console.SOME_FAILED)


def list_servers(library: console.LibraryOption = None, as_json: console.JsonOption = False) -> None:
    """List the servers, how many songs they have, how many are matched, and the playlists written to them.

    Examples:
        musicsim server list
        musicsim server list --json
    """
    rows: list[dict[str, Any]] = []
    with console.open_library(library) as lib:
        songs = ServerSongs(lib)
        counts = songs.counts()
        for c in Connections(lib).all():
            kinds = {name: "saved" if e.request is None else "kept filled" for name, e in songs.lists(c.name).items()}
            n_songs, n_matched, n_ambiguous = counts.get(c.name, (0, 0, 0))
            rows.append({
                "name": c.name, "address": c.address, "user": c.user or None, "songs": n_songs, "matched": n_matched,
                "to_choose": n_ambiguous, "synced": day_of(c.synced_at), "playlists": kinds,
            })  # fmt: skip
    if as_json:
        console.emit(rows)
        return
    for row in rows:  # lines, because a table of eight columns does not fit into a terminal
        facts = [row["address"], row["user"], count(row["songs"], "song"), f"{row['matched']:,} matched"]
        facts += [f"{row['to_choose']:,} to choose"] if row["to_choose"] else []
        facts += [f"synced {row['synced']}" if row["synced"] else "not synced yet"]
        console.echo(f"{row['name']}: {' · '.join(filter(None, facts))}")
        for name, kind in row["playlists"].items():
            console.echo(f"  playlist {name} ({kind})")
    if not rows:
        typer.echo("No music server is connected. Connect one with `musicsim server add`.")


def review(
    name: Annotated[str | None, typer.Argument(help="Name of a server.")] = None,
    server_id: Annotated[str | None, typer.Argument(help="Id of a song on the server.")] = None,
    song: Annotated[
        int | None, typer.Argument(help="Id of the matching song in the library; 0 for no match.", metavar="ID")
    ] = None,
    library: console.LibraryOption = None,
    as_json: console.JsonOption = False,
) -> None:
    """List server songs that match several songs in the library, or choose the match for one server song.

    Examples:
        musicsim server review
        musicsim server review home 5f2a 12
    """
    if name is not None and (server_id is None or song is None):
        raise typer.BadParameter("give a server, the id of a song on it, and the id of a song in the library.")
    with console.open_library(library) as lib:
        if name is not None and server_id is not None:
            ServerSongs(lib).choose(name, server_id, song or None)
            console.report({"server": name, "id": server_id, "song": song or None}, "saved.", as_json=as_json)
            return
        waiting = ServerSongs(lib).ambiguous()
        labels = {s.id: s.label for s in lib.songs({i for _, one in waiting for i in one.candidates or ()})}
    rows: list[dict[str, Any]] = [
        {
            "server": server, "id": one.id, "title": one.title, "artist": one.artist,
            "candidates": {i: labels.get(i, "") for i in one.candidates or ()},
        }
        for server, one in waiting
    ]  # fmt: skip
    if as_json:
        console.emit(rows)
        return
    cells = [
        (*list(row.values())[:4], "; ".join(f"{i}: {label}" for i, label in row["candidates"].items()))
        for row in rows[:_MAX_LISTED]
    ]
    names = ("server", "id", "title", "artist", "which of these?")
    nothing = "No server songs match several songs. `musicsim server sync` matches them again."
    console.show(names, cells, caption=count(len(rows), "song"), empty=nothing)


def save(
    name: NameArgument,
    playlist: Annotated[str, typer.Argument(help="Name of a playlist or rule in this library.")],
    library: console.LibraryOption = None,
    as_json: console.JsonOption = False,
) -> None:
    """Write a saved playlist, or a rule's current songs, to a server, or update them on the server.

    Examples:
        musicsim server save home Evening
        musicsim server save home Jazz --json
    """
    with _open([name], library) as (lib, (connection,)):
        songs = load_or_generate(lib, PlaylistRequest(), playlist, None).songs
        saved = save_list(lib, connection, playlist, [song.id for song in songs], "musicsim")
    _report_saved(saved, as_json=as_json)


@take_request(PlaylistRequest)
def keep(
    request: PlaylistRequest,
    name: NameArgument,
    playlist: Annotated[str, typer.Argument(help="Name of the playlist on the server.")],
    around_last: Annotated[
        int, typer.Option(min=0, max=100, help="Number of recently played songs to base the playlist on.")
    ] = 0,
    library: console.LibraryOption = None,
    as_json: console.JsonOption = False,
    model: console.ModelOption = None,
) -> None:
    """Generate a playlist and write it to a server. `musicsim server refresh` regenerates it.

    Examples:
        musicsim server keep home Today
        musicsim server keep home Today --around-last 10
    """
    with _open([name], library) as (lib, (connection,)):
        saved = keep_filled(snapshot_under(lib, model), connection, playlist, request, around_last)
    _report_saved(saved, as_json=as_json)


def refresh(
    names: ServersArgument = None,
    library: console.LibraryOption = None,
    as_json: console.JsonOption = False,
    model: console.ModelOption = None,
) -> None:
    """Sync servers, and regenerate the playlists that `server keep` wrote to them. Run this command every night.

    Examples:
        musicsim server refresh
        musicsim server refresh home --json
    """
    refreshed, has_failed = [], False
    with _open(names, library) as (lib, connections):
        for connection in connections:
            try:
                sync_songs(lib, connection, no_progress)
            except ServerError as error:
                console.warn("not synced", error)
                has_failed = True
                continue
            refreshed += refresh_lists(snapshot_under(lib, model), connection)
    for one in refreshed:
        if one.saved is None:
            console.warn(f"{console.plain(one.name)} was not changed", one.problem)
            has_failed = True
        elif not as_json:
            _report_saved(one.saved)
    if as_json:
        console.emit([asdict(one) for one in refreshed])
    elif not (refreshed or has_failed):
        typer.echo("Synced. No playlist is kept filled on these servers; `musicsim server keep` creates one.")
    if has_failed:
        raise typer.Exit(console.SOME_FAILED)


def delete(
    name: NameArgument,
    playlist: Annotated[str, typer.Argument(help="Name of a playlist that this library wrote to the server.")],
    library: console.LibraryOption = None,
    as_json: console.JsonOption = False,
) -> None:
    """Delete a playlist that this library wrote to a server.

    Examples:
        musicsim server delete home Today
        musicsim server delete home Today --json
    """
    with _open([name], library) as (lib, (connection,)):
        delete_list(lib, connection, playlist)
    console.report({"server": name, "playlist": playlist}, f"{playlist} was deleted from {name}.", as_json=as_json)


def remove(name: NameArgument, library: console.LibraryOption = None, as_json: console.JsonOption = False) -> None:
    """Disconnect a server; delete its password and its songs that have no local file. The server does not change.

    Examples:
        musicsim server remove home
        musicsim server remove home --json
    """
    with console.open_library(library) as lib:
        remove_server(lib, name)
    console.report({"server": name}, f"{name} was removed.", as_json=as_json)


def _command(verb: str, library: Path | None) -> str:
    """Return a command to run next, for the same library."""
    return f"`musicsim server {verb}{f' --library {shlex.quote(str(library))}' if library else ''}`"


def _report_saved(saved: SavedList, *, as_json: bool = False) -> None:
    if as_json:
        console.emit(asdict(saved))
        return
    absent = f"; {len(saved.absent)} are not on the server" if saved.absent else ""
    typer.echo(
        f"{console.plain(saved.name)}: {count(len(saved.song_ids), 'song')} on {console.plain(saved.server)}{absent}."
    )


for command in (add, sync, list_servers, review, save, keep, refresh, delete, remove):
    group.command("list" if command is list_servers else command.__name__)(command)
