"""The ``musicsim factors`` command."""

from typing import Annotated

import typer

from musicsim.cli import (
    JsonOption,
    LibraryOption,
    ModelOption,
    emit,
    nothing_found,
    open_library,
    show,
    take_request,
    warn,
)
from musicsim.explorer import SearchRequest, snapshot_under
from musicsim.extensions.factors.figures import find_with_figures
from musicsim.extensions.factors.rendering import render_comparison
from musicsim.wording import count


@take_request(SearchRequest)
def show_factors(
    request: SearchRequest,
    song: Annotated[int, typer.Argument(help="Id of a song, as shown by `musicsim list`.", metavar="SONG")],
    library: LibraryOption = None,
    as_json: JsonOption = False,
    model: ModelOption = None,
) -> None:
    """Each figure is the percentage of the library's pairs of songs that are farther apart than the two songs.

    Examples:
        musicsim factors 12
        musicsim factors 12 --factor rhythm -k 20
    """
    with open_library(library) as lib:
        snapshot = snapshot_under(lib, model)
        found = find_with_figures(snapshot, song, request)
        if as_json:
            emit(render_comparison(found))
        if not found.hits:
            raise nothing_found(snapshot, song, request)
    if as_json:
        return
    if found.n_missing:
        warn("factors", f"{count(found.n_missing, 'song')} without {request.by} left out.")
    names = list(found.figures[0]) if found.figures else []
    rows = [
        (n, hit.song.id, *("" if figure is None else f"{figure:.1f}%" for figure in figures.values()), hit.song.title,
         hit.song.artist or "")
        for n, (hit, figures) in enumerate(zip(found.hits, found.figures, strict=True), 1)
    ]  # fmt: skip
    show(("", "id", *names, "title", "artist"), rows, caption=f"Library: {lib.name}")
