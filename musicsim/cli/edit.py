"""The commands ``musicsim list``, ``edit`` and ``artists``."""

from typing import Annotated

import typer

from musicsim.cli.console import JsonOption, LibraryOption, echo, emit, open_library, show, song_json, whole
from musicsim.cli.options import take_request
from musicsim.explorer.requests.search import ListRequest, sort_songs
from musicsim.wording import clock


@take_request(ListRequest)
def list_songs(
    request: ListRequest,
    library: LibraryOption = None,
    as_json: JsonOption = False,
    search: Annotated[str, typer.Option("--search", "-s", help="Part of a title or of an artist's name.")] = "",
) -> None:
    with open_library(library) as lib:
        songs = sort_songs((song for song in lib.songs() if song.matches(search)), request)
    if as_json:
        emit([song_json(song) for song in songs])
        return
    heads = ["id", "title", "artist", "album", "year", "genre", "length", "tempo", "key", "LUFS", "bright", "energy"]
    rows = [
        (
            *(s.id, s.title, s.artist or "", s.album or "", s.year or "", s.genre or "", clock(s.duration_s)),
            *(whole(s.tempo), s.key_words, whole(s.loudness), whole(s.brightness), whole(s.energy)),
        )
        for s in songs
    ]
    show(heads, rows)


def edit(
    songs: Annotated[list[int], typer.Argument(help="Song ids, as shown by `musicsim list`.")],
    library: LibraryOption = None,
    as_json: JsonOption = False,
    title: str | None = None,
    artist: str | None = None,
    album_artist: str | None = None,
    album: str | None = None,
    track: int | None = None,
    year: int | None = None,
    genre: str | None = None,
    undo: Annotated[bool, typer.Option("--undo", help="Restore the files' own tags.")] = False,
) -> None:
    """An empty string clears a tag."""
    tags = {
        "title": title, "artist": artist, "album_artist": album_artist, "album": album, "track": track, "year": year,
        "genre": genre,
    }  # fmt: skip
    changes = {name: value for name, value in tags.items() if value is not None}
    with open_library(library) as lib:
        for song_id in songs:
            lib.song(song_id)  # raises before any change
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
            echo(f"{song.id}  {song.label}")


def artists(
    library: LibraryOption = None,
    as_json: JsonOption = False,
    merge: Annotated[list[str] | None, typer.Option(help="A spelling to merge; can be repeated.")] = None,
    into: Annotated[str | None, typer.Option(help="The artist to merge the spellings into.")] = None,
    part: Annotated[str | None, typer.Option(help="Undo the merges into this artist.")] = None,
) -> None:
    with open_library(library) as lib:
        if merge:
            if not into:
                raise typer.BadParameter("give the artist to merge them into: --into NAME")
            lib.edits.merge(merge, into)
        if part:
            lib.edits.part(part)
        groups, aliases = lib.edits.suggestions(), lib.edits.aliases()
    if as_json:
        emit({"suggestions": [[names[0], list(names)] for names in groups], "merged": aliases})
        return
    for names in groups:
        echo(f"{names[0]}: {', '.join(names)}")
    for spelling, artist in aliases.items():
        echo(f"merged: {spelling} into {artist}")
