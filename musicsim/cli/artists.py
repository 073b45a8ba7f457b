"""The command ``musicsim artists``."""

from typing import Annotated

import typer

from musicsim.cli.console import JsonOption, LibraryOption, echo, emit, open_library


def artists(
    library: LibraryOption = None,
    as_json: JsonOption = False,
    merge: Annotated[list[str] | None, typer.Option(help="A spelling to merge; can be repeated.")] = None,
    into: Annotated[str | None, typer.Option(help="The artist to merge the spellings into.")] = None,
    part: Annotated[str | None, typer.Option(help="An artist whose merge is undone.")] = None,
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
        emit({"suggestions": [[g.suggested, list(g.names)] for g in groups], "merged": aliases})
        return
    for group in groups:
        echo(f"{group.suggested}: {', '.join(group.names)}")
    for spelling, artist in aliases.items():
        echo(f"merged: {spelling} into {artist}")
