"""The command ``musicsim edit``."""

from typing import Annotated

import typer

from musicsim.cli._console import JsonOption, LibraryOption, emit, open_library, plain, song_json

_Ids = Annotated[list[int], typer.Argument(help="Ids of songs, as `musicsim list` shows them.")]


def edit(
    songs: _Ids,
    library: LibraryOption = None,
    as_json: JsonOption = False,
    title: str | None = None,
    artist: str | None = None,
    album_artist: str | None = None,
    album: str | None = None,
    track: int | None = None,
    year: int | None = None,
    genre: str | None = None,
    undo: Annotated[bool, typer.Option("--undo", help="Reset to the files' tags.")] = False,
) -> None:
    """Edit tags of songs in the library; the files are not changed. An empty text clears a tag."""
    given = {
        "title": title,
        "artist": artist,
        "album_artist": album_artist,
        "album": album,
        "track": track,
        "year": year,
        "genre": genre,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    with open_library(library) as lib:
        for song_id in songs:
            lib.song(song_id)  # says which one is not there before anything is changed
        if undo:
            lib.edits.undo(songs)
        if changes:
            try:
                lib.edits.edit(songs, changes)
            except ValueError as error:
                raise typer.BadParameter(str(error)) from error
        edited = lib.songs(songs, missing=True)
    if as_json:
        emit([song_json(song) for song in edited])
    else:
        for song in edited:
            typer.echo(f"{song.id}  {plain(song.label)}")
