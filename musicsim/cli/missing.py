"""The command ``musicsim missing``."""

from typing import Annotated

import typer

from musicsim.cli.console import JsonOption, LibraryOption, count_songs, echo, emit, open_library, song_json


def missing(
    library: LibraryOption = None,
    as_json: JsonOption = False,
    forget_all: Annotated[
        bool, typer.Option("--forget", help="Remove them, with their plays, tags and playlist entries.")
    ] = False,
) -> None:
    """They return with their plays and playlists when a file is found again."""
    with open_library(library) as lib:
        songs = lib.missing_songs()
        if forget_all:
            lib.files.forget_songs(song.id for song in songs)
    if as_json:
        emit([song_json(song) for song in songs])
        return
    for song in songs:
        echo(f"{song.id}  {song.label}  {song.path}")
    if forget_all:
        typer.echo(f"{count_songs(len(songs))} removed.")
