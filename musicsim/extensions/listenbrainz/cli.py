"""Commands for ListenBrainz: save a user's token, and use it to send playlists."""

from typing import Annotated

import typer

from musicsim.cli import SavedOption, console, load_or_generate, take_request
from musicsim.explorer import PlaylistRequest
from musicsim.extensions.listenbrainz.client import save_token, send_playlist
from musicsim.wording import count

group = typer.Typer(no_args_is_help=True)


@group.command()
def token(
    library: console.LibraryOption = None,
    as_json: console.JsonOption = False,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the saved token.")] = False,
) -> None:
    """Save your ListenBrainz token in the library's folder. The command prompts for the token and hides your input.

    Examples:
        musicsim listenbrainz token
        musicsim listenbrainz token --remove
    """
    with console.open_library(library) as lib:
        save_token(lib, "" if remove else typer.prompt("Token", hide_input=True, err=True))
    console.report(
        {"is_saved": not remove}, "The token was removed." if remove else "The token was saved.", as_json=as_json
    )


@group.command()
@take_request(PlaylistRequest)
def send(
    request: PlaylistRequest,
    name: Annotated[str, typer.Argument(help="Name of the playlist on ListenBrainz.")],
    library: console.LibraryOption = None,
    as_json: console.JsonOption = False,
    saved: SavedOption = None,
    public: Annotated[bool, typer.Option("--visible", help="Make the playlist visible to everyone.")] = False,
    model: console.ModelOption = None,
) -> None:
    """Send a generated or saved playlist to ListenBrainz.

    Songs without a MusicBrainz id cannot be sent. They are listed, and the exit code is then 3.

    Examples:
        musicsim listenbrainz send Evening --saved Evening
        musicsim listenbrainz send Today --minutes 60 --visible
    """
    with console.open_library(library) as lib:
        playlist = load_or_generate(lib, request, saved, model)
        sent = send_playlist(lib, name, playlist.songs, public=public)
    n_sent = len(playlist.songs) - len(sent.lacking)
    if as_json:
        lacking = [console.song_json(song) for song in sent.lacking]
        console.emit({"address": sent.address, "songs": n_sent, "lacking": lacking, "notes": list(playlist.notes)})
    else:
        console.echo("\n".join([f"{count(n_sent, 'song')} sent: {sent.address}", *playlist.notes]))
        for song in sent.lacking:
            console.warn("no MusicBrainz id", song.label)
    if sent.lacking:
        raise typer.Exit(console.SOME_FAILED)
