"""The command ``musicsim demo``."""

from typing import Annotated

import typer

from musicsim.cli.console import JsonOption, LibraryOption, emit, open_library, progress_bar
from musicsim.explorer import refresh


def demo(
    library: LibraryOption = None,
    as_json: JsonOption = False,
    seed: Annotated[int, typer.Option(help="A different seed composes different music.")] = 0,
) -> None:
    with open_library(library, create=True) as lib:
        with progress_bar() as progress:
            refresh.build_demo(lib, seed=seed, progress=progress)
        counts = {"library": str(lib.folder), **lib.counts()}
    if as_json:
        emit(counts)
    else:
        typer.echo(f"{counts['songs']} songs and {counts['playlists']} playlists. See them: musicsim app")
