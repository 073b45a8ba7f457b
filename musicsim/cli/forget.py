"""The command ``musicsim forget``."""

from pathlib import Path
from typing import Annotated

import typer

from musicsim.cli.console import JsonOption, LibraryOption, count_songs, emit, open_library
from musicsim.errors import NotFoundError
from musicsim.library.stores.files import absolute


def forget(
    folder: Annotated[Path, typer.Argument(help="A folder of the library, as `musicsim info` lists it.")],
    library: LibraryOption = None,
    as_json: JsonOption = False,
) -> None:
    with open_library(library) as lib:
        root = absolute(folder)
        if root not in lib.files.roots():
            raise NotFoundError(f"{root} is not a folder of this library: `musicsim info` lists them.")
        n_songs = lib.files.forget_root(root)
    if as_json:
        emit({"folder": str(root), "forgotten": n_songs})
    else:
        typer.echo(f"{count_songs(n_songs)} removed.")
