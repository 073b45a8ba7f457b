"""Commands for ListenBrainz: keep a user's token, and send playlists with it."""

from typing import Annotated

import typer

from musicsim.cli._console import (
    SOME_FAILED,
    JsonOption,
    LibraryOption,
    ModelOption,
    emit,
    open_library,
    plain,
    song_json,
    warn,
)
from musicsim.cli._options import taking
from musicsim.cli.playlist import SavedOption, asked_songs
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.extensions.listenbrainz.client import keep_token, send_playlist

group = typer.Typer(no_args_is_help=True)


def token(
    library: LibraryOption = None, remove: Annotated[bool, typer.Option("--remove", help="Remove the token.")] = False
) -> None:
    """Keep the token of your ListenBrainz account in the library's folder; it is asked for and not shown."""
    with open_library(library) as lib:
        keep_token(lib, "" if remove else typer.prompt("Token", hide_input=True))
    typer.echo("The token is removed." if remove else "The token is kept.")


@taking(PlaylistRequest)
def send(
    request: PlaylistRequest,
    name: Annotated[str, typer.Argument(help="What ListenBrainz is to call the playlist.")],
    library: LibraryOption = None,
    as_json: JsonOption = False,
    saved: SavedOption = None,
    public: Annotated[bool, typer.Option("--public", help="Let everybody see it.")] = False,
    model: ModelOption = None,
) -> None:
    """Send a generated or saved playlist to ListenBrainz, as far as its songs have MusicBrainz ids.

    Exits with code 3 if some have none, which are listed.
    """
    with open_library(library) as lib:
        asked = asked_songs(lib, request, saved, model)
        sent = send_playlist(lib, name, asked.songs, public=public)
    n_sent = len(asked.songs) - len(sent.lacking)
    if as_json:
        lacking = [song_json(song) for song in sent.lacking]
        emit({"address": sent.address, "songs": n_sent, "lacking": lacking, "notes": list(asked.notes)})
    else:
        typer.echo(plain("\n".join([f"{n_sent} songs sent: {sent.address}", *asked.notes])))
        for song in sent.lacking:
            warn("has no MusicBrainz id", song.label)
    if sent.lacking:
        raise typer.Exit(SOME_FAILED)


group.command("token")(token)
group.command("send")(send)
