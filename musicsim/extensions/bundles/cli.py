"""``musicsim snapshot``, which writes a copy of the library for visitors, and ``musicsim app --snapshot``."""

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from musicsim.cli._console import JsonOption, LibraryOption, emit, open_library, progress_bar
from musicsim.cli._options import adding_options
from musicsim.extensions.bundles.bundle import write_bundle
from musicsim.extensions.bundles.unpacking import unpacked


def snapshot(
    file: Annotated[
        Path, typer.Argument(help="Where to write it, as music.tar.zst; an earlier snapshot file there is replaced.")
    ],
    library: LibraryOption = None,
    as_json: JsonOption = False,
    with_excerpts: Annotated[
        bool, typer.Option("--with-excerpts", help="Take 30 seconds of each song along, so that it can be heard.")
    ] = False,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="Name of a further model to take along, besides the one in use and the built-in ones.", metavar="NAME"
        ),
    ] = None,
) -> None:
    """It has songs, models, map, playlists and the walk, and nothing of who listened, of files, servers or settings."""
    with open_library(library) as lib, progress_bar() as progress:
        done = write_bundle(lib, file, progress, models=model or (), with_excerpts=with_excerpts)
    if as_json:
        emit({"file": str(file), "songs": done.n_songs, "excerpts": done.n_excerpts, "bytes": done.n_bytes})
        return
    heard = f", {done.n_excerpts} of them with an excerpt" if with_excerpts else ""
    typer.echo(f"{done.n_songs} songs{heard}, {done.n_bytes / 1e6:.1f} MB: {file}")


@adding_options
def with_bundle(
    command: Callable[..., None],
    *,
    snapshot: Annotated[
        Path | None,
        typer.Option(
            help="Serve a snapshot file (`musicsim snapshot`) instead of a library, as with --public; any number of "
            "processes may.",
            metavar="FILE",
        ),
    ] = None,
    **values: Any,
) -> None:
    """Run the app, on the library that a file holds if one is named."""
    if snapshot is None:
        command(**values)
        return
    os.environ.pop("MUSICSIM_PUBLIC", None)  # visitors may not unpack anything
    with ExitStack() as held:
        with progress_bar(is_noted=False) as progress:
            folder = held.enter_context(unpacked(snapshot, progress))
        os.environ["MUSICSIM_PUBLIC"] = "1"
        command(**values | {"library": folder})
