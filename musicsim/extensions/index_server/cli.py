"""The command for the index server: push the songs, and show its state."""

import typer

from musicsim.cli.console import JsonOption, LibraryOption, emit, open_library, plain, progress_bar
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.index_server.push import push
from musicsim.extensions.index_server.remote_index import remote_of


def index(library: LibraryOption = None, as_json: JsonOption = False) -> None:
    """The app and commands that add songs do this automatically."""
    with open_library(library) as lib:
        with progress_bar() as progress:
            is_pushed = push(take_snapshot(lib), progress)
        snapshot = take_snapshot(lib)
        trouble, remote, n = snapshot.search_trouble, remote_of(snapshot), snapshot.n_indexed
    server = None if remote is None else str(remote.server)
    if as_json:
        emit({"server": server, "songs": n, "pushed": is_pushed, "trouble": trouble})
    elif remote is None:
        typer.echo("This machine answers searches; MUSICSIM_INDEX is not set.")
    else:
        typer.echo(plain(trouble or f"{server} answers searches; all {n:,} songs are up to date there."))
