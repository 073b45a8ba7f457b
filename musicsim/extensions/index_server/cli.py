"""The command for the index server: push the songs, and show the server's state."""

import typer

from musicsim.cli import JsonOption, LibraryOption, emit, open_library, plain, progress_bar
from musicsim.explorer import take_snapshot
from musicsim.extensions.index_server.push import push
from musicsim.extensions.index_server.remote_index import remote_of


def index(library: LibraryOption = None, as_json: JsonOption = False) -> None:
    """The app does this automatically, and so do the commands that add songs.

    Examples:
        musicsim index
        musicsim index --json
    """
    with open_library(library) as lib:
        with progress_bar() as progress:
            is_pushed = push(take_snapshot(lib), progress)
        snapshot = take_snapshot(lib)
        trouble, remote, n = snapshot.search_trouble, remote_of(snapshot), snapshot.n_indexed
    server = None if remote is None else str(remote.server)
    if as_json:
        emit({"server": server, "songs": n, "pushed": is_pushed, "trouble": trouble})
    elif remote is None:
        typer.echo("Searches run on this machine, because MUSICSIM_INDEX is not set.")
    else:
        typer.echo(plain(trouble or f"Searches run on {server}. All {n:,} songs are up to date there."))
