"""The command ``musicsim missing``."""

from typing import Annotated

import typer

from musicsim.cli._console import JsonOption, LibraryOption, emit, open_library, plain, song_json


def missing(
    library: LibraryOption = None,
    as_json: JsonOption = False,
    forget_all: Annotated[
        bool, typer.Option("--forget", help="Remove them, with their plays, tags and playlist entries.")
    ] = False,
) -> None:
    """List songs whose files are missing. They return with their plays and playlists when a file is found again."""
    with open_library(library) as lib:
        songs = lib.missing_songs()
        if forget_all:
            lib.files.forget_songs(song.id for song in songs)
    if as_json:
        emit([song_json(song) for song in songs])
        return
    for song in songs:
        typer.echo(f"{song.id}  {plain(song.label)}  {plain(str(song.path))}")
    if forget_all:
        typer.echo(f"{len(songs)} song{'s' * (len(songs) != 1)} removed.")
