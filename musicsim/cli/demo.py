"""The command ``musicsim demo``."""

from typing import Annotated

import typer

from musicsim.cli._console import JsonOption, LibraryOption, emit, open_library, progress_bar


def demo(
    library: LibraryOption = None,
    as_json: JsonOption = False,
    seed: Annotated[int, typer.Option(help="A different seed composes different music.")] = 0,
) -> None:
    """Compose the demo collection, add it, and import its listeners, tags and playlists."""
    from musicsim.explorer.refresh.add_music import build_demo

    with open_library(library, create=True) as lib:
        with progress_bar() as report:
            build_demo(lib, seed=seed, report=report)
        counts = {"library": str(lib.folder), **lib.counts()}
    if as_json:
        emit(counts)
    else:
        typer.echo(f"{counts['songs']} songs and {counts['playlists']} playlists. See them: musicsim app")
