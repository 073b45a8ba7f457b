"""The ``musicsim snapshot`` command and the option ``musicsim app --snapshot``."""

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from musicsim.cli import JsonOption, LibraryOption, add_options, emit, open_library, progress_bar
from musicsim.extensions.bundles.bundle import open_bundle, write_bundle
from musicsim.wording import count


def snapshot(
    file: Annotated[
        Path, typer.Argument(help="File to write, such as music.tar.zst; an existing snapshot file is replaced.")
    ],
    library: LibraryOption = None,
    as_json: JsonOption = False,
    with_excerpts: Annotated[
        bool, typer.Option("--with-excerpts", help="Include 30 seconds of each song, so that visitors can listen.")
    ] = False,
    model: Annotated[
        list[str] | None, typer.Option(help="Name of a model to add to the active and built-in models.", metavar="NAME")
    ] = None,
) -> None:
    """The copy contains songs, models, the map and playlists, but no listeners, files, servers or settings.

    Examples:
        musicsim snapshot music.tar.zst
        musicsim snapshot music.tar.zst --with-excerpts --model Mine
    """
    with open_library(library) as lib, progress_bar() as progress:
        n_songs, n_excerpts = write_bundle(lib, file, progress, models=model or (), with_excerpts=with_excerpts)
    n_bytes = file.stat().st_size
    if as_json:
        emit({"file": str(file), "songs": n_songs, "excerpts": n_excerpts, "bytes": n_bytes})
        return
    excerpts = f", {n_excerpts} of them with an excerpt" if with_excerpts else ""
    typer.echo(f"{count(n_songs, 'song')}{excerpts}, {n_bytes / 1e6:.1f} MB: {file}")


@add_options
def add_snapshot_option(
    command: Callable[..., None],
    *,
    snapshot: Annotated[
        Path | None,
        typer.Option(
            help="Serve a snapshot file (see `musicsim snapshot`) to visitors instead of a library; implies --public. "
            "Several processes can serve the same file.",
            metavar="FILE",
        ),
    ] = None,
    **values: Any,
) -> None:
    """Run the app on a library or, if `snapshot` is given, on the library in the snapshot file."""
    if snapshot is None:
        command(**values)
        return
    os.environ.pop("MUSICSIM_PUBLIC", None)  # unpacking is forbidden in a public demonstration
    with ExitStack() as stack:
        with progress_bar(is_noted=False) as progress:
            folder = stack.enter_context(open_bundle(snapshot, progress))
        os.environ["MUSICSIM_PUBLIC"] = "1"
        command(**values | {"library": folder})
