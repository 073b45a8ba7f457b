"""The ``musicsim answers taste`` command."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from musicsim.cli import JsonOption, LibraryOption, ModelOption, echo, emit, open_library
from musicsim.errors import LibraryError
from musicsim.explorer import snapshot_under
from musicsim.extensions.taste_card.picture import draw_picture
from musicsim.extensions.taste_card.taste import estimate_taste, find_listener
from musicsim.library import atomic_path


def show_taste(
    library: LibraryOption = None,
    listener: Annotated[
        str | None, typer.Option(help="Name of the listener; only needed if several people have answered.")
    ] = None,
    model: ModelOption = None,
    picture: Annotated[Path | None, typer.Option(help="Write the card to this PNG file.", metavar="FILE")] = None,
    as_json: JsonOption = False,
) -> None:
    """Each share has a 95% band. The parts of a combined model count, too.

    Examples:
        musicsim answers taste
        musicsim answers taste --listener anna --picture anna.png
    """
    with open_library(library) as lib:
        name = find_listener(lib.judgments.listeners(), listener)
        taste = estimate_taste(snapshot_under(lib, model), lib.judgments.answers(name), name)
    if picture is not None and not taste.n_needed:
        file = picture.expanduser()
        try:
            with atomic_path(file) as temporary:
                temporary.write_bytes(draw_picture(taste))
        except OSError as error:
            raise LibraryError(f"{file} cannot be written ({error.strerror or error}).") from error
    if as_json:
        parts = [asdict(part) | {"is_shown": part.is_shown} for part in taste.parts]
        emit(asdict(taste) | {"parts": parts, "n_needed": taste.n_needed})
        return
    for line in taste.describe():
        echo(line)
    if picture is not None:
        echo("No picture was written." if taste.n_needed else f"Picture written to {picture}.")
