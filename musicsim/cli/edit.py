"""The ``musicsim edit``, ``artists``, ``duplicates``, ``failed``, ``missing`` and ``forget`` commands."""

from pathlib import Path
from typing import Annotated

import typer

from musicsim.cli.console import (
    SOME_FAILED,
    JsonOption,
    LibraryOption,
    echo,
    emit,
    failure_json,
    open_library,
    show,
    song_json,
)
from musicsim.errors import NotFoundError
from musicsim.explorer.snapshot.same_sound import agreements, groups
from musicsim.library import SKIPPED, absolute
from musicsim.wording import clock, count


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def edit(
    songs: Annotated[list[int], typer.Argument(help="Song ids, as shown by `musicsim list`.")],
    library: LibraryOption = None,
    as_json: JsonOption = False,
    title: Annotated[str | None, typer.Option(help="New title.")] = None,
    artist: Annotated[str | None, typer.Option(help="New artist.")] = None,
    album_artist: Annotated[str | None, typer.Option(help="New album artist.")] = None,
    album: Annotated[str | None, typer.Option(help="New album.")] = None,
    track: Annotated[int | None, typer.Option(help="New number on the album.")] = None,
    year: Annotated[int | None, typer.Option(help="New year.")] = None,
    genre: Annotated[str | None, typer.Option(help="New genre.")] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Restore the files' own tags.")] = False,
) -> None:
    """An empty string clears a tag.

    Examples:
        musicsim edit 12 --title "So What"
        musicsim edit 12 13 14 --genre Jazz --year 1959
    """
    tags = {
        "title": title, "artist": artist, "album_artist": album_artist, "album": album, "track": track, "year": year,
        "genre": genre,
    }  # fmt: skip
    changes = {name: value for name, value in tags.items() if value is not None}
    with open_library(library) as lib:
        for song_id in songs:
            lib.song(song_id)  # raises an error before anything changes
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
    merge: Annotated[
        list[str] | None, typer.Option(help="A spelling to merge; can be repeated.", metavar="ARTIST")
    ] = None,
    into: Annotated[str | None, typer.Option(help="The artist to merge the spellings into.", metavar="ARTIST")] = None,
    unmerge: Annotated[str | None, typer.Option(help="Undo the merges into this artist.", metavar="ARTIST")] = None,
) -> None:
    """Examples:
    musicsim artists
    musicsim artists --merge Beatles --into "The Beatles"
    """
    with open_library(library) as lib:
        if merge:
            if not into:
                raise typer.BadParameter("give the artist to merge them into: --into NAME")
            lib.edits.merge(merge, into)
        if unmerge:
            lib.edits.part(unmerge)
        suggestions, aliases = lib.edits.suggestions(), lib.edits.aliases()
    if as_json:
        emit({"suggestions": [[names[0], list(names)] for names in suggestions], "merged": aliases})
        return
    if not (suggestions or aliases):
        echo("No artist has several spellings. To merge two names, use --merge NAME --into ARTIST.")
    for names in suggestions:
        echo(f"{names[0]}: {', '.join(names)}")
    for spelling, artist in aliases.items():
        echo(f"merged: {spelling} into {artist}")


def duplicates(
    library: LibraryOption = None,
    as_json: JsonOption = False,
    separate: Annotated[
        tuple[int, int] | None, typer.Option(help="Mark two songs, given by id, as different.", metavar="ID ID")
    ] = None,
    join: Annotated[
        tuple[int, int] | None, typer.Option(help="Undo --separate for two songs, given by id.", metavar="ID ID")
    ] = None,
) -> None:
    """Examples:
    musicsim duplicates
    musicsim duplicates --separate 12 40
    """
    with open_library(library) as lib:
        for pair, is_same in ((separate, False), (join, True)):
            if pair is not None and not lib.duplicates.judge(pair, is_same=is_same):
                raise NotFoundError(f"{pair[0]} and {pair[1]} are not listed as duplicates.")
        pairs = lib.duplicates.pairs()
        duplicate_groups = groups(lib.songs(), pairs)
    agreement_of = agreements(pairs)

    matched = [
        [(song, agreement_of.get(frozenset((group[0].id, song.id)))) for song in group] for group in duplicate_groups
    ]
    if as_json:
        emit([[song_json(song) | {"match": match} for song, match in group] for group in matched])
        return
    rows = [
        (number, song.id, song.title, song.by, clock(song.duration_s), _share(match), song.path)
        for number, group in enumerate(matched, 1)
        for song, match in group
    ]
    show(
        ("group", "id", "title", "artist", "length", "match", "file"),
        rows,
        empty="No songs are duplicates. After you add music, look again.",
    )


def list_failures(library: LibraryOption = None, as_json: JsonOption = False) -> None:
    """Examples:
    musicsim failed
    musicsim failed --json
    """
    with open_library(library) as lib:
        failures = lib.files.failures()
    if as_json:
        emit([failure_json(f) for f in failures])
    elif failures:
        for failure in failures:
            echo(failure.reason)
    else:
        echo("No files failed or were skipped. `musicsim scan` looks for new files.")
    if any(f.kind not in SKIPPED for f in failures):
        raise typer.Exit(SOME_FAILED)


def list_missing(
    library: LibraryOption = None,
    as_json: JsonOption = False,
    forget_all: Annotated[
        bool, typer.Option("--forget", help="Remove these songs, with their plays, tags and playlist entries.")
    ] = False,
) -> None:
    """A missing song returns with its plays and playlists when its file is found again.

    Examples:
        musicsim missing
        musicsim missing --forget
    """
    with open_library(library) as lib:
        songs = lib.missing_songs()
        if forget_all:
            lib.files.forget_songs(song.id for song in songs)
    if as_json:
        emit([song_json(song) for song in songs])
        return
    for song in songs:
        echo(f"{song.id}  {song.label}  {song.path}")
    if not songs:
        echo("No songs are missing. `musicsim scan` looks at the files again.")
    elif forget_all:
        typer.echo(f"{count(len(songs), 'song')} removed.")


def forget(
    folder: Annotated[
        Path, typer.Argument(help="A folder in the library, as listed by `musicsim info`.", metavar="FOLDER")
    ],
    library: LibraryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Examples:
    musicsim forget ~/Music/Old
    musicsim forget /mnt/usb --library ~/jazz
    """
    with open_library(library) as lib:
        root = absolute(folder)
        if root not in lib.files.roots():
            raise NotFoundError(f"{root} is not a folder of this library. `musicsim info` lists its folders.")
        n_songs = lib.files.forget_root(root)
    if as_json:
        emit({"folder": str(root), "forgotten": n_songs})
    else:
        typer.echo(f"{count(n_songs, 'song')} removed.")
