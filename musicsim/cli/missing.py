"""The commands ``musicsim failed``, ``missing`` and ``forget``."""

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
    song_json,
)
from musicsim.errors import NotFoundError
from musicsim.library import SKIPPED, absolute
from musicsim.wording import count


def list_failures(library: LibraryOption = None, as_json: JsonOption = False) -> None:
    with open_library(library) as lib:
        failures = lib.files.failures()
    if as_json:
        emit([failure_json(f) for f in failures])
    else:
        for failure in failures:
            echo(failure.reason)
    if any(f.kind not in SKIPPED for f in failures):
        raise typer.Exit(SOME_FAILED)


def list_missing(
    library: LibraryOption = None,
    as_json: JsonOption = False,
    forget_all: Annotated[
        bool, typer.Option("--forget", help="Remove these songs, with their plays, tags and playlist entries.")
    ] = False,
) -> None:
    """A missing song returns with its plays and playlists when its file is found again."""
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
        typer.echo(f"{count(len(songs), 'song')} removed.")


def forget(
    folder: Annotated[Path, typer.Argument(help="A folder of the library, as listed by `musicsim info`.")],
    library: LibraryOption = None,
    as_json: JsonOption = False,
) -> None:
    with open_library(library) as lib:
        root = absolute(folder)
        if root not in lib.files.roots():
            raise NotFoundError(f"{root} is not a folder of this library. `musicsim info` lists its folders.")
        n_songs = lib.files.forget_root(root)
    if as_json:
        emit({"folder": str(root), "forgotten": n_songs})
    else:
        typer.echo(f"{count(n_songs, 'song')} removed.")
